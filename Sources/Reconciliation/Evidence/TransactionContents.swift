/// A transaction in the bytes of its row or record.
public typealias BorrowedTransaction = TransactionContents<BorrowedText, BorrowedText>

/// The fields of a transaction. A new column is a property here and its line in `codeRules(with:)`, or in
/// `codeRest(with:)` if no rule uses it. The stored row, its decoding and the records on disk follow from them.
public struct TransactionContents<ID: FieldText, Text: FieldText>: Equatable {
  public var environment: AppleEnvironment
  public var transactionId: ID
  public var originalTransactionId: ID?
  public var webOrderLineItemId: ID?
  public var bundleId: Text?
  public var productId: ID
  public var productType: ProductType?
  public var quantity: Int32?
  public var purchaseDate: Instant?
  public var originalPurchaseDate: Instant?
  public var expiresDate: Instant?
  /// The latest expiry, grace period end or renewal date of all periods of the subscription.
  public var subscriptionExpiresDate: Instant?
  /// The newest status of the subscription from any of its periods; nil: Apple was never asked.
  public var subscriptionStatus: SubscriptionState?
  /// Apple's date of `subscriptionStatus`. The newest period decides.
  public var subscriptionStatusDate: Instant?
  public var renewalDate: Instant?
  /// The revocation in force; nil: none, or withdrawn.
  public var revocation: RevocationFields<Text>?
  /// Apple's last date of a statement about revocation; nil: no channel that can state it did.
  /// verifyReceipt cannot state it for consumables, so its silence does not mean "not revoked".
  public var revocationStatedDate: Instant?
  /// Apple's first date of a statement that an earlier revocation was withdrawn; nil: none.
  /// Beside a revocation in force, the withdrawal is later than the as-of.
  public var revocationWithdrawnDate: Instant?
  public var priceMilliunits: Int64?
  public var currency: Text?
  public var appAccountToken: Statement<Text?>
  public var ownership: Ownership?
  public var isRenewal: Bool?
  public var hasOffer: Bool?
  public var isUpgraded: Bool?
  public var refundRequest: RefundRequestFields<Text>?
  public var details = TransactionDetailsFields<Text>()
  /// True if evidence states two products or two apps for this ID.
  public var isContradictory: Bool
  public var channel: EvidenceChannel
  public var signedDate: Instant
  /// Apple's earliest date of evidence. Renewals are signed before their purchase date.
  public var firstSignedDate: Instant?
  /// When Apple first signed a notification about it; nil: no notification is known.
  public var notifiedDate: Instant?
  /// The as-of of the last run that asked Apple about it; nil: it is known from signed data alone.
  public var checkedAt: Instant?
  /// The other transaction IDs of the same purchase, sorted.
  public var otherIds: [ID] = []

  public init(environment: AppleEnvironment, transactionId: ID, productId: ID) {
    self.environment = environment
    self.transactionId = transactionId
    self.productId = productId
    appAccountToken = .absent
    isContradictory = false
    channel = .verifyReceipt
    signedDate = Instant(microseconds: 0)
  }
}

extension Vocabularies {
  public static let environment = Vocabulary<AppleEnvironment>()
  public static let channel = Vocabulary<EvidenceChannel>()
  public static let ownership = Vocabulary<Ownership>()
}

extension TransactionContents: FieldCoded {
  public static var blank: TransactionContents {
    TransactionContents(environment: .production, transactionId: .blank, productId: .blank)
  }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try codeRules(with: &coder)
    try codeRest(with: &coder)
    try coder.code(&otherIds)
  }

  /// Codes the fields that rules use.
  public mutating func codeRules<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&transactionId, "transaction_id")
    coder.name("environment")
    try coder.code(word: &environment, of: Vocabularies.environment)
    try coder.code(&productId, "product_id")
    try coder.code(&bundleId, "bundle_id")
    try coder.code(&originalTransactionId, "original_transaction_id")
    try coder.code(&webOrderLineItemId, "web_order_line_item_id")
    try coder.code(&quantity, "quantity")
    try coder.code(&purchaseDate, "purchased_at")
    try coder.code(&originalPurchaseDate, "original_purchased_at")
    try coder.code(&expiresDate, "expires_at")
    try coder.code(&subscriptionExpiresDate, "subscription_expires_at")
    coder.name("subscription_status")
    try coder.code(raw: &subscriptionStatus)
    try coder.code(&subscriptionStatusDate, "subscription_status_at")
    try coder.code(&renewalDate, "renewal_at")
    try coder.code(&revocation, "revoked_at")
    try coder.code(&revocationStatedDate, "revocation_told_at")
    try coder.code(&revocationWithdrawnDate, "revocation_withdrawn_at")
    try coder.code(&priceMilliunits, "price_milliunits")
    try coder.code(&currency, "currency")
    try coder.code(statement: &appAccountToken, "tells_account_token", "app_account_token")
    coder.name("ownership")
    try coder.code(word: &ownership, of: Vocabularies.ownership)
    try coder.code(&isRenewal, "is_renewal")
    try coder.code(&hasOffer, "has_offer")
    try coder.code(&isUpgraded, "is_upgraded")
    try coder.code(&refundRequest, "refund_requested_at")
    try coder.code(&details.storefront, "storefront")
    try coder.code(&details.commitmentInfo, "commitment_info")
    try coder.code(&isContradictory, "is_contradictory")
    coder.name("channel")
    try coder.code(word: &channel, of: Vocabularies.channel)
    try coder.code(&signedDate, "signed_at")
    try coder.code(&firstSignedDate, "first_signed_at")
    try coder.code(&checkedAt, "checked_at")
  }

  public mutating func codeRest<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    coder.name("product_type")
    try coder.code(raw: &productType)
    try coder.code(&details.appTransactionId, "app_transaction_id")
    try coder.code(&details.offerType, "offer_type")
    try coder.code(&details.offerIdentifier, "offer_identifier")
    try coder.code(&details.subscriptionGroupIdentifier, "subscription_group_identifier")
    try coder.code(&details.billingPlanType, "billing_plan_type")
    try coder.code(&details.previousOriginalTransactionId, "previous_original_transaction_id")
    try coder.code(&notifiedDate, "notified_at")
  }
}

extension TransactionContents: Hashable where ID: Hashable, Text: Hashable {}
extension TransactionContents: Sendable where ID: Sendable, Text: Sendable {}

extension TransactionRecord: FieldCoded {
  public static let blank = TransactionRecord(.blank)

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    var contents = contents
    try coder.code(&contents)
    // What is only written keeps its reference.
    if Coder.isReading { self = TransactionRecord(contents) }
  }
}

extension FieldCoder where Self: ~Copyable {
  /// Codes a statement in two columns: whether there is one, and its content.
  public mutating func code<Value: FieldCoded>(
    statement: inout Statement<Value>, _ flag: String, _ column: String
  ) throws(Failure) {
    var (isStated, content) = (false, Value.blank)
    if case .stated(let value) = statement { (isStated, content) = (true, value) }
    try code(&isStated, flag)
    try code(&content, column)
    if Self.isReading { statement = isStated ? .stated(content) : .absent }
  }
}
