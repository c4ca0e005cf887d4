import Foundation
import Postgres
import Reconciliation
import Run
import ShopDatabases
import TestSupport
import Testing

@testable import AuditStore

@Suite struct EarlierRefundTests {
  private enum Word: CaseIterable {
    case none, part, whole, someItems, reversal
    /// The previous refund or a new one, without a percentage, as in verifyReceipt.
    case dated
    /// Like `dated`, but ten seconds after the date of the other channel.
    case datedLater
    /// A cancellation of an upgraded subscription, as in verifyReceipt. It is no refund.
    case upgraded
    case absent
  }

  private static let start = Instant(microseconds: 1_795_000_000_000_000)

  private static func time(_ place: Int) -> Instant { start + .hours(Int64(place)) }

  private static func facts(_ words: [Word], of id: String) -> [TransactionFact] {
    var refund: Instant?
    var isReceipts = false
    return words.enumerated().map { place, word in
      var fact = TransactionFact(
        environment: .production, transactionId: id, productId: "gems", channel: .serverApi, signedDate: time(place))
      switch word {
      case .none, .reversal:
        refund = nil
        fact.revocation = .stated(nil)
        fact.reversesRefund = word == .reversal
      case .part, .whole, .someItems:
        (refund, isReceipts) = (fact.signedDate, false)
        fact.revocation = .stated(
          Revocation(
            date: fact.signedDate, percentage: word == .part ? 40_000 : nil,
            type: word == .part ? "REFUND_PRORATED" : word == .whole ? "REFUND_FULL" : nil, reason: 1,
            coversSomeItemsOnly: word == .someItems))
      case .dated, .datedLater, .upgraded:
        fact.channel = .verifyReceipt
        fact.isUpgraded = word == .upgraded ? true : nil
        let known = refund.map { word == .datedLater ? $0 + .seconds(10) : $0 }
        (refund, isReceipts) = (refund ?? fact.signedDate, true)
        fact.revocation = .stated(Revocation(date: known ?? fact.signedDate, percentage: nil, type: nil, reason: 1))
      case .absent:
        fact.channel = .verifyReceipt
        if isReceipts { refund = nil }
      }
      return fact
    }
  }

  private struct Told: Equatable {
    var revocation: Revocation?
    var withdrawn: Instant?

    init(_ record: TransactionRecord?) {
      (revocation, withdrawn) = (record?.revocation, record?.revocationWithdrawnDate)
    }
  }

  /// The date of the last fact, or of the refund that it states: a refund keeps its first date. An upgrade is none.
  private static func date(ofLast facts: ArraySlice<TransactionFact>) -> Instant {
    guard let fact = facts.last, case .stated(.some) = fact.revocation else { return facts.last?.signedDate ?? start }
    return TransactionRecord.folding(Array(facts))?.revocation?.date ?? fact.signedDate
  }

  /// The fold of all facts up to the as-of, with the later date of withdrawal if the refund was withdrawn next.
  private static func told(_ facts: [TransactionFact], by asOf: Instant) -> Told {
    let place = facts.firstIndex { $0.signedDate > asOf } ?? facts.endIndex
    let known = facts.indices.filter { date(ofLast: facts[...$0]) <= asOf }
    var told = Told(TransactionRecord.folding(known.map { facts[$0] }))
    guard told.revocation != nil else { return told }
    var newest = told
    for next in place..<facts.endIndex {
      let later = Told(TransactionRecord.folding(Array(facts[...next])))
      if later.revocation == nil {
        if newest.revocation?.date == told.revocation?.date { told.withdrawn = later.withdrawn }
        break
      }
      newest = later
    }
    return told
  }

