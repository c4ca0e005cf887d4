import AppStore
import Reconciliation

/// A part of a window that is read page by page. Slices are read in parallel, because pages of one slice are
/// sequential: at 100,000 sales a day, one slice would take longer than the day.
package struct SweepSlice: Hashable, Sendable {
  package var start: Instant
  package var end: Instant
  /// nil: from the start. A token is valid for one slice only.
  package var paginationToken: String?

  private var pages = 0
  private var seen: ClosedRange<Instant>?
  private var seenTokens: Set<String> = []
  private var mayRestart = true

  package init(start: Instant, end: Instant, paginationToken: String? = nil) {
    (self.start, self.end, self.paginationToken) = (start, end, paginationToken)
  }

  var unseen: SweepSlice { SweepSlice(start: start, end: end, paginationToken: paginationToken) }

  /// Takes a page that is not the last; false if its token repeats, which would loop forever.
  mutating func turn(_ answer: NotificationAnswer) -> Bool {
    guard let token = answer.paginationToken, seenTokens.insert(token).inserted else { return false }
    paginationToken = token
    pages += 1
    for date in answer.notifications.map(\.signedDate) {
      seen = min(seen?.lowerBound ?? date, date)...max(seen?.upperBound ?? date, date)
    }
    return true
  }

  /// Restarts without a token; false the second time. `start`: the beginning of Apple's history.
  mutating func restart(from start: Instant) -> Bool {
    guard mayRestart else { return false }
    self = SweepSlice(start: start, end: end)
    mayRestart = false
    return true
  }

  /// Pages before the number of pages is estimated. Shorter slices are not worth reading twice.
  private static let pagesBeforeEstimate = 32
  /// Pages before the slice is split.
  private static let pagesWorthSplitting = 4 * pagesBeforeEstimate
  private static let mostParts = 256.0

  /// Splits it into parts that are read in parallel; one if it is short. The number of remaining pages is estimated
  /// from the density so far. A wrong estimate only costs time.
  package var parts: [SweepSlice] {
    let length = end - start
    let count: Int64
    if pages == Self.pagesBeforeEstimate, let seen {
      let covered = max((seen.upperBound - seen.lowerBound).microseconds, 1)
      let expected = Double(pages) * Double(length.microseconds) / Double(covered)
      let isLong = expected >= Double(Self.pagesWorthSplitting)
      count = isLong ? Int64(min(expected / Double(Self.pagesBeforeEstimate), Self.mostParts)) : 1
    } else {
      count = pages > 0 && pages % Self.pagesWorthSplitting == 0 ? 16 : 1
    }
    // Apple's timestamps are in milliseconds.
    let parts = min(count, length.microseconds / 1_000_000)
    if parts < 2 { return [self] }
    let cuts = (0...parts).map { part in
      switch part {
      case 0: start
      case parts: end
      default: Instant(microseconds: (start.microseconds + length.microseconds / parts * part) / 1_000 * 1_000)
      }
    }
    return zip(cuts, cuts.dropFirst()).map { SweepSlice(start: $0, end: $1) }
  }
}
