/// Everything that the decision depends on beside the facts: the as-of, the periods of grace, and whose apps these are.
public struct Rules: Hashable, Sendable {
  /// The instant that the audit is made for. Rules never ask a clock.
  public var asOf: Instant
  /// The clock when the facts are read, which is later where asking takes long or the as-of is past; nil: the as-of.
  public var readAt: Instant?
  /// Whether the audit is of the past, which calls every date after its as-of wrong.
  public var isOfThePast = false
  /// Bundle ids of the configured apps; an order without one belongs to the only app.
  public var bundleIds: [String]
  /// Those of them whose channel can ask Apple about a transaction id: as a rule all.
  public var lookedUpApps: Set<String>
  /// Users whose sandbox purchases are allowed.
  public var testUsers: Set<Identifier> = []
  /// Which user ids belong to one person.
  public var people = People()
  /// What the shop sells; nil where nobody says.
  public var catalogue: Catalogue?
  /// When App Review bought in the sandbox: such purchases are marked, and no alarm.
  public var reviewWindows: [ClosedRange<Instant>] = []
  /// How long a paid order may wait for its goods.
  public var deliveryGrace: Span = .hours(1)
  /// How long an order may be without receipt and transaction id, and a payment, receipt or delivery without the row of its
  /// order.
  public var evidenceGrace: Span = .hours(1)
  /// How long Apple may not know a transaction id.
  public var notFoundGrace: Span = .hours(72)
  /// How far a purchase date may lie from the order that claims it without naming it.
  public var matchWindow: Span = .hours(72)
  /// How long an order may stay unconfirmed.
  public var stuckAfter: Span = .hours(48)
  /// How long access may outlast a subscription's newest expiry.
  public var subscriptionGrace: Span = .days(16)
  /// How far clocks may differ.
  public var clockSkew: Span = .minutes(5)
  /// By how many major units of its currency Apple's price may differ from the order's amount, in millionths.
  public var amountToleranceMillionths: Int64 = 0
  /// Findings about payments and deliveries without an order look back to here.
  public var lookbackStart: Instant

  public init(asOf: Instant, bundleIds: [String], lookbackStart: Instant) {
    self.asOf = asOf
    self.bundleIds = bundleIds
    lookedUpApps = Set(bundleIds)
    self.lookbackStart = lookbackStart
  }

  /// The app that an order is for: the one that it names, or the only one.
  public func bundleId(of order: Order) -> String { order.bundleId ?? bundleIds.first ?? "" }

  /// What is wrong with an order's bundle id and what was expected; nil for one that says which app it is for. An order row
  /// with such a defect is bad, which makes ``bundleId(of:)`` right for every other.
  public func defect(ofBundleId bundleId: String?) -> String? {
    switch bundleId {
    case .none:
      bundleIds.count == 1
        ? nil : "bundle_id is NULL though \(bundleIds.count) apps are configured; it must say which one"
    case .some(let bundleId):
      bundleIds.contains(bundleId)
        ? nil : "bundle_id '\(bundleId)' is of no configured app; expected \(bundleIds.joined(separator: " or "))"
    }
  }

  /// Whether App Review was buying at that time.
  public func isAppReview(at instant: Instant) -> Bool { reviewWindows.contains { $0.contains(instant) } }

  /// Whether Apple's price is an order's amount in the same currency, or differs by no more than is tolerated.
  public func tolerates(_ amount: Money, charged milliunits: Int64) -> Bool {
    let ours = Int128(amount.minorUnits) * Int128(Money.millionthsPerMinorUnit(amount.currency))
    let theirs = Int128(milliunits) * 1_000
    return (ours - theirs).magnitude <= UInt128(max(amountToleranceMillionths, 0))
  }

  /// Whether the order of what was sold, received or delivered at that time may still get its row: shops write it seconds
  /// before or after, by another host's clock, and what they write after the as-of is not read.
  public func mayAwaitOrder(since date: Instant) -> Bool {
    asOf - date <= evidenceGrace && date <= max(asOf, readAt ?? asOf) + clockSkew
  }

  /// Whether a date is wrong: later than the as-of by more than clocks may differ, and tonight than the clock when it was read.
  public func isInFuture(_ instant: Instant) -> Bool {
    instant > (isOfThePast ? asOf : max(asOf, readAt ?? asOf)) + clockSkew
  }
}
