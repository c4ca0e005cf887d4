/// The environment in which a purchase was made. Transaction IDs are unique within one only.
public enum AppleEnvironment: String, OrderedCases, Sendable {
  case production = "Production"
  case sandbox = "Sandbox"
  /// StoreKit testing in Xcode: signed by the developer's machine, not by Apple.
  case xcode = "Xcode"
  /// StoreKit's local testing: not signed by Apple either.
  case localTesting = "LocalTesting"
}

/// The interface that supplied a fact about a transaction.
public enum EvidenceChannel: String, Hashable, CaseIterable, Sendable {
  /// Apple's deprecated receipt endpoint. `request_date` dates its answers.
  case verifyReceipt
  case serverApi
  /// Signed data from a client, verified against Apple's roots without a request.
  case offline
  case notification

  /// True for signed transactions, which have every field and state even the absence of a token.
  func isSigned(statesToken: Bool) -> Bool {
    switch self {
    case .verifyReceipt: false
    case .offline: statesToken
    case .serverApi, .notification: true
    }
  }
}

/// A source's statement about one field, or its absence.
/// `absent` never overwrites a statement. `stated(nil)` is Apple's statement that there is no value.
public enum Statement<Value: Equatable>: Equatable {
  case absent
  case stated(Value)
}

extension Statement: Hashable where Value: Hashable {}
extension Statement: Sendable where Value: Sendable {}

/// Apple's `inAppOwnershipType`: how a customer got a transaction.
public enum Ownership: String, Hashable, CaseIterable, Sendable {
  case purchased = "PURCHASED"
  case familyShared = "FAMILY_SHARED"
}

/// The status of a whole subscription (Apple: Get All Subscription Statuses, `status`).
public enum SubscriptionState: Int32, Hashable, CaseIterable, Sendable {
  case active = 1
  case expired = 2
  /// Apple tries to charge again, and gives no access meanwhile.
  case billingRetry = 3
  case gracePeriod = 4
  case revoked = 5

  /// The word of the key `subscription_status` in `actions.json`.
  public var word: String {
    switch self {
    case .active: "active"
    case .expired: "expired"
    case .billingRetry: "billing_retry"
    case .gracePeriod: "grace_period"
    case .revoked: "revoked"
    }
  }

  public var givesAccess: Bool {
    switch self {
    case .active, .gracePeriod: true
    case .expired, .billingRetry, .revoked: false
    }
  }
}

/// Further fields of Apple's `JWSTransactionDecodedPayload`, which cannot be fetched again cheaply.
public typealias TransactionDetails = TransactionDetailsFields<String>

public struct TransactionDetailsFields<Text: FieldText>: Equatable {
  /// The storefront's country, three letters (ISO 3166-1 alpha-3), or Apple's storefront ID where the country is absent.
  public var storefront: Text?
  public var appTransactionId: Text?
  /// 1 introductory, 2 promotional, 3 offer code, 4 win-back.
  public var offerType: Int32?
  public var offerIdentifier: Text?
  public var subscriptionGroupIdentifier: Text?
  /// Apple's `commitmentInfo` as JSON without blanks between its tokens.
  public var commitmentInfo: Text?
  /// `BILLED_UPFRONT` or `MONTHLY`.
  public var billingPlanType: Text?
  public var previousOriginalTransactionId: Text?

  public init() {}
}

extension TransactionDetailsFields: Hashable where Text: Hashable {}
extension TransactionDetailsFields: Sendable where Text: Sendable {}

extension TransactionDetails {
  /// Milliunits of the whole commitment. A monthly plan charges one month of it.
  var commitmentPrice: Int64? { commitmentField("commitmentPrice") }

  var commitmentMonth: String {
    guard let month = commitmentField("billingPeriodNumber"), let count = commitmentField("totalBillingPeriods") else {
      return ""
    }
    return " (month \(month) of \(count))"
  }

  private func commitmentField(_ name: String) -> Int64? {
    let parts = commitmentInfo?.split(separator: "\"\(name)\":", maxSplits: 1, omittingEmptySubsequences: false) ?? []
    return parts.count == 2 ? Int64(parts[1].prefix { $0.isASCII && $0.isNumber }) : nil
  }

  mutating func take(_ newer: TransactionDetails) {
    // Some storefront IDs are of an unknown country.
    if storefront == nil || Country(storefront: newer.storefront) != nil { storefront = newer.storefront ?? storefront }
    appTransactionId = newer.appTransactionId ?? appTransactionId
    offerType = newer.offerType ?? offerType
    offerIdentifier = newer.offerIdentifier ?? offerIdentifier
    subscriptionGroupIdentifier = newer.subscriptionGroupIdentifier ?? subscriptionGroupIdentifier
    commitmentInfo = newer.commitmentInfo ?? commitmentInfo
    billingPlanType = newer.billingPlanType ?? billingPlanType
    previousOriginalTransactionId = newer.previousOriginalTransactionId ?? previousOriginalTransactionId
  }
}

