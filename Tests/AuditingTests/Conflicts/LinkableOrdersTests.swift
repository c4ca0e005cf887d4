import Foundation
import Reconciliation
import Streams
import TestSupport
import Testing

@testable import AuditStore
@testable import Auditing
@testable import SampleWorlds

private let asOf = Instant(seconds: 1_795_132_800)

/// Orders that an account token links to transactions, as ranges of timelines and listed one by one.
@Suite struct LinkableOrdersTests {
  private static let effort = UInt64(Effort.factor)

  private static let rules = Rules(asOf: asOf, bundleIds: ["com.example.game"], lookbackStart: asOf - .days(120))

  @Test func timelinesAndListsGiveTheSameOwnersAndGroups() throws {
    var (ranges, interchangeable) = (0, 0)
    for seed in 0..<48 * Self.effort {
      let shop = try Shop(seed: seed)
      let (listed, onTimelines) = (try shop.conflict(withTimelines: false), try shop.conflict(withTimelines: true))
      #expect(listed.groups == onTimelines.groups, "seed \(seed)")
      #expect(listed.claims == onTimelines.claims, "seed \(seed)")
      #expect(listed.contested == onTimelines.contested, "seed \(seed)")
      #expect(listed.unowned == onTimelines.unowned && listed.unclaimed == onTimelines.unclaimed, "seed \(seed)")
      #expect(listed.rangeCount == 0)
      ranges += onTimelines.rangeCount
      if onTimelines.rangeCount > 0, shop.groups.allSatisfy(\.references.isEmpty) { interchangeable += 1 }
    }
    #expect(ranges > 100 && interchangeable > 3, "\(ranges), \(interchangeable)")
  }

  @Test("A transaction is linked by one range to the orders of its account token, however many they are")
  func oneRange() throws {
    let (count, start) = (3_000, asOf - .days(9))
    let currency = try #require(Currency("USD"))
    let orders = (0..<count).map { number in
      var order = Order(
        orderId: Identifier("o\(10_000 + number)"), userId: "bot", productId: "gems", quantity: 1,
        amount: Money(minorUnits: 990, currency: currency), status: .verified,
        createdAt: start + .minutes(Int64(number)))
      order.appAccountToken = "aaaa1"
      return order
    }
    let contests = try ConflictGroups(directory: NSTemporaryDirectory())
    let linkable = LinkableOrders(orders.map { LinkableOrder($0, isStatedIDContained: false) }, contests: contests)
    var transactions: [ContestedTransaction] = []
    for number in 0..<count {
      var record = Shop.record(number, at: start + .minutes(Int64(number)))
      record.appAccountToken = .stated("aaaa1")
      var contested = ContestedTransaction(record: record, claimants: [])
      linkable.link(&contested, by: .token("aaaa1"), rules: Self.rules)
      try contests.add(contested)
      transactions.append(contested)
    }
    #expect(transactions.allSatisfy { $0.claimants.isEmpty && $0.linked.count == 1 })
    let batches = contests.batches(ofAtLeast: 1)
    #expect(batches.count == 1)
    var conflict = ClaimConflict(rules: Self.rules, mixedPeople: [], timelines: batches.timelines)
    for transaction in transactions { conflict.add(transaction) }
    for order in orders {
      conflict.add(ContestedOrder(group: OrderGroup(row: .valid(order)), claimable: [], hasGoods: true)) { _, _ in }
    }
    let outcome = conflict.matched()
    var owners: Set<Identifier> = []
    outcome.forEach { orderId, claims in if claims.owned.count == 1, claims.isFinal { owners.insert(orderId) } }
    #expect(owners.count == count && outcome.unowned.isEmpty && outcome.unclaimed.isEmpty)
  }

