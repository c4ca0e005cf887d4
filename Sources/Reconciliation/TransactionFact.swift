/// Where a purchase was made, as Apple signed it. Transaction ids are unique within one of these only.
public enum AppleEnvironment: String, Hashable, Comparable, CaseIterable, Sendable {
  case production = "Production"
  case sandbox = "Sandbox"
  /// StoreKit testing in Xcode: signed by the developer's machine, not by Apple.
  case xcode = "Xcode"
  /// StoreKit's local testing: not signed by Apple either.
  case localTesting = "LocalTesting"

  public static func < (left: AppleEnvironment, right: AppleEnvironment) -> Bool {
    left.rank < right.rank
  }

  /// Production first: the order in which equal ids are preferred.
  private var rank: Int {
    switch self {
    case .production: 0
    case .sandbox: 1
    case .xcode: 2
    case .localTesting: 3
    }
  }
}

/// How a fact about a transaction reached us.
public enum EvidenceChannel: String, Hashable, CaseIterable, Sendable {
  /// Apple's deprecated receipt endpoint; its answer is dated by `request_date`.
  case verifyReceipt
  /// A look-up in the App Store Server API, its signed answer verified.
  case serverApi
  /// Signed data that a client sent us, verified against Apple's roots without a call.
  case offline
  /// The App Store Server API's notification history.
  case notification
}

/// A statement that evidence makes about one field, or its silence.
///
/// Channels differ in what they can carry. `silent` never overwrites what another channel said;
/// `says(nil)` is Apple telling us that there is none.
public enum Statement<Value: Hashable & Sendable>: Hashable, Sendable {
  case silent
  case says(Value)
}

/// How a customer came to hold a transaction.
public enum Ownership: String, Hashable, CaseIterable, Sendable {
  case purchased = "PURCHASED"
  /// Access through a family member's purchase: this user paid nothing.
  case familyShared = "FAMILY_SHARED"
}

/// The product type that Apple names in signed transactions.
public enum ProductType: String, Hashable, Sendable {
  case autoRenewable = "Auto-Renewable Subscription"
  case nonConsumable = "Non-Consumable"
  case consumable = "Consumable"
  case nonRenewing = "Non-Renewing Subscription"
}

/// Apple taking a purchase back.
public struct Revocation: Hashable, Sendable {
  /// When Apple revoked it.
  public var date: Instant
  /// Milli-percent of the transaction that was refunded, 0 to 100,000; nil means all of it.
  public var percentage: Int32?
  /// Apple's `REFUND_FULL`, `REFUND_PRORATED`, `FAMILY_REVOKE`, or a newer word; nil where the channel has none.
  public var type: String?
  /// Apple's code: 1 an issue in the app, 0 any other.
  public var reason: Int32?
  /// Whether Apple refunded some of several items of the Advanced Commerce API: a part, whose share nobody tells
  /// (`advancedCommerceInfo.items` of which some have no full refund).
  public var isOfSomeItems: Bool

  public init(
    date: Instant, percentage: Int32? = nil, type: String? = nil, reason: Int32? = nil, isOfSomeItems: Bool = false
  ) {
    self.date = date
    self.percentage = percentage
    self.type = type
    self.reason = reason
    self.isOfSomeItems = isOfSomeItems
  }

  /// Whether it says how much was taken back.
  var tellsShare: Bool { percentage != nil || type != nil || isOfSomeItems }

  /// The same with what an older statement told of the same refund, where this one does not tell its share. Dates may be cut
  /// to seconds.
  func completed(by known: Revocation?) -> Revocation {
    guard let known, !tellsShare, (date - known.date).magnitude < .seconds(1) else { return self }
    return known.restated(by: self)
  }

  /// What stands when a receipt or verifyReceipt says this, which have a date and a reason alone: what was told of the refund's
  /// share. Channels differ in how they date one refund; a day later it is another, and that can only be of all the rest.
  func yielding(to known: Revocation?) -> Revocation {
    guard let known, known.tellsShare, date - known.date < .days(1) else { return completed(by: known) }
    return known.restated(by: self)
  }

  /// What a receipt says of a plan that was upgraded: the date is that of the upgrade, and a part was refunded, if anything
  /// (`cancellation_date_ms`).
  func ended(byUpgrade isUpgraded: Bool) -> Revocation {
    guard isUpgraded, !tellsShare else { return self }
    var told = self
    told.type = "REFUND_PRORATED"
    return told
  }

  private func restated(by newer: Revocation) -> Revocation {
    var told = self
    told.reason = newer.reason ?? reason
    return told
  }

