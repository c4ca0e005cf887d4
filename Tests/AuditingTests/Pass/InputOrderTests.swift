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
  private static let effort = Effort.factor
  private static let first = (ProcessInfo.processInfo.environment["TEST_SEED"].flatMap { UInt64($0) } ?? 0) &* 1_000

  /// Shops in one database. The first eight have every kind of finding and every initial letter of an ID.
  private static let together: UInt64 = effort > 1 ? 20 : 8
  private static let arrivals: [(UInt64, Int)] = [(1, 1), (2, 1), (2, 3)]
  private static let furtherArrivals: [(UInt64, Int)] = [(3, 1), (1, 3), (3, 3)]

  @Test(arguments: (0..<UInt64(effort)).map { first &+ $0 })
  func inputOrderDoesNotChangeTheReport(block: UInt64) async throws {
    let seeds = block * Self.together..<(block + 1) * Self.together
    let folder = try TemporaryDirectory()
    var expected: [String: [[String]]] = [:]
    for (order, nights) in Self.arrivals + (Self.effort > 1 ? Self.furtherArrivals : []) {
      let arrival = CrowdedShop.Arrival(seed: order, nights: nights)
      let settings = try await CrowdedShop.load(wide: seeds, reports: folder.file(""), arrival: arrival) {
        settings, asOf in
        _ = try await CrowdedShop.audit(
          settings, asOf, folder.file("\(arrival.seed)-\(arrival.nights)-\(asOf.seconds)"))
      }
      let report = folder.file("\(arrival.seed)-\(arrival.nights)")
      let first = try await CrowdedShop.audit(settings, CrowdedShop.asOf, report)
      if expected.isEmpty { expected = first }
      // The ages of answers and questions are facts, too, so findings may differ after several nights.
      for (name, rows) in first where arrival.nights == 1 || name != "findings.csv" {
        let (one, other) = (Self.ageless(rows, name, arrival), Self.ageless(expected[name] ?? [], name, arrival))
        #expect(one == other, "\(name), \(arrival), block \(block)")
      }
      guard Self.effort > 1 || arrival.nights > 1 else { continue }
      _ = try await CrowdedShop.audit(settings, CrowdedShop.asOf, report + "-again")
      for name in first.keys {
        let (one, other) = (try CrowdedShop.bytes(report, name), try CrowdedShop.bytes(report + "-again", name))
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

  @Test(arguments: (0..<UInt64(effort)).map { first &+ $0 })
  func ownersDoNotDependOnTheOrderOfReferences(block: UInt64) throws {
    for seed in block * 50..<(block + 1) * 50 {
      var chance = SeededGenerator(seed: seed)
      var crowd = try ConflictingOrders(seed: seed, count: 12)
      let expected = claims(in: crowd)
      let owned = expected.values.flatMap { $0.owned.map(\.key) }
      #expect(Set(owned).count == owned.count, "a transaction has one owner at most")
      for _ in 0..<3 {
        crowd.groups.shuffle(using: &chance)
        crowd.records.shuffle(using: &chance)
        for place in crowd.groups.indices { crowd.groups[place].proofs.shuffle(using: &chance) }
        #expect(claims(in: crowd) == expected, "seed \(seed)")
      }
    }
  }

  private func claims(in crowd: ConflictingOrders) -> [Identifier: OrderClaims] {
    let rules = ConflictingOrders.rules
    let around = RelatedOrders(groups: crowd.groups, records: crowd.records + crowd.own.values.joined(), rules: rules)
    var claims: [Identifier: OrderClaims] = [:]
    for group in crowd.groups {
      guard case .valid(let order) = group.row else { continue }
      let matching = around.matched(for: order.orderId, rules: rules)
      let facts = OrderFacts.assembled(
        order, group, [], matching.transactions, matching.matched, rules: rules, open: around.open)
      claims[order.orderId] = facts.claims
    }
    return claims
  }
}
