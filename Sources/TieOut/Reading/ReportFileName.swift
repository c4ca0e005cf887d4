/// The name of a sales report file: `S_D_80012345_20261119.txt.gz`. The server's names end with `_V1_0.txt.gz`.
package struct ReportFileName: Hashable, Sendable {
  package var vendor: String
  package var frequency: SalesFrequency
  package var days: ClosedRange<ReportDay>

  package init?(_ name: String) {
    let stem = name.prefix { $0 != "." }
    let parts = stem.split(separator: "_", omittingEmptySubsequences: false).map(String.init)
    guard parts.count >= 4, parts[0].uppercased() == "S", Self.isDigits(parts[2]), Self.isDigits(parts[3]),
      let frequency = SalesFrequency(letter: parts[1].uppercased()), let days = frequency.days(digits: parts[3])
    else { return nil }
    vendor = parts[2]
    (self.frequency, self.days) = (frequency, days)
  }

  /// The vendor number at the start of a finance file's name: `80012345_0226_ZZ.txt`.
  package static func vendor(ofFinanceFile name: String) -> String? {
    let first = name.prefix { $0 != "_" && $0 != "." }
    return first.utf8.count >= 6 && isDigits(String(first)) ? String(first) : nil
  }

  /// The region at the end of a finance file's name: `ZZ` for all, `US` for one; nil if there is none.
  package static func region(ofFinanceFile name: String) -> String? {
    let last = name.prefix { $0 != "." }.split(separator: "_").dropFirst().last ?? ""
    // Browsers number repeated downloads: `80012345_0226_ZZ (1).txt`.
    let region = last.prefix { $0.isLetter || $0.isNumber }
    return region.count == 2 && region.first?.isLetter == true ? region.uppercased() : nil
  }

  /// The order of reading. Sorting by full name would put `80012345_0226_ZZ (1).txt` before `80012345_0226_ZZ.txt`.
  static func precedes(_ left: String, _ right: String) -> Bool {
    func key(_ name: String) -> (stem: String, number: Int) {
      let stem = name.prefix { $0 != "." }
      guard stem.last == ")", let open = stem.lastIndex(of: "("),
        let number = Int(stem[stem.index(after: open)...].dropLast())
      else { return (String(stem), 0) }
      return (stem[..<open].trimmed, number)
    }
    let (first, second) = (key(left), key(right))
    return (first.stem, first.number, left) < (second.stem, second.number, right)
  }

  private static func isDigits(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }
}

package enum ReportKind: String, Hashable, Sendable {
  case sales = "SALES"
  case financial = "FINANCIAL"
  case detail = "FINANCE_DETAIL"
}

package enum SalesFrequency: String, Hashable, CaseIterable, Sendable {
  case daily = "DAILY"
  case weekly = "WEEKLY"
  case monthly = "MONTHLY"
  case yearly = "YEARLY"

  init?(letter: String) {
    guard let frequency = Self.allCases.first(where: { $0.rawValue.hasPrefix(letter) }), letter.utf8.count == 1
    else { return nil }
    self = frequency
  }

  /// The name in `filter[reportDate]` and in our tables.
  package func name(of days: ClosedRange<ReportDay>) -> String {
    switch self {
    case .daily: days.lowerBound.description
    case .weekly: days.upperBound.description
    case .monthly: days.lowerBound.month
    case .yearly: String(days.lowerBound.description.prefix(4))
    }
  }

  /// The days of a name from `name(of:)`, with or without hyphens.
  package func days(digits text: String) -> ClosedRange<ReportDay>? {
    let digits = text.filter { $0 != "-" }
    func part(_ first: Int, _ count: Int) -> Int? { Int(digits.dropFirst(first).prefix(count)) }
    guard digits.count >= 4, let year = part(0, 4) else { return nil }
    switch self {
    case .daily, .weekly:
      guard digits.count == 8, let month = part(4, 2), let day = part(6, 2),
        let last = ReportDay(year: year, month: month, day: day)
      else { return nil }
      return self == .daily ? last...last : last.advanced(by: -6)...last
    case .monthly:
      guard digits.count >= 6, let month = part(4, 2) else { return nil }
      return ReportDay.month(month, of: year)
    case .yearly:
      guard let first = ReportDay(year: year, month: 1, day: 1), let last = ReportDay(year: year, month: 12, day: 31)
      else { return nil }
      return first...last
    }
  }
}