  /// Whether Apple took back the whole transaction. Without type or percentage it did.
  public var isFull: Bool {
    switch percentage {
    case .none: type != "REFUND_PRORATED" && !isOfSomeItems
    case .some(let milliPercent): milliPercent >= 100_000
    }
  }
}

/// What Apple says about a subscription as a whole (App Store Server API: `status` of Get All Subscription Statuses).
public enum SubscriptionState: Int32, Hashable, CaseIterable, Sendable {
  case active = 1
  case expired = 2
  /// Apple tries to charge again, and gives no access meanwhile.
  case billingRetry = 3
  case gracePeriod = 4
  case revoked = 5

  /// Whether the customer has access by Apple's word.
  public var givesAccess: Bool {
    switch self {
    case .active, .gracePeriod: true
    case .expired, .billingRetry, .revoked: false
    }
  }
}

/// What Apple tells about a purchase that no rule asks about, kept because it cannot be fetched again cheaply. Named as in
/// Apple's `JWSTransactionDecodedPayload`.
public struct TransactionDetails: Hashable, Sendable {
  /// The storefront's country, three letters (ISO 3166-1 alpha-3).
  public var storefront: String?
  public var appTransactionId: String?
  /// 1 introductory, 2 promotional, 3 offer code, 4 win-back.
  public var offerType: Int32?
  public var offerIdentifier: String?
  public var subscriptionGroupIdentifier: String?
  /// Apple's object as JSON text.
  public var commitmentInfo: String?
  /// `BILLED_UPFRONT` or `MONTHLY`.
  public var billingPlanType: String?
  public var previousOriginalTransactionId: String?

  public init() {}

  /// Milliunits of the whole commitment, of which a monthly plan charges one month.
  var commitmentPrice: Int64? { commitmentField("commitmentPrice") }

  /// Which month of the commitment it is, as the end of a sentence; empty for all other purchases.
  var commitmentMonth: String {
    guard let month = commitmentField("billingPeriodNumber"), let count = commitmentField("totalBillingPeriods") else {
      return ""
    }
    return " (month \(month) of \(count))"
  }

  /// A whole number in Apple's `commitmentInfo`, which is stored as compact JSON.
  private func commitmentField(_ name: String) -> Int64? {
    let parts = commitmentInfo?.split(separator: "\"\(name)\":", maxSplits: 1, omittingEmptySubsequences: false) ?? []
    return parts.count == 2 ? Int64(parts[1].prefix { $0.isASCII && $0.isNumber }) : nil
  }

  /// Takes what a newer statement says; its silence undoes nothing.
  mutating func take(_ newer: TransactionDetails) {
    storefront = newer.storefront ?? storefront
    appTransactionId = newer.appTransactionId ?? appTransactionId
    offerType = newer.offerType ?? offerType
    offerIdentifier = newer.offerIdentifier ?? offerIdentifier
    subscriptionGroupIdentifier = newer.subscriptionGroupIdentifier ?? subscriptionGroupIdentifier
    commitmentInfo = newer.commitmentInfo ?? commitmentInfo
    billingPlanType = newer.billingPlanType ?? billingPlanType
    previousOriginalTransactionId = newer.previousOriginalTransactionId ?? previousOriginalTransactionId
  }
}

