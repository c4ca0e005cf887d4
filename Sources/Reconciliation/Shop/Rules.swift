/// The settings and the as-of that a judgement depends on.
public struct Rules: Hashable, Sendable {
  /// The instant that the audit describes. Rules never read a clock.
  public var asOf: Instant
  /// The clock at the reading of the facts, later than the as-of; nil: the as-of.
  public var readAt: Instant?
  public var bundleIds: [String]
  /// Apps whose channel can look up a transaction ID: usually all.
  public var appsWithLookup: Set<String>
  /// By bundle ID, the instant up to which Apple's notifications of sales are known. An app without an entry has none.
  public var salesKnownUntil: [String: Instant] = [:]
  public var testUsers: Set<Identifier> = []
  public var people = People()
  public var catalogue: Catalogue?
  /// Times of App Review's sandbox purchases, which are marked and raise no alarm.
  public var reviewWindows: [ClosedRange<Instant>] = []
  public var deliveryGrace: Span = .hours(1)
  /// The time in which an order may lack receipt and ID, and another record its order.
  public var evidenceGrace: Span = .hours(1)
  /// The time in which Apple may not know a transaction ID.
  public var notFoundGrace: Span = .hours(72)
  /// The longest distance of a purchase date from an order that does not state the ID.
  public var matchWindow: Span = .hours(72)
  public var stuckAfter: Span = .hours(48)
  /// The time for which access may outlast a subscription's newest expiry.
  public var subscriptionGrace: Span = .days(16)
  public var clockSkew: Span = .minutes(5)
  /// The tolerated difference of Apple's price, in millionths of the currency's major unit.
  public var amountToleranceMillionths: Int64 = 0
  /// The start of the lookback for payments and deliveries without an order.
  public var lookbackStart: Instant

  public init(asOf: Instant, bundleIds: [String], lookbackStart: Instant) {
    self.asOf = asOf
    self.bundleIds = bundleIds
    appsWithLookup = Set(bundleIds)
    self.lookbackStart = lookbackStart
  }

  public func bundleId(of order: Order) -> String { order.bundleId ?? bundleIds.first ?? "" }

  public func isAppReview(at instant: Instant) -> Bool { reviewWindows.contains { $0.contains(instant) } }

  /// True if Apple's price equals the order's amount, within the tolerance.
  public func tolerates(_ amount: Money, charged milliunits: Int64) -> Bool {
    let ours = Int128(amount.minorUnits) * Int128(Money.millionthsPerMinorUnit(amount.currency))
    let theirs = Int128(milliunits) * 1_000
    return (ours - theirs).magnitude <= UInt128(max(amountToleranceMillionths, 0))
  }

  /// True if the order of a record of that date may still be written.
  /// Shops write it seconds earlier or later, by another host's clock, and rows after the as-of are not read.
  public func mayAwaitOrder(since date: Instant) -> Bool {
    asOf - date <= evidenceGrace && date <= max(asOf, readAt ?? asOf) + clockSkew
  }

  /// True if Apple's notifications of the order's time are not read yet. False for an app without notifications.
  func awaitsSales(of order: Order) -> Bool {
    salesKnownUntil[bundleId(of: order)].map { order.createdAt + evidenceGrace > $0 } ?? false
  }

  /// True for a date after the as-of and the reading, by more than clocks differ.
  public func isInFuture(_ instant: Instant) -> Bool {
    instant > max(asOf, readAt ?? asOf) + clockSkew
  }
}