  @Test("A token links the purchase of one order to no other order whose receipt contains the ID that it states")
  func ordersWithTheirOwnPurchases() throws {
    let currency = try #require(Currency("USD"))
    let record = Shop.record(1, at: asOf - .days(1))
    let lists: [[Identifier]] = [[], ["T1"], ["T0", "T1"]]
    let groups = lists.enumerated().map { number, contained in
      var order = Order(
        orderId: Identifier("o\(number)"), userId: "bob", productId: "gems", quantity: 1,
        amount: Money(minorUnits: 990, currency: currency), status: .verified, createdAt: asOf - .days(1))
      order.appAccountToken = "aaaa1"
      order.transactionId = "T0"
      let receipt = Receipt(
        receiptId: Identifier("r\(number)"), orderId: order.orderId, userId: "bob", receivedAt: asOf - .days(1),
        state: ProofState())
      let keys = contained.map { TransactionKey(environment: .production, transactionId: $0) }
      return OrderGroup(row: .valid(order), proofs: [Proof(receipt: receipt, contained: keys)])
    }
    var (decoded, encoded): ([LinkableOrder], [LinkableOrder]) = ([], [])
    for group in groups {
      LinkableOrder.forEach(of: group) { link, order in if case .token = link { decoded.append(order) } }
      try RecordBytes.bytes(group.write(to:)).withUnsafeBytes { content in
        var reader = RecordReader(content)
        try LinkableOrder.forEach(inGroup: &reader) { link, order in if case .token = link { encoded.append(order) } }
      }
    }
    for (orders, isWithToken) in [(decoded, true), (encoded, true), (decoded, false)] {
      var contested = ContestedTransaction(record: record, claimants: [], isWithToken: isWithToken)
      LinkableOrders(orders).link(&contested, by: .token("aaaa1"), rules: Self.rules)
      let expected: [Identifier] = isWithToken ? ["o0", "o1"] : ["o0", "o1", "o2"]
      #expect(contested.claimants == expected)
    }
  }

  @Test("The group of many orders has a batch of its own")
  func largeGroups() throws {
    let contests = try ConflictGroups(directory: NSTemporaryDirectory())
    for (round, count) in [2, 2, 40, 2, 2].enumerated() {
      var contested = ContestedTransaction(record: Shop.record(round, at: asOf), claimants: [])
      let orders = (0..<count).map { Identifier("o\(round)-\($0)") }
      if count == 40 {
        let timeline = contests.addTimeline(orders)
        contested.linked = [TimelineRange(timeline: timeline, places: 0..<count)]
      } else {
        contested.claimants = orders
      }
      try contests.add(contested)
    }
    let batches = contests.batches(ofAtLeast: 1_000)
    #expect(batches.count == 3)
    let places = (0..<5).map { batches.batch(of: Identifier("o\($0)-1")) }
    #expect(places[0] == places[1] && places[3] == places[4] && Set(places).count == 3)
    #expect((0..<40).allSatisfy { batches.batch(of: Identifier("o2-\($0)")) == places[2] })
  }

  /// One user, whose account token most transactions carry.
  private struct Shop {
    var groups: [OrderGroup] = []
    var records: [TransactionRecord] = []
    var goods: Set<Identifier> = []

    static func record(_ number: Int, at date: Instant) -> TransactionRecord {
      var record = TransactionRecord(
        environment: .production, transactionId: Identifier("T\(10_000 + number)"), productId: "gems")
      (record.bundleId, record.purchaseDate, record.originalPurchaseDate) = ("com.example.game", date, date)
      return record
    }