/// One thing that Apple said about one transaction at one moment, whatever channel brought it.
///
/// Facts are immutable and append-only; `TransactionRecord` folds them. An absent optional means that the evidence
/// is silent about that field.
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
  /// `.says(nil)`: Apple says that it is not revoked. `.silent`: this channel cannot tell (a consumable in verifyReceipt).
  public var revocation: Statement<Revocation?>
  /// Milliunits of `currency`, total for the quantity (Apple: `JWSTransactionDecodedPayload.price`). For comparison only.
  public var priceMilliunits: Int64?
  public var currency: String?
  public var appAccountToken: Statement<String?>
  public var ownership: Ownership?
  /// Apple's own word (`transactionReason`): true for `RENEWAL`, false for `PURCHASE`; nil where the evidence has no such
  /// word, as receipts and verifyReceipt have none.
  public var isRenewal: Bool?
  /// Whether an offer, trial or introductory price applied; nil where the evidence cannot tell. Receipts and verifyReceipt
  /// never tell that none did.
  public var hasOffer: Bool?
  public var isUpgraded: Bool?
  /// Grace period or billing retry end (Apple: `gracePeriodExpiresDate`).
  public var gracePeriodExpiresDate: Instant?
  /// When the subscription renews next (Apple: `JWSRenewalInfoDecodedPayload.renewalDate`).
  public var renewalDate: Instant?
  /// Apple's answer about the subscription's status; nil where it was not asked for, or did not come. verifyReceipt says as
  /// much in `pending_renewal_info`.
  public var subscriptionStatus: SubscriptionState?
  /// Apple's notice of a refund request, where the fact came with one.
  public var refundRequest: RefundRequestNotice?
  /// Whether this is Apple's notice that a refund was reversed: there was one, whether or not anybody told of it.
  public var reversesRefund = false
  /// Whether what said this has no place for a refund, so that its silence takes none back: verifyReceipt's answers about old
  /// receipts.
  public var hasNoPlaceForRefunds = false
  public var details = TransactionDetails()

  public var channel: EvidenceChannel
  /// Apple's time of saying it: `signedDate`, or `request_date` for verifyReceipt. Orders facts.
  public var signedDate: Instant

  /// Whether a signed transaction says it, and no receipt: it alone has every field, and tells the token even where there is
  /// none.
  var isSigned: Bool {
    switch channel {
    case .verifyReceipt: false
    case .offline: appAccountToken != .silent
    case .serverApi, .notification: true
    }
  }

  /// ``isRenewal`` as far as it is Apple's word: what earlier releases made of a receipt's ids and dates is stored, and not
  /// believed.
  var toldRenewal: Bool? { isSigned ? isRenewal : nil }

  /// ``hasOffer`` as far as it is Apple's word: receipts have no field for codes, win-backs and one-time offers, and so never
  /// tell that there was none.
  var toldOffer: Bool? { isSigned || hasOffer == true ? hasOffer : nil }

  public init(
    environment: AppleEnvironment, transactionId: String, productId: String,
    channel: EvidenceChannel, signedDate: Instant
  ) {
    self.environment = environment
    self.transactionId = transactionId
    self.productId = productId
    self.channel = channel
    self.signedDate = signedDate
    revocation = .silent
    appAccountToken = .silent
  }
}

extension TransactionFact {
  /// A field as a value that can be compared. A missing value comes first.
  enum TieBreaker: Comparable {
    case none
    case number(Int64)
    case text(Identifier)

    init(_ text: String?) { self = text.map { .text(Identifier($0)) } ?? .none }
    init(_ number: (some BinaryInteger)?) { self = number.map { .number(Int64($0)) } ?? .none }
    init(_ flag: Bool?) { self = flag.map { .number($0 ? 1 : 0) } ?? .none }
    init(_ instant: Instant?) { self = instant.map { .number($0.microseconds) } ?? .none }
  }

  /// All fields, in the order in which they decide between facts of one instant and one kind of channel.
  ///
  /// Of two words on refunds the one without a refund comes last, and so counts.
  var tieBreakers: [TieBreaker] {
    let refund: (rank: Int, revocation: Revocation?) =
      switch revocation {
      case .says(.some(let revocation)): (0, revocation)
      case .says(.none): (1, nil)
      case .silent: (2, nil)
      }
    let token: (rank: Int, text: String?) =
      switch appAccountToken {
      case .says(let token): (0, token)
      case .silent: (1, nil)
      }
    return [
      TieBreaker(environment.rawValue), TieBreaker(transactionId), TieBreaker(originalTransactionId),
      TieBreaker(webOrderLineItemId), TieBreaker(bundleId), TieBreaker(productId), TieBreaker(productType?.rawValue),
      TieBreaker(quantity), TieBreaker(purchaseDate), TieBreaker(originalPurchaseDate), TieBreaker(expiresDate),
      TieBreaker(refund.rank), TieBreaker(refund.revocation?.date), TieBreaker(refund.revocation?.percentage),
      TieBreaker(refund.revocation?.type), TieBreaker(refund.revocation?.reason),
      TieBreaker(refund.revocation?.isOfSomeItems), TieBreaker(priceMilliunits), TieBreaker(currency),
      TieBreaker(token.rank), TieBreaker(token.text), TieBreaker(ownership?.rawValue), TieBreaker(isRenewal),
      TieBreaker(hasOffer), TieBreaker(isUpgraded), TieBreaker(gracePeriodExpiresDate), TieBreaker(renewalDate),
      TieBreaker(subscriptionStatus?.rawValue), TieBreaker(refundRequest?.word), TieBreaker(refundRequest?.reason),
      TieBreaker(reversesRefund),
      TieBreaker(hasNoPlaceForRefunds), TieBreaker(details.storefront), TieBreaker(details.appTransactionId),
      TieBreaker(details.offerType), TieBreaker(details.offerIdentifier),
      TieBreaker(details.subscriptionGroupIdentifier), TieBreaker(details.commitmentInfo),
      TieBreaker(details.billingPlanType), TieBreaker(details.previousOriginalTransactionId),
      TieBreaker(channel.rawValue), TieBreaker(signedDate),
    ]
  }
}
