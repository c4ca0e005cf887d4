import Foundation
import Reconciliation
import Spreadsheet
import TestSupport
import Testing

@testable import Reporting

@Suite("What the cells of a column come to")
struct FingerprintTests {
  private enum Content {
    case text(String)
    case number(Int128, digits: UInt8)
  }

  private func print(_ cells: [Content]) -> Fingerprint {
    cells.reduce(into: Fingerprint()) { print, cell in
      switch cell {
      case .text(let text): print.add(text)
      case .number(let units, let digits): print.add(units, digits: digits)
      }
    }
  }

  @Test("Weights are primes above every code of ASCII, and none comes twice")
  func weights() {
    let weights = Fingerprint.weights
    #expect(weights.count == Fingerprint.places && Set(weights).count == weights.count)
    #expect(weights.allSatisfy { weight in weight > 127 && !(2..<weight).contains { weight.isMultiple(of: $0) } })
  }

  @Test(
    "Text is counted by what every spreadsheet agrees upon",
    arguments: [
      (["critical", "major"], Fingerprint.Method.asciiText), (["Zoë", "7528972536751605695"], .basicText),
      (["👩‍👩‍👧", "u1"], .anyText), (["a\u{1}", "u1"], .anyText), (["a\nb"], .anyText), ([""], .blank),
      ([String(repeating: "x", count: 600)], .asciiText), ([String(repeating: "👧", count: 600)], .count),
    ])
  func methods(_ texts: [String], _ method: Fingerprint.Method) {
    #expect(print(texts.map { .text($0) }).method == method)
  }

  @Test("Numbers beside text, and what is too large to be added up exactly")
  func numbers() {
    let amounts: [Content] = [.number(199, digits: 2), .number(480, digits: 0), .number(1_250, digits: 3)]
    #expect(print(amounts).method == .numbers)
    // In thousandths, with the weights 7 and 11 of each cell.
    #expect(print(amounts).result == Double(1_990 + 480_000 + 1_250 + 3 * 18))
    #expect(print(amounts + [.text("1e400")]).method == .textAndNumbers)
    #expect(print([.number(Int128(Int64.max), digits: 2)]).method == .count)
    var dates = Fingerprint()
    dates.add(serial: 46_345.5)
    #expect(dates.result == 46_345.5 * 86_400 + 18)
  }

  @Test("Whatever cell is changed, it is another number; whatever the order of the rows, it is the same")
  func changes() {
    var random = SeededGenerator(seed: 12)
    let alphabets = ["0123456789", "abcdefgh_.-", "éßдשם", "ab👧\u{1}c"].map(Array.init)
    for round in 0..<2_000 {
      let letters = alphabets[round % alphabets.count]
      func word() -> String {
        String((0..<Int.random(in: 1...24, using: &random)).map { _ in letters.randomElement(using: &random) ?? "a" })
      }
      var cells = (0..<8).map { _ in Content.text(word()) }
      let before = print(cells)
      #expect(print(cells.shuffled(using: &random)).result == before.result)
      let place = Int.random(in: 0..<cells.count, using: &random)
      guard case .text(let old) = cells[place] else { continue }
      var new = Array(old)
      // Changes one character, removes or adds one, or swaps two. A swap is not detected where positions do not count
      // and the cell has no other characters.
      let change = round / alphabets.count % (round % alphabets.count < 3 ? 4 : 3)
      switch change {
      case 0: new[new.indices.randomElement(using: &random) ?? 0] = letters.randomElement(using: &random) ?? "x"
      case 1: new.removeLast()
      case 2: new.append(letters.randomElement(using: &random) ?? "x")
      default: new.swapAt(0, new.count - 1)
      }
      let text = String(new)
      let told = { (text: String) in text.unicodeScalars.filter { (0x20..<0xD800).contains($0.value) } }
      // Surrogate pairs and control characters are not fingerprinted, because spreadsheets disagree on them.
      if told(text).elementsEqual(told(old)) { continue }
      cells[place] = .text(text)
      #expect(print(cells).result != before.result, "\(old.debugDescription) \(text.debugDescription)")
    }
  }
}
