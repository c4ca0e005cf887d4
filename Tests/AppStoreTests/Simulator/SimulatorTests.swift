import AppStore
import Foundation
import Reconciliation
import Testing

@Suite(.timeLimit(.minutes(10)))
struct SimulatorTests {
  private static let token = Statement<String?>.stated("7e3fb204-2b3c-4f4e-8a3e-7f3c9c1d2b11")

  @Test func aSimulatedAppReceiptHasApplesFields() async throws {
    let receipt = try await RunningSimulator.run(world: SimulatedWorld.json(refundDate: "1795100000000")) {
      try verified(await $0.verify(SimulatedWorld.game))
    }
    #expect(receipt.environment == .production && receipt.bundleId == "com.example.game" && receipt.status == 0)
    // 2 is finished; 5 is a renewal after the receipt's creation.
    #expect(receipt.facts.map(\.transactionId) == ["1", "3", "4", "5"])
    let facts = Dictionary(uniqueKeysWithValues: receipt.facts.map { ($0.transactionId, $0) })
    #expect(facts["1"]?.quantity == 2)
    #expect(facts["1"]?.revocation == .absent && facts["1"]?.appAccountToken == .absent)
    #expect(facts["1"]?.priceMilliunits == nil)
    #expect(facts["3"]?.revocation == .stated(Revocation(date: Instant(milliseconds: 1_795_100_000_000), reason: 1)))
    #expect(facts["4"]?.hasOffer == true)
    #expect(facts["4"]?.appAccountToken == Self.token)
    #expect(facts["5"]?.isRenewal == nil && facts["5"]?.revocation == .stated(nil))
    #expect(facts["5"]?.productType == .autoRenewable && facts["5"]?.ownership == .purchased)
    #expect(receipt.facts.allSatisfy { $0.signedDate == receipt.requestDate })
  }

  @Test func eachEnvironmentAnswersForItself() async throws {
    try await RunningSimulator.run(world: SimulatedWorld.json()) { simulator in
      let sandbox = try await simulator.verify(SimulatedWorld.sandboxGame)
      #expect(sandbox.asked == [.production, .sandbox])
      #expect(try verified(sandbox).environment == .sandbox)
      let production = try await simulator.verify(SimulatedWorld.game, first: .sandbox)
      #expect(production.asked == [.sandbox, .production])
      #expect(try verified(production).environment == .production)
    }
  }

  @Test func everyKindOfReceiptHasItsAnswer() async throws {
    try await RunningSimulator.run(world: SimulatedWorld.json()) { simulator in
      #expect(try await simulator.verify(SimulatedWorld.forged).outcome == .rejected)
      #expect(try await simulator.verify("bm9uc2Vuc2U=").appleStatus == 21_002)
      #expect(try await simulator.verify("!").appleStatus == 21_002)
      #expect(try await simulator.verify(SimulatedWorld.accountGone).outcome == .accountGone)
      let refused = ReceiptAnswer.Outcome.fault(.sharedSecretRefused)
      #expect(try await simulator.verify(SimulatedWorld.withSecret).outcome == refused)
      #expect(try await simulator.verify(SimulatedWorld.withSecret, secret: "wrong").outcome == refused)
      #expect(try await simulator.verify(SimulatedWorld.withSecret, secret: "open sesame").appleStatus == 0)
      let old = try verified(await simulator.verify(SimulatedWorld.oldConsumable))
      #expect(old.facts.map(\.transactionId) == ["1"] && old.bundleId == "com.example.game" && old.creationDate == nil)
      let expired = try verified(await simulator.verify(SimulatedWorld.oldSubscription))
      #expect(expired.facts.map(\.transactionId) == ["4", "5"] && expired.status == 21_006)
      #expect(expired.facts.last?.expiresDate == Instant(milliseconds: 1_795_200_000_000))
    }
  }

