import Foundation
import Postgres
import Reconciliation
import Streams

/// The table `evidence` of append-only facts, and the fold of all facts about a transaction.
package enum EvidenceTable {
  private static let factColumns = ColumnContents(of: TransactionFact.blank).columns.map(\.name)

  /// The run, its as-of, the subject in two columns, and the fact.
  package static let columns = ["run_id", "as_of", "subject_kind", "subject_id"] + factColumns

  package static let firstOfFact = columns.count - factColumns.count

  /// SQL: the fact `fact` is not signed in the future, and its run recorded an answer after it.
  /// Other facts are reported and never folded. Facts of months whose answers were released count: no role can add a fact
  /// with an earlier time. Before the first run no fact can be compared.
  package static func isCredible(_ fact: String) -> String {
    // Without statistics a server would read all answers of a run for each fact: `max` reads one entry of the index,
    // and IS NOT DISTINCT FROM keeps that index out of the look-up by subject.
    // A day covers clocks that differ. The times of answers name the partition, however a clock was set back meanwhile.
    let day = "interval '1 day'"
    let sameTime = "a.recorded_at BETWEEN \(fact).recorded_at - \(day) AND \(fact).recorded_at + \(day)"
    return """
      (\(fact).signed_at <= greatest(\(fact).recorded_at, coalesce((SELECT r.as_of FROM night_audit.runs r
          WHERE r.run_id = \(fact).run_id), \(fact).as_of)) + interval '1 day'
        AND (NOT EXISTS (SELECT FROM night_audit.runs)
          OR \(fact).recorded_at < coalesce(\(InterNightState.released("answers")), '-infinity')
          OR CASE WHEN \(fact).subject_id IS NULL
            THEN coalesce((SELECT max(a.evidence_through) FROM night_audit.answers a
              WHERE a.run_id = \(fact).run_id AND \(sameTime)) >= \(fact).evidence_id, false)
            ELSE EXISTS (SELECT FROM night_audit.answers a
              WHERE a.subject_kind = \(fact).subject_kind AND a.subject_id = \(fact).subject_id
                AND a.run_id IS NOT DISTINCT FROM \(fact).run_id
                AND a.evidence_through >= \(fact).evidence_id AND \(sameTime)) END))
      """
  }

  package static let newest = "(SELECT max(evidence_id) FROM night_audit.evidence)"

  static let uncountedFacts = """
    SELECT e.evidence_id, e.transaction_id FROM night_audit.evidence e WHERE NOT \(isCredible("e"))
    """

  static func firstUncounted(
    in facts: String = "(\(uncountedFacts))", on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> String? {
    try connection.execute(
      """
      SELECT format('fact %s about transaction %s is signed later than all clocks, or its run recorded no answer for it; it \
      does not count', e.evidence_id, e.transaction_id)
      FROM \(facts) e ORDER BY e.evidence_id LIMIT 1
      """
    ).first.map { row throws(PostgresError) in try row.text(0) }
  }

  /// Admits one writer at a time until the transaction ends, because folding reads rows that others may be adding.
  package static func lock(on connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.postpone("SELECT pg_advisory_xact_lock(\(Migrator.lockKey.0), 2)")
  }

  package static func append(
    _ facts: [(subject: CheckSubject?, fact: TransactionFact)], runId: String, asOf: Instant,
    on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    if facts.isEmpty { return }
    let (relation, contents) = ColumnContents.relation(of: facts.map { ColumnContents(of: $0.fact) })
    let first = contents.count + 1
    try connection.postpone(
      """
      INSERT INTO night_audit.evidence (\(factColumns.joined(separator: ", ")), subject_kind, subject_id, run_id, as_of)
      SELECT *, $\(first + 2)::uuid, $\(first + 3) FROM ROWS FROM (\(relation), unnest($\(first)::text[], $\(first + 1)::text[]))
      """,
      contents + [
        .textArray(facts.map { $0.subject?.kind.rawValue }), .textArray(facts.map { $0.subject?.id.text }),
        .text(runId), .timestamp(asOf.microseconds),
      ])
  }

  /// Folds newly appended facts into the stored records. Earlier facts are read again only if a new fact is not newer
  /// than the stored fold, or the fold lacks information.
  package static func fold(
    _ facts: [TransactionFact], on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [TransactionRecord] {
    let news = Dictionary(grouping: facts, by: \.key)
    let (stored, unfolded) = try TransactionTable.stored(news.mapValues(\.count), on: connection)
    var folded: [TransactionRecord] = []
    var others: Set<TransactionKey> = []
    for (key, facts) in news {
      if let record = stored[key]?.adding(facts) {
        folded.append(record)
      } else if stored[key] == nil, !unfolded.contains(key) {
        if let record = TransactionRecord.folding(facts) { folded.append(record) }
      } else {
        others.insert(key)
      }
    }
    folded += try fold(others, on: connection)
    return folded.sorted { $0.key < $1.key }
  }

  /// Folds all evidence about these transactions, so the result does not depend on the order of arrival. Repeated equal
  /// statements stay on the server: a receipt with 100 purchases sent 100 times repeats each of them.
  static func fold(
    _ keys: Set<TransactionKey>, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [TransactionRecord] {
    if keys.isEmpty { return [] }
    let sorted = keys.sorted()
    let names = factColumns.joined(separator: ", ")
    let words = "ROW(\(factColumns.filter { $0 != "signed_at" }.joined(separator: ", ")))"
    let rows = try connection.execute(
      """
      SELECT \(names) FROM (
        SELECT \(names), \(words) IS NOT DISTINCT FROM lag(\(words)) OVER facts
          AND \(words) IS NOT DISTINCT FROM lead(\(words)) OVER facts AS is_between
        FROM night_audit.evidence e
        JOIN unnest($1::text[], $2::text[]) AS wanted (transaction_id, environment) USING (transaction_id, environment)
        WHERE \(isCredible("e"))
        WINDOW facts AS (PARTITION BY transaction_id, environment ORDER BY signed_at, channel, evidence_id)) fact
      WHERE NOT is_between
      """, [.textArray(sorted.map(\.transactionId.text)), .textArray(sorted.map(\.environment.rawValue))])
    let facts = Dictionary(grouping: try rows.map { row throws(PostgresError) in try fact(row, from: 0) }, by: \.key)
    return sorted.compactMap { facts[$0].flatMap { TransactionRecord.folding($0) } }
  }

  /// Reads a fact from the column `first` on.
  package static func fact(_ row: some RowFields, from first: Int) throws(PostgresError) -> TransactionFact {
    var fact = TransactionFact.blank
    try row.read(from: first) { (reader) throws(PostgresError) in try fact.code(with: &reader) }
    return fact
  }

  /// SQL for the evidence about a row of `transactions` as JSON text, for `facts(_:)`.
  static func facts(about transaction: String) -> String {
    let contents = factColumns.map { column in
      let content = column.hasSuffix("_at") ? "(extract(epoch FROM e.\(column)) * 1000000)::bigint" : "e.\(column)"
      return "(\(content))::text"
    }
    return """
      (SELECT coalesce(json_agg(json_build_array(\(contents.joined(separator: ", ")))), '[]')::text
        FROM night_audit.evidence e
        WHERE e.transaction_id = \(transaction).transaction_id AND e.environment = \(transaction).environment
          AND \(isCredible("e")))
      """
  }

  static func facts(_ text: String) throws(PostgresError) -> [TransactionFact] {
    let rows: [[String?]]
    do { rows = try JSONDecoder().decode([[String?]].self, from: Data(text.utf8)) } catch {
      throw PostgresError(.unexpectedData, "the evidence beside a transaction is not JSON: \(error)")
    }
    return try rows.map { row throws(PostgresError) in try fact(JSONFields(values: row), from: 0) }
  }
}

private struct JSONFields: RowFields {
  /// As the server writes them as text.
  let values: [String?]

  func isNull(_ column: Int) -> Bool { values[column] == nil }

  func text<Text: FieldText>(_ column: Int, as type: Text.Type) -> Text {
    (values[column] ?? "").withBytes { Text(copying: BorrowedText($0)) }
  }

  func word<Word>(_ column: Int, of vocabulary: Vocabulary<Word>) -> Word? {
    values[column].flatMap { Word(rawValue: $0) }
  }

  func optionalBool(_ column: Int) -> Bool? { values[column].map { $0 == "true" } }
  func optionalInt32(_ column: Int) -> Int32? { values[column].flatMap { Int32($0) } }
  func optionalInt64(_ column: Int) -> Int64? { values[column].flatMap { Int64($0) } }
  func optionalTimestamp(_ column: Int) -> Int64? { optionalInt64(column) }
}

extension TransactionFact: FieldCoded {
  public static var blank: TransactionFact {
    TransactionFact(
      environment: .production, transactionId: "", productId: "", channel: .verifyReceipt, signedDate: .blank)
  }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    coder.name("channel")
    try coder.code(word: &channel, of: Vocabularies.channel)
    try coder.code(&signedDate, "signed_at")
    coder.name("environment")
    try coder.code(word: &environment, of: Vocabularies.environment)
    try coder.code(&transactionId, "transaction_id")
    try coder.code(&originalTransactionId, "original_transaction_id")
    try coder.code(&webOrderLineItemId, "web_order_line_item_id")
    try coder.code(&bundleId, "bundle_id")
    try coder.code(&productId, "product_id")
    coder.name("product_type")
    try coder.code(raw: &productType)
    try coder.code(&quantity, "quantity")
    try coder.code(&purchaseDate, "purchased_at")
    try coder.code(&originalPurchaseDate, "original_purchased_at")
    try coder.code(&expiresDate, "expires_at")
    try coder.code(&gracePeriodExpiresDate, "grace_expires_at")
    try coder.code(statement: &revocation, "tells_revocation", "revoked_at")
    try coder.code(&priceMilliunits, "price_milliunits")
    try coder.code(&currency, "currency")
    try coder.code(statement: &appAccountToken, "tells_account_token", "app_account_token")
    coder.name("ownership")
    try coder.code(word: &ownership, of: Vocabularies.ownership)
    try coder.code(&isRenewal, "is_renewal")
    try coder.code(&hasOffer, "has_offer")
    try coder.code(&isUpgraded, "is_upgraded")
    try coder.code(&renewalDate, "renewal_at")
    try coder.code(&renewalPriceMilliunits, "renewal_price_milliunits")
    try coder.code(&renewalCurrency, "renewal_currency")
    try coder.code(&offerPeriod, "offer_period")
    coder.name("subscription_status")
    try coder.code(raw: &subscriptionStatus)
    var (request, reason) = (refundRequest?.word, refundRequest?.reason)
    try coder.code(&request, "refund_request")
    try coder.code(&reason, "consumption_request_reason")
    var reverses: Bool? = reversesRefund ? true : cannotStateRefunds ? false : nil
    try coder.code(&reverses, "reverses_refund")
    if Coder.isReading {
      refundRequest = RefundRequestNotice(word: request, reason: reason)
      (reversesRefund, cannotStateRefunds) = (reverses == true, reverses == false)
    }
    try coder.code(&details.storefront, "storefront")
    try coder.code(&details.appTransactionId, "app_transaction_id")
    try coder.code(&details.offerType, "offer_type")
    try coder.code(&details.offerIdentifier, "offer_identifier")
    try coder.code(&details.subscriptionGroupIdentifier, "subscription_group_identifier")
    try coder.code(&details.commitmentInfo, "commitment_info")
    try coder.code(&details.billingPlanType, "billing_plan_type")
    try coder.code(&details.previousOriginalTransactionId, "previous_original_transaction_id")
  }
}

extension EvidenceChannel {
  /// True for what Apple states when it is asked, and false for what it signed earlier.
  var isAnswer: Bool {
    switch self {
    case .offline: false
    case .verifyReceipt, .serverApi, .notification: true
    }
  }
}

extension Sequence<TransactionFact> {
  /// The transactions that none of the facts answers about.
  package var unasked: Set<TransactionKey> {
    var (offline, asked): (Set<TransactionKey>, Set<TransactionKey>) = ([], [])
    for fact in self {
      if fact.channel.isAnswer { asked.insert(fact.key) } else { offline.insert(fact.key) }
    }
    return offline.subtracting(asked)
  }
}

extension TransactionFact {
  var key: TransactionKey { TransactionKey(environment: environment, transactionId: Identifier(transactionId)) }
}
