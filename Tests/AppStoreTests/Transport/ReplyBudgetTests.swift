import AsyncHTTPClient
import Gzip
import NIOCore
import Reconciliation
import Testing

@testable import AppStore

@Suite struct ReplyBudgetTests {
  @Test("Forty large, slow answers at once are all read, within the limit plus one answer")
  func manyAtOnce() async throws {
    let (size, limit) = (1 << 20, 8 << 20)
    let body = [UInt8](repeating: 0x20, count: size)
    for answer in [
      ScriptedServer.Reply.dripping(body), .http(200, try #require(Gunzip.compressed(body)), headers: gzip),
    ] {
      let budget = ReplyBudget(limit: limit)
      let lengths = try await asked(40, answer, of: budget) { $0.body.readableBytes }
      #expect(lengths == Array(repeating: size, count: 40))
      // The number kept at once depends on the machine: one at least. A buffer may be twice as large as its content.
      #expect(budget.most >= size && budget.most <= limit + 2 * size)
    }
  }

  @Test("One answer may be larger than the budget")
  func largerThanTheLimit() async throws {
    let budget = ReplyBudget(limit: 1 << 10)
    let body = [UInt8](repeating: 0x20, count: 300_000)
    let lengths = try await asked(20, .http(200, body), of: budget) { $0.body.readableBytes }
    #expect(lengths == Array(repeating: body.count, count: 20))
    #expect(budget.most <= 1 << 10 + 1 << 19)
  }

  @Test("Hanging answers do not block others after their timeout")
  func hanging() async throws {
    let budget = ReplyBudget(limit: 64 << 10)
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n"
    let half = Array(head.utf8) + [UInt8](repeating: 0x20, count: 200_000)
    _ = try await asked(10, .bytes(half), of: budget, timeout: Span(microseconds: 300_000)) { _ in 0 }
    let body = [UInt8](repeating: 0x20, count: 200_000)
    let lengths = try await asked(10, .http(200, body), of: budget) { $0.body.readableBytes }
    #expect(lengths == Array(repeating: 200_000, count: 10))
  }

  @Test("A compressed bomb is refused before it fills the memory")
  func bomb() async throws {
    let bomb = try #require(Gunzip.compressed([UInt8](repeating: 0x20, count: 64 << 20), level: 9))
    let budget = ReplyBudget(limit: 4 << 20)
    let lengths = try await asked(8, .http(200, bomb, headers: gzip), of: budget) { $0.body.readableBytes }
    #expect(lengths.isEmpty)
    #expect(budget.most <= 4 << 20 + HTTPTransport.maximumBodyBytes)
  }

  @Test("A share is released with its last reply, and a cancelled request takes none")
  func turns() async throws {
    let budget = ReplyBudget(limit: 100)
    var first: ReplyBudget.Share? = ReplyBudget.Share(of: budget)
    let ahead = ReplyBudget.Share(of: budget)
    try await first?.grow(by: 90)
    // No other share is beyond the limit, so that this one may be.
    try await ahead.grow(by: 40)
    #expect(budget.most == 130)
    let waiting = ReplyBudget.Share(of: budget)
    let cancelled = Task { try await ReplyBudget.Share(of: budget).grow(by: 40) }
    let waits = Task { try await waiting.grow(by: 40) }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    try await ahead.grow(by: 10)
    first = nil
    try await waits.value
    #expect(budget.most == 140)
  }

  private let gzip = ["Content-Encoding": "gzip"]

  private func asked(
    _ count: Int, _ reply: ScriptedServer.Reply, of budget: ReplyBudget, timeout: Span = .seconds(300),
    _ read: @Sendable @escaping (HTTPReply) -> Int
  ) async throws -> [Int] {
    try await ScriptedServer.run(["/answer": [reply]]) { _, port in
      let transport = HTTPTransport(timeout: timeout, concurrency: count, proxies: .none, budget: budget)
      let lengths = try await withThrowingTaskGroup(of: Int?.self) { group in
        for _ in 0..<count {
          group.addTask {
            let result = try await transport.send(HTTPClientRequest(url: "http://127.0.0.1:\(port)/answer"))
            return try? read(result.get())
          }
        }
        return try await group.reduce(into: [Int]()) { lengths, length in if let length { lengths.append(length) } }
      }
      await transport.shutdown()
      return lengths
    }
  }
}
