import AsyncHTTPClient
import NIOCore
import NIOHTTP1

extension HTTPTransport {
  /// Posts plain text to a server other than Apple's. Returns the reason of a failure, or nil.
  package func post(_ text: String, to url: String) async -> String? {
    var request = HTTPClientRequest(url: url)
    request.method = .POST
    request.headers.add(name: "Content-Type", value: "text/plain; charset=utf-8")
    request.headers.add(name: "User-Agent", value: "night-audit")
    request.body = .bytes(ByteBuffer(string: text))
    do throws(CancellationError) {
      switch try await send(request) {
      case .success(let reply): return (200..<300).contains(reply.status) ? nil : "HTTP \(reply.status)"
      case .failure(.unreachable(let problem)), .failure(.unreadable(let problem)): return problem
      }
    } catch {
      return "cancelled"
    }
  }
}
