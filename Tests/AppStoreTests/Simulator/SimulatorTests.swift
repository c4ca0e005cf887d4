import AppStore
import Foundation
import Reconciliation
import Testing

/// `verifyReceipt` of the simulator, with its faults.
@Suite(.timeLimit(.minutes(10)))
struct SimulatorTests {
  private typealias World = SimulatedWorld

  private func run<Result>(
    _ world: String = World.ofReceipts(), _ arguments: String..., body: (RunningSimulator) async throws -> Result
  ) async throws -> Result {
    try await RunningSimulator.run(world: world, arguments, body: body)
  }

  private func verified(_ answer: ReceiptAnswer) throws -> VerifiedReceipt {
    try #require(answer.outcome.receipt, "\(answer)")
  }

  @Test func aSimulatedAppReceiptHasApplesFields() async throws {
    let receipt = try await run(World.ofReceipts(refund: #""revocationDate":1795100000000"#)) {
      try verified(await $0.verify(World.game))
    }
    #expect(receipt.environment == .production && receipt.bundleId == "com.example.game" && receipt.status == 0)
    // 2 is finished; 5 is a renewal after the receipt's creation.
    #expect(receipt.facts.map(\.transactionId) == ["1", "3", "4", "5"])
    let facts = Dictionary(uniqueKeysWithValues: receipt.facts.map { ($0.transactionId, $0) })
    #expect(facts["1"]?.quantity == 2 && facts["1"]?.priceMilliunits == nil)
    #expect(facts["1"]?.revocation == .absent && facts["1"]?.appAccountToken == .absent)
    #expect(facts["3"]?.revocation == .stated(Revocation(date: Instant(milliseconds: 1_795_100_000_000), reason: 1)))
    #expect(facts["4"]?.hasOffer == true && facts["4"]?.appAccountToken == .stated(World.token))
    #expect(facts["5"]?.isRenewal == nil && facts["5"]?.revocation == .stated(nil))
    #expect(facts["5"]?.productType == .autoRenewable && facts["5"]?.ownership == .purchased)
    #expect(receipt.facts.allSatisfy { $0.signedDate == receipt.requestDate })
  }

  @Test func everyKindOfReceiptHasItsAnswer() async throws {
    try await run { simulator in
      let sandbox = try await simulator.verify(World.sandboxGame)
      #expect(try sandbox.asked == [.production, .sandbox] && verified(sandbox).environment == .sandbox)
      #expect(try await simulator.verify(World.game, first: .sandbox).asked == [.sandbox, .production])
      #expect(try await simulator.verify(World.forged).outcome == .rejected)
      for nonsense in ["bm9uc2Vuc2U=", "!"] { #expect(try await simulator.verify(nonsense).appleStatus == 21_002) }
      #expect(try await simulator.verify(World.accountGone).outcome == .accountGone)
      for wrong in [nil, "wrong"] {
        #expect(try await simulator.verify(World.withSecret, secret: wrong).outcome == .fault(.sharedSecretRefused))
      }
      #expect(try await simulator.verify(World.withSecret, secret: "open sesame").appleStatus == 0)
      let old = try verified(await simulator.verify(World.oldConsumable))
      #expect(old.facts.map(\.transactionId) == ["1"] && old.bundleId == "com.example.game" && old.creationDate == nil)
      let expired = try verified(await simulator.verify(World.oldSubscription))
      #expect(expired.facts.map(\.transactionId) == ["4", "5"] && expired.status == 21_006)
      #expect(expired.facts.last?.expiresDate == Instant(milliseconds: 1_795_200_000_000))
    }
  }

  @Test func refundsAndReversalsHappenOverDays() async throws {
    let refund: Int64 = 1_795_100_000_000
    let fields = #""revocationDate":\#(refund),"refundReversedDate":\#(refund + World.day)"#
    try await run(World.ofReceipts(refund: fields)) { simulator in
      var revocations: [Statement<Revocation?>?] = []
      for moment in [refund - 1, refund, refund + World.day] {
        try await simulator.control("clock", #"{"now":\#(moment)}"#)
        let receipt = try verified(await simulator.verify(World.game))
        #expect(receipt.requestDate == Instant(milliseconds: moment))
        revocations.append(receipt.facts.first { $0.transactionId == "3" }?.revocation)
      }
      let refunded = Revocation(date: Instant(milliseconds: refund), reason: 1)
      #expect(revocations == [.absent, .stated(refunded), .absent])
      // Before the renewal.
      try await simulator.control("clock", #"{"now":1792599999999}"#)
      #expect(try verified(await simulator.verify(World.game)).facts.map(\.transactionId) == ["4"])
      // An invalid world is rejected, and the old one remains.
      await #expect(throws: RunningSimulator.Failure.self) { try await simulator.control("world", #"{"apps":[]}"#) }
      #expect(try await simulator.verify(World.game).appleStatus == 0)
    }
  }

  // MARK: Faults

  @Test func faultsAreNoVerdicts() async throws {
    try await run { simulator in
      for (change, reason) in [
        (#""outage":true"#, Silence.Reason.appleError), (#""errorRate":1"#, .appleError),
        (#""force":[{"httpStatus":500}]"#, .appleError), (#""force":[{"httpStatus":429}]"#, .rateLimited),
        (#""force":[{"body":"empty"}]"#, .appleError), (#""force":[{"body":"html"}]"#, .appleError),
        (#""force":[{"body":"truncated"}]"#, .appleError), (#""force":[{"body":"wrongType"}]"#, .appleError),
        (#""force":[{"body":"huge"}]"#, .appleError), (#""force":[{"body":"closed"}]"#, .unreachable),
        (#""force":[{"status":21005}]"#, .appleError), (#""force":[{"status":21104}]"#, .appleError),
        (#""force":[{"status":21104,"isRetryable":true}]"#, .appleError),
      ] {
        try await simulator.control("faults", "{\(change)}")
        #expect(try await simulator.verify(World.game).reason == reason, "\(change)")
        try await simulator.control("faults", #"{"outage":false,"errorRate":0,"force":[]}"#)
        #expect(try await simulator.verify(World.game).appleStatus == 0, "\(change)")
      }
    }
  }

  @Test func forcedFaultsHaveTheirTurnAndTheirPath() async throws {
    try await run { simulator in
      try await simulator.control(
        "faults",
        """
        {"force":[{"path":"/sandbox","status":21009,"next":1},{"status":21150,"isRetryable":false,"next":2},
        {"httpStatus":429,"headers":{"Retry-After":"1"},"next":1}]}
        """)
      for status in [21_150, 21_150, nil] { #expect(try await simulator.verify(World.game).appleStatus == status) }
      #expect(try await simulator.verify(World.game, first: .sandbox).appleStatus == 21_009)
      #expect(try await simulator.verify(World.game).appleStatus == 0)
    }
  }

  @Test func damagedAnswersAreNeverVerdicts() async throws {
    try await run(World.ofReceipts(), "--garbage-rate", "1") { simulator async throws in
      for payload in World.many { #expect(try await simulator.verify(payload).reason != nil) }
    }
  }

  @Test func equalSeedsGiveEqualFaultsInAnyOrder() async throws {
    let troubled = try await troubled(World.many, seed: 7)
    #expect((1..<World.many.count).contains(troubled.count))
    #expect(try await self.troubled(World.many.reversed(), seed: 7) == troubled)
    #expect(try await self.troubled(World.many, seed: 8) != troubled)
  }

  private func troubled(_ payloads: [String], seed: Int) async throws -> Set<String> {
    try await run(
      World.ofReceipts(), "--error-rate", "0.2", "--garbage-rate", "0.2", "--seed", "\(seed)", "--latency", "5ms",
      "--latency-jitter", "1"
    ) { simulator in
      let client = try simulator.client()
      return try await withThrowingTaskGroup(of: String?.self) { group in
        for payload in payloads {
          group.addTask {
            try await client.verify(payload: payload, sharedSecret: nil).reason == nil ? nil : payload
          }
        }
        return try await group.reduce(into: []) { troubled, payload in payload.map { _ = troubled.insert($0) } }
      }
    }
  }

  // MARK: Process

  @Test func requestsAreCountedAndLoggedWithoutSecrets() async throws {
    let log = FileManager.default.temporaryDirectory.appendingPathComponent("log-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: log) }
    try await run(World.ofReceipts(), "--log", log.path) { simulator in
      _ = try await simulator.verify(World.withSecret, secret: "open sesame")
      _ = try await simulator.verify(World.sandboxGame)
      let report = try await simulator.control("requests?last=2")
      #expect(report["total"] as? Int == 3 && (report["last"] as? [Any])?.count == 2)
      #expect(report["byPath"] as? [String: Int] == ["/production/verifyReceipt": 2, "/sandbox/verifyReceipt": 1])
      #expect(report["byStatus"] as? [String: Int] == ["0": 2, "21007": 1])
      #expect(try await simulator.control("health")["healthy"] as? Bool == true)
    }
    let text = try String(contentsOf: log, encoding: .utf8)
    #expect(text.split(separator: "\n").count == 3)
    #expect(!text.contains("sesame") && !text.contains(World.withSecret))
  }

  @Test func theSimulatorStopsWithAnswersOnTheirWay() async throws {
    try await run(World.ofReceipts(), "--latency", "1000s") { simulator in
      async let answer = simulator.verify(World.game)
      while try await simulator.control("requests")["inFlight"] as? Int == 0 { await Task.yield() }
      await simulator.terminate()
      #expect(simulator.process.terminationReason == .exit && simulator.process.terminationStatus == 0)
      let reason = try await answer.reason
      #expect(reason == .unreachable)
    }
  }
}
