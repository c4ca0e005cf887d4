import Foundation
import Postgres
import Reconciliation

/// The table `evidence` of append-only facts, and the fold of all facts about a transaction.
package enum EvidenceTable {
  private static let fields: [TableColumn<TransactionFact>] = [
    .text("channel") { $0.channel.rawValue }, .instant("signed_at") { $0.signedDate },
    .text("environment") { $0.environment.rawValue }, .text("transaction_id") { $0.transactionId },
    .text("original_transaction_id") { $0.originalTransactionId },
    .text("web_order_line_item_id") { $0.webOrderLineItemId }, .text("bundle_id") { $0.bundleId },
    .text("product_id") { $0.productId }, .text("product_type") { $0.productType?.rawValue },
    .integer("quantity") { $0.quantity }, .instant("purchased_at") { $0.purchaseDate },
    .instant("original_purchased_at") { $0.originalPurchaseDate }, .instant("expires_at") { $0.expiresDate },
    .instant("grace_expires_at") { $0.gracePeriodExpiresDate }, .bool("tells_revocation") { $0.revocation != .absent },
    .instant("revoked_at") { $0.refund?.date }, .integer("revocation_percentage") { $0.refund?.percentage },
    .text("revocation_type") { $0.refund?.type }, .integer("revocation_reason") { $0.refund?.reason },
    .bool("revocation_of_some_items") { $0.refund?.coversSomeItemsOnly },
    .bigint("price_milliunits") { $0.priceMilliunits }, .text("currency") { $0.currency },
    .bool("tells_account_token") { $0.appAccountToken != .absent },
    .text("app_account_token") { $0.appAccountToken.content() }, .text("ownership") { $0.ownership?.rawValue },
    .bool("is_renewal") { $0.isRenewal }, .bool("has_offer") { $0.hasOffer }, .bool("is_upgraded") { $0.isUpgraded },
    .instant("renewal_at") { $0.renewalDate }, .bigint("renewal_price_milliunits") { $0.renewalPriceMilliunits },
    .text("renewal_currency") { $0.renewalCurrency }, .text("offer_period") { $0.offerPeriod },
    .integer("subscription_status") { $0.subscriptionStatus?.rawValue },
    .text("refund_request") { $0.refundRequest?.word },
    .text("consumption_request_reason") { $0.refundRequest?.reason },
    .bool("reverses_refund") { $0.reversesRefund ? true : $0.cannotStateRefunds ? false : nil },
    .text("storefront") { $0.details.storefront }, .text("app_transaction_id") { $0.details.appTransactionId },
    .integer("offer_type") { $0.details.offerType }, .text("offer_identifier") { $0.details.offerIdentifier },
    .text("subscription_group_identifier") { $0.details.subscriptionGroupIdentifier },
    .text("commitment_info") { $0.details.commitmentInfo }, .text("billing_plan_type") { $0.details.billingPlanType },
    .text("previous_original_transaction_id") { $0.details.previousOriginalTransactionId },
  ]

  private static let factColumns = fields.map(\.name)

  package static let columns = ["run_id", "as_of", "subject_kind", "subject_id"] + factColumns

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

  package static func append(
    _ facts: [(subject: CheckSubject?, fact: TransactionFact)], runId: String, asOf: Instant,
    on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    if facts.isEmpty { return }
    let (relation, contents) = TableColumn.relation(fields, of: facts.map(\.fact))
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
    let facts = Dictionary(grouping: try rows.map { row throws(PostgresError) in try fact(row) }, by: \.key)
    return sorted.compactMap { facts[$0].flatMap { TransactionRecord.folding($0) } }
  }

  package static func fact(_ row: PostgresRow) throws(PostgresError) -> TransactionFact { try fact(fields: row) }

  private static func fact(fields row: some NamedFields) throws(PostgresError) -> TransactionFact {
    func instant(_ column: String) throws(PostgresError) -> Instant? {
      try row.optionalTimestamp(column).map { Instant(microseconds: $0) }
    }
    var fact = TransactionFact(
      environment: AppleEnvironment(rawValue: try row.text("environment")) ?? .localTesting,
      transactionId: try row.text("transaction_id"), productId: try row.text("product_id"),
      channel: EvidenceChannel(rawValue: try row.text("channel")) ?? .verifyReceipt,
      signedDate: Instant(microseconds: try row.timestamp("signed_at")))
    fact.originalTransactionId = try row.optionalText("original_transaction_id")
    fact.webOrderLineItemId = try row.optionalText("web_order_line_item_id")
    fact.bundleId = try row.optionalText("bundle_id")
    fact.productType = try row.optionalText("product_type").flatMap(ProductType.init)
    (fact.quantity, fact.purchaseDate) = (try row.optionalInt32("quantity"), try instant("purchased_at"))
    (fact.originalPurchaseDate, fact.expiresDate) = (try instant("original_purchased_at"), try instant("expires_at"))
    fact.gracePeriodExpiresDate = try instant("grace_expires_at")
    if try row.bool("tells_revocation") {
      var revocation: Revocation?
      if let date = try instant("revoked_at") {
        revocation = Revocation(
          date: date, percentage: try row.optionalInt32("revocation_percentage"),
          type: try row.optionalText("revocation_type"), reason: try row.optionalInt32("revocation_reason"),
          coversSomeItemsOnly: try row.optionalBool("revocation_of_some_items") ?? false)
      }
      fact.revocation = .stated(revocation)
    }
    fact.priceMilliunits = try row.optionalInt64("price_milliunits")
    fact.currency = try row.optionalText("currency")
    if try row.bool("tells_account_token") { fact.appAccountToken = .stated(try row.optionalText("app_account_token")) }
    fact.ownership = try row.optionalText("ownership").flatMap(Ownership.init)
    (fact.isRenewal, fact.hasOffer) = (try row.optionalBool("is_renewal"), try row.optionalBool("has_offer"))
    (fact.isUpgraded, fact.renewalDate) = (try row.optionalBool("is_upgraded"), try instant("renewal_at"))
    fact.renewalPriceMilliunits = try row.optionalInt64("renewal_price_milliunits")
    fact.renewalCurrency = try row.optionalText("renewal_currency")
    fact.offerPeriod = try row.optionalText("offer_period")
    fact.subscriptionStatus = try row.optionalInt32("subscription_status").flatMap(SubscriptionState.init)
    fact.refundRequest = RefundRequestNotice(
      word: try row.optionalText("refund_request"), reason: try row.optionalText("consumption_request_reason"))
    let reversesRefund = try row.optionalBool("reverses_refund")
    (fact.reversesRefund, fact.cannotStateRefunds) = (reversesRefund == true, reversesRefund == false)
    fact.details.storefront = try row.optionalText("storefront")
    fact.details.appTransactionId = try row.optionalText("app_transaction_id")
    fact.details.offerType = try row.optionalInt32("offer_type")
    fact.details.offerIdentifier = try row.optionalText("offer_identifier")
    fact.details.subscriptionGroupIdentifier = try row.optionalText("subscription_group_identifier")
    fact.details.commitmentInfo = try row.optionalText("commitment_info")
    fact.details.billingPlanType = try row.optionalText("billing_plan_type")
    fact.details.previousOriginalTransactionId = try row.optionalText("previous_original_transaction_id")
    return fact
  }

  /// SQL for the evidence about a row of `transactions` as JSON text, for `facts(_:)`.
  static func facts(about transaction: String) -> String {
    let contents = factColumns.map { column in
      let content = column.hasSuffix("_at") ? "(extract(epoch FROM e.\(column)) * 1000000)::bigint" : "e.\(column)"
      return "'\(column)', (\(content))::text"
    }
    return """
      (SELECT coalesce(json_agg(json_strip_nulls(json_build_object(\(contents.joined(separator: ", "))))), '[]')::text
        FROM night_audit.evidence e
        WHERE e.transaction_id = \(transaction).transaction_id AND e.environment = \(transaction).environment
          AND \(isCredible("e")))
      """
  }

  static func facts(_ text: String) throws(PostgresError) -> [TransactionFact] {
    let rows: [[String: String]]
    do { rows = try JSONDecoder().decode([[String: String]].self, from: Data(text.utf8)) } catch {
      throw PostgresError(.unexpectedData, "the evidence beside a transaction is not JSON: \(error)")
    }
    return try rows.map { row throws(PostgresError) in try fact(fields: JSONFields(values: row)) }
  }
}

