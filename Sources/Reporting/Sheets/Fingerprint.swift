import Reconciliation
import Spreadsheet

/// A checksum of a column's cells that a spreadsheet formula computes, too, in any order of the rows.
///
/// Text counts by the code of each character times a weight of its position, numbers in units of the column's last
/// digit. All values are whole numbers below 2^53, which every spreadsheet adds exactly in any order.
struct Fingerprint {
  /// Characters of a text that count; later ones are ignored.
  static let places = 512
  /// Weights of positions: primes above every ASCII code, so that swapping two characters changes the sum.
  ///
  /// Shuffled, so that moving more characters hardly keeps it.
  static let weights: [Int] = {
    let primes = (131...).lazy.filter { number in
      !(2...).lazy.prefix { $0 * $0 <= number }.contains { number.isMultiple(of: $0) }
    }
    let first = Array(primes.prefix(521))
    // 521 is a prime, so the steps of 197 visit different primes.
    return (0..<places).map { first[$0 * 197 % first.count] }
  }()

  /// How uniformly spreadsheets handle the characters of a column.
  private enum Alphabet: Int {
    case ascii
    /// Characters with one UTF-16 unit, which need a newer function.
    case basic
    /// Some spreadsheets count surrogate pairs as two, so neighbours count in place of positions.
    case any
  }

  enum Method: Hashable {
    case blank
    case asciiText, basicText, anyText
    case numbers
    case textAndNumbers
    /// Only the number of filled cells, where exact sums would be too long or too large.
    case count
  }

  private var alphabet = Alphabet.ascii
  /// In UTF-16 units.
  private var longest = 0
  private var filled = 0
  private var texts = 0
  private var numbers = 0
  private var placed: Int128 = 0
  private var plain: Int128 = 0
  private var pairs: Int128 = 0
  /// Sums of numbers by their count of decimal digits.
  private var units = [Int128](repeating: 0, count: Money.powersOfTen.count)
  private var mostDigits = 0
  private var seconds: Int128 = 0
  private var magnitude = 0.0
  private var isOfInstants = false

  mutating func add(_ text: String) {
    if text.isEmpty { return }
    filled += 1
    texts += 1
    var text = text
    if !text.withUTF8({ addPlain($0) }) { addScalars(text) }
  }

  /// Adds a text of printable ASCII, one byte a character; returns false for any other text.
  private mutating func addPlain(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
    guard text.allSatisfy({ (0x20..<0x7F).contains($0) }) else { return false }
    var (sum, plainSum, pairSum, last) = (0, 0, 0, 0)
    Fingerprint.weights.withUnsafeBufferPointer { weights in
      Fingerprint.squares.withUnsafeBufferPointer { squares in
        for place in text.indices {
          let code = Int(text[place])
          if place < Fingerprint.places { sum += code * weights[place] }
          plainSum += code
          pairSum += last * squares[code]
          last = code
        }
      }
    }
    longest = max(longest, text.count)
    placed += Int128(sum)
    plain += Int128(plainSum)
    pairs += Int128(pairSum)
    return true
  }

  private mutating func addScalars(_ text: String) {
    var (place, width, sum, plainSum, pairSum) = (0, 0, 0, 0, 0)
    var last: Int?
    for scalar in text.unicodeScalars {
      let code = Int(scalar.value)
      switch code {
      case 0x20..<0x7F: break
      case 0x7F..<0xD800, 0xE000...0xFFFD: if alphabet == .ascii { alphabet = .basic }
      default: alphabet = .any
      }
      if place < Fingerprint.places { sum += code * Fingerprint.weights[place] }
      if Fingerprint.isPlain(code) {
        plainSum += code
        if let last { pairSum += last % Fingerprint.modulus * (code * code % Fingerprint.modulus) }
        last = code
      } else {
        last = nil
      }
      place += 1
      width += code > 0xFFFF ? 2 : 1
    }
    longest = max(longest, width)
    placed += Int128(sum)
    plain += Int128(plainSum)
    pairs += Int128(pairSum)
  }

  mutating func add(_ number: Int128, digits: UInt8) {
    let digits = min(Int(digits), units.count - 1)
    filled += 1
    numbers += 1
    units[digits] += number
    mostDigits = max(mostDigits, digits)
    magnitude += abs(Money.number(number, digits: UInt8(digits)))
  }

  mutating func add(serial: Double) {
    filled += 1
    numbers += 1
    isOfInstants = true
    seconds += Int128((serial * 86_400).rounded())
    magnitude += serial
  }

  /// A prime above every ASCII code, so that sums over pairs stay small.
  private static let modulus = 1_021
  private static let squares = (0..<0x80).map { $0 * $0 % modulus }

