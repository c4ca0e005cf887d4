import Foundation
import Logging
import Postgres
import Reconciliation
import Reporting
import Settings
import TestSupport
import Testing

@testable import AuditStore
@testable import Auditing
@testable import Publishing
@testable import Run
@testable import SampleWorlds

/// A report depends on the facts only, not on their order of arrival or on decisions of earlier nights.
@Suite struct InputOrderTests {
  private static let effort = ProcessInfo.processInfo.environment["TEST_EFFORT"].flatMap { Int($0) } ?? 1
  private static let first = (ProcessInfo.processInfo.environment["TEST_SEED"].flatMap { UInt64($0) } ?? 0) &* 1_000

  /// Shops in one database. The first eight have every kind of finding and every initial letter of an ID.
  private static let together: UInt64 = effort > 1 ? 20 : 8
  private static let arrivals: [(UInt64, Int)] = [(1, 1), (2, 1), (2, 3)]
  private static let furtherArrivals: [(UInt64, Int)] = [(3, 1), (1, 3), (3, 3)]

  @Test(arguments: (0..<UInt64(effort)).map { first &+ $0 })
  func inputOrderDoesNotChangeTheReport(block: UInt64) async throws {
    let seeds = block * Self.together..<(block + 1) * Self.together
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("arrival-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    var expected: [String: [[String]]] = [:]
    for (order, nights) in Self.arrivals + (Self.effort > 1 ? Self.furtherArrivals : []) {
      let arrival = CrowdedShop.Arrival(seed: order, nights: nights)
      let settings = try await CrowdedShop.load(wide: seeds, reports: directory, arrival: arrival) { settings, asOf in
        _ = try await CrowdedShop.audit(
          settings, asOf, directory + "/\(arrival.seed)-\(arrival.nights)-\(asOf.seconds)")
      }
      let folder = directory + "/\(arrival.seed)-\(arrival.nights)"
      let first = try await CrowdedShop.audit(settings, CrowdedShop.asOf, folder)
      if expected.isEmpty { expected = first }
      // The ages of answers and questions are facts, too, so findings may differ after several nights.
      for (name, rows) in first where arrival.nights == 1 || name != "findings.csv" {
        let (one, other) = (Self.ageless(rows, name, arrival), Self.ageless(expected[name] ?? [], name, arrival))
        #expect(one == other, "\(name), \(arrival), block \(block)")
      }
      _ = try await CrowdedShop.audit(settings, CrowdedShop.asOf, folder + "-again")
      for name in first.keys {
        let (one, other) = (try CrowdedShop.bytes(folder, name), try CrowdedShop.bytes(folder + "-again", name))
        #expect(one == other, "\(name) of a second run, \(arrival), block \(block)")
      }
    }
    let count = Int(Self.together)
    let findings = expected["findings.csv"] ?? []
    #expect(expected["orders.csv"]?.count == 60 * count + 1 && findings.count > 20 * count)
    guard block == 0 else { return }
    let kind = try #require(findings.first?.firstIndex(of: "kind"))
    #expect(Set(findings.dropFirst().map { $0[kind] }).count >= 28)
  }

  private static func ageless(_ rows: [[String]], _ name: String, _ arrival: CrowdedShop.Arrival) -> [[String]] {
    guard arrival.nights > 1, name == "orders.csv", let place = rows.first?.firstIndex(of: "findings") else {
      return rows
    }
    return rows.map { row in row.enumerated().filter { $0.offset != place }.map(\.element) }
  }

  // MARK: - Without a database

  @Test(arguments: (0..<UInt64(4 * effort)).map { first &+ $0 })
  func ownersDoNotDependOnTheOrderOfReferences(block: UInt64) throws {
    for seed in block * 50..<(block + 1) * 50 {
      var chance = SeededGenerator(seed: seed)
      let world = try ReferenceWorld(using: &chance)
      let expected = world.claims()
      for _ in 0..<3 { #expect(world.shuffled(using: &chance).claims() == expected, "seed \(seed)") }
    }
  }
}

private struct ReferenceWorld {
  private var groups: [OrderGroup]
  private var records: [TransactionRecord]
  private let rules = Rules(
    asOf: CrowdedShop.asOf, bundleIds: [CrowdedShop.bundle], lookbackStart: CrowdedShop.asOf - .days(120))

  init(using chance: inout SeededGenerator) throws {
    let dollars = try #require(Currency(code: "USD"))
    let products: [Identifier] = ["gems", "gems", "coins"]
    func time(_ chance: inout SeededGenerator) -> Instant {
      CrowdedShop.asOf - .minutes(Int64.random(in: 10...(6 * 24 * 60), using: &chance))
    }
    records = (0..<10).map { number in
      var contents = TransactionRecord.Contents(
        environment: Int.random(in: 0..<6, using: &chance) == 0 ? .sandbox : .production,
        transactionId: Identifier("t\(number / 2 * 2 + (number % 4 == 3 ? 0 : number % 2))"),
        productId: products.randomElement(using: &chance) ?? "gems")
      if number % 4 == 3 { contents.environment = contents.environment == .sandbox ? .production : .sandbox }
      contents.bundleId = CrowdedShop.bundle
      contents.purchaseDate = time(&chance)
      contents.isRenewal = Int.random(in: 0..<8, using: &chance) == 0
      contents.revocationStatedDate = contents.signedDate
      return TransactionRecord(contents)
    }
    var seen: Set<TransactionKey> = []
    records = records.filter { seen.insert($0.key).inserted }
    groups = []
    for number in 0..<12 {
      var order = Order(
        orderId: Identifier("o\(number)"), userId: Identifier("u\(Int.random(in: 0..<4, using: &chance))"),
        productId: products.randomElement(using: &chance) ?? "gems",
        amount: Money(minorUnits: 99, currency: dollars), status: .verified,
        createdAt: time(&chance))
      if Bool.random(using: &chance) { order.transactionId = records.randomElement(using: &chance)?.transactionId }
      var group = OrderGroup(row: .valid(order))
      for proof in 0..<Int.random(in: 0...2, using: &chance) {
        var receipt = Receipt(
          receiptId: Identifier("r\(number)-\(proof)"), orderId: order.orderId, userId: order.userId,
          receivedAt: order.createdAt, state: .neverChecked)
        receipt.state.outcome = Bool.random(using: &chance) ? .verified : .unanswered
        receipt.state.kind = Bool.random(using: &chance) ? .app : .signed
        let count = receipt.state.kind == .app ? Int.random(in: 0...5, using: &chance) : 1
        let contained = records.shuffled(using: &chance).prefix(count)
        if receipt.state.kind == .signed { receipt.state.signedTransactionId = contained.first?.transactionId }
        group.proofs.append(Proof(receipt: receipt, contained: contained.map(\.key)))
      }
      groups.append(group)
    }
  }

  func shuffled(using chance: inout SeededGenerator) -> ReferenceWorld {
    var other = self
    other.groups.shuffle(using: &chance)
    other.records.shuffle(using: &chance)
    for place in other.groups.indices { other.groups[place].proofs.shuffle(using: &chance) }
    return other
  }

  func claims() -> [Identifier: OrderClaims] {
    let around = RelatedOrders(groups: groups, records: records, rules: rules)
    var claims: [Identifier: OrderClaims] = [:]
    for group in groups {
      guard case .valid(let order) = group.row else { continue }
      let matching = around.matched(for: order.orderId, rules: rules)
      let facts = OrderFacts.assembled(
        order, group, [], matching.transactions, matching.matched, rules: rules, open: around.open)
      claims[order.orderId] = facts.claims
    }
    let owned = claims.values.flatMap { $0.owned.map(\.key) }
    #expect(Set(owned).count == owned.count, "a transaction has one owner at most")
    return claims
  }
}
