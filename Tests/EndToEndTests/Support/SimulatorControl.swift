import AppStore
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

struct SimulatorControl {
  let port: Int
  /// Shared by all tests, because a client must be shut down before it is released.
  static let transport = HTTPTransport()

  static let fair =
    #"{"outage":false,"errorRate":0,"garbageRate":0,"latency":"0","latencyJitter":0,"force":[]}"#

  @discardableResult
  func turn(_ path: String, _ body: String) async throws -> [String: Any] {
    var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)/simulator/\(path)")
    request.method = .POST
    request.body = .bytes(ByteBuffer(string: body))
    let reply = try await Self.transport.send(request).get()
    guard reply.status == 200 else {
      throw Program.Failure(
        "HTTP \(reply.status) for \(body): \(String(decoding: reply.body.readableBytesView, as: UTF8.self))")
    }
    let fields = try JSONSerialization.jsonObject(with: Data(reply.body.readableBytesView)) as? [String: Any]
    return fields ?? [:]
  }
}
