import Foundation
import Reconciliation
import TestSupport
import Testing

@testable import AppStore
@testable import Asking
@testable import AuditStore
@testable import Run

/// Windows with many notifications are cut into slices. The result depends neither on the cuts nor on the order.
@Suite struct SweepSliceTests {
  private let asOf = Instant(seconds: 1_795_143_600)

  enum Density: CaseIterable, Sendable {
    case even, inOneHour, inTheLastMinutes, atOneInstant, random
  }

  private func date(_ number: Int, of count: Int, _ density: Density, _ random: inout SeededGenerator) -> Instant {
    let part = Double(number) / Double(count)
    return switch density {
    case .even: asOf - .days(1) + Span(microseconds: Int64(part * Double(Span.days(1).microseconds)))
    case .inOneHour: asOf - .hours(9) + Span(microseconds: Int64(part * Double(Span.hours(1).microseconds)))
    case .inTheLastMinutes: asOf - .minutes(3) + Span(microseconds: Int64(part * 100_000_000))
    case .atOneInstant: asOf - .hours(5)
    case .random: asOf - Span(microseconds: Int64.random(in: 1...Span.days(1).microseconds, using: &random))
    }
  }

  /// A page of Apple's history, sorted by date.
  private func page(_ dates: [Instant], _ query: NotificationQuery, _ token: String?) -> NotificationAnswer {
    func place(of date: Instant) -> Int {
      var (low, high) = (0, dates.count)
      while low < high {
        let middle = (low + high) / 2
        if dates[middle] < date { low = middle + 1 } else { high = middle }
      }
      return low
    }
    let (first, end) = (token.flatMap(Int.init) ?? place(of: query.start), place(of: query.end))
    let last = min(first + 20, end)
    var answer = NotificationAnswer(paginationToken: "\(last)", end: last < end ? .pageLimit : .complete)
    answer.notifications = (first..<last).map {
      AppleNotification(uuid: "\($0)", type: "", signedDate: dates[$0])
    }
    return answer
  }

  /// Reads a window, one page of a random slice at a time. With `kills`, the run is killed once in so many pages, and
  /// continues from the stored state.
  private func sweep(
    _ cursor: inout SweepCursor, _ dates: [Instant], killedOnceIn kills: Int?, _ random: inout SeededGenerator
  ) -> (seen: Set<String>, pages: Int, mostSlices: Int) {
    var (seen, pages, mostSlices) = (Set<String>(), 0, 1)
    _ = cursor.begin(asOf: asOf, refundWindow: .days(120))
    while let slice = cursor.slices.randomElement(using: &random) {
      let answer = page(dates, cursor.query(slice), slice.paginationToken)
      pages += 1
      seen.formUnion(answer.notifications.map(\.uuid))
      let step = cursor.received(answer, about: slice.start, now: asOf)
      #expect(step == (cursor.window == nil ? .finish : .ask))
      mostSlices = max(mostSlices, cursor.slices.count)
      if let kills, Int.random(in: 1...kills, using: &random) == 1, cursor.window != nil {
        cursor.slices = cursor.slices.map(\.unseen)
        _ = cursor.begin(asOf: asOf, refundWindow: .days(120))
      }
    }
    return (seen, pages, mostSlices)
  }

  @Test(arguments: Density.allCases, [100, 3_000])
  func everyNotificationIsReadOnceWithAnyCuts(_ density: Density, _ count: Int) {
    for seed in 0..<3 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      let dates = (0..<count).map { date($0, of: count, density, &random) }.sorted()
      var cursor = SweepCursor(type: .didRenew)
      cursor.sweptUntil = asOf - .days(1)
      cursor.lastAttempt = asOf - .days(1)
      let kills: Int? = seed == 2 ? 40 : nil
      let (seen, pages, mostSlices) = sweep(&cursor, dates, killedOnceIn: kills, &random)
      #expect(seen.count == count && cursor.sweptUntil == asOf && cursor.shortfall == nil)
      #expect(cursor.window == nil && cursor.slices.isEmpty)
      let needed = (count + 19) / 20
      if count == 100 { #expect(pages == needed && mostSlices == 1) }
      // A wrong estimate costs a limited number of pages.
      if kills == nil { #expect(pages <= 5 * needed + 600, "\(pages) pages for \(needed)") }
      if density == .even, kills == nil, count == 3_000 { #expect(mostSlices > 2 && pages < needed + 60, "\(pages)") }
    }
  }

  @Test func partsCoverTheSliceWithoutGapOrOverlap() async throws {
    var random = SeededGenerator(seed: 7)
    for _ in 0..<200 {
      let start = asOf - Span(microseconds: Int64.random(in: 10_000_000...Span.days(100).microseconds, using: &random))
      var slice = SweepSlice(start: start, end: asOf)
      var parts = [slice]
      for page in 0..<128 where parts.count == 1 {
        var answer = NotificationAnswer(paginationToken: "\(page)", end: .pageLimit)
        let signed = start + Span(microseconds: Int64(page + 1) * 20_000)
        answer.notifications = [
          AppleNotification(uuid: "\(page)", type: "REFUND", signedDate: signed)
        ]
        let isNew = slice.turn(answer)
        #expect(isNew)
        parts = slice.parts
      }
      #expect(parts.count > 1 && parts.count <= 256)
      #expect(parts.first?.start == start && parts.last?.end == asOf)
      #expect(zip(parts, parts.dropFirst()).allSatisfy { $0.end == $1.start })
      #expect(parts.allSatisfy { $0.start < $0.end && $0.paginationToken == nil })
      // Apple counts in milliseconds, so that a cut between two of them would be moved.
      #expect(parts.dropFirst().allSatisfy { $0.start.microseconds % 1_000 == 0 })
    }
  }

  @Test func aWindowIsDoneWithItsLastSlice() throws {
    var cursor = SweepCursor(type: .refund)
    cursor.sweptUntil = asOf - .days(1)
    cursor.lastAttempt = asOf - .days(1)
    _ = cursor.begin(asOf: asOf, refundWindow: .days(120))
    let window = try #require(cursor.window)
    cursor.slices = [
      SweepSlice(start: window.start, end: asOf - .hours(2), paginationToken: "a"),
      SweepSlice(start: asOf - .hours(2), end: asOf),
    ]
    let last = NotificationAnswer(paginationToken: nil, end: .complete)
    let afterFirst = cursor.received(last, about: window.start, now: asOf)
    #expect(afterFirst == .ask)
    #expect(cursor.slices.count == 1 && cursor.sweptUntil == asOf - .days(1))
    // A late answer about a finished slice is ignored.
    let afterLate = cursor.received(last, about: window.start, now: asOf)
    #expect(afterLate == .ask && cursor.slices.count == 1)
    let afterAll = cursor.received(last, about: asOf - .hours(2), now: asOf)
    #expect(afterAll == .finish)
    #expect(cursor.sweptUntil == asOf && cursor.shortfall == nil)
  }
}
