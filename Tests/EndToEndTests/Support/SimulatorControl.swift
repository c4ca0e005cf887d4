import AppStore
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

/// The knobs of a simulator that is running.
struct SimulatorControl {
  let port: Int
  /// For as long as the tests run: a client that is let go of must be shut down first.
  static let transport = HTTPTransport()

  /// Everything is fair again.
  static let fair =
    #"{"outage":false,"errorRate":0,"garbageRate":0,"latency":"0","latencyJitter":0,"force":[]}"#

  /// Turns knobs, and gives what is answered.
  @discardableResult
  func turn(_ path: String, _ body: String) async throws -> [String: Any] {
    var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)/simulator/\(path)")
    request.method = .POST
    request.body = .bytes(ByteBuffer(string: body))
    let reply = try await Self.transport.send(request).get()
    guard reply.status == 200 else {
      throw Rehearsal.Failure(
        "HTTP \(reply.status) for \(body): \(String(decoding: reply.body.readableBytesView, as: UTF8.self))")
    }
    let fields = try JSONSerialization.jsonObject(with: Data(reply.body.readableBytesView)) as? [String: Any]
    return fields ?? [:]
  }
}
