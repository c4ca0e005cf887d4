import Reconciliation

/// Decodes the values of `RecordBytes` in the order of writing. A mismatch is a defect of the program.
public struct RecordReader: ~Copyable {
  public struct Mismatch: Error {
    public init() {}
  }

  private var next: UnsafeRawPointer
  private let end: UnsafeRawPointer
  /// The copied bytes that the reader owns; nil if it reads in place.
  private let own: UnsafeMutableRawBufferPointer?

  /// Reads bytes in place: they must outlive the reader.
  public init(_ content: UnsafeRawBufferPointer) { self.init(content, own: nil) }

  public init(_ bytes: [UInt8]) {
    let own = UnsafeMutableRawBufferPointer.allocate(byteCount: max(bytes.count, 1), alignment: 1)
    own.copyBytes(from: bytes)
    self.init(UnsafeRawBufferPointer(rebasing: own[..<bytes.count]), own: own)
  }

  private init(_ content: UnsafeRawBufferPointer, own: UnsafeMutableRawBufferPointer?) {
    // An empty buffer may have no address; nothing is read through the placeholder.
    next = content.baseAddress ?? UnsafeRawPointer(bitPattern: 1).unsafelyUnwrapped
    end = next + content.count
    self.own = own
  }

  deinit { own?.deallocate() }

  private mutating func take(_ count: Int) throws(Mismatch) -> UnsafeRawPointer {
    guard end - next >= count else { throw Mismatch() }
    next += count
    return next - count
  }

  public mutating func byte() throws(Mismatch) -> UInt8 { try take(1).load(as: UInt8.self) }

  public mutating func int() throws(Mismatch) -> Int64 {
    Int64(littleEndian: try take(8).loadUnaligned(as: Int64.self))
  }

  public mutating func optionalInt() throws(Mismatch) -> Int64? { try flag() ? int() : nil }

  public mutating func text() throws(Mismatch) -> String { try borrowed().text }

  public mutating func id() throws(Mismatch) -> Identifier { try borrowed().id }

  /// A text or id in place, valid as long as the record.
  public mutating func borrowed() throws(Mismatch) -> BorrowedText {
    let count = Int(UInt32(littleEndian: try take(4).loadUnaligned(as: UInt32.self)))
    return BorrowedText(UnsafeRawBufferPointer(start: try take(count), count: count))
  }

  public var rest: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: next, count: end - next) }

  public mutating func flag() throws(Mismatch) -> Bool { try byte() == 1 }

  public mutating func word<Word>(of vocabulary: Vocabulary<Word>) throws(Mismatch) -> Word? {
    vocabulary.word(at: try byte())
  }

  public mutating func list<Value>(
    each: (inout RecordReader) throws(Mismatch) -> Value
  ) throws(Mismatch) -> [Value] {
    let count = try int()
    var values: [Value] = []
    values.reserveCapacity(min(Int(clamping: count), rest.count))
    for _ in 0..<count { values.append(try each(&self)) }
    return values
  }

  public mutating func optionalText() throws(Mismatch) -> String? { try flag() ? text() : nil }
  public mutating func optionalId() throws(Mismatch) -> Identifier? { try flag() ? id() : nil }
  public mutating func optionalInstant() throws(Mismatch) -> Instant? {
    try optionalInt().map { Instant(microseconds: $0) }
  }

  public mutating func optionalMoney() throws(Mismatch) -> Money? {
    guard let minorUnits = try optionalInt() else { return nil }
    guard let currency = Currency(try borrowed()) else { throw Mismatch() }
    return Money(minorUnits: minorUnits, currency: currency)
  }
}

extension RecordReader: FieldCoder {
  public typealias Failure = Mismatch

  public static var isReading: Bool { true }

  public mutating func code(flag: inout Bool) throws(Mismatch) { flag = try self.flag() }
  public mutating func code(optionalFlag flag: inout Bool?) throws(Mismatch) {
    let byte = try byte()
    flag = byte == 2 ? nil : byte == 1
  }
  public mutating func code(number: inout Int64) throws(Mismatch) { number = try int() }
  public mutating func code<Text: FieldText>(text: inout Text) throws(Mismatch) { text = Text(copying: try borrowed()) }
  public mutating func code<Word>(word: inout Word?, of vocabulary: Vocabulary<Word>) throws(Mismatch) {
    word = try self.word(of: vocabulary)
  }
  public mutating func fail() throws(Mismatch) { throw Mismatch() }
}

extension FieldCoded {
  public init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    self = Self.blank
    try code(with: &record)
  }
}
