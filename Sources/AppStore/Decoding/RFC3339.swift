import Reconciliation

extension Instant {
  /// Parses a date and time such as `2023-08-16T12:34:56.5+02:00` (RFC 3339).
  package init?(rfc3339 text: some StringProtocol) {
    var reader = RFC3339Reader(rest: Substring(text).utf8)
    guard let year = reader.number(digits: 4), reader.take("-"), let month = reader.number(digits: 2),
      reader.take("-"), let day = reader.number(digits: 2), reader.take("T", "t", " "),
      let hour = reader.number(digits: 2), reader.take(":"), let minute = reader.number(digits: 2), reader.take(":"),
      let second = reader.number(digits: 2), let fraction = reader.microseconds(), let offset = reader.offsetMinutes(),
      reader.rest.isEmpty, (1...12).contains(month), (1...Self.days(inMonth: month, year: year)).contains(day),
      hour < 24, minute < 60, second <= 60
    else { return nil }
    let days = Self.daysSinceEpoch(year: year, month: month, day: day)
    let seconds = ((days * 24 + hour) * 60 + minute - offset) * 60 + second
    self.init(microseconds: Int64(seconds) * 1_000_000 + Int64(fraction))
    guard Self.appleDates.contains(self) else { return nil }
  }

  private static func days(inMonth month: Int, year: Int) -> Int {
    switch month {
    case 2: year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400)) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  // Proleptic Gregorian calendar; years start in March, so that the leap day is the last day.
  private static func daysSinceEpoch(year: Int, month: Int, day: Int) -> Int {
    let marchYear = (month > 2 ? year : year - 1) + 400
    let daysBeforeMonth = (153 * ((month + 9) % 12) + 2) / 5
    let leapDays = marchYear / 4 - marchYear / 100 + marchYear / 400
    let daysOf400Years = 146_097
    return marchYear * 365 + leapDays + daysBeforeMonth + day - 1 - 719_468 - daysOf400Years
  }
}

private struct RFC3339Reader {
  var rest: Substring.UTF8View

  mutating func take(_ characters: Character...) -> Bool {
    guard let first = rest.first, characters.contains(where: { $0.asciiValue == first }) else { return false }
    rest.removeFirst()
    return true
  }

  mutating func number(digits: Int) -> Int? {
    guard rest.count >= digits else { return nil }
    var number = 0
    for _ in 0..<digits {
      guard let digit = digit() else { return nil }
      number = number * 10 + digit
    }
    return number
  }

  mutating func microseconds() -> Int? {
    guard take(".") else { return 0 }
    var value = 0
    var count = 0
    while let digit = digit() {
      if count < 6 { value = value * 10 + digit }
      count += 1
    }
    guard count > 0 else { return nil }
    for _ in min(count, 6)..<6 { value *= 10 }
    return value
  }

  mutating func offsetMinutes() -> Int? {
    if take("Z", "z") { return 0 }
    let isNegativeOffset = rest.first == UInt8(ascii: "-")
    guard take("+", "-"), let hours = number(digits: 2), take(":"), let minutes = number(digits: 2), hours < 24,
      minutes < 60
    else { return nil }
    return (hours * 60 + minutes) * (isNegativeOffset ? -1 : 1)
  }

  private mutating func digit() -> Int? {
    guard let first = rest.first, isDigit(first) else { return nil }
    rest.removeFirst()
    return Int(first - UInt8(ascii: "0"))
  }
}