/// One immutable statement of Apple's about one transaction, from any channel.
/// An absent optional means that the evidence does not state the field. `TransactionRecord` folds facts.
public struct TransactionFact: Hashable, Sendable {
  public var environment: AppleEnvironment
  public var transactionId: String
  public var originalTransactionId: String?
  public var webOrderLineItemId: String?
  public var bundleId: String?
  public var productId: String
  public var productType: ProductType?
  public var quantity: Int32?
  public var purchaseDate: Instant?
  public var originalPurchaseDate: Instant?
  public var expiresDate: Instant?
  /// `.stated(nil)`: not revoked. `.absent`: the channel cannot state it (a consumable in verifyReceipt).
  public var revocation: Statement<Revocation?>
  /// Milliunits of `currency` for the whole quantity (Apple: `JWSTransactionDecodedPayload.price`).
  public var priceMilliunits: Int64?
  public var currency: String?
  public var appAccountToken: Statement<String?>
  public var ownership: Ownership?
  /// Apple's `transactionReason`: true for `RENEWAL`, false for `PURCHASE`; nil in receipts.
  public var isRenewal: Bool?
  /// True if an offer, trial or introductory price applied; nil: unknown. Receipts never state false.
  public var hasOffer: Bool?
  public var isUpgraded: Bool?
  /// Grace period or billing retry end (Apple: `gracePeriodExpiresDate`).
  public var gracePeriodExpiresDate: Instant?
  /// When the subscription renews next (Apple: `JWSRenewalInfoDecodedPayload.renewalDate`).
  public var renewalDate: Instant?
  /// The price of the next renewal in milliunits of `renewalCurrency`. No rule uses it: it is no price of this period.
  public var renewalPriceMilliunits: Int64?
  public var renewalCurrency: String?
  /// The duration of the offer (ISO 8601, `P1M`).
  public var offerPeriod: String?
  /// The subscription's status; nil: not asked or not answered. verifyReceipt: `pending_renewal_info`.
  public var subscriptionStatus: SubscriptionState?
  public var refundRequest: RefundRequestNotice?
  /// True for Apple's notice of a reversed refund, which proves an earlier refund.
  public var reversesRefund = false
  /// True for verifyReceipt's answers about old receipts, whose silence withdraws no refund.
  public var cannotStateRefunds = false
  public var details = TransactionDetails()

  public var channel: EvidenceChannel
  /// Apple's date, which orders facts: `signedDate`, or `request_date` of verifyReceipt.
  public var signedDate: Instant

  var isSigned: Bool { channel.isSigned(statesToken: appAccountToken != .absent) }

  /// ``isRenewal`` if signed. Earlier releases derived it from a receipt's IDs and dates and stored it.
  var statedRenewal: Bool? { isSigned ? isRenewal : nil }

  /// ``hasOffer`` if reliable. Receipts have no field for codes, win-backs and one-time offers.
  var statedOffer: Bool? { isSigned || hasOffer == true ? hasOffer : nil }

  public init(
    environment: AppleEnvironment, transactionId: String, productId: String,
    channel: EvidenceChannel, signedDate: Instant
  ) {
    self.environment = environment
    self.transactionId = transactionId
    self.productId = productId
    self.channel = channel
    self.signedDate = signedDate
    revocation = .absent
    appAccountToken = .absent
  }
}

extension TransactionFact {
  enum TieBreaker: Comparable {
    case none
    case number(Int64)
    case text(Identifier)

    init(_ text: String?) { self = text.map { .text(Identifier($0)) } ?? .none }
    init(_ number: (some BinaryInteger)?) { self = number.map { .number(Int64($0)) } ?? .none }
    init(_ flag: Bool?) { self = flag.map { .number($0 ? 1 : 0) } ?? .none }
    init(_ instant: Instant?) { self = instant.map { .number($0.microseconds) } ?? .none }
  }

  var statesRefund: Bool { if case .stated(.some) = revocation { true } else { false } }

  /// All fields, in the order that decides between facts of one instant and one kind of channel.
  var tieBreakers: [TieBreaker] {
    let refund: (rank: Int, revocation: Revocation?) =
      switch revocation {
      case .stated(.some(let revocation)): (0, revocation)
      case .stated(.none): (1, nil)
      case .absent: (2, nil)
      }
    let token: (rank: Int, text: String?) =
      switch appAccountToken {
      case .stated(let token): (0, token)
      case .absent: (1, nil)
      }
    return [
      TieBreaker(environment.rawValue), TieBreaker(transactionId), TieBreaker(originalTransactionId),
      TieBreaker(webOrderLineItemId), TieBreaker(bundleId), TieBreaker(productId), TieBreaker(productType?.rawValue),
      TieBreaker(quantity), TieBreaker(purchaseDate), TieBreaker(originalPurchaseDate), TieBreaker(expiresDate),
      TieBreaker(refund.rank), TieBreaker(refund.revocation?.date), TieBreaker(refund.revocation?.percentage),
      TieBreaker(refund.revocation?.type), TieBreaker(refund.revocation?.reason),
      TieBreaker(refund.revocation?.coversSomeItemsOnly), TieBreaker(priceMilliunits), TieBreaker(currency),
      TieBreaker(token.rank), TieBreaker(token.text), TieBreaker(ownership?.rawValue), TieBreaker(isRenewal),
      TieBreaker(hasOffer), TieBreaker(isUpgraded), TieBreaker(gracePeriodExpiresDate), TieBreaker(renewalDate),
      TieBreaker(subscriptionStatus?.rawValue), TieBreaker(refundRequest?.word), TieBreaker(refundRequest?.reason),
      TieBreaker(renewalPriceMilliunits), TieBreaker(renewalCurrency), TieBreaker(offerPeriod),
      TieBreaker(reversesRefund),
      TieBreaker(cannotStateRefunds), TieBreaker(details.storefront), TieBreaker(details.appTransactionId),
      TieBreaker(details.offerType), TieBreaker(details.offerIdentifier),
      TieBreaker(details.subscriptionGroupIdentifier), TieBreaker(details.commitmentInfo),
      TieBreaker(details.billingPlanType), TieBreaker(details.previousOriginalTransactionId),
      TieBreaker(channel.rawValue), TieBreaker(signedDate),
    ]
  }
}
