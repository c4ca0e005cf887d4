import Reconciliation

/// Takes the cells of rows from left to right. A row is described once, and a file and a sheet each take it in their form.
protocol RowSink: ~Copyable {
  associatedtype Failure: Error

  mutating func text(_ text: String) throws(Failure)
  mutating func id(_ id: Identifier) throws(Failure)
  mutating func count(_ number: Int64) throws(Failure)
  /// A decimal number: this many units of its last digit, and so many digits after the point.
  mutating func decimal(_ units: Int128, digits: UInt8) throws(Failure)
  /// A number as the database prints it, which may be one that no currency has.
  mutating func figure(_ text: String) throws(Failure)
  mutating func instant(_ instant: Instant) throws(Failure)
  mutating func blank() throws(Failure)
}

extension RowSink where Self: ~Copyable {
  mutating func text(_ text: String?) throws(Failure) {
    if let text { try self.text(text) } else { try blank() }
  }

  mutating func id(_ id: Identifier?) throws(Failure) {
    if let id { try self.id(id) } else { try blank() }
  }

  mutating func amount(_ money: Money?) throws(Failure) {
    if let money {
      try decimal(Int128(money.minorUnits), digits: money.currency.digits)
    } else {
      try blank()
    }
  }

  mutating func instant(_ instant: Instant?) throws(Failure) {
    if let instant { try self.instant(instant) } else { try blank() }
  }

  mutating func count(_ number: Int32?) throws(Failure) {
    if let number { try count(Int64(number)) } else { try blank() }
  }

  /// Whole days of 24 hours since an instant; an instant later than the as-of is no days old.
  mutating func age(since instant: Instant, asOf: Instant) throws(Failure) {
    try count(max(0, (asOf - instant).wholeDays))
  }
}