  @Test func aRefundArrives() async throws {
    try await RunningSimulator.run(world: SimulatedWorld.json()) { simulator in
      let before = try verified(await simulator.verify(SimulatedWorld.game))
      #expect(before.facts.allSatisfy { $0.revocation == .absent || $0.revocation == .stated(nil) })
      try await simulator.control("world", SimulatedWorld.json(refundDate: "1795100000000"))
      let after = try verified(await simulator.verify(SimulatedWorld.game))
      #expect(after.facts.count { $0.revocation != .absent && $0.revocation != .stated(nil) } == 1)
      #expect(after.requestDate >= before.requestDate)
    }
  }

  @Test func refundsAndReversalsHappenOverDays() async throws {
    let refund: Int64 = 1_795_100_000_000
    let world = SimulatedWorld.json(refundDate: "\(refund),\"refundReversedDate\":\(refund + 86_400_000)")
    try await RunningSimulator.run(world: world) { simulator in
      var revocations: [Statement<Revocation?>?] = []
      for moment in [refund - 1, refund, refund + 86_400_000] {
        try await simulator.control("clock", #"{"now":\#(moment)}"#)
        let receipt = try verified(await simulator.verify(SimulatedWorld.game))
        #expect(receipt.requestDate == Instant(milliseconds: moment))
        revocations.append(receipt.facts.first { $0.transactionId == "3" }?.revocation)
      }
      let refunded = Revocation(date: Instant(milliseconds: refund), reason: 1)
      #expect(revocations == [.absent, .stated(refunded), .absent])
      // Before the renewal.
      try await simulator.control("clock", #"{"now":1792599999999}"#)
      let early = try verified(await simulator.verify(SimulatedWorld.game))
      #expect(early.facts.map(\.transactionId) == ["4"])
    }
  }

  @Test func invalidWorldsAreRejectedAndTheOldOneRemains() async throws {
    try await RunningSimulator.run(world: SimulatedWorld.json()) { simulator in
      await #expect(throws: RunningSimulator.Failure.self) { try await simulator.control("world", #"{"apps":[]}"#) }
      let status = try await simulator.verify(SimulatedWorld.game).appleStatus
      #expect(status == 0)
    }
  }

  // MARK: Faults

  @Test(arguments: [
    (#"{"outage":true}"#, Silence.Reason.appleError), (#"{"errorRate":1}"#, .appleError),
    (#"{"force":[{"httpStatus":500}]}"#, .appleError), (#"{"force":[{"httpStatus":429}]}"#, .rateLimited),
    (#"{"force":[{"body":"empty"}]}"#, .appleError), (#"{"force":[{"body":"html"}]}"#, .appleError),
    (#"{"force":[{"body":"truncated"}]}"#, .appleError), (#"{"force":[{"body":"wrongType"}]}"#, .appleError),
    (#"{"force":[{"body":"huge"}]}"#, .appleError), (#"{"force":[{"body":"closed"}]}"#, .unreachable),
    (#"{"force":[{"status":21005}]}"#, .appleError), (#"{"force":[{"status":21104}]}"#, .appleError),
    (#"{"force":[{"status":21104,"isRetryable":true}]}"#, .appleError),
  ])
  func faultsAreNoVerdicts(change: String, reason: Silence.Reason) async throws {
    try await RunningSimulator.run(world: SimulatedWorld.json()) { simulator in
      try await simulator.control("faults", change)
      #expect(try await simulator.verify(SimulatedWorld.game).reason == reason)
      try await simulator.control("faults", #"{"outage":false,"errorRate":0,"force":[]}"#)
      #expect(try await simulator.verify(SimulatedWorld.game).appleStatus == 0)
    }
  }

  @Test func forcedFaultsHaveTheirTurnAndTheirPath() async throws {
    try await RunningSimulator.run(world: SimulatedWorld.json()) { simulator in
      try await simulator.control(
        "faults",
        """
        {"force":[{"path":"/sandbox","status":21009,"next":1},{"status":21150,"isRetryable":false,"next":2},
        {"httpStatus":429,"headers":{"Retry-After":"1"},"next":1}]}
        """)
      var statuses: [Int?] = []
      for _ in 0..<3 { statuses.append(try await simulator.verify(SimulatedWorld.game).appleStatus) }
      #expect(statuses == [21_150, 21_150, nil])
      #expect(try await simulator.verify(SimulatedWorld.game, first: .sandbox).appleStatus == 21_009)
      #expect(try await simulator.verify(SimulatedWorld.game).appleStatus == 0)
    }
  }

  @Test func damagedAnswersAreNeverVerdicts() async throws {
    try await RunningSimulator.run(world: SimulatedWorld.json(), "--garbage-rate", "1") { simulator in
      for payload in SimulatedWorld.many {
        let reason = try await simulator.verify(payload).reason
        #expect(reason != nil)
      }
    }
  }

  @Test func equalSeedsGiveEqualFaultsInAnyOrder() async throws {
    let troubled = try await Self.troubled(SimulatedWorld.many, seed: 7)
    #expect((1..<SimulatedWorld.many.count).contains(troubled.count))
    #expect(try await Self.troubled(SimulatedWorld.many.reversed(), seed: 7) == troubled)
    #expect(try await Self.troubled(SimulatedWorld.many, seed: 8) != troubled)
  }

  private static func troubled(_ payloads: [String], seed: Int) async throws -> Set<String> {
    try await RunningSimulator.run(
      world: SimulatedWorld.json(), "--error-rate", "0.2", "--garbage-rate", "0.2", "--seed", "\(seed)",
      "--latency", "5ms", "--latency-jitter", "1"
    ) { simulator in
      try await withThrowingTaskGroup(of: String?.self) { group in
        let client = try simulator.client()
        for payload in payloads {
          group.addTask {
            let answer = try await client.verify(payload: payload, sharedSecret: nil)
            return answer.reason == nil ? nil : payload
          }
        }
        return try await group.reduce(into: []) { troubled, payload in payload.map { _ = troubled.insert($0) } }
      }
    }
  }

  // MARK: Counts and logs

  @Test func requestsAreCountedAndLoggedWithoutSecrets() async throws {
    let log = FileManager.default.temporaryDirectory.appendingPathComponent("log-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: log) }
    try await RunningSimulator.run(world: SimulatedWorld.json(), "--log", log.path) { simulator in
      _ = try await simulator.verify(SimulatedWorld.withSecret, secret: "open sesame")
      _ = try await simulator.verify(SimulatedWorld.sandboxGame)
      let report = try await simulator.control("requests?last=2")
      #expect(report["total"] as? Int == 3)
      #expect(report["byPath"] as? [String: Int] == ["/production/verifyReceipt": 2, "/sandbox/verifyReceipt": 1])
      #expect(report["byStatus"] as? [String: Int] == ["0": 2, "21007": 1])
      #expect((report["last"] as? [Any])?.count == 2)
      #expect(try await simulator.control("health")["healthy"] as? Bool == true)
    }
    let text = try String(contentsOf: log, encoding: .utf8)
    #expect(text.split(separator: "\n").count == 3)
    #expect(!text.contains("sesame") && !text.contains(SimulatedWorld.withSecret))
  }

  @Test func theSimulatorStopsWithAnswersOnTheirWay() async throws {
    try await RunningSimulator.run(world: SimulatedWorld.json(), "--latency", "1000s") { simulator in
      async let answer = simulator.verify(SimulatedWorld.game)
      while try await simulator.control("requests")["inFlight"] as? Int == 0 { await Task.yield() }
      await simulator.terminate()
      #expect(simulator.process.terminationReason == .exit && simulator.process.terminationStatus == 0)
      let reason = try await answer.reason
      #expect(reason == .unreachable)
    }
  }

  private func verified(_ answer: ReceiptAnswer) throws -> VerifiedReceipt {
    try #require(answer.outcome.receipt, "\(answer)")
  }
}
