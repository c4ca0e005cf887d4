import Foundation
import Reconciliation
import Reporting
import Streams
import TestSupport
import Testing

@testable import AuditStore
@testable import Auditing
@testable import SampleWorlds

/// Simulated sequences of nights without a server, each from one seed, with outages, killed nights and repeated nights.
/// Invariants are checked after each night, and the truth after the last one.
///
/// `TEST_EFFORT` multiplies the number; `TEST_SEED` selects others; `TEST_SHOP` repeats the seed that a failure names.
@Suite struct DeterministicNightsTests {
  private static let shopsPerBlock: UInt64 = 25

  @Test("every sequence of nights satisfies the invariants and ends with the truth", arguments: Effort.blocks)
  func nights(block: UInt64) throws {
    let folder = try TemporaryDirectory()
    var counts = Nights.Counts()
    let seeds = block &* Self.shopsPerBlock..<block &* Self.shopsPerBlock + Self.shopsPerBlock
    for seed in Effort.shop.map({ $0..<$0 + 1 }) ?? seeds {
      var nights = Nights(seed: seed, folder: folder.file(""))
      try nights.run()
      counts.add(nights.counts)
    }
    print("DeterministicNightsTests: \(counts)")
  }

  /// Canonically equivalent texts are different IDs.
  @Test func aCriticalFindingIsNewDespiteAnOpenOneOnItsTwin() throws {
    let folder = try TemporaryDirectory()
    func audit(_ orderId: String, open: Set<Identifier> = []) throws -> SimulatedAudit {
      var scene = ShopFixture()
      let order = scene.order(orderId) { $0.transactionId = "unknown1" }
      var state = ProofState.notFound(at: ShopFixture.asOf - .hours(1))
      state.lastAttempt = state.answeredAt
      scene.world.lookups[order.orderId] = state
      scene.delivery(of: order)
      return try SimulatedAudit(
        scene.world, partition: AuditPartition(), contestBatchSize: 1, openCriticals: open, folder: folder.file(""))
    }
    let open = Set(try audit("\u{E9}").findings().map { Identifier($0.identity) })
    #expect(try audit("\u{E9}", open: open).agedCriticals.isEmpty)
    let aged = CheckSubject.lookup("unknown1", of: ShopFixture.bundle)
    let twin = try audit("e\u{301}", open: open)
    let found = try twin.findings().map { "\($0.kind) \($0.severity) \(String(describing: $0.evidenceCheckedAt))" }
    #expect(twin.agedCriticals == [aged], "\(found) \(twin.agedCriticals.map(\.id))")
  }
}

private struct Nights {
  private let shop: SimulatedShop
  private var store = SimulatedStore()
  private var random: SeededGenerator
  private let folder: String
  private let seed: UInt64
  private(set) var counts = Counts()

  struct Counts: CustomStringConvertible {
    var nights = 0, kills = 0, questions = 0, silences = 0, violations = 0

    mutating func add(_ other: Counts) {
      nights += other.nights
      kills += other.kills
      questions += other.questions
      silences += other.silences
      violations += other.violations
    }

    var description: String {
      "\(nights) nights, \(kills) kills, \(questions) questions, \(silences) of them in vain, violations: \(violations)"
    }
  }
  private var before: (night: Instant, findings: Set<String>)?

  init(seed: UInt64, folder: String) {
    shop = SimulatedShop(seed: seed)
    random = SeededGenerator(seed: seed &+ 0x9E37_79B9_7F4A_7C15)
    self.folder = folder
    self.seed = seed
  }

  mutating func run() throws {
    for night in shop.nights {
      let isLast = night == shop.nights.last
      let weather = isLast ? .fair : SimulatedStore.AppleAvailability.allCases.randomElement(using: &random) ?? .fair
      try run(night, weather, isLast: isLast)
    }
  }

  private mutating func run(_ night: Instant, _ weather: SimulatedStore.AppleAvailability, isLast: Bool) throws {
    counts.nights += 1
    for _ in 0..<random.pick(0, 0, 1, 2) {
      counts.kills += 1
      ask(night, weather, atMost: random.number(0...6))
    }
    ask(night, weather, atMost: isLast ? .max : random.pick(.max, .max, random.number(0...20)))
    var audit = try self.audit(night)
    if store.renew(audit.agedCriticals, at: night) {
      ask(night, weather, atMost: .max)
      audit = try self.audit(night)
    }
    try check(audit, night, weather)
    if random.oneIn(8), let past = shop.nights.randomElement(using: &random), past < night {
      try check(self.audit(past), past, .fair)
    }
    if isLast { try checkTruth(audit) }
    let findings = try audit.findings()
    store.openCriticals = Set(findings.filter { $0.severity == .critical }.map { Identifier($0.identity) })
    before = (night, Set(findings.map(\.identity)))
  }

  private mutating func ask(_ night: Instant, _ weather: SimulatedStore.AppleAvailability, atMost limit: Int) {
    if weather.answers(&random) { store.sweep(shop, at: night) }
    store.enqueue(shop, at: night)
    for subject in store.due(at: night).shuffled(using: &random).prefix(limit) {
      let answers = weather.answers(&random)
      counts.questions += 1
      if !answers { counts.silences += 1 }
      if store.ask(subject, shop, at: night, answers: answers, &random) {
        violate("\(subject.id) was asked about again at \(night), after its answer was stored")
      }
    }
  }