    init(seed: UInt64) throws {
      let currency = try #require(Currency("USD"))
      var random = SeededGenerator(seed: seed)
      func oneIn(_ number: Int) -> Bool { Int.random(in: 0..<number, using: &random) == 0 }
      let days = [Int64(1), 20, 200][Int(seed % 3)]
      func time() -> Instant { asOf - .minutes(Int64.random(in: 0...(days * 1_440), using: &random)) }
      let (isPlain, hasReceipts) = (seed.isMultiple(of: 4), seed.isMultiple(of: 2))
      for number in 0..<Int.random(in: 0...70, using: &random) {
        var record = Shop.record(number, at: time())
        if !oneIn(9) { record.appAccountToken = .stated("aaaa-1") }
        if !isPlain, oneIn(9) { record.productId = "coins" }
        if oneIn(9) { record.revocation = Revocation(date: asOf) }
        records.append(record)
      }
      for number in 0..<Int.random(in: 30...90, using: &random) {
        var order = Order(
          orderId: Identifier("o\(Int.random(in: 100...999, using: &random))-\(number)"), userId: "bot",
          productId: !isPlain && oneIn(6) ? "coins" : "gems", quantity: 1,
          amount: Money(minorUnits: 990, currency: currency), status: .verified, createdAt: time())
        order.appAccountToken = "AAAA1"
        if !isPlain, seed % 5 == 1, oneIn(12) {
          order.transactionId = records.randomElement(using: &random)?.transactionId
        }
        var group = OrderGroup(row: .valid(order))
        if !isPlain, hasReceipts, oneIn(seed % 8 == 2 ? 2 : 40) {
          var receipt = Receipt(
            receiptId: Identifier("r\(number)"), orderId: order.orderId, userId: order.userId, claimedEnvironment: nil,
            receivedAt: order.createdAt, state: ProofState())
          (receipt.state.outcome, receipt.state.kind) = (.verified, .app)
          let made = records.filter { $0.purchaseDate.map { $0 < order.createdAt } ?? false || seed.isMultiple(of: 8) }
          group.proofs.append(Proof(receipt: receipt, contained: made.map(\.key).sorted()))
        }
        if oneIn(2) { goods.insert(order.orderId) }
        groups.append(group)
      }
    }

    struct Conflict {
      var groups: Set<Set<Identifier>> = []
      var claims: [Identifier: OrderClaims] = [:]
      var contested: [Identifier: [TransactionKey]] = [:]
      var unowned: Set<TransactionKey> = []
      var unclaimed: Set<TransactionKey> = []
      var rangeCount = 0
    }

    func conflict(withTimelines: Bool) throws -> Conflict {
      let (rules, contests) = (LinkableOrdersTests.rules, try ConflictGroups(directory: NSTemporaryDirectory()))
      var linkable: [LinkableOrder] = []
      for group in groups {
        LinkableOrder.forEach(of: group) { link, order in
          if case .token = link { linkable.append(order) }
        }
      }
      let orders = LinkableOrders(linkable, contests: withTimelines ? contests : nil)
      var (transactions, claimable): ([ContestedTransaction], [Identifier: [TransactionRecord]]) = ([], [:])
      let references = groups.flatMap(\.references)
      for record in records {
        let candidates = Candidates(
          for: record, references: references.filter { $0.transactionId == record.transactionId }, rules: rules)
        var contested = ContestedTransaction(record, candidates, sharesPurchase: false)
        for link in candidates.awaitedLinks(record, openTokens: .all) {
          if case .token = link { orders.link(&contested, by: link, rules: rules) }
        }
        if contested.claimants.count > 1 || !contested.linked.isEmpty {
          transactions.append(contested)
          try contests.add(contested)
        } else if let only = contested.claimants.first {
          claimable[only, default: []].append(record)
        }
      }
      var found = Conflict()
      let batches = contests.batches(ofAtLeast: 1)
      for batch in 0..<batches.count {
        var conflict = ClaimConflict(rules: rules, mixedPeople: ["bot"], timelines: batches.timelines)
        for transaction in transactions where batches.batch(of: transaction) == UInt32(batch) {
          conflict.add(transaction)
          found.rangeCount += transaction.linked.count
        }
        let members = groups.filter { batches.batch(of: $0.row.orderId) == UInt32(batch) }
        for group in members {
          let orderId = group.row.orderId
          conflict.add(
            ContestedOrder(group: group, claimable: claimable[orderId] ?? [], hasGoods: goods.contains(orderId))
          ) { found.claims[$0] = $1 }
        }
        found.groups.insert(Set(members.map(\.row.orderId)))
        let outcome = conflict.matched()
        outcome.forEach { orderId, claims in
          found.claims[orderId] = claims
          found.contested[orderId] = outcome.matched(orderId, claims).contested.map(\.key).sorted()
        }
        found.unowned.formUnion(outcome.unowned.map(\.record.key))
        found.unclaimed.formUnion(outcome.unclaimed.map(\.record.key))
      }
      return found
    }
  }
}
