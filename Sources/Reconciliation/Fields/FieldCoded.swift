/// A value with one description of its fields, by which every format writes and reads it.
public protocol FieldCoded {
  /// A value to be read into.
  static var blank: Self { get }

  /// The number of columns in a table.
  static var fieldCount: Int { get }

  mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure)

  /// Codes a field that may have no value.
  static func code<Coder: FieldCoder & ~Copyable>(
    optional value: inout Self?, with coder: inout Coder
  ) throws(Coder.Failure)
}

extension FieldCoded {
  public static var fieldCount: Int { 1 }

  public static func code<Coder: FieldCoder & ~Copyable>(
    optional value: inout Self?, with coder: inout Coder
  ) throws(Coder.Failure) { try coder.code(optional: &value) }
}

/// A text of its own, or one in borrowed bytes: a value that is generic over its texts has one description for both.
public protocol FieldText: FieldCoded, Equatable {
  init(copying text: BorrowedText)

  var id: Identifier { get }

  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result
}

extension FieldText {
  public static var blank: Self { Self(copying: .empty) }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(text: &self)
  }
}

extension BorrowedText: FieldText {
  public init(copying text: BorrowedText) { self = text }

  public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result { body(bytes) }
}

extension Identifier: FieldText {
  public init(copying text: BorrowedText) { self = text.id }

  public var id: Identifier { self }

  public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result { withUTF8 { body($0) } }
}

extension String: FieldText {
  public init(copying text: BorrowedText) { self = text.text }

  public var id: Identifier { Identifier(self) }

  public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    // Strings of this program have contiguous storage; others take the slower way.
    utf8.withContiguousStorageIfAvailable { body(UnsafeRawBufferPointer($0)) } ?? Identifier(self).withBytes(body)
  }
}

extension Bool: FieldCoded {
  public static var blank: Bool { false }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(flag: &self)
  }

  public static func code<Coder: FieldCoder & ~Copyable>(
    optional value: inout Bool?, with coder: inout Coder
  ) throws(Coder.Failure) { try coder.code(optionalFlag: &value) }
}

extension Int64: FieldCoded {
  public static var blank: Int64 { 0 }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(number: &self)
  }
}

extension Int32: FieldCoded {
  public static var blank: Int32 { 0 }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(integer: &self)
  }
}

extension Instant: FieldCoded {
  public static var blank: Instant { Instant(microseconds: 0) }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(instant: &self)
  }
}

extension Money: FieldCoded {
  public static var blank: Money { Money(minorUnits: 0, currency: .blank) }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(number: &minorUnits)
    try coder.code(&currency)
  }
}

extension Currency: FieldCoded {
  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    if Coder.isReading {
      var code = BorrowedText.empty
      try coder.code(text: &code)
      if let currency = Currency(code) { self = currency } else { try coder.fail() }
    } else {
      let letters = letters
      try withUnsafeBytes(of: letters) { (letters) throws(Coder.Failure) in
        var code = BorrowedText(letters)
        try coder.code(text: &code)
      }
    }
  }
}

extension Country {
  public static func code<Coder: FieldCoder & ~Copyable>(
    _ country: inout Country?, with coder: inout Coder
  ) throws(Coder.Failure) {
    var code = country?.code
    try coder.code(&code)
    if Coder.isReading { country = Country(code: code) }
  }
}

extension Optional: FieldCoded where Wrapped: FieldCoded {
  public static var blank: Wrapped? { nil }
  public static var fieldCount: Int { Wrapped.fieldCount }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try Wrapped.code(optional: &self, with: &coder)
  }
}

extension Array: FieldCoded where Element: FieldCoded {
  public static var blank: [Element] { [] }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    var number = Int64(count)
    try coder.code(number: &number)
    if Coder.isReading { removeAll(keepingCapacity: true) }
    for place in 0..<Int(Swift.max(0, number)) {
      // A copy, because writing must not change the list, which others may share.
      var element = Coder.isReading ? Element.blank : self[place]
      try coder.code(&element)
      if Coder.isReading { append(element) }
    }
  }
}
