import Reconciliation

extension Instant {
  /// Parses a date and time such as `2023-08-16T12:34:56.5+02:00` (RFC 3339).
  package init?(rfc3339 text: some StringProtocol) {
    var reader = RFC3339Reader(rest: Substring(text).utf8)
    guard let date = reader.date(), reader.take("T", "t", " "), let hour = reader.number(), reader.take(":"),
      let minute = reader.number(), reader.take(":"), let second = reader.number(),
      let fraction = reader.microseconds(), let offset = reader.offsetMinutes(), reader.rest.isEmpty,
      hour < 24, minute < 60, second <= 60
    else { return nil }
    let seconds = ((date.daysSince1970 * 24 + hour) * 60 + minute - offset) * 60 + second
    self.init(microseconds: seconds * 1_000_000 + fraction)
    guard Self.appleDates.contains(self) else { return nil }
  }
}

private struct RFC3339Reader {
  var rest: Substring.UTF8View

  mutating func take(_ characters: Character...) -> Bool {
    guard let first = rest.first, characters.contains(where: { $0.asciiValue == first }) else { return false }
    rest.removeFirst()
    return true
  }

  mutating func date() -> CivilDate? {
    defer { rest = rest.dropFirst(10) }
    return CivilDate(String(decoding: rest.prefix(10), as: UTF8.self))
  }

  /// A number of two digits.
  mutating func number() -> Int64? {
    guard let tens = digit(), let ones = digit() else { return nil }
    return tens * 10 + ones
  }

  mutating func microseconds() -> Int64? {
    guard take(".") else { return 0 }
    guard var value = digit() else { return nil }
    var unit: Int64 = 100_000
    value *= unit
    while let digit = digit() {
      unit /= 10
      value += digit * unit
    }
    return value
  }

  mutating func offsetMinutes() -> Int64? {
    if take("Z", "z") { return 0 }
    let isNegativeOffset = rest.first == UInt8(ascii: "-")
    guard take("+", "-"), let hours = number(), take(":"), let minutes = number(), hours < 24, minutes < 60 else {
      return nil
    }
    return (hours * 60 + minutes) * (isNegativeOffset ? -1 : 1)
  }

  private mutating func digit() -> Int64? {
    guard let first = rest.first, isDigit(first) else { return nil }
    rest.removeFirst()
    return Int64(first - UInt8(ascii: "0"))
  }
}
