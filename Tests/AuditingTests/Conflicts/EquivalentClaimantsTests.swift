import Foundation
import Reconciliation
import Streams
import TestSupport
import Testing

@testable import AuditStore
@testable import Auditing
@testable import SampleWorlds

private let asOf = Instant(seconds: 1_795_132_800)

/// Matching two of many equivalent orders has the same result as matching all of them.
@Suite struct EquivalentClaimantsTests {
  private static let effort = UInt64(Effort.factor)

  private let rules = ConflictingOrders.rules

  @Test func equivalentOrdersShareOneMatchingResult() throws {
    var (shared, owningMore, secure, chargedTwice) = (0, 0, 0, 0)
    for seed in 0..<200 * Self.effort {
      let crowd = try ConflictingOrders(seed: seed, count: 40)
      let contested = crowd.records.map { record in
        let candidates = Candidates(for: record, references: crowd.references(of: record.transactionId), rules: rules)
        return ContestedTransaction(
          record: record, claimants: candidates.claimants,
          userId: candidates.userId, newestProof: candidates.newestProof)
      }
      var random = SeededGenerator(seed: seed)
      let goods = Set(crowd.groups.map(\.row.orderId).filter { _ in Bool.random(using: &random) })
      let mixedPeople = Set(crowd.groups.filter { goods.contains($0.row.orderId) }.map(\.row.userId))
        .intersection(crowd.groups.filter { !goods.contains($0.row.orderId) }.map(\.row.userId))
      var contest = ClaimConflict(
        rules: rules, mixedPeople: mixedPeople, largeSetSize: seed.isMultiple(of: 2) ? 4 : 1_000)
      for transaction in contested.shuffled(using: &random) { contest.add(transaction) }
      let contestedKeys = Set(crowd.records.map(\.key))
      var seen: [Identifier: OrderClaims] = [:]
      for group in crowd.groups.shuffled(using: &random) {
        contest.add(
          ContestedOrder(
            group: group, claimable: crowd.own[group.row.orderId] ?? [], hasGoods: goods.contains(group.row.orderId))
        ) { orderId, claims in
          #expect(seen.updateValue(claims, forKey: orderId) == nil)
        }
      }
      secure += seen.count
      let outcome = contest.matched()

      let claimants = crowd.groups.compactMap { group -> Claimant? in
        guard case .valid(let order) = group.row else { return nil }
        var facts = OrderFacts(
          order, group, claimable: crowd.own[order.orderId] ?? [],
          others: contested.filter { $0.claimants.contains(order.orderId) }.map(\.record))
        facts.hasGoods = goods.contains(order.orderId)
        return facts.claimant(rules)
      }
      let matching = Matching(of: claimants, rules: rules)
      for (orderId, claims) in seen { #expect(claims == matching.claims[orderId], "seed \(seed), order \(orderId)") }
      outcome.forEach { orderId, claims in
        #expect(seen.updateValue(claims, forKey: orderId) == nil)
        #expect(claims == matching.claims[orderId], "seed \(seed), order \(orderId)")
      }
      #expect(seen.count == crowd.groups.count)
      let ofKinds = claimants.compactMap { EquivalentClaimants($0, mixedPeople: mixedPeople, rules: rules) }
      shared += ofKinds.count - Set(ofKinds).count
      chargedTwice += matching.claims.values.count { claims in
        claims.owned.count > 1 && claims.owned.contains { contestedKeys.contains($0.key) }
      }
      owningMore += matching.claims.values.count { claims in claims.owned.contains { $0.key != claims.named } }
      let owned = Set(matching.claims.values.flatMap { $0.owned.map(\.key) })
      #expect(Set(outcome.unowned.map(\.record.key)) == Set(crowd.records.map(\.key)).subtracting(owned))
      let unclaimed = crowd.records.filter { !matching.isClaimed($0) }
      #expect(Set(outcome.unclaimed.map(\.record.key)) == Set(unclaimed.map(\.key)))
    }
    #expect(shared > 0 && owningMore > 0 && secure > 100 && chargedTwice > 0, "\(secure), \(chargedTwice)")
  }

  /// The references are sorted by content, as the sorter passes them, so that those of one order follow each other.
  @Test func unprovenClaimantsAreCollectedSeparately() throws {
    for seed in 0..<200 * Self.effort {
      let crowd = try ConflictingOrders(seed: seed, count: 30)
      for record in crowd.records {
        let references = crowd.references(of: record.transactionId)
        let sorter = SpillSorter(directory: NSTemporaryDirectory())
        for reference in references {
          var bytes = RecordBytes()
          reference.write(to: &bytes)
          try sorter.add(key: reference.transactionId.bytes, content: bytes.bytes)
        }
        var gathering = Candidates.ReferenceCollector()
        while let sorted = try sorter.next() {
          var reader = RecordReader(sorted.content)
          gathering.take(try TransactionReference(record.transactionId, from: &reader))
        }
        gathering.finish()
        let (all, gathered) = (
          Candidates(for: record, references: references, rules: rules),
          Candidates(for: record, gathering, rules: rules)
        )
        #expect(all.claimants == gathered.claimants && all.affectedOrders == gathered.affectedOrders)
        #expect(all.userId == gathered.userId)
        #expect(all.withOtherToken.map(\.orderId) == gathered.withOtherToken.map(\.orderId))
        #expect(all.newestProof == gathered.newestProof)
      }
    }
  }
}

/// Random orders that state, or have proofs of, the transactions T and U, beside proofs of transactions of their own.
struct ConflictingOrders {
  static let rules = Rules(asOf: asOf, bundleIds: ["com.example.game"], lookbackStart: asOf - .days(120))

