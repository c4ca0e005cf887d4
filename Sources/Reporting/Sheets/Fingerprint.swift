import Reconciliation
import Spreadsheet

/// What the cells of one column come to, as a number that a formula comes to as well: whichever cell is changed, in text,
/// number or kind, the formula comes to another one. The order of the rows does not matter, so that sheets can be sorted.
///
/// Text counts by the code of each character times a weight of its place, numbers in units of the column's last digit.
/// Everything is whole numbers below 2^53, which every spreadsheet adds up exactly, in whatever order.
struct Fingerprint {
  /// Places of a text that count: what stands further right in longer texts does not.
  static let places = 512
  /// The weight of each place: primes above every code of ASCII, so that no two characters can be exchanged for others, and
  /// in no order, so that more of them hardly can.
  static let weights: [Int] = {
    let primes = (131...).lazy.filter { number in
      !(2...).lazy.prefix { $0 * $0 <= number }.contains { number.isMultiple(of: $0) }
    }
    let first = Array(primes.prefix(521))
    // 521 is a prime, so that each step leads to another one.
    return (0..<places).map { first[$0 * 197 % first.count] }
  }()

  /// What spreadsheets agree upon about characters.
  private enum Alphabet: Int {
    /// Each has one code and one place everywhere.
    case ascii
    /// The same, with a function that is younger.
    case basic
    /// Some count those of two UTF-16 units as two: these do not count, nor do places, but what follows what.
    case any
  }

  /// What a formula has to count.
  enum Method: Hashable {
    /// No cell holds anything.
    case blank
    case asciiText, basicText, anyText
    case numbers
    /// Text of any characters, and numbers.
    case textAndNumbers
    /// Too long or too large to be added up exactly: how many cells hold something.
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
  /// Of numbers by how many decimal digits they have.
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

  /// Adds a text of printable ASCII, as nearly all are, a byte for each character.
  ///
  /// - Returns: false, with nothing added, for any other.
  private mutating func addPlain(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
    guard text.allSatisfy({ (0x20..<0x7F).contains($0) }) else { return false }
    var (sum, plainSum, pairSum, last) = (0, 0, 0, 0)
    Fingerprint.weights.withUnsafeBufferPointer { weights in
      Fingerprint.squares.withUnsafeBufferPointer { squares in
        for place in text.indices {
          let code = Int(text[place])
          if place < Fingerprint.places { sum += code * weights[place] }
          plainSum += code
          // The first character follows nothing.
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

  /// A number in units of its last digit.
  mutating func add(_ number: Int128, digits: UInt8) {
    let digits = min(Int(digits), units.count - 1)
    filled += 1
    numbers += 1
    units[digits] += number
    mostDigits = max(mostDigits, digits)
    magnitude += abs(Money.number(number, digits: UInt8(digits)))
  }

  /// A date and time by its serial number, of which there are whole seconds.
  mutating func add(serial: Double) {
    filled += 1
    numbers += 1
    isOfInstants = true
    seconds += Int128((serial * 86_400).rounded())
    magnitude += serial
  }

  /// A prime, so that pairs of characters add up to what can be counted; above every code of ASCII.
  private static let modulus = 1_021
  /// Of each code of ASCII.
  private static let squares = (0..<0x80).map { $0 * $0 % modulus }

  private static func isPlain(_ code: Int) -> Bool {
    (0x20..<0xD800).contains(code) || (0xE000...0xFFFD).contains(code)
  }

  /// What is added for each cell that holds something, and for each number, so that a zero is not nothing.
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

  /// What such a formula comes to as long as nobody changes a cell.
  var result: Double { Double(sum) }

  var method: Method {
    if filled == 0 { return .blank }
    // Well below 2^53, so that no sum on the way is beyond it.
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

  /// The formula over the cells of the column, to be written for arrays.
  ///
  /// - Parameters:
  ///   - cells: of one column, on each of its sheets.
  ///   - places: the cells of a row that hold so many numbers from one on: `places(2, 3)` holds 2, 3, 4.
  ///   - weights: as many weights of places.
  func formula(
    over cells: [SheetRange], places: (Int, Int) -> CellRange, weights: (Int) -> CellRange
  ) -> Formula {
    // One place more than the longest text has: something may be added to it.
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
  /// For whoever looks behind a control.
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
