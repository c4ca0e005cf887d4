import Postgres
import Reconciliation
import Streams

package enum TransactionTable {
  /// The columns of `record(_:)`, without the columns that no rule uses; `wholeColumns` appends these.
  private static let names = [
    "transaction_id", "environment", "product_id", "bundle_id", "original_transaction_id", "quantity", "purchased_at",
    "original_purchased_at", "expires_at", "subscription_expires_at", "revoked_at", "revocation_percentage",
    "revocation_type", "revocation_reason", "revocation_withdrawn_at", "revocation_told_at", "price_milliunits",
    "currency", "tells_account_token", "app_account_token", "ownership", "is_renewal", "has_offer",
    "is_contradictory", "checked_at", "subscription_status", "subscription_status_at", "renewal_at",
    "consumption_request_reason", "revocation_of_some_items", "is_upgraded", "signed_at", "first_signed_at",
    "channel", "storefront", "web_order_line_item_id", "commitment_info", "refund_requested_at", "refund_declined_at",
  ]

  private static let wholeColumns = """
    \(names.map { "t.\($0)" }.joined(separator: ", ")), t.product_type, t.app_transaction_id, t.offer_type, t.offer_identifier, t.subscription_group_identifier, \
    t.billing_plan_type, t.previous_original_transaction_id, t.notified_at
    """

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

  /// The purchases that several transactions are of: purchases with their restores, and periods with several IDs. They are
  /// few, as are the subscriptions with a refunded renewal, whose keys are added.
  package static func sharedPurchases(
    on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Set<PurchaseKey> {
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
    var purchases: Set<PurchaseKey> = []
    while try rows.advance() {
      guard let environment = try rows.word(0, of: Vocabularies.environment) else { continue }
      purchases.insert(
        PurchaseKey(
          environment: environment, transactionId: try rows.id(1), period: try rows.id(2),
          purchasedAt: try rows.optionalInstant(3)))
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
    else {
      return nil
    }
    var payment = BorrowedPayment(
      environment: environment, transactionId: try row.borrowed(0), productId: try row.borrowed(2))
    payment.bundleId = try row.optionalBorrowed(3)
    payment.originalTransactionId = try row.optionalBorrowed(4)
    payment.quantity = try row.optionalInt32(5)
    payment.purchaseDate = try row.optionalInstant(6)
    payment.originalPurchaseDate = try row.optionalInstant(7)
    payment.expiresDate = try row.optionalInstant(8)
    payment.priceMilliunits = try row.optionalInt64(16)
    payment.currency = try row.optionalBorrowed(17)
    payment.statesToken = try row.bool(18)
    if payment.statesToken { payment.appAccountToken = try row.optionalBorrowed(19) }
    payment.ownership = try row.word(20, of: Vocabularies.ownership)
    payment.isRenewal = try row.optionalBool(21)
    payment.hasOffer = try row.optionalBool(22)
    payment.isContradictory = try row.bool(23)
    payment.checkedAt = try row.optionalInstant(24)
    payment.storefront = try row.optionalBorrowed(34)
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
    contents.bundleId = try row.optionalText(3)
    contents.originalTransactionId = try row.optionalId(4)
    contents.quantity = try row.optionalInt32(5)
    contents.purchaseDate = try row.optionalInstant(6)
    contents.originalPurchaseDate = try row.optionalInstant(7)
    contents.expiresDate = try row.optionalInstant(8)
    contents.subscriptionExpiresDate = try row.optionalInstant(9)
    if let date = try row.optionalInstant(10) {
      contents.revocation = Revocation(
        date: date, percentage: try row.optionalInt32(11), type: try row.optionalText(12),
        reason: try row.optionalInt32(13), coversSomeItemsOnly: try row.optionalBool(29) ?? false)
    }
    contents.revocationWithdrawnDate = try row.optionalInstant(14)
    contents.revocationStatedDate = try row.optionalInstant(15)
    contents.priceMilliunits = try row.optionalInt64(16)
    contents.currency = try row.optionalText(17)
    contents.appAccountToken = try row.bool(18) ? .stated(try row.optionalText(19)) : .absent
    contents.ownership = try row.word(20, of: Vocabularies.ownership)
    contents.isRenewal = try row.optionalBool(21)
    contents.hasOffer = try row.optionalBool(22)
    contents.isContradictory = try row.bool(23)
    contents.checkedAt = try row.optionalInstant(24)
    contents.subscriptionStatus = try row.optionalInt32(25).flatMap(SubscriptionState.init)
    contents.subscriptionStatusDate = try row.optionalInstant(26)
    contents.renewalDate = try row.optionalInstant(27)
    if let date = try row.optionalInstant(37) {
      contents.refundRequest = RefundRequest(
        date: date, reason: try row.optionalText(28), declinedDate: try row.optionalInstant(38))
    }
    contents.isUpgraded = try row.optionalBool(30)
    contents.signedDate = Instant(microseconds: try row.timestamp(31))
    contents.firstSignedDate = try row.optionalInstant(32)
    contents.channel = try row.word(33, of: Vocabularies.channel) ?? .verifyReceipt
    contents.details.storefront = try row.optionalText(34)
    contents.webOrderLineItemId = try row.optionalId(35)
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

  static func stored(
    _ keys: Set<TransactionKey>, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [TransactionKey: TransactionRecord] {
    if keys.isEmpty { return [:] }
    let sorted = keys.sorted()
    let rows = try connection.execute(
      """
      SELECT \(wholeColumns) FROM night_audit.transactions t
      JOIN unnest($1::text[], $2::text[]) AS wanted (transaction_id, environment) USING (transaction_id, environment)
      """,
      [.textArray(sorted.map(\.transactionId.text)), .textArray(sorted.map(\.environment.rawValue))])
    var records: [TransactionKey: TransactionRecord] = [:]
    for row in rows {
      let record = try whole(row)
      records[record.key] = record
    }
    return records
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
      in: "night_audit.transactions",
      on: connection)
  }

  static func write(
    _ records: [TransactionRecord], into table: String, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    if records.isEmpty { return }
    func texts(_ value: (TransactionRecord) -> String?) -> PostgresValue { .textArray(records.map(value)) }
    func ints(_ value: (TransactionRecord) -> Int64?) -> PostgresValue { .intArray(records.map(value)) }
    func bools(_ value: (TransactionRecord) -> Bool?) -> PostgresValue { .boolArray(records.map(value)) }
    func instants(_ value: (TransactionRecord) -> Instant?) -> PostgresValue {
      .timestampArray(records.map { value($0)?.microseconds })
    }
    try connection.postpone(
      """
      INSERT INTO \(table) AS t (
        environment, transaction_id, original_transaction_id, web_order_line_item_id, bundle_id, product_id,
        product_type, quantity, purchased_at, original_purchased_at, expires_at, subscription_expires_at, revoked_at,
        revocation_percentage, revocation_type, revocation_reason, revocation_withdrawn_at, price_milliunits, currency,
        tells_account_token, app_account_token, ownership, is_renewal, has_offer, is_upgraded, is_contradictory, channel,
        signed_at, checked_at, revocation_told_at, renewal_at, subscription_status, subscription_status_at,
        consumption_request_reason, revocation_of_some_items, storefront, app_transaction_id, offer_type,
        offer_identifier, subscription_group_identifier, commitment_info, billing_plan_type,
        previous_original_transaction_id, first_signed_at, refund_requested_at, refund_declined_at,
        notified_at)
      SELECT * FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int[],
        $9::timestamptz[], $10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[], $14::int[],
        $15::text[], $16::int[], $17::timestamptz[], $18::bigint[], $19::text[], $20::boolean[], $21::text[],
        $22::text[], $23::boolean[], $24::boolean[], $25::boolean[], $26::boolean[], $27::text[], $28::timestamptz[],
        $29::timestamptz[], $30::timestamptz[], $31::timestamptz[], $32::int[], $33::timestamptz[], $34::text[],
        $35::boolean[], $36::text[], $37::text[], $38::int[], $39::text[], $40::text[], $41::text[], $42::text[],
        $43::text[], $44::timestamptz[], $45::timestamptz[], $46::timestamptz[],
        $47::timestamptz[])
      ON CONFLICT (transaction_id, environment) DO UPDATE SET
        original_transaction_id = excluded.original_transaction_id,
        web_order_line_item_id = excluded.web_order_line_item_id, bundle_id = excluded.bundle_id,
        product_id = excluded.product_id, product_type = excluded.product_type, quantity = excluded.quantity,
        purchased_at = excluded.purchased_at, original_purchased_at = excluded.original_purchased_at,
        expires_at = excluded.expires_at,
        subscription_expires_at = greatest(t.subscription_expires_at, excluded.subscription_expires_at),
        revoked_at = excluded.revoked_at, revocation_percentage = excluded.revocation_percentage,
        revocation_type = excluded.revocation_type, revocation_reason = excluded.revocation_reason,
        revocation_withdrawn_at = excluded.revocation_withdrawn_at, price_milliunits = excluded.price_milliunits,
        currency = excluded.currency, tells_account_token = excluded.tells_account_token,
        app_account_token = excluded.app_account_token, ownership = excluded.ownership,
        is_renewal = excluded.is_renewal, has_offer = excluded.has_offer, is_upgraded = excluded.is_upgraded,
        is_contradictory = excluded.is_contradictory, channel = excluded.channel, signed_at = excluded.signed_at,
        checked_at = greatest(t.checked_at, excluded.checked_at), revocation_told_at = excluded.revocation_told_at,
        renewal_at = excluded.renewal_at, consumption_request_reason = excluded.consumption_request_reason,
        subscription_status = excluded.subscription_status, subscription_status_at = excluded.subscription_status_at,
        revocation_of_some_items = excluded.revocation_of_some_items, storefront = excluded.storefront,
        app_transaction_id = excluded.app_transaction_id, offer_type = excluded.offer_type,
        offer_identifier = excluded.offer_identifier, commitment_info = excluded.commitment_info,
        subscription_group_identifier = excluded.subscription_group_identifier,
        billing_plan_type = excluded.billing_plan_type,
        previous_original_transaction_id = excluded.previous_original_transaction_id,
        first_signed_at = excluded.first_signed_at, refund_requested_at = excluded.refund_requested_at,
        refund_declined_at = excluded.refund_declined_at, notified_at = excluded.notified_at
      """,
      [
        texts(\.environment.rawValue), texts(\.transactionId.text), texts(\.originalTransactionId?.text),
        texts(\.webOrderLineItemId?.text), texts(\.bundleId), texts(\.productId.text),
        texts(\.productType?.rawValue), ints { $0.quantity.map(Int64.init) }, instants(\.purchaseDate),
        instants(\.originalPurchaseDate), instants(\.expiresDate), instants(\.subscriptionExpiresDate),
        instants(\.revocation?.date), ints { $0.revocation?.percentage.map(Int64.init) }, texts(\.revocation?.type),
        ints { $0.revocation?.reason.map(Int64.init) }, instants(\.revocationWithdrawnDate), ints(\.priceMilliunits),
        texts(\.currency), bools { $0.appAccountToken != .absent },
        texts {
          switch $0.appAccountToken {
          case .absent: nil
          case .stated(let token): token
          }
        },
        texts(\.ownership?.rawValue), bools(\.isRenewal), bools(\.hasOffer), bools(\.isUpgraded),
        bools(\.isContradictory), texts(\.channel.rawValue), instants(\.signedDate),
        instants(\.checkedAt), instants(\.revocationStatedDate),
        instants(\.renewalDate), ints { $0.subscriptionStatus.map { Int64($0.rawValue) } },
        instants(\.subscriptionStatusDate), texts(\.refundRequest?.reason),
        bools { $0.revocation?.coversSomeItemsOnly },
        texts(\.details.storefront), texts(\.details.appTransactionId),
        ints { $0.details.offerType.map(Int64.init) }, texts(\.details.offerIdentifier),
        texts(\.details.subscriptionGroupIdentifier), texts(\.details.commitmentInfo),
        texts(\.details.billingPlanType), texts(\.details.previousOriginalTransactionId),
        instants(\.firstSignedDate), instants(\.refundRequest?.date), instants(\.refundRequest?.declinedDate),
        instants(\.notifiedDate),
      ])
  }

  /// Copies the newest expiry and status of a subscription to all its periods.
  ///
  /// - Parameters:
  ///   - originals: first transactions of the subscriptions; nil: all.
  ///   - table: has the columns of `night_audit.transactions`.
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
      """,
      [wanted.map { .textArray($0) } ?? .null])
  }
}
