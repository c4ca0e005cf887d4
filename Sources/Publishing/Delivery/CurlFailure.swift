/// Whether trying again the same night can help, by how curl ended (curl(1), exit codes).
enum CurlFailure {
  static func isTransient(exitCode: Int32, message: String) -> Bool {
    switch exitCode {
    // Proxy, host or connection; a strange greeting, a partial file, a timeout, TLS handshake, an empty answer, sending,
    // receiving, HTTP/2 framing.
    case 5, 6, 7, 8, 16, 18, 28, 35, 52, 55, 56, 92: true
    // The server's own trouble, or too much at once; what it refuses tonight it will refuse again.
    case 22: [" 429", " 408", " 50"].contains { message.contains($0) }
    default: false
    }
  }
}
