/// A format that writes or reads the fields of values, in the order of the one description that each value has.
public protocol FieldCoder: ~Copyable {
  /// `Never` for a format that only writes.
  associatedtype Failure: Error

  /// True if fields get new contents, false if they are only written.
  static var isReading: Bool { get }

  mutating func code(flag: inout Bool) throws(Failure)
  mutating func code(optionalFlag: inout Bool?) throws(Failure)
  mutating func code(number: inout Int64) throws(Failure)
  mutating func code<Text: FieldText>(text: inout Text) throws(Failure)
  /// A word by its place in the vocabulary; nil also for a place beyond it.
  mutating func code<Word>(word: inout Word?, of vocabulary: Vocabulary<Word>) throws(Failure)
  mutating func code<Value: FieldCoded>(optional value: inout Value?) throws(Failure)

  // Kinds of columns that tables tell apart. By default they are numbers and texts.

  mutating func code(instant: inout Instant) throws(Failure)
  mutating func code(integer: inout Int32) throws(Failure)
  /// A word as text.
  mutating func code<Word>(spelling word: inout Word, of vocabulary: Vocabulary<Word>) throws(Failure)
  /// A text in which white space at both ends has no meaning.
  mutating func code<Text: FieldText>(trimmed text: inout Text?) throws(Failure)
  /// - Parameter currency: the name of the column with the currency.
  mutating func code(amount: inout Money, currency: String) throws(Failure)

  /// Names the column of the next field.
  mutating func name(_ column: String)

  /// Reports contents that no value of the field's type has.
  mutating func fail() throws(Failure)
}

extension FieldCoder where Self: ~Copyable {
  public mutating func code<Value: FieldCoded>(_ value: inout Value) throws(Failure) { try value.code(with: &self) }

  /// Codes a field that tables have, too.
  public mutating func code<Value: FieldCoded>(_ value: inout Value, _ column: String) throws(Failure) {
    name(column)
    try value.code(with: &self)
  }

  public mutating func name(_ column: String) {}

  public mutating func code(instant: inout Instant) throws(Failure) {
    var number = instant.microseconds
    try code(number: &number)
    instant = Instant(microseconds: number)
  }

  public mutating func code(integer: inout Int32) throws(Failure) {
    var number = Int64(integer)
    try code(number: &number)
    integer = Int32(clamping: number)
  }

  public mutating func code<Text: FieldText>(trimmed text: inout Text?) throws(Failure) { try code(&text) }

  public mutating func code(amount: inout Money, currency: String) throws(Failure) { try code(&amount) }

  public mutating func code<Value: FieldCoded>(optional value: inout Value?) throws(Failure) {
    var isPresent = value != nil
    try code(flag: &isPresent)
    guard isPresent else {
      if Self.isReading { value = nil }
      return
    }
    var present = value ?? Value.blank
    try code(&present)
    if Self.isReading { value = present }
  }

  public mutating func code<Word>(word: inout Word, of vocabulary: Vocabulary<Word>) throws(Failure) {
    var read: Word? = word
    try code(word: &read, of: vocabulary)
    if let read { word = read } else { try fail() }
  }

  public mutating func code<Word>(spelling word: inout Word, of vocabulary: Vocabulary<Word>) throws(Failure) {
    guard Self.isReading else {
      var spelling = word.rawValue
      return try code(text: &spelling)
    }
    var spelling = BorrowedText.empty
    try code(text: &spelling)
    if let read = vocabulary.word(spelling) { word = read } else { try fail() }
  }

  /// A case of an enumeration by its raw value.
  public mutating func code<Word: RawRepresentable>(raw word: inout Word) throws(Failure)
  where Word.RawValue: FieldCoded {
    var raw = word.rawValue
    try code(&raw)
    guard Self.isReading else { return }
    if let read = Word(rawValue: raw) { word = read } else { try fail() }
  }

  /// As the method for a case that is always there; nil also for an unknown raw value.
  public mutating func code<Word: RawRepresentable>(raw word: inout Word?) throws(Failure)
  where Word.RawValue: FieldCoded {
    var raw = word?.rawValue
    try code(&raw)
    if Self.isReading { word = raw.flatMap { Word(rawValue: $0) } }
  }
}
