/// A `numeric`, exact, in its base of 10,000 (PostgreSQL source, `numeric.c`). 1.0 and 1.00 differ.
public struct PostgresNumeric: Hashable, Sendable {
  public enum ConversionError: Error, Hashable, Sendable {
    /// It has non-zero digits beyond the requested decimals.
    case tooManyDecimals
    /// It is too large for the integer, or has more than 36 significant digits.
    case outOfRange
    case notFinite
  }

  enum Storage: Hashable, Sendable {
    /// `magnitude * 10_000^exponent`, for up to nine groups of four digits; needs no allocation.
    case short(isNegative: Bool, magnitude: UInt128, exponent: Int, scale: Int)
    /// The groups from that of `10_000^weight` downwards.
    case long(isNegative: Bool, weight: Int, groups: [UInt16], scale: Int)
    case nan
    case infinity
    case minusInfinity
  }

  let storage: Storage

  init(_ storage: Storage) { self.storage = storage }

  /// `scaled / 10^decimals`, such as minor units of a currency; `decimals` is from 0 to 1,000.
  public init(scaled: Int64, decimals: Int) {
    precondition((0...1_000).contains(decimals), "decimals out of range")
    // The group of the last decimal is padded with zeros.
    let missing = (4 - decimals % 4) % 4
    storage = .short(
      isNegative: scaled < 0, magnitude: UInt128(scaled.magnitude) * UInt128(powerOfTen(missing)),
      exponent: -(decimals + missing) / 4, scale: decimals)
  }

  /// As `init(scaled:decimals:)` for large sums. Nil for more than 36 digits, up to three of them padding zeros.
  public init?(exactly scaled: Int128, decimals: Int) {
    precondition((0...1_000).contains(decimals), "decimals out of range")
    let missing = (4 - decimals % 4) % 4
    let (magnitude, overflow) = scaled.magnitude.multipliedReportingOverflow(by: UInt128(powerOfTen(missing)))
    guard !overflow, magnitude < UInt128(powerOfTen(18)) * UInt128(powerOfTen(18)) else { return nil }
    storage = .short(isNegative: scaled < 0, magnitude: magnitude, exponent: -(decimals + missing) / 4, scale: decimals)
  }

  public var isFinite: Bool {
    switch storage {
    case .short, .long: true
    case .nan, .infinity, .minusInfinity: false
    }
  }

  /// The value in units of `10^-decimals`, never rounded: 12.30 with 2 decimals is 1230.
  public func scaledInt64(decimals: Int) throws(ConversionError) -> Int64 {
    // Fast path for nearly every amount, because 128-bit division is slow.
    if case .short(let isNegative, let magnitude, let exponent, _) = storage, let small = UInt64(exactly: magnitude) {
      let shift = exponent * 4 + decimals
      if (-19...0).contains(shift) {
        let (quotient, remainder) = small.quotientAndRemainder(dividingBy: powerOfTen(-shift))
        if remainder != 0 { throw .tooManyDecimals }
        if let value = Int64(exactly: quotient) { return isNegative ? -value : value }
      }
    }
    guard let value = Int64(exactly: try scaledInt128(decimals: decimals)) else { throw .outOfRange }
    return value
  }

  public func scaledInt128(decimals: Int) throws(ConversionError) -> Int128 {
    switch storage {
    case .nan, .infinity, .minusInfinity: throw .notFinite
    case .long(_, let weight, let groups, _):
      guard let last = groups.lastIndex(where: { $0 != 0 }) else { return 0 }
      // The position of the last non-zero digit.
      let zeros = (0..<4).last { UInt64(groups[last]).isMultiple(of: powerOfTen($0)) } ?? 0
      throw 4 * (weight - last) + zeros < -decimals ? .tooManyDecimals : .outOfRange
    case .short(let isNegative, var magnitude, let exponent, _):
      if magnitude == 0 { return 0 }
      let shift = exponent * 4 + decimals
      for _ in 0..<max(0, shift) {
        let (product, overflow) = magnitude.multipliedReportingOverflow(by: 10)
        if overflow { throw .outOfRange }
        magnitude = product
      }
      for _ in 0..<max(0, -shift) {
        let (quotient, remainder) = magnitude.quotientAndRemainder(dividingBy: 10)
        if remainder != 0 { throw .tooManyDecimals }
        magnitude = quotient
      }
      guard let value = Int128(exactly: magnitude) else { throw .outOfRange }
      return isNegative ? -value : value
    }
  }

  /// The value as Postgres prints it, with all decimals of its display scale.
  public var text: String {
    switch storage {
    case .nan: return "NaN"
    case .infinity: return "Infinity"
    case .minusInfinity: return "-Infinity"
    case .short, .long: break
    }
    let number = wireForm
    func digits(_ position: Int) -> String {
      number.groups.indices.contains(position) ? padded(number.groups[position], 4) : "0000"
    }
    var integer = ""
    for position in 0..<max(0, number.weight + 1) { integer += digits(position) }
    integer = String(integer.drop { $0 == "0" })
    if integer.isEmpty { integer = "0" }
    var fraction = ""
    var position = number.weight + 1
    while fraction.count < number.scale {
      fraction += digits(position)
      position += 1
    }
    let sign = number.isNegative ? "-" : ""
    return sign + integer + (number.scale > 0 ? "." + fraction.prefix(number.scale) : "")
  }

  /// The groups without leading and trailing zero groups, as sent to the server. For finite values.
  var wireForm: (isNegative: Bool, weight: Int, groups: [UInt16], scale: Int) {
    switch storage {
    case .nan, .infinity, .minusInfinity: return (false, 0, [], 0)
    case .long(let isNegative, let weight, let groups, let scale): return (isNegative, weight, groups, scale)
    case .short(let isNegative, var magnitude, var exponent, let scale):
      if magnitude == 0 { return (false, 0, [], scale) }
      var reversed: [UInt16] = []
      while magnitude > 0 {
        let (quotient, remainder) = magnitude.quotientAndRemainder(dividingBy: 10_000)
        if reversed.isEmpty, remainder == 0 { exponent += 1 } else { reversed.append(UInt16(remainder)) }
        magnitude = quotient
      }
      return (isNegative, exponent + reversed.count - 1, reversed.reversed(), scale)
    }
  }
}

extension PostgresNumeric: CustomStringConvertible {
  public var description: String { text }
}

func powerOfTen(_ exponent: Int) -> UInt64 { powersOfTen[exponent] }
private let powersOfTen: [UInt64] = (0...19).map { (0..<$0).reduce(1) { power, _ in power * 10 } }
