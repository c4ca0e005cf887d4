import Reconciliation

extension String {
  var displayText: String {
    let words = replacing("_", with: " ")
    return words.prefix(1).uppercased() + words.dropFirst()
  }
}

extension String {
  /// The title of a code in the files: a kind, a disposition, or another word.
  package var title: String {
    if FindingStatus(rawValue: self) != nil { return self }
    return FindingKind(rawValue: self)?.title ?? Disposition(rawValue: self)?.title ?? String.otherTitles[self]
      ?? displayText
  }

  private static let otherTitles = [
    "reversed": Disposition.refunded.title, ReceiptKind.app.rawValue: "App receipt",
    ReceiptKind.transaction.rawValue: "Old transaction receipt", ReceiptKind.signed.rawValue: "Signed transaction",
    EvidenceChannel.verifyReceipt.rawValue: "verifyReceipt", EvidenceChannel.serverApi.rawValue: "App Store Server API",
  ]

  var titles: String { split(separator: " ").map { String($0).title }.joined(separator: " · ") }
}

extension MoneyByCurrency {
  /// The amounts for people, by currency: `1,234.50 USD`.
  package var words: [String] { sorted.map { "\($0.currency.text($0.minorUnits)) \($0.currency)" } }

  /// The amounts for machines.
  var texts: [String: String] {
    Dictionary(
      uniqueKeysWithValues: sorted.map {
        ($0.currency.code, Money.decimalText($0.minorUnits, digits: $0.currency.digits))
      })
  }
}

extension Currency {
  /// The amount in a table for people: a dash for zero.
  func shown(_ minorUnits: Int128) -> String { minorUnits == 0 ? "–" : text(minorUnits) }
}

extension Instant {
  /// RFC 3339 in UTC, rounded down to seconds: `2026-11-19T22:14:03Z`.
  package var text: String {
    let time = CivilTime(seconds: seconds)
    let date = CivilDate(daysSince1970: time.day)
    // The fast path, because a report contains hundreds of thousands of instants.
    if (0...9_999).contains(date.year) {
      return Instant.text(Int(date.year), date.month, date.day, time.hour, time.minute, time.second)
    }
    func padded(_ number: some BinaryInteger, _ places: Int = 2) -> String {
      let digits = String(number)
      return String(repeating: "0", count: max(0, places - digits.count)) + digits
    }
    return "\(date.year < 0 ? "-" : "")\(padded(date.year.magnitude, 4))-\(padded(date.month))-\(padded(date.day))"
      + "T\(padded(time.hour)):\(padded(time.minute)):\(padded(time.second))Z"
  }
}

extension Instant {
  private static func text(
    _ year: Int, _ month: UInt8, _ day: UInt8, _ hour: UInt8, _ minute: UInt8, _ second: UInt8
  ) -> String {
    String(unsafeUninitializedCapacity: 20) { text in
      func put(_ number: UInt8, at place: Int, behind mark: UInt8) {
        (text[place - 1], text[place], text[place + 1]) = (mark, 48 + number / 10, 48 + number % 10)
      }
      (text[0], text[1]) = (48 + UInt8(year / 1_000), 48 + UInt8(year / 100 % 10))
      (text[2], text[3]) = (48 + UInt8(year / 10 % 10), 48 + UInt8(year % 10))
      put(month, at: 5, behind: UInt8(ascii: "-"))
      put(day, at: 8, behind: UInt8(ascii: "-"))
      put(hour, at: 11, behind: UInt8(ascii: "T"))
      put(minute, at: 14, behind: UInt8(ascii: ":"))
      put(second, at: 17, behind: UInt8(ascii: ":"))
      text[19] = UInt8(ascii: "Z")
      return 20
    }
  }
}

func openFindings(_ count: Int) -> String { "\(grouped(count)) open finding\(count == 1 ? "" : "s")" }

package func grouped(_ number: Int) -> String { Money.grouped(String(number)) }

func hexadecimal(_ bytes: some Collection<UInt8>) -> String {
  String(unsafeUninitializedCapacity: 2 * bytes.count) { text in
    var position = 0
    for byte in bytes {
      text[position] = digit(byte >> 4)
      text[position + 1] = digit(byte & 0xF)
      position += 2
    }
    return position
  }
}

private func digit(_ nibble: UInt8) -> UInt8 {
  nibble < 10 ? UInt8(ascii: "0") + nibble : UInt8(ascii: "a") + nibble - 10
}