  @Test("A refund that was replaced or withdrawn later is read in its state at the as-of")
  func laterRefundStatementsAreHidden() async throws {
    let url = try await PrivatePostgres.storeDatabase()
    let session = try await PostgresSession.connect(url, applicationName: "night-audit tests")
    let words = (1...4).reduce(into: [[[Word]]]()) { lives, _ in
      lives.append((lives.last ?? [[]]).flatMap { life in Word.allCases.map { life + [$0] } })
    }
    // Every life of up to three words, and every seventh of four.
    let lives = words.joined().enumerated().filter { $0.element.count < 4 || $0.offset.isMultiple(of: 7) }.map {
      Self.facts($0.element, of: "T\($0.offset)")
    }
    try await session.withConnection { connection in
      try EvidenceTable.append(
        lives.joined().map { (subject: nil, fact: $0) }, runId: UUID().uuidString, asOf: Self.start, on: connection)
      let records = lives.compactMap { TransactionRecord.folding($0) }
      try TransactionTable.upsert(records, checkedAt: Self.start, on: connection)
      // An index scan gives the order of a part, because sorting all transactions would cost more than the report.
      try connection.executeScript("ANALYZE; SET enable_seqscan = off; SET enable_bitmapscan = off")
      let plan = try connection.execute(
        "EXPLAIN " + TransactionTable.byId(hiding: { "\($0) > now()" }, where: "t.transaction_id < 'T9'"))
      let steps = try plan.map { row throws(PostgresError) in try row.text(0) }.joined(separator: "\n")
      #expect(steps.hasPrefix("Index Scan using transactions_pkey"), "\(steps)")
      for place in 0..<4 {
        let asOf = Self.time(place)
        let literal = try PostgresLiteral.timestamp(asOf.microseconds)
        var told: [String: Told] = [:]
        var rows = try connection.copyOut(
          try TransactionTable.byId { date throws(PostgresError) in "\(date) > \(literal)" })
        while try rows.advance() {
          let record = try TransactionTable.record(rows) { $0 > asOf }
          told[record.transactionId.text] = Told(record)
        }
        for facts in lives {
          let expected = Self.told(facts, by: asOf)
          #expect(told[facts[0].transactionId] == expected, "as of \(place): \(facts)")
          let folded = Told(TransactionRecord.folding(facts) { $0 > asOf })
          #expect(folded == expected, "folded as of \(place): \(facts)")
        }
      }
    }
    await session.close()
  }

  @Test("A sale after the as-of is hidden, a restore of an earlier one is not, and a later answer has no date")
  func laterSalesAndAnswersAreHidden() async throws {
    let url = try await PrivatePostgres.storeDatabase()
    let session = try await PostgresSession.connect(url, applicationName: "night-audit tests")
    try await session.withConnection { connection in
      let (asOf, later) = (Self.time(1), Self.time(2))
      func sold(_ id: Identifier, at date: Instant) -> TransactionRecord {
        var record = TransactionRecord(environment: .production, transactionId: id, productId: "gems")
        record.purchaseDate = date
        return record
      }
      var restore = sold("T4", at: later)
      (restore.originalTransactionId, restore.originalPurchaseDate) = ("T1", Self.start)
      try TransactionTable.upsert([sold("T1", at: asOf)], checkedAt: asOf, on: connection)
      try TransactionTable.upsert(
        [sold("T2", at: asOf), sold("T3", at: later), restore], checkedAt: later, on: connection)
      try connection.execute(
        """
        INSERT INTO night_audit.receipt_checks (subject_kind, subject_id, received_at, outcome, last_attempt,
          answered_at)
        SELECT 'lookup', 'game/' || asked::text, asked, 'verified', asked, asked FROM unnest($1::timestamptz[]) AS asked
        """, [.timestampArray([asOf.microseconds, later.microseconds])])
      try connection.execute(
        "INSERT INTO night_audit.lookups SELECT subject_id, subject_id FROM night_audit.receipt_checks")
      let literal = try PostgresLiteral.timestamp(asOf.microseconds)
      var known: [String] = []
      var rows = try connection.copyOut(
        try TransactionTable.byId { date throws(PostgresError) in "\(date) > \(literal)" })
      while try rows.advance() {
        let record = try TransactionTable.record(rows) { $0 > asOf }
        known.append(record.transactionId.text + (record.checkedAt == asOf ? " checked" : ""))
      }
      #expect(known == ["T1 checked", "T2", "T4"])
      var attempts: [Instant?] = []
      var lookups = try connection.copyOut(
        try LookupRow.query { date throws(PostgresError) in "\(date) > \(literal)" })
      while try lookups.advance() {
        let state = try LookupRow(lookups).state
        #expect(state.outcome == .verified && state.answeredAt == state.lastAttempt)
        attempts.append(state.lastAttempt)
      }
      #expect(Set(attempts) == [asOf, nil])
    }
    await session.close()
  }
}
