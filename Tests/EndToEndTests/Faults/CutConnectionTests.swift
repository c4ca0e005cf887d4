import Foundation
import Postgres
import TestSupport
import Testing

/// A night whose connections break in each phase of the protocol, between and within messages.
///
/// `TEST_EFFORT=n` cuts n times as often, and from 30 on at every message; `TEST_SEED=s` repeats a failure.
@Suite(.serialized) struct CutConnectionTests {
  /// All connections are cut, and nothing partial is published.
  @Test func cutConnectionsPublishNothingPartial() async throws {
    let repeated = try await RepeatedNight.shared()
    let server = try await PrivatePostgres.shared().directory
    var positions = SeededGenerator(seed: TortureSettings.seed)
    var disturbed = 0
    let cuts = 2 * TortureSettings.effort
    // A connection of the small shop's night receives about a quarter of that of the whole shop.
    let most = TortureSettings.effort > 1 ? 250_000 : 60_000
    for attempt in 0..<cuts {
      let limit = Int.random(in: 1...(attempt % 2 == 0 ? 5_000 : most), using: &positions)
      let night = try await repeated.begin()
      let relay = try DisconnectingRelay(before: server, limit: limit)
      let cut = await
        (try night.start(
          through: night.conninfo.replacing("host=\(server)", with: "host=\(relay.directory)"))).finish()
      let what: Comment = "TEST_SEED=\(TortureSettings.seed), each connection cut after \(limit) bytes: \(cut)"
      // 69: the database was unreachable. 3, as without a cut: nothing relevant was cut.
      #expect([3, 69].contains(cut.status), what)
      disturbed += cut.status == 69 ? 1 : 0
      try night.isWholeOrSaid(cut, of: repeated.wanted, what)
      try await night.isMadeWhole(what)
      #expect(try night.files() == repeated.wanted, what)
    }
    #expect(disturbed * 2 >= cuts)
  }

  /// One connection is cut, before and within the first, the middle and the last message of each kind.
  @Test func aCutInEachProtocolPhasePublishesNothingPartial() async throws {
    let repeated = try await RepeatedNight.shared()
    let calm = try await repeated.begin()
    let passage = try await DatabaseProxy(
      to: calm.conninfo, cut: DatabaseProxy.Message(kind: "none", number: 0, isHalf: false))
    #expect(await (try calm.start(through: passage)).finish().status == 3)
    let kinds = try await passage.messages().filter { $0.key.first == ">" || $0.key.first == "<" }
    // Startup, both query protocols, rows, both directions of COPY, and termination.
    for kind in [
      ">", "<R", "<Z", ">Q", ">P", ">B", ">E", ">S", "<T", "<D", "<C", "<H", "<d", "<c", "<G", ">d", ">c", ">X",
    ] {
      #expect(kinds[kind, default: 0] > 0, "\(kind) of \(kinds)")
    }
    let all = kinds.keys.sorted().flatMap { kind in
      Set([1, (kinds[kind, default: 1] + 1) / 2, kinds[kind, default: 1]]).sorted().flatMap { number in
        [false, true].map { DatabaseProxy.Message(kind: kind, number: number, isHalf: $0) }
      }
    }
    var generator = SeededGenerator(seed: TortureSettings.seed)
    let count = 4 * TortureSettings.effort
    let drawn = count < all.count ? Array(all.shuffled(using: &generator).prefix(count)) : all
    print("CutConnectionTests: \(drawn.count) of \(all.count) instants, TEST_SEED=\(TortureSettings.seed)")
    var statuses: [Int32: Int] = [:]
    for message in drawn {
      let night = try await repeated.begin()
      let passage = try await DatabaseProxy(to: night.conninfo, cut: message)
      let cut = await (try night.start(through: passage)).finish()
      let what: Comment = "TEST_SEED=\(TortureSettings.seed), \(message): \(cut)"
      if message.number == 1 { #expect(try await passage.messages()["cut"] == 1, what) }
      passage.stop()
      #expect([3, 69].contains(cut.status), what)
      statuses[cut.status, default: 0] += 1
      try night.isWholeOrSaid(cut, of: repeated.wanted, what)
      try await night.isMadeWhole(what)
      #expect(try night.files() == repeated.wanted, what)
    }
    print("CutConnectionTests: ended with \(statuses)")
  }
}
