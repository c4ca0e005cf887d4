import Reconciliation

/// Encodes values for `RecordReader`. The memory is reused, because a night writes millions of records.
public struct RecordBytes: ~Copyable {
  private var start: UnsafeMutableRawPointer
  private var capacity = 512
  private var count = 0

  public init() { start = .allocate(byteCount: capacity, alignment: 1) }

  deinit { start.deallocate() }

  /// The record, valid until the next write or `clear()`.
  public var content: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

  public var bytes: [UInt8] { [UInt8](content) }

  /// The bytes of one record.
  public static func bytes(_ write: (inout RecordBytes) -> Void) -> [UInt8] {
    var record = RecordBytes()
    write(&record)
    return record.bytes
  }

  public mutating func clear() { count = 0 }

  @inline(__always)
  private mutating func place(for more: Int) -> UnsafeMutableRawPointer {
    if capacity - count < more { grow(by: more) }
    count += more
    return start + (count - more)
  }

  @inline(never)
  private mutating func grow(by more: Int) {
    capacity = 2 * capacity + more
    let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 1)
    larger.copyMemory(from: start, byteCount: count)
    start.deallocate()
    start = larger
  }

  public mutating func put(_ value: Int64) {
    place(for: 8).storeBytes(of: value.littleEndian, as: Int64.self)
  }

  public mutating func put(_ value: Int64?) {
    put(value != nil)
    if let value { put(value) }
  }

  public mutating func put(_ byte: UInt8) { place(for: 1).storeBytes(of: byte, as: UInt8.self) }

  public mutating func put(_ text: String) {
    // Strings of this program have contiguous storage; others take the slower way.
    if text.utf8.withContiguousStorageIfAvailable({ put(UnsafeRawBufferPointer($0)) }) == nil { put(Identifier(text)) }
  }

  public mutating func put(_ text: BorrowedText) { put(text.bytes) }

  public mutating func put(_ text: BorrowedText?) {
    put(text != nil)
    if let text { put(text) }
  }

  private mutating func put(_ text: UnsafeRawBufferPointer) {
    place(for: 4).storeBytes(of: UInt32(clamping: text.count).littleEndian, as: UInt32.self)
    append(text)
  }

  public mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress else { return }
    place(for: bytes.count).copyMemory(from: source, byteCount: bytes.count)
  }

  public mutating func put(_ text: String?) {
    put(text != nil)
    if let text { put(text) }
  }

  public mutating func put(_ id: Identifier) { id.withUTF8 { put($0) } }

  public mutating func put(_ id: Identifier?) {
    put(id != nil)
    if let id { put(id) }
  }

  /// Writes bytes in the sort order of ids, missing ids last like NULLs in the streams. Nothing may follow them.
  public mutating func put(sorting id: Identifier?) {
    put(id == nil)
    id?.withUTF8 { append($0) }
  }

  public mutating func put(sorting id: BorrowedText?) {
    put(id == nil)
    if let id { append(id.bytes) }
  }

  public mutating func put(_ instant: Instant?) { put(instant?.microseconds) }

  public mutating func put(_ number: Int32?) { put(number.map(Int64.init)) }

  public mutating func put(_ flag: Bool) { put(flag ? 1 : 0 as UInt8) }

  // 2 for nil.
  public mutating func put(_ flag: Bool?) { put(flag.map { $0 ? 1 : 0 } ?? 2 as UInt8) }

  public mutating func put<Word>(_ word: Word?, of vocabulary: Vocabulary<Word>) {
    put(word.map { vocabulary.place(of: $0) } ?? .max)
  }

  public mutating func put<Value>(_ values: [Value], each: (Value, inout RecordBytes) -> Void) {
    put(Int64(values.count))
    for value in values { each(value, &self) }
  }

  public mutating func put(_ money: Money?) {
    put(money?.minorUnits)
    guard let letters = money?.currency.letters else { return }
    withUnsafeBytes(of: letters) { put($0) }
  }
}

extension RecordBytes: FieldCoder {
  public typealias Failure = Never

  public static var isReading: Bool { false }

  public mutating func code(flag: inout Bool) { put(flag) }
  public mutating func code(optionalFlag flag: inout Bool?) { put(flag) }
  public mutating func code(number: inout Int64) { put(number) }
  public mutating func code<Text: FieldText>(text: inout Text) { text.withBytes { put($0) } }
  public mutating func code<Word>(word: inout Word?, of vocabulary: Vocabulary<Word>) { put(word, of: vocabulary) }
  public mutating func fail() {}
}

extension FieldCoded {
  public func write(to record: inout RecordBytes) {
    var value = self
    value.code(with: &record)
  }
}

extension BorrowedText {
  /// The id of a key written by `RecordBytes.put(sorting:)`; nil if it was missing.
  public init?(sorting key: UnsafeRawBufferPointer) {
    guard key.first == 0 else { return nil }
    self.init(UnsafeRawBufferPointer(rebasing: key.dropFirst()))
  }
}
