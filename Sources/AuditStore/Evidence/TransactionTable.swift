import Postgres
import Reconciliation
import Streams

package enum TransactionTable {
  /// In the order in which `contents(_:)` reads them.
  static let ruled: [TableColumn<TransactionRecord>] = [
    .text("transaction_id") { $0.transactionId.text }, .text("environment") { $0.environment.rawValue },
    .text("product_id") { $0.productId.text }, .text("bundle_id") { $0.bundleId },
    .text("original_transaction_id") { $0.originalTransactionId?.text }, .integer("quantity") { $0.quantity },
    .instant("purchased_at") { $0.purchaseDate }, .instant("original_purchased_at") { $0.originalPurchaseDate },
    .instant("expires_at") { $0.expiresDate }, .instant("subscription_expires_at") { $0.subscriptionExpiresDate },
    .instant("revoked_at") { $0.revocation?.date }, .integer("revocation_percentage") { $0.revocation?.percentage },
    .text("revocation_type") { $0.revocation?.type }, .integer("revocation_reason") { $0.revocation?.reason },
    .instant("revocation_withdrawn_at") { $0.revocationWithdrawnDate },
    .instant("revocation_told_at") { $0.revocationStatedDate }, .bigint("price_milliunits") { $0.priceMilliunits },
    .text("currency") { $0.currency }, .bool("tells_account_token") { $0.appAccountToken != .absent },
    .text("app_account_token") { $0.appAccountToken.content() }, .text("ownership") { $0.ownership?.rawValue },
    .bool("is_renewal") { $0.isRenewal }, .bool("has_offer") { $0.hasOffer },
    .bool("is_contradictory") { $0.isContradictory }, .instant("checked_at") { $0.checkedAt },
    .integer("subscription_status") { $0.subscriptionStatus?.rawValue },
    .instant("subscription_status_at") { $0.subscriptionStatusDate }, .instant("renewal_at") { $0.renewalDate },
    .text("consumption_request_reason") { $0.refundRequest?.reason },
    .bool("revocation_of_some_items") { $0.revocation?.coversSomeItemsOnly }, .bool("is_upgraded") { $0.isUpgraded },
    .instant("signed_at") { $0.signedDate }, .instant("first_signed_at") { $0.firstSignedDate },
    .text("channel") { $0.channel.rawValue }, .text("storefront") { $0.details.storefront },
    .text("web_order_line_item_id") { $0.webOrderLineItemId?.text },
    .text("commitment_info") { $0.details.commitmentInfo }, .instant("refund_requested_at") { $0.refundRequest?.date },
    .instant("refund_declined_at") { $0.refundRequest?.declinedDate },
  ]

  /// The columns that no rule uses, in the order in which `whole(_:)` reads them.
  private static let rest: [TableColumn<TransactionRecord>] = [
    .text("product_type") { $0.productType?.rawValue }, .text("app_transaction_id") { $0.details.appTransactionId },
    .integer("offer_type") { $0.details.offerType }, .text("offer_identifier") { $0.details.offerIdentifier },
    .text("subscription_group_identifier") { $0.details.subscriptionGroupIdentifier },
    .text("billing_plan_type") { $0.details.billingPlanType },
    .text("previous_original_transaction_id") { $0.details.previousOriginalTransactionId },
    .instant("notified_at") { $0.notifiedDate },
  ]

  private static let columns = ruled + rest
  private static let names = ruled.map(\.name)

  /// The query for transactions (alias `t`) in the byte order of IDs, for `record(_:hiding:)`. A row holds only the
  /// newest refund, so rows with a refund or withdrawal hidden by `isHidden` include their evidence.
  package static func byId(
    hiding isHidden: (_ date: String) throws(PostgresError) -> String, where restriction: String = "TRUE"
  ) throws(PostgresError) -> String {
    try query(
      withFactsIf: ["t.revoked_at", "t.revocation_withdrawn_at", "t.refund_requested_at", "t.refund_declined_at"]
        .map { date throws(PostgresError) in "(\(try isHidden(date)))" }.joined(separator: " OR "),
      where: restriction, orderedBy: "t.transaction_id, t.environment")
  }

  /// The query for transactions (alias `t`) in the byte order of products, for `recordWithWithdrawnRevocation(_:)`.
  package static func byProduct(where restriction: String) -> String {
    query(
      withFactsIf: "t.revocation_withdrawn_at IS NOT NULL", where: restriction,
      orderedBy: "t.product_id, t.transaction_id")
  }

  private static func query(withFactsIf condition: String, where restriction: String, orderedBy order: String) -> String
  {
    """
    SELECT \(names.map { "t.\($0)" }.joined(separator: ", ")),
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

  package static func productId(_ row: borrowing CopyReader) throws(PostgresError) -> Identifier { try row.id(2) }

  /// The transaction in the current row, and the refund that Apple has reversed since, which only the evidence holds.
  package static func recordWithWithdrawnRevocation(
    _ row: borrowing CopyReader
  ) throws(PostgresError) -> (TransactionRecord, withdrawn: Revocation?) {
    let record = TransactionRecord(try contents(row))
    guard let facts = try row.optionalText(names.count) else { return (record, nil) }
    return (record, record.withdrawnRevocation(try EvidenceTable.facts(facts)))
  }

  /// The transaction in the current row, with texts in place; nil if refunded or with rare columns.
  package static func plain(_ row: borrowing CopyReader) throws(PostgresError) -> BorrowedTransaction? {
    guard try row.isNull(10), try row.isNull(25), try row.isNull(36), try row.isNull(37), try row.isNull(names.count),
      let environment = try row.word(1, of: Vocabularies.environment)
    else { return nil }
    var payment = BorrowedPayment(
      environment: environment, transactionId: try row.borrowed(0), productId: try row.borrowed(2))
    (payment.bundleId, payment.originalTransactionId) = (try row.optionalBorrowed(3), try row.optionalBorrowed(4))
    (payment.quantity, payment.purchaseDate) = (try row.optionalInt32(5), try row.optionalInstant(6))
    (payment.originalPurchaseDate, payment.expiresDate) = (try row.optionalInstant(7), try row.optionalInstant(8))
    (payment.priceMilliunits, payment.currency) = (try row.optionalInt64(16), try row.optionalBorrowed(17))
    payment.statesToken = try row.bool(18)
    if payment.statesToken { payment.appAccountToken = try row.optionalBorrowed(19) }
    (payment.ownership, payment.isRenewal) = (try row.word(20, of: Vocabularies.ownership), try row.optionalBool(21))
    (payment.hasOffer, payment.isContradictory) = (try row.optionalBool(22), try row.bool(23))
    (payment.checkedAt, payment.storefront) = (try row.optionalInstant(24), try row.optionalBorrowed(34))
    payment.webOrderLineItemId = try row.optionalBorrowed(35)
    return BorrowedTransaction(
      payment: payment, subscriptionExpiresDate: try row.optionalInstant(9),
      revocationWithdrawnDate: try row.optionalInstant(14), revocationStatedDate: try row.optionalInstant(15),
      subscriptionStatusDate: try row.optionalInstant(26), renewalDate: try row.optionalInstant(27),
      isUpgraded: try row.optionalBool(30),
      signedDate: Instant(microseconds: try row.timestamp(31)), firstSignedDate: try row.optionalInstant(32),
      channel: try row.word(33, of: Vocabularies.channel) ?? .verifyReceipt)
  }

  private static func contents(
    _ row: borrowing some RowFields & ~Copyable
  ) throws(PostgresError) -> TransactionRecord.Contents {
    var contents = TransactionRecord.Contents(
      environment: try row.word(1, of: Vocabularies.environment) ?? .localTesting, transactionId: try row.id(0),
      productId: try row.id(2))
    (contents.bundleId, contents.originalTransactionId) = (try row.optionalText(3), try row.optionalId(4))
    (contents.quantity, contents.purchaseDate) = (try row.optionalInt32(5), try row.optionalInstant(6))
    (contents.originalPurchaseDate, contents.expiresDate) = (try row.optionalInstant(7), try row.optionalInstant(8))
    contents.subscriptionExpiresDate = try row.optionalInstant(9)
    if let date = try row.optionalInstant(10) {
      contents.revocation = Revocation(
        date: date, percentage: try row.optionalInt32(11), type: try row.optionalText(12),
        reason: try row.optionalInt32(13), coversSomeItemsOnly: try row.optionalBool(29) ?? false)
    }
    contents.revocationWithdrawnDate = try row.optionalInstant(14)
    (contents.revocationStatedDate, contents.priceMilliunits) = (try row.optionalInstant(15), try row.optionalInt64(16))
    contents.currency = try row.optionalText(17)
    contents.appAccountToken = try row.bool(18) ? .stated(try row.optionalText(19)) : .absent
    (contents.ownership, contents.isRenewal) = (try row.word(20, of: Vocabularies.ownership), try row.optionalBool(21))
    (contents.hasOffer, contents.isContradictory) = (try row.optionalBool(22), try row.bool(23))
    contents.checkedAt = try row.optionalInstant(24)
    contents.subscriptionStatus = try row.optionalInt32(25).flatMap(SubscriptionState.init)
    (contents.subscriptionStatusDate, contents.renewalDate) = (try row.optionalInstant(26), try row.optionalInstant(27))
    if let date = try row.optionalInstant(37) {
      contents.refundRequest = RefundRequest(
        date: date, reason: try row.optionalText(28), declinedDate: try row.optionalInstant(38))
    }
    contents.isUpgraded = try row.optionalBool(30)
    contents.signedDate = Instant(microseconds: try row.timestamp(31))
    contents.firstSignedDate = try row.optionalInstant(32)
    contents.channel = try row.word(33, of: Vocabularies.channel) ?? .verifyReceipt
    (contents.details.storefront, contents.webOrderLineItemId) = (try row.optionalText(34), try row.optionalId(35))
    contents.details.commitmentInfo = try row.optionalText(36)
    return contents
  }

  private static func whole(_ row: PostgresRow) throws(PostgresError) -> TransactionRecord {
    var contents = try contents(row)
    contents.productType = try row.optionalText(39).flatMap(ProductType.init)
    contents.details.appTransactionId = try row.optionalText(40)
    contents.details.offerType = try row.optionalInt32(41)
    contents.details.offerIdentifier = try row.optionalText(42)
    contents.details.subscriptionGroupIdentifier = try row.optionalText(43)
    contents.details.billingPlanType = try row.optionalText(44)
    contents.details.previousOriginalTransactionId = try row.optionalText(45)
    contents.notifiedDate = try row.optionalInstant(46)
    return TransactionRecord(contents)
  }

  /// The stored records, and the transactions that lack one despite more evidence than the number of new facts.
  static func stored(
    _ news: [TransactionKey: Int], on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> (records: [TransactionKey: TransactionRecord], unfolded: Set<TransactionKey>) {
    if news.isEmpty { return ([:], []) }
    let sorted = news.sorted { $0.key < $1.key }
    let rows = try connection.execute(
      """
      SELECT \(columns.map { "t.\($0.name)" }.joined(separator: ", ")), w.transaction_id, w.environment,
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
      let environment = try row.word(columns.count + 1, of: Vocabularies.environment) ?? .localTesting
      let key = TransactionKey(environment: environment, transactionId: try row.id(columns.count))
      if try !row.isNull(0) { records[key] = try whole(row) }
      if try row.bool(columns.count + 2) { unfolded.insert(key) }
    }
    return (records, unfolded)
  }

  /// Writes folded records. `checkedAt` is the as-of of the run that asked.
  package static func upsert(
    _ records: [TransactionRecord], checkedAt: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    try write(
      records.map { record in
        var record = record
        record.checkedAt = checkedAt
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
    let (relation, contents) = TableColumn.relation(columns, of: records)
    let assignments = columns.map(\.name).filter { $0 != "transaction_id" && $0 != "environment" }.map { name in
      ["subscription_expires_at", "checked_at"].contains(name)
        ? "\(name) = greatest(t.\(name), excluded.\(name))" : "\(name) = excluded.\(name)"
    }
    try connection.postpone(
      """
      INSERT INTO \(table) AS t (\(columns.map(\.name).joined(separator: ", "))) SELECT * FROM \(relation)
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