  private mutating func audit(_ night: Instant) throws -> SimulatedAudit {
    let world = store.world(shop, at: night, &random)
    let audit = try self.audit(world, AuditPartition())
    if random.oneIn(4) {
      let again = try self.audit(world.shuffled(using: &random), cut(world))
      if again.pieces != audit.pieces { violate("cut into parts the night of \(night) says something else") }
    }
    return audit
  }

  private mutating func audit(_ world: World, _ partition: AuditPartition) throws -> SimulatedAudit {
    try SimulatedAudit(
      world, partition: partition, contestBatchSize: random.number(1...50), openCriticals: store.openCriticals,
      folder: folder)
  }

  private mutating func cut(_ world: World) -> AuditPartition {
    var random = self.random
    func cuts(_ ids: [Identifier]) -> Cuts { Cuts(ids.filter { _ in random.oneIn(4) }.prefix(5)) }
    let partition = AuditPartition(
      receipts: cuts(world.receipts.map(\.receiptId)), orders: cuts(world.orders.map(\.orderId)),
      transactions: cuts(world.transactions.map(\.transactionId)))
    self.random = random
    return partition
  }

  // MARK: - Invariants

  private mutating func check(
    _ audit: SimulatedAudit, _ night: Instant, _ weather: SimulatedStore.AppleAvailability
  ) throws {
    let (orders, findings, claims) = (try audit.orders(), try audit.findings(), try audit.claims())
    let tables = shop.tables(at: night)
    if !audit.isBalanced || orders.map(\.orderId).sorted() != tables.orders.map(\.orderId).sorted() {
      violate("not every order has one disposition at \(night)")
    }
    if Set(claims.map(\.key)).count != claims.count { violate("a transaction has two owners at \(night)") }
    var paid: [PurchaseKey: Identifier] = [:]
    for order in orders where order.payment == "paid" {
      guard let sale = order.transactionId.flatMap({ shop.sale(behind: $0) }) else { continue }
      if let other = paid.updateValue(order.orderId, forKey: sale) {
        violate("one purchase paid \(other) and \(order.orderId) at \(night)")
      }
    }
    for order in orders where order.environment == .sandbox && order.payment == "paid" {
      violate("a sandbox transaction paid \(order.orderId) at \(night)")
    }
    for finding in findings
    where finding.kind.accuses && !shop.isAccusable(finding.subject.id, at: night)
      && !(finding.orderId.map { shop.isAccusable($0, at: night) } ?? false)
    {
      violate("false \(finding.kind) on \(finding.subject.id) at \(night): \(finding.reason)")
    }
    try compare(orders, findings, night)
    guard weather == .outage, let before else { return }
    let delivered = Set(shop.tables(at: before.night).deliveries.compactMap(\.orderId))
    let reasons = Dictionary(orders.map { ($0.orderId, $0.paymentReason) }) { first, _ in first }
    for finding in findings where finding.kind == .deliveredNotPaid && !before.findings.contains(finding.identity) {
      guard let orderId = finding.orderId, delivered.contains(orderId) else { continue }
      // These reasons rest on the shop's rows and signatures only.
      switch reasons[orderId] {
      case .noEvidence, .neverPaid, .signatureInvalid, .malformed, .xcode, .duplicate, .idMismatch, .wrongBundle,
        .sandbox, .productMismatch, .restored, .familyShared:
        continue
      default: violate("\(orderId) became delivered_not_paid without answers at \(night): \(finding.reason)")
      }
    }
  }

  /// Compares with the reference audit, which has neither parts nor streams.
  private mutating func compare(_ orders: [OrderLine], _ findings: [Finding], _ night: Instant) throws {
    let reference = store.world(shop, at: night, &random).audited()
    for order in orders {
      guard let judgement = reference.judgements[order.orderId] else { continue }
      if judgement.disposition != order.disposition || judgement.verdict?.reason != order.paymentReason {
        violate("\(order.orderId) is \(order.disposition) at \(night), not \(judgement.disposition)")
      }
    }
    func said(_ findings: [Finding]) -> Set<String> {
      Set(
        findings.map {
          "\($0.identity) \($0.severity) \($0.atStake.map { "\($0)" } ?? "-") \($0.kind == .badRow ? "" : $0.reason)"
        })
    }
    let differing = said(findings).symmetricDifference(said(reference.findings))
    if !differing.isEmpty { violate("the passes and the reference differ at \(night) in \(differing.sorted())") }
  }

  private mutating func checkTruth(_ audit: SimulatedAudit) throws {
    let said = Set(try audit.findings().map(\.expected))
    let (missed, imagined) = (shop.known.findings.subtracting(said), said.subtracting(shop.known.findings))
    if !missed.isEmpty { violate("missed \(missed.map { "\($0.kind) on \($0.subject)" }.sorted())") }
    if !imagined.isEmpty { violate("imagined \(imagined.map { "\($0.kind) on \($0.subject)" }.sorted())") }
    for order in try audit.orders() where shop.known.dispositions[order.orderId] != order.disposition {
      violate("\(order.orderId) is \(order.disposition), \(order.paymentReason.map { "\($0)" } ?? "-")")
    }
  }

  private mutating func violate(_ what: String) {
    counts.violations += 1
    Issue.record("\(what); seed \(seed)")
  }
}
