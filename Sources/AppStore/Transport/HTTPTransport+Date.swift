import AsyncHTTPClient
import Foundation
import NIOHTTP1
import Reconciliation

extension HTTPTransport {
  /// Returns the `Date` header of a server's answer, if there is one.
  package func date(at url: String, userAgent: String) async throws(CancellationError) -> Result<Instant?, HTTPFailure>
  {
    var request = HTTPClientRequest(url: url)
    request.headers.add(name: "User-Agent", value: userAgent)
    return try await send(request).map { $0.headers.first(name: "Date").flatMap(HTTPTransport.date) }
  }

  /// RFC 9110, 5.6.7: `Sun, 06 Nov 1994 08:49:37 GMT`.
  static func date(_ text: String) -> Instant? {
    let format = DateFormatter()
    format.locale = Locale(identifier: "en_US_POSIX")
    format.timeZone = .gmt
    format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss zzz"
    return format.date(from: text).map { Instant(seconds: Int64($0.timeIntervalSince1970)) }
  }
}