  private static func isPlain(_ code: Int) -> Bool {
    (0x20..<0xD800).contains(code) || (0xE000...0xFFFD).contains(code)
  }

  /// Added for each filled cell and each number, so that a zero differs from an empty cell.
  private static let (cellWeight, numberWeight) = (11, 7)

  private var scale: Int { isOfInstants ? 86_400 : Int(Money.powersOfTen[mostDigits]) }

  private var sumOfNumbers: Int128 {
    let scaled = units.enumerated().reduce(seconds) { sum, units in
      units.offset > mostDigits ? sum : sum + units.element * Int128(Money.powersOfTen[mostDigits - units.offset])
    }
    return scaled + Int128(Fingerprint.numberWeight * numbers)
  }

  private var sum: Int128 {
    let count = Int128(Fingerprint.cellWeight * filled)
    return switch method {
    case .blank, .count: count
    case .asciiText, .basicText: count + placed
    case .anyText: count + plain + pairs
    case .numbers: count + sumOfNumbers
    case .textAndNumbers: count + plain + pairs + sumOfNumbers
    }
  }

  /// The value of the formula while no cell is changed.
  var result: Double { Double(sum) }

  var method: Method {
    if filled == 0 { return .blank }
    // Well below 2^53, so that no intermediate sum exceeds it.
    let limit = 4e15
    let isCountable =
      magnitude * Double(scale) < limit && (isOfInstants ? mostDigits == 0 : true) && Double(placed) < limit
      && Double(pairs) < limit && (alphabet != .any || longest < Fingerprint.places)
    guard isCountable else { return .count }
    if texts == 0 { return .numbers }
    if numbers > 0 { return longest < Fingerprint.places ? .textAndNumbers : .count }
    return switch alphabet {
    case .ascii: .asciiText
    case .basic: .basicText
    case .any: .anyText
    }
  }

  /// - Parameter places: cells of a row with consecutive numbers: `places(2, 3)` contains 2, 3, 4.
  func formula(
    over cells: [SheetRange], places: (Int, Int) -> CellRange, weights: (Int) -> CellRange
  ) -> Formula {
    // One position more than the longest text, so that an appended character counts.
    let count = min(longest + 1, Fingerprint.places)
    let factors = weights(count)
    func characters(_ cells: SheetRange, from first: Int = 1) -> Formula {
      "MID(IF(ISTEXT(\(cells)),\(cells),\"\"),\(absolute: places(first, count)),1)"
    }
    func isPlain(_ code: Formula) -> Formula { "(\(code)>31)*((\(code)<55296)+(\(code)>57343)*(\(code)<65534))" }
    func plain(_ cells: SheetRange) -> Formula {
      let code: Formula = "_xlfn.UNICODE(\(characters(cells)))"
      let next: Formula = "_xlfn.UNICODE(\(characters(cells, from: 2)))"
      let pair: Formula = "MOD(\(code),\(Fingerprint.modulus))*MOD(\(next)*\(next),\(Fingerprint.modulus))"
      return """
        SUM(IFERROR(\(code)*\(isPlain(code)),0))+\
        SUM(IFERROR(\(pair)*\(isPlain(code))*\(isPlain(next)),0))
        """
    }
    func amounts(_ cells: SheetRange) -> Formula {
      "SUM(IF(ISNUMBER(\(cells)),ROUND(\(cells)*\(scale),0)+\(Fingerprint.numberWeight),0))"
    }
    let method = method
    return .sum(
      of: cells.map { cells in
        let count: Formula = "COUNTA(\(cells))*\(Fingerprint.cellWeight)"
        return switch method {
        case .blank, .count: count
        case .asciiText: "\(count)+SUM(IFERROR(CODE(\(characters(cells))),0)*\(absolute: factors))"
        case .basicText: "\(count)+SUM(IFERROR(_xlfn.UNICODE(\(characters(cells))),0)*\(absolute: factors))"
        case .anyText: "\(count)+\(plain(cells))"
        case .numbers: "\(count)+\(amounts(cells))"
        case .textAndNumbers: "\(count)+\(plain(cells))+\(amounts(cells))"
        }
      })
  }
}

extension Fingerprint.Method {
  var words: String {
    switch self {
    case .blank: "every cell is empty"
    case .asciiText, .basicText: "every character of the first \(Fingerprint.places) of a cell"
    case .anyText: "every character, and what follows it"
    case .numbers: "every number, to its last digit"
    case .textAndNumbers: "every number, and every character of the texts among them"
    case .count: "how many cells hold something: too much to be added up exactly"
    }
  }
}
