import AsyncHTTPClient
import NIOCore
import NIOHTTP1

/// Fetches root certificates from Apple, or from a mirror of yours. Neither is trusted: the fingerprint decides.
package struct RootCertificateDownload: Sendable {
  /// Why a certificate could not be fetched; fit to be shown.
  package struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String
  }

  private let transport: HTTPTransport
  private let mirror: EndpointURL?
  private let userAgent: String

  /// - Parameters:
  ///   - mirror: where the files lie under the names that Apple gives them; nil for Apple's own addresses.
  ///   - version: of this program, for the `User-Agent` header.
  package init(transport: HTTPTransport, mirror: EndpointURL?, version: String) {
    self.transport = transport
    self.mirror = mirror
    userAgent = "night-audit/\(version)"
  }

  /// Where the certificate is fetched from.
  package func address(of pin: TrustedRoots.Pin) -> String {
    guard let mirror else { return pin.address }
    return mirror.text + (mirror.text.hasSuffix("/") ? "" : "/") + pin.fileName
  }

  /// Whatever is at the certificate's address. Throws only when the task is cancelled before it is there.
  package func content(of pin: TrustedRoots.Pin) async throws(CancellationError) -> Result<[UInt8], Failure> {
    var request = HTTPClientRequest(url: address(of: pin))
    request.headers = ["User-Agent": userAgent]
    switch try await transport.send(request) {
    case .failure(.unreachable(let detail)), .failure(.unreadable(let detail)):
      return .failure(Failure(description: detail))
    case .success(let reply):
      guard reply.status == 200 else { return .failure(Failure(description: "HTTP \(reply.status)")) }
      return .success(Array(reply.body.readableBytesView))
    }
  }
}
