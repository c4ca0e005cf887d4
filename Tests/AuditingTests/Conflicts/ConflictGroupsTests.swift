import Foundation
import Reconciliation
import Testing

@testable import AuditStore
@testable import Auditing

@Suite struct ConflictGroupsTests {
  private static let rounds = 0..<7

  private static func sale(_ id: String) -> TransactionRecord {
    TransactionRecord(environment: .production, transactionId: Identifier(id), productId: "gems")
  }

  private static func contested(_ id: String, _ claimants: [Identifier]) -> ContestedTransaction {
    ContestedTransaction(record: sale(id), claimants: claimants)
  }

  @Test func batchesContainWholeConflicts() throws {
    let contests = try ConflictGroups(directory: NSTemporaryDirectory())
    for round in Self.rounds {
      // Two transactions connect three orders: a - b and b - c.
      try contests.add(Self.contested("T\(round)", [Identifier("a\(round)"), Identifier("b\(round)")]))
      try contests.add(Self.contested("U\(round)", [Identifier("b\(round)"), Identifier("c\(round)")]))
    }
    for (size, count) in [(1_000, 1), (1, 7), (7, 3)] {
      let batches = contests.batches(ofAtLeast: size)
      #expect(batches.count == count)
      for round in Self.rounds {
        let places = ["a", "b", "c"].map { batches.batch(of: Identifier("\($0)\(round)")) }
        #expect(places[0] != nil && Set(places).count == 1)
      }
      #expect(batches.batch(of: "alone") == nil)
    }
    var seen: Set<Identifier> = []
    try contests.forEach { seen.insert($0.record.transactionId) }
    #expect(seen.count == 14)
  }

  @Test func ordersOnOneTransactionFormOneConflict() throws {
    let contests = try ConflictGroups(directory: NSTemporaryDirectory())
    try contests.add(Self.contested("T", (0..<100_000).map { Identifier("o\($0)") }))
    let batches = contests.batches(ofAtLeast: 1_000)
    #expect(batches.count == 1 && batches.batch(of: "o99999") == 0)
  }

  @Test("Orders that claim different transactions of one purchase are in conflict; one order alone is not")
  func transactionsOfOnePurchase() throws {
    func restore(_ id: String, of original: Identifier) -> TransactionRecord {
      var record = Self.sale(id)
      record.originalTransactionId = original
      return record
    }
    let shared = [
      ContestedTransaction(record: Self.sale("T"), claimants: ["a"], sharesPurchase: true),
      ContestedTransaction(record: restore("R", of: "T"), claimants: ["b", "c"], sharesPurchase: true),
      ContestedTransaction(record: restore("Q", of: "T"), claimants: [], sharesPurchase: true),
      ContestedTransaction(record: Self.sale("U"), claimants: ["d"], sharesPurchase: true),
    ]
    let nobodys = ContestedTransaction(record: restore("V", of: "W"), claimants: [], sharesPurchase: true)
    for order in [shared + [nobodys], [nobodys] + Array(shared.reversed())] {
      let (contests, other) = (
        try ConflictGroups(directory: NSTemporaryDirectory()), try ConflictGroups(directory: NSTemporaryDirectory())
      )
      #expect(contests.isEmpty)
      for (place, contested) in order.enumerated() { try (place < 2 ? contests : other).add(contested) }
      try contests.join(other)
      var uncontested: [Identifier: Identifier?] = [:]
      try contests.decide(hiding: { _ in false }, plain: { _, _ in }) {
        uncontested[$0.record.transactionId] = .some($1)
      }
      #expect(uncontested == ["U": "d", "V": nil])
      #expect(!contests.isEmpty)
      let batches = contests.batches(ofAtLeast: 1)
      #expect(batches.count == 1)
      let together = shared.prefix(3).map { batches.batch(of: $0) }
      #expect(together[0] != nil && Set(together).count == 1)
      #expect((["a", "b", "c"] as [Identifier]).allSatisfy { batches.batch(of: $0) == together[0] })
      #expect(batches.batch(of: "d") == nil)
      var seen: [Identifier: Bool] = [:]
      try contests.forEach { seen[$0.record.transactionId] = $0.sharesPurchase }
      #expect(seen == ["T": true, "R": true, "Q": true])
    }
  }
}
