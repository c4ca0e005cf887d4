import AppStore
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

enum SimulatorControl {
  /// Shared by all tests, because a client must be shut down before it is released.
  static let transport = HTTPTransport()

  static let fair =
    #"{"outage":false,"errorRate":0,"garbageRate":0,"latency":"0","latencyJitter":0,"force":[]}"#
}

extension TestShop {
  /// Changes the simulated App Store, and returns its answer.
  @discardableResult
  func control(_ path: String, _ body: String) async throws -> [String: Any] {
    var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)/simulator/\(path)")
    request.method = .POST
    request.body = .bytes(ByteBuffer(string: body))
    let reply = try await SimulatorControl.transport.send(request).get()
    let text = String(decoding: reply.body.readableBytesView, as: UTF8.self)
    guard reply.status == 200 else { throw Program.Failure("HTTP \(reply.status) for \(body): \(text)") }
    return try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] ?? [:]
  }
}
