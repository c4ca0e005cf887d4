/// Tells from curl's exit code (curl(1)) if a retry in the same night can help.
enum CurlFailure {
  static func isTransient(exitCode: Int32, message: String) -> Bool {
    switch exitCode {
    // Proxy, host or connection; unexpected greeting, partial file, timeout, TLS handshake, empty answer, sending,
    // receiving, HTTP/2 framing.
    case 5, 6, 7, 8, 16, 18, 28, 35, 52, 55, 56, 92: true
    // Server errors and rate limits; other refusals are permanent.
    case 22: [" 429", " 408", " 50"].contains { message.contains($0) }
    default: false
    }
  }
}
