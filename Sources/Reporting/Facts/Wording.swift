import Reconciliation

extension String {
  var displayText: String {
    let words = split(separator: "_", omittingEmptySubsequences: false).map { $0 == "id" ? "ID" : $0 }
      .joined(separator: " ")
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
    DeliveryStatus.delivered.rawValue: "Delivered", DeliveryStatus.undelivered.rawValue: "Not delivered in full",
    // Apple's consumptionRequestReason.
    "UNINTENDED_PURCHASE": "Unintended purchase", "FULFILLMENT_ISSUE": "Fulfillment issue",
    "UNSATISFIED_WITH_PURCHASE": "Unsatisfied with purchase", "LEGAL": "Legal", "OTHER": "Other",
  ]

  var titles: String { split(separator: " ").map { String($0).title }.joined(separator: " · ") }
}

extension MoneyByCurrency {
  /// The amounts for people, by currency: `1,234.50 USD`.
  package var words: [String] { sorted.map { "\($0.currency.text($0.minorUnits)) \($0.currency)" } }

  /// The currencies of both sums, in alphabetical order.
  func currencies(with other: MoneyByCurrency) -> [Currency] {
    Set(minorUnits.keys).union(other.minorUnits.keys).sorted()
  }

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

/// The count in a table for people: a dash for zero.
func shown(_ count: Int) -> String { count == 0 ? "–" : grouped(count) }

/// A sentence about one thing or several; nil for none.
func sentence(_ count: Int, one: String, several: (_ count: String) -> String) -> String? {
  count == 0 ? nil : count == 1 ? one : several(grouped(count))
}

/// A count of things whose plural ends with s, such as `1 report` or `2,000 reports`.
package func counted(_ count: Int, _ thing: String) -> String { "\(grouped(count)) \(thing)\(count == 1 ? "" : "s")" }

func openFindings(_ count: Int) -> String { counted(count, "open finding") }

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

extension ControlTotal {
  /// The name for people. `name` is public in `summary.json`.
  var title: String { name.replacing("sum over dispositions", with: "sum over outcomes") }
}

extension Money {
  /// A decimal number in a table for people: a dash for zero.
  static func shown(_ decimalText: String) -> String {
    decimalText.contains { ("1"..."9").contains($0) } ? grouped(decimalText) : "–"
  }
}
