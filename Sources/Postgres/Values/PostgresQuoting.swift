import Glibc

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
    let (seconds, rest) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
    let fraction = rest < 0 ? rest + 1_000_000 : rest
    var instant = time_t(rest < 0 ? seconds - 1 : seconds)
    var parts = unsafe tm()
    let isInRange = unsafe gmtime_r(&instant, &parts) != nil
    let (year, month, day) = unsafe (parts.tm_year + 1_900, parts.tm_mon + 1, parts.tm_mday)
    let (hour, minute, second) = unsafe (parts.tm_hour, parts.tm_min, parts.tm_sec)
    guard isInRange, (1...9999).contains(year) else {
      throw PostgresError(.usage, "a timestamp constant is limited to the years 1 to 9999")
    }
    let date = "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))"
    let time = "\(padded(hour, 2)):\(padded(minute, 2)):\(padded(second, 2))"
    return "TIMESTAMPTZ '\(date) \(time).\(padded(fraction, 6))+00'"
  }
}

private func enclosed(_ text: String, in quote: Unicode.Scalar, what: String) throws(PostgresError) -> String {
  if text.utf8.contains(0) { throw .nul(in: what) }
  return "\(quote)\(doubling(quote, in: text))\(quote)"
}

// Scalars, because a quote with a combining mark is another `Character` than the quote.
private func doubling(_ quote: Unicode.Scalar, in text: String) -> String {
  String(text.unicodeScalars.replacing([quote], with: [quote, quote]))
}

func padded(_ number: some BinaryInteger, _ width: Int) -> String {
  let digits = String(number)
  return String(repeating: "0", count: max(0, width - digits.count)) + digits
}
