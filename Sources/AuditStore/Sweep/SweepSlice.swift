import AppStore
import Reconciliation

/// A stretch of Apple's notification history that is read page by page. Slices of one window are read side by side: a page
/// leads to the next one only, and one after the other a hundred thousand sales a day would take longer than the day.
package struct SweepSlice: Hashable, Sendable {
  package var start: Instant
  /// Itself outside.
  package var end: Instant
  /// Where to go on; nil: from the start. Good for one and the same slice only.
  package var paginationToken: String?

  // What this run has seen of it.
  private var pages = 0
  private var seen: ClosedRange<Instant>?
  private var seenTokens: Set<String> = []
  private var mayRestart = true

  package init(start: Instant, end: Instant, paginationToken: String? = nil) {
    self.start = start
    self.end = end
    self.paginationToken = paginationToken
  }

  /// What this run has not seen yet.
  var unseen: SweepSlice { SweepSlice(start: start, end: end, paginationToken: paginationToken) }

  /// Takes in a page that is not the last; false where the same pages would come for ever.
  mutating func turn(_ answer: NotificationAnswer) -> Bool {
    guard let token = answer.paginationToken, seenTokens.insert(token).inserted else { return false }
    paginationToken = token
    pages += 1
    for date in answer.notifications.map(\.signedDate) {
      seen = min(seen?.lowerBound ?? date, date)...max(seen?.upperBound ?? date, date)
    }
    return true
  }

  /// Begins anew without a token.
  ///
  /// - Parameter start: of what Apple still tells about.
  /// - Returns: false when it has begun anew before.
  mutating func restart(from start: Instant) -> Bool {
    guard mayRestart else { return false }
    self = SweepSlice(start: start, end: end)
    mayRestart = false
    return true
  }

  // MARK: - Cutting

  /// After so many pages it is found out how many there may be. Less is not worth reading anything twice.
  private static let pagesToATrial = 32
  /// After so many pages it is cut wherever its notifications seem to lie.
  private static let pagesToACut = 4 * pagesToATrial
  private static let mostParts = 256.0

  /// Cuts it into parts that are read from their starts; one where it is short enough to be read on.
  ///
  /// Where the cuts are is a guess: as dense as what was seen, so many pages are left. A wrong one costs time alone.
  package var parts: [SweepSlice] {
    let length = end - start
    let count: Int64
    if pages == Self.pagesToATrial, let seen {
      let covered = max((seen.upperBound - seen.lowerBound).microseconds, 1)
      let expected = Double(pages) * Double(length.microseconds) / Double(covered)
      let isLong = expected >= Double(Self.pagesToACut)
      count = isLong ? Int64(min(expected / Double(Self.pagesToATrial), Self.mostParts)) : 1
    } else {
      count = pages > 0 && pages % Self.pagesToACut == 0 ? 16 : 1
    }
    // Apple counts in milliseconds.
    let parts = min(count, length.microseconds / 1_000_000)
    if parts < 2 { return [self] }
    let cuts = (0...parts).map { part in
      switch part {
      case 0: start
      case parts: end
      default:
        Instant(microseconds: (start.microseconds + length.microseconds / parts * part) / 1_000 * 1_000)
      }
    }
    return zip(cuts, cuts.dropFirst()).map { SweepSlice(start: $0, end: $1) }
  }
}
