import Reconciliation

/// What one cell of a table holds. A file, a sheet and a page show it each in its own way.
enum Cell: Hashable, Sendable {
  case blank
  case text(String)
  case id(Identifier)
  case count(Int64)
  /// A decimal number: this many units of its last digit, and so many digits after the point.
  case decimal(Int128, digits: UInt8)
  /// A number as the database prints it, which may be one that no currency has.
  case figure(String)
  case instant(Instant)
  /// A day of the calendar: `2026-11-19`.
  case day(String)

  init(_ text: String?) { self = text.map { .text($0) } ?? .blank }

  init(_ id: Identifier?) { self = id.map { .id($0) } ?? .blank }

  init(_ instant: Instant?) { self = instant.map { .instant($0) } ?? .blank }

  init(_ number: Int32?) { self = number.map { .count(Int64($0)) } ?? .blank }

  init(_ money: Money?) {
    self = money.map { .decimal(Int128($0.minorUnits), digits: $0.currency.digits) } ?? .blank
  }

  /// A number as the database prints it; blank where it is none, as NaN and the infinities are.
  init(figure text: String) {
    let isNumber = text.utf8.allSatisfy {
      (0x30...0x39).contains($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".")
    }
    self = isNumber && !text.isEmpty ? .figure(text) : .blank
  }

  /// Whole days of 24 hours since an instant; an instant later than the as-of is no days old.
  init(daysSince instant: Instant?, asOf: Instant) {
    self = instant.map { .count(max(0, (asOf - $0).wholeDays)) } ?? .blank
  }
}
