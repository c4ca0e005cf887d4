import Postgres
import Reconciliation
import Streams

package enum TransactionTable {
  /// The columns that rules use, the ID first.
  private static let names = ColumnContents { coder in
    var blank = TransactionRecord.Contents.blank
    blank.codeRules(with: &coder)
  }.columns.map(\.name)

  private static let productColumn = names.firstIndex(of: "product_id") ?? 0

  private static let allNames = ColumnContents(ofColumns: .blank).columns.map(\.name)

  /// The query for transactions (alias `t`) in the byte order of IDs, for `record(_:hiding:)`, without sales hidden by
  /// `isHidden`. A row holds only the newest refund, so rows with a hidden refund or withdrawal include their evidence.
  package static func byId(
    hiding isHidden: (_ date: String) throws(PostgresError) -> String, where restriction: String = "TRUE"
  ) throws(PostgresError) -> String {
    // A restore has the sale of its original purchase.
    let sale =
      "least(t.purchased_at, CASE WHEN t.is_renewal IS NOT TRUE AND t.expires_at IS NULL "
      + "THEN t.original_purchased_at END)"
    let isSoldLater = try isHidden(sale)
    return try query(
      VisibleColumns.list(names, of: "t", hiding: isHidden, in: ["checked_at"]),
      withFactsIf: ["t.revoked_at", "t.revocation_withdrawn_at", "t.refund_requested_at", "t.refund_declined_at"]
        .map { date throws(PostgresError) in "(\(try isHidden(date)))" }.joined(separator: " OR "),
      where: "(\(isSoldLater)) IS NOT TRUE AND (\(restriction))", orderedBy: "t.transaction_id, t.environment")
  }

  /// The query for transactions (alias `t`) in the byte order of products, for `recordWithWithdrawnRevocation(_:)`.
  package static func byProduct(where restriction: String) -> String {
    query(
      names.map { "t.\($0)" }.joined(separator: ", "), withFactsIf: "t.revocation_withdrawn_at IS NOT NULL",
      where: restriction, orderedBy: "t.product_id, t.transaction_id")
  }

  private static func query(
    _ columns: String, withFactsIf condition: String, where restriction: String, orderedBy order: String
  ) -> String {
    """
    SELECT \(columns),
      CASE WHEN \(condition) THEN \(EvidenceTable.facts(about: "t")) END AS facts
    FROM night_audit.transactions t WHERE \(restriction) ORDER BY \(order)
    """
  }

  /// SQL: a row restores another purchase. Equals `TransactionRecord.restoresAnotherID`.
  package static func restoresAnotherID(_ alias: String) -> String {
    "(\(alias).original_transaction_id <> \(alias).transaction_id AND \(alias).is_renewal IS NOT TRUE AND \(alias).expires_at IS NULL)"
  }

  /// Fingerprints of the purchases that several transactions are of: purchases with their restores, and periods with
  /// several IDs; and of the subscriptions with a refunded renewal. A shop of non-consumables may have one per order.
  package static func sharedPurchases(
    on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Set<UInt64> {
    var rows = try connection.copyOut(
      """
      SELECT r.environment, r.original_transaction_id, '' AS period, NULL::timestamptz AS purchased_at
      FROM night_audit.transactions r
      WHERE \(restoresAnotherID("r"))
      GROUP BY r.environment, r.original_transaction_id
      HAVING count(*) > 1 OR EXISTS (
        SELECT FROM night_audit.transactions t
        WHERE t.transaction_id = r.original_transaction_id AND t.environment = r.environment
          AND \(restoresAnotherID("t")) IS NOT TRUE)
      UNION ALL
      SELECT DISTINCT t.environment, t.original_transaction_id, '', NULL::timestamptz FROM night_audit.transactions t
      WHERE t.revoked_at IS NOT NULL AND t.expires_at IS NOT NULL
        AND t.original_transaction_id <> t.transaction_id AND t.is_renewal IS NOT FALSE
      UNION ALL
      SELECT t.environment, t.original_transaction_id, t.web_order_line_item_id, NULL
      FROM night_audit.transactions t
      WHERE t.expires_at IS NOT NULL AND t.original_transaction_id IS NOT NULL AND t.web_order_line_item_id IS NOT NULL
      GROUP BY t.original_transaction_id, t.environment, t.web_order_line_item_id HAVING count(*) > 1
      UNION ALL
      SELECT t.environment, t.original_transaction_id, t.product_id, t.purchased_at
      FROM night_audit.transactions t
      WHERE t.expires_at IS NOT NULL AND t.original_transaction_id IS NOT NULL AND t.web_order_line_item_id IS NULL
      GROUP BY t.original_transaction_id, t.environment, t.product_id, t.purchased_at HAVING count(*) > 1
      """)
    var purchases: Set<UInt64> = []
    while try rows.advance() {
      guard let environment = try rows.word(0, of: Vocabularies.environment) else { continue }
      purchases.insert(
        PurchaseKey(
          environment: environment, transactionId: try rows.id(1), period: try rows.id(2),
          purchasedAt: try rows.optionalInstant(3)
        ).fingerprint)
    }
    return purchases
  }

  /// The transaction in the current row, in its state before a hidden refund.
  package static func record(
    _ row: borrowing CopyReader, hiding isHidden: (Instant) -> Bool
  ) throws(PostgresError) -> TransactionRecord {
    let record = TransactionRecord(try contents(row))
    guard let facts = try row.optionalText(names.count) else { return record }
    return record.removingHiddenRefunds(try EvidenceTable.facts(facts), hiding: isHidden)
  }

  package static func productId(_ row: borrowing CopyReader) throws(PostgresError) -> Identifier {
    try row.id(productColumn)
  }

  /// The transaction in the current row, and the refund that Apple has reversed since, which only the evidence holds.
  package static func recordWithWithdrawnRevocation(
    _ row: borrowing CopyReader
  ) throws(PostgresError) -> (TransactionRecord, withdrawn: Revocation?) {
    let record = TransactionRecord(try contents(row))
    guard let facts = try row.optionalText(names.count) else { return (record, nil) }
    return (record, record.withdrawnRevocation(try EvidenceTable.facts(facts)))
  }

  /// Reads the current row, with texts in place. False if the transaction is refunded, or has rare columns.
  /// - Parameter plain: a blank transaction, or one that this method has read.
  package static func readPlain(
    _ row: borrowing CopyReader, into plain: inout BorrowedTransaction
  ) throws(PostgresError) -> Bool {
    guard try row.isNull(names.count) else { return false }
    try row.read { (reader) throws(PostgresError) in try plain.codeRules(with: &reader) }
    return plain.revocation == nil && plain.subscriptionStatus == nil && plain.details.commitmentInfo == nil
      && plain.refundRequest == nil
  }

  private static func contents(_ row: borrowing CopyReader) throws(PostgresError) -> TransactionRecord.Contents {
    var contents = TransactionRecord.Contents.blank
    try row.read { (reader) throws(PostgresError) in try contents.codeRules(with: &reader) }
    return contents
  }

  /// The stored records, and the transactions that lack one despite more evidence than the number of new facts.
  static func stored(
    _ news: [TransactionKey: Int], on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> (records: [TransactionKey: TransactionRecord], unfolded: Set<TransactionKey>) {
    if news.isEmpty { return ([:], []) }
    let sorted = news.sorted { $0.key < $1.key }
    let rows = try connection.execute(
      """
      SELECT \(allNames.map { "t.\($0)" }.joined(separator: ", ")), w.transaction_id, w.environment,
        t.transaction_id IS NULL AND (SELECT count(*) FROM (SELECT 1 FROM night_audit.evidence e
          WHERE e.transaction_id = w.transaction_id AND e.environment = w.environment LIMIT w.news + 1) known) > w.news
      FROM unnest($1::text[], $2::text[], $3::int[]) AS w (transaction_id, environment, news)
      LEFT JOIN night_audit.transactions t ON t.transaction_id = w.transaction_id AND t.environment = w.environment
      """,
      [
        .textArray(sorted.map(\.key.transactionId.text)), .textArray(sorted.map(\.key.environment.rawValue)),
        .intArray(sorted.map { Int64($0.value) }),
      ])
    var records: [TransactionKey: TransactionRecord] = [:]
    var unfolded: Set<TransactionKey> = []
    for row in rows {
      let environment = try row.word(allNames.count + 1, of: Vocabularies.environment) ?? .localTesting
      let key = TransactionKey(environment: environment, transactionId: try row.id(allNames.count))
      if try !row.isNull(0) {
        var contents = TransactionRecord.Contents.blank
        try row.read { (reader) throws(PostgresError) in
          try contents.codeRules(with: &reader)
          try contents.codeRest(with: &reader)
        }
        records[key] = TransactionRecord(contents)
      }
      if try row.bool(allNames.count + 2) { unfolded.insert(key) }
    }
    return (records, unfolded)
  }

  /// Writes folded records. `checkedAt` is the as-of of the run that asked. It does not date the `unasked` ones.
  package static func upsert(
    _ records: [TransactionRecord], checkedAt: Instant, unasked: Set<TransactionKey> = [],
    on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    try write(
      records.map { record in
        var record = record
        record.checkedAt = unasked.contains(record.key) ? nil : checkedAt
        return record
      }, into: "night_audit.transactions", on: connection)
    try spreadOverPeriods(
      of: records.compactMap { $0.expiresDate == nil ? nil : $0.originalTransactionId?.text },
      in: "night_audit.transactions", on: connection)
  }

  static func write(
    _ records: [TransactionRecord], into table: String, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    if records.isEmpty { return }
    let (relation, contents) = ColumnContents.relation(of: records.map { ColumnContents(ofColumns: $0.contents) })
    let assignments = allNames.filter { $0 != "transaction_id" && $0 != "environment" }.map { name in
      ["subscription_expires_at", "checked_at"].contains(name)
        ? "\(name) = greatest(t.\(name), excluded.\(name))" : "\(name) = excluded.\(name)"
    }
    try connection.postpone(
      """
      INSERT INTO \(table) AS t (\(allNames.joined(separator: ", "))) SELECT * FROM \(relation)
      ON CONFLICT (transaction_id, environment) DO UPDATE SET \(assignments.joined(separator: ", "))
      """, contents)
  }

  /// Copies the newest expiry and status of subscriptions to all their periods. `originals` are the first transactions of
  /// the subscriptions; nil: all.
  static func spreadOverPeriods(
    of originals: [String]?, in table: String, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    let wanted = originals.map { Set($0).sorted() }
    if let wanted, wanted.isEmpty { return }
    try connection.postpone(
      """
      UPDATE \(table) t SET subscription_expires_at = newest.expiry,
        subscription_status = newest.status, subscription_status_at = newest.status_at
      FROM (
        SELECT environment, original_transaction_id, max(greatest(expires_at, subscription_expires_at)) AS expiry,
          (array_agg(subscription_status ORDER BY subscription_status_at DESC, subscription_status)
            FILTER (WHERE subscription_status IS NOT NULL))[1] AS status,
          max(subscription_status_at) FILTER (WHERE subscription_status IS NOT NULL) AS status_at
        FROM \(table)
        WHERE ($1::text[] IS NULL OR original_transaction_id = ANY ($1)) AND expires_at IS NOT NULL
        GROUP BY environment, original_transaction_id) newest
      WHERE t.environment = newest.environment AND t.original_transaction_id = newest.original_transaction_id
        AND t.expires_at IS NOT NULL
        AND (t.subscription_expires_at, t.subscription_status, t.subscription_status_at)
          IS DISTINCT FROM (newest.expiry, newest.status, newest.status_at)
      """, [wanted.map { .textArray($0) } ?? .null])
  }
}

extension ColumnContents {
  fileprivate init(ofColumns transaction: TransactionRecord.Contents) {
    self.init { coder in
      var transaction = transaction
      transaction.codeRules(with: &coder)
      transaction.codeRest(with: &coder)
    }
  }
}