  var groups: [OrderGroup] = []
  var records: [TransactionRecord] = []
  var own: [Identifier: [TransactionRecord]] = [:]

  init(seed: UInt64, count: Int) throws {
    let currency = try #require(Currency("USD"))
    var random = SeededGenerator(seed: seed)
    func pick<Choice>(_ choices: [Choice]) -> Choice { choices[Int.random(in: 0..<choices.count, using: &random)] }
    for id in ["T", "U"] {
      for environment in pick([[.production], [.production, .sandbox], [.sandbox]]) as [AppleEnvironment] {
        var record = TransactionRecord(environment: environment, transactionId: Identifier(id), productId: "gems")
        record.bundleId = pick(["com.example.game", "com.example.game", "com.example.game", "com.example.other"])
        record.purchaseDate = asOf - .hours(Int64.random(in: 1...200, using: &random))
        record.originalPurchaseDate = record.purchaseDate
        if pick([true, false, false, false]) { record.originalPurchaseDate = asOf - .days(30) }
        record.appAccountToken = pick([.absent, .absent, .stated("aaaa-1")])
        record.isContradictory = pick([true] + Array(repeating: false, count: 7))
        if pick([true, false, false, false]) { record.revocation = Revocation(date: asOf - .hours(1)) }
        records.append(record)
      }
    }
    for number in 0..<count {
      var order = Order(
        orderId: Identifier("o\(number)"), userId: Identifier("u\(Int.random(in: 0..<count / 2, using: &random))"),
        productId: pick(["gems", "gems", "gems", "gems", "coins"]), quantity: 1,
        amount: Money(minorUnits: 990, currency: currency), status: .verified,
        createdAt: asOf - .hours(Int64.random(in: 1...12, using: &random)))
      order.transactionId = pick(["T", "T", "T", "U", nil])
      order.appAccountToken = pick([nil, nil, nil, "AAAA1", "bbbb-2"])
      var group = OrderGroup(row: .valid(order))
      for proof in 0..<pick([0, 0, 1, 1, 2]) {
        var receipt = Receipt(
          receiptId: Identifier("r\(number)-\(proof)"), orderId: order.orderId, userId: order.userId,
          claimedEnvironment: nil, receivedAt: order.createdAt, state: ProofState())
        receipt.state.outcome = pick([.verified, .rejected, .rejected, .unanswered, .pending, .notFound])
        receipt.state.kind = pick([.app, .signed, .signed])
        receipt.state.reason = receipt.state.outcome == .rejected ? pick([.signatureInvalid, .malformed]) : nil
        receipt.state.signedTransactionId = pick([nil, nil, "T", "V"])
        var contained: [TransactionKey] = []
        if pick([true] + Array(repeating: false, count: 14)), let record = records.randomElement(using: &random) {
          contained = [record.key]
        }
        if pick([true, true, false]) {
          var record = TransactionRecord(
            environment: pick([.production, .production, .production, .sandbox]),
            transactionId: Identifier("p\(number)-\(proof)"), productId: pick([order.productId, "gems"]))
          record.bundleId = "com.example.game"
          record.purchaseDate = order.createdAt + .minutes(Int64.random(in: -9_000...9_000, using: &random))
          record.originalPurchaseDate = record.purchaseDate
          record.originalTransactionId = pick([nil, nil, nil, nil, Identifier("restored-\(number)-\(proof)")])
          if pick([true] + Array(repeating: false, count: 7)) { record.expiresDate = asOf }
          if pick([true, false, false, false]) { record.revocation = Revocation(date: asOf - .hours(1)) }
          if receipt.state.kind == .signed, pick([true, false]) {
            receipt.state.signedTransactionId = record.transactionId
          }
          own[order.orderId, default: []].append(record)
          contained.append(record.key)
          contained.sort()
        }
        group.proofs.append(Proof(receipt: receipt, contained: contained))
      }
      if order.transactionId != nil, pick([true, false, false, false]) {
        var state = ProofState()
        state.outcome = pick([.verified, .notFound, .unanswered])
        group.lookup = LookedUp(subjectId: Identifier("l\(number)"), state: state, contained: [])
      }
      groups.append(group)
    }
  }

  func references(of id: Identifier) -> [TransactionReference] {
    groups.flatMap(\.references).filter { $0.transactionId == id }
  }
}
