import AsyncHTTPClient
import NIOCore
import NIOHTTP1

/// Downloads root certificates from Apple or from a mirror. Neither is trusted: the fingerprint decides.
package struct RootCertificateDownload: Sendable {
  private let transport: HTTPTransport
  private let mirror: EndpointURL?
  private let userAgent: String

  /// - Parameter mirror: the base URL of files with Apple's names; nil for Apple's own URLs.
  package init(transport: HTTPTransport, mirror: EndpointURL?, version: String) {
    (self.transport, self.mirror) = (transport, mirror)
    userAgent = "night-audit/\(version)"
  }

  package func address(of pin: TrustedRoots.PinnedRoot) -> String {
    mirror.map { "\($0.base)/\(pin.fileName)" } ?? pin.address
  }

  package func content(of pin: TrustedRoots.PinnedRoot) async throws(CancellationError) -> Result<[UInt8], Silence> {
    var request = HTTPClientRequest(url: address(of: pin))
    request.headers = ["User-Agent": userAgent]
    return try await transport.send(request).flatMap { reply in
      reply.status == 200
        ? .success(Array(reply.body.readableBytesView)) : .failure(.appleError("HTTP \(reply.status)"))
    }
  }
}
