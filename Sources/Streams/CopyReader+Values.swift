import Postgres
import Reconciliation

/// The fields of a row by position from 0, so that each relation has one decoder for all sources.
public protocol RowFields: ~Copyable {
  func id(_ column: Int) throws(PostgresError) -> Identifier
  func optionalId(_ column: Int) throws(PostgresError) -> Identifier?
  func word<Word>(_ column: Int, of vocabulary: Vocabulary<Word>) throws(PostgresError) -> Word?
  func optionalText(_ column: Int) throws(PostgresError) -> String?
  func optionalInt32(_ column: Int) throws(PostgresError) -> Int32?
  func optionalInt64(_ column: Int) throws(PostgresError) -> Int64?
  func bool(_ column: Int) throws(PostgresError) -> Bool
  func optionalBool(_ column: Int) throws(PostgresError) -> Bool?
  func timestamp(_ column: Int) throws(PostgresError) -> Int64
  func optionalInstant(_ column: Int) throws(PostgresError) -> Instant?
}

extension PostgresRow: RowFields {
  public func id(_ column: Int) throws(PostgresError) -> Identifier { Identifier(try text(column)) }

  public func optionalId(_ column: Int) throws(PostgresError) -> Identifier? {
    try optionalText(column).map { Identifier($0) }
  }

  public func word<Word>(_ column: Int, of vocabulary: Vocabulary<Word>) throws(PostgresError) -> Word? {
    guard var spelling = try optionalText(column) else { return nil }
    return spelling.withUTF8 { vocabulary.word(BorrowedText(UnsafeRawBufferPointer($0))) }
  }

  public func optionalInstant(_ column: Int) throws(PostgresError) -> Instant? {
    try optionalTimestamp(column).map { Instant(microseconds: $0) }
  }
}

// Without a `String`, because most fields of a night's rows are ids and enum words.
extension CopyReader: RowFields {
  public func id(_ column: Int) throws(PostgresError) -> Identifier {
    try withText(column) { text in text.withUnsafeBytes { Identifier(utf8: $0) } }
  }

  public func optionalId(_ column: Int) throws(PostgresError) -> Identifier? { try isNull(column) ? nil : id(column) }

  /// The bytes of a field for comparison, valid UTF-8 or not, until the next row is read; nil for NULL.
  public func optionalKey(_ column: Int) throws(PostgresError) -> BorrowedText? {
    try bytes(column).map { BorrowedText($0) }
  }

  public func word<Word>(_ column: Int, of vocabulary: Vocabulary<Word>) throws(PostgresError) -> Word? {
    try optionalBorrowed(column).flatMap(vocabulary.word)
  }

  /// A text without copying, valid until the next row is read.
  public func borrowed(_ column: Int) throws(PostgresError) -> BorrowedText {
    try withText(column) { text in text.withUnsafeBytes { BorrowedText($0) } }
  }

  public func optionalBorrowed(_ column: Int) throws(PostgresError) -> BorrowedText? {
    try isNull(column) ? nil : borrowed(column)
  }

  public func optionalInstant(_ column: Int) throws(PostgresError) -> Instant? {
    try optionalTimestamp(column).map { Instant(microseconds: $0) }
  }
}

/// The cases of an enum by their raw values.
public struct Vocabulary<Word: RawRepresentable<String> & CaseIterable & Sendable>: Sendable {
  private let spellings: Spellings
  private let words: [Word]

  public init() {
    words = Array(Word.allCases)
    spellings = Spellings(words.map(\.rawValue))
  }

  public func word(_ spelling: BorrowedText) -> Word? { spellings.place(of: spelling).map { words[$0] } }

  func place(of word: Word) -> UInt8 {
    // A case without associated values is one byte, its index.
    withUnsafeBytes(of: word) { $0[0] }
  }

  func word(at place: UInt8) -> Word? { Int(place) < words.count ? words[Int(place)] : nil }
}

// Not generic, so that all vocabularies share the code of the search. Unchecked because the compiler cannot see that
// the memory behind the pointers never changes after initialization.
private struct Spellings: @unchecked Sendable {
  // The memory is never freed: a vocabulary lives as long as the program.
  private let texts: [BorrowedText]

  init(_ spellings: [String]) {
    texts = spellings.map { spelling in
      let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: spelling.utf8.count, alignment: 1)
      copy.copyBytes(from: spelling.utf8)
      return BorrowedText(UnsafeRawBufferPointer(copy))
    }
  }

  func place(of spelling: BorrowedText) -> Int? { texts.firstIndex(of: spelling) }
}

public enum Vocabularies {
  public static let orderStatus = Vocabulary<OrderStatus>()
  public static let environment = Vocabulary<AppleEnvironment>()
  public static let ownership = Vocabulary<Ownership>()
  public static let channel = Vocabulary<EvidenceChannel>()
  public static let outcome = Vocabulary<CheckOutcome>()
  public static let reason = Vocabulary<PaymentReason>()
  public static let receiptKind = Vocabulary<ReceiptKind>()
}
