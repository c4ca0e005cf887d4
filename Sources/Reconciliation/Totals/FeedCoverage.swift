/// The share of an app's known sales that Apple's notifications reported.
///
/// Apple keeps a history of version-2 notifications only. If they are switched off, a sweep succeeds and finds nothing.
public struct FeedCoverage: Hashable, Codable, Sendable {
  private static let enoughSales = 20
  /// Apple's longest known delay of a notification of a sale.
  private static let delay = Span.hours(1)

  /// Known production sales of the window.
  public let sales: Int
  /// Sales of these that a notification reported.
  public let reported: Int

  /// nil without sales, which have no share.
  public init?(sales: Int, reported: Int) {
    if sales == 0 { return nil }
    (self.sales, self.reported) = (sales, reported)
  }

  /// The times of the sales that the notifications of a sweep must have reported; nil if there are none.
  ///
  /// - Parameter sweptUntil: the cursors of the types that report sales; nil for a type that was never swept.
  public static func window(from start: Instant, asOf: Instant, sweptUntil: [Instant?]) -> Range<Instant>? {
    let swept = sweptUntil.compactMap(\.self)
    guard swept.count == sweptUntil.count, let end = (swept + [asOf]).min().map({ $0 - delay }), start < end else {
      return nil
    }
    return start..<end
  }

  /// From 0 to 1, rounded down to four digits.
  public var share: Double { Double(reported * 10_000 / sales) / 10_000 }

  /// True if notifications reported less than half of at least 20 sales.
  public var isInsufficient: Bool { sales >= Self.enoughSales && reported * 2 < sales }

  /// The kinds about purchases that no order knows of: without notifications, most of these purchases stay unknown.
  public var unseenKinds: [FindingKind] {
    isInsufficient ? FindingKind.allCases.filter { $0.definition.subject == .transaction } : []
  }
}
