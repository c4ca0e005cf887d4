/// A quoted SQL name with an optional schema (PostgreSQL documentation, 4.1.1).
public struct PostgresIdentifier: Hashable, Sendable {
  public let sql: String

  /// Quotes the parts of a name, outermost first. Throws `.usage` if there is none, or one is empty or contains NUL.
  public init(_ parts: String...) throws(PostgresError) {
    if parts.isEmpty { throw PostgresError(.usage, "an SQL name has at least one part") }
    var quoted: [String] = []
    for part in parts {
      if part.isEmpty { throw PostgresError(.usage, "an SQL name has no empty part") }
      quoted.append(try enclosed(part, in: "\"", what: "an SQL name"))
    }
    sql = quoted.joined(separator: ".")
  }
}

/// Constants in SQL text, for COPY and the few other commands without parameters.
public enum PostgresLiteral {
  /// A text constant independent of `standard_conforming_strings`, as by `PQescapeLiteral`. Throws `.usage` for NUL.
  public static func text(_ text: String) throws(PostgresError) -> String {
    let quoted = try enclosed(text, in: "'", what: "a text constant")
    guard quoted.utf8.contains(UInt8(ascii: "\\")) else { return quoted }
    // The space separates the E from a preceding word.
    return " E" + doubling("\\", in: quoted)
  }

  /// A constant of microseconds since 1970. Throws `.usage` outside the years 1 to 9999.
  public static func timestamp(_ microseconds: Int64) throws(PostgresError) -> String {
    let (seconds, fraction) = floored(microseconds, by: 1_000_000)
    let (days, secondOfDay) = floored(seconds, by: 86_400)
    let (year, month, day) = civilDate(daysSince1970: days)
    guard (1...9999).contains(year) else {
      throw PostgresError(.usage, "a timestamp constant is limited to the years 1 to 9999")
    }
    let date = "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))"
    let time = "\(padded(secondOfDay / 3600, 2)):\(padded(secondOfDay / 60 % 60, 2)):\(padded(secondOfDay % 60, 2))"
    return "TIMESTAMPTZ '\(date) \(time).\(padded(fraction, 6))+00'"
  }
}

private func enclosed(_ text: String, in quote: Character, what: String) throws(PostgresError) -> String {
  if text.utf8.contains(0) { throw .nul(in: what) }
  return "\(quote)\(doubling(quote, in: text))\(quote)"
}

// Scalars, because a quote with a combining mark is another `Character` than the quote.
private func doubling(_ quote: Character, in text: String) -> String {
  var result = String.UnicodeScalarView()
  for scalar in text.unicodeScalars {
    result.append(scalar)
    if quote.unicodeScalars.first == scalar { result.append(scalar) }
  }
  return String(result)
}

private func floored(_ value: Int64, by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
  let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
  return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
}

// Proleptic Gregorian date; years start on 1 March, so that the leap day is the last day.
private func civilDate(daysSince1970 days: Int64) -> (year: Int64, month: Int64, day: Int64) {
  let (era, dayOfEra) = floored(days + 719_468, by: 146_097)
  let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
  let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
  let marchMonth = (5 * dayOfYear + 2) / 153
  let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
  return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
}

private func padded(_ number: Int64, _ width: Int) -> String {
  let digits = String(number)
  return String(repeating: "0", count: max(0, width - digits.count)) + digits
}