private protocol NamedFields {
  func optionalText(_ column: String) throws(PostgresError) -> String?
  func optionalBool(_ column: String) throws(PostgresError) -> Bool?
  func optionalInt32(_ column: String) throws(PostgresError) -> Int32?
  func optionalInt64(_ column: String) throws(PostgresError) -> Int64?
  func optionalTimestamp(_ column: String) throws(PostgresError) -> Int64?
}

extension NamedFields {
  func text(_ column: String) throws(PostgresError) -> String { try required(optionalText(column), column) }
  func bool(_ column: String) throws(PostgresError) -> Bool { try required(optionalBool(column), column) }
  func timestamp(_ column: String) throws(PostgresError) -> Int64 { try required(optionalTimestamp(column), column) }

  private func required<Value>(_ value: Value?, _ column: String) throws(PostgresError) -> Value {
    guard let value else { throw PostgresError(.unexpectedData, "column \(column) of the evidence is missing") }
    return value
  }
}

extension PostgresRow: NamedFields {}

private struct JSONFields: NamedFields {
  /// As the server writes them as text.
  let values: [String: String]

  func optionalText(_ column: String) -> String? { values[column] }
  func optionalBool(_ column: String) -> Bool? { optionalText(column).map { $0 == "true" } }
  func optionalInt32(_ column: String) -> Int32? { optionalText(column).flatMap { Int32($0) } }
  func optionalInt64(_ column: String) -> Int64? { optionalText(column).flatMap { Int64($0) } }
  func optionalTimestamp(_ column: String) -> Int64? { optionalInt64(column) }
}

extension TransactionFact {
  var key: TransactionKey { TransactionKey(environment: environment, transactionId: Identifier(transactionId)) }

  fileprivate var refund: Revocation? { revocation.content() }
}
