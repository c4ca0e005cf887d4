import Reconciliation

/// The content of a table cell, before a file, sheet or page formats it.
enum Cell: Hashable, Sendable {
  case blank
  case text(String)
  case id(Identifier)
  case count(Int64)
  /// A decimal number: units of its last digit, and the count of digits after the point.
  case decimal(Int128, digits: UInt8)
  /// A number as the database prints it, possibly with more digits than its currency has.
  case figure(String)
  case instant(Instant)
  case day(String)

  init(_ text: String?) { self = text.map { .text($0) } ?? .blank }

  init(_ id: Identifier?) { self = id.map { .id($0) } ?? .blank }

  init(_ instant: Instant?) { self = instant.map { .instant($0) } ?? .blank }

  init(_ number: (some BinaryInteger)?) { self = number.map { .count(Int64($0)) } ?? .blank }

  init(day: String?) { self = day.map { .day($0) } ?? .blank }

  init(_ money: Money?) { self = money.map { .decimal(Int128($0.minorUnits), digits: $0.currency.digits) } ?? .blank }

  init(figure text: String) {
    let isNumber = text.utf8.allSatisfy {
      (0x30...0x39).contains($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".")
    }
    self = isNumber && !text.isEmpty ? .figure(text) : .blank
  }

  /// Whole days of 24 hours since an instant; 0 for an instant after the as-of.
  init(daysSince instant: Instant?, asOf: Instant) {
    self = instant.map { .count(max(0, (asOf - $0).wholeDays)) } ?? .blank
  }
}

extension Pseudonyms {
  func apply(to cell: Cell, as type: ColumnType) -> Cell {
    guard type == .user else { return cell }
    switch cell {
    case .id(let id): return .text(pseudonym(of: id))
    case .text(let text): return .text(pseudonym(of: Identifier(text)))
    case .blank, .count, .decimal, .figure, .instant, .day: return cell
    }
  }
}
