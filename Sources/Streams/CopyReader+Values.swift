import Postgres
import Reconciliation

/// The fields of a row by their position from 0, wherever it comes from: so that each relation has one reader. Throws as the
/// accessors of `CopyReader` do.
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

/// Values made from the characters of a field, without a `String` between: most fields of a night's rows are ids and words
/// of short lists.
extension CopyReader: RowFields {
  /// A text as an id. Throws as `text` does.
  public func id(_ column: Int) throws(PostgresError) -> Identifier {
    try withText(column) { text in text.withUnsafeBytes { Identifier(utf8: $0) } }
  }

  /// As `id`; nil for NULL.
  public func optionalId(_ column: Int) throws(PostgresError) -> Identifier? { try isNull(column) ? nil : id(column) }

  /// The bytes of a field as something to compare, whether they are a text or not, until the next row is read; nil for NULL.
  public func optionalKey(_ column: Int) throws(PostgresError) -> BorrowedText? {
    try bytes(column).map { BorrowedText($0) }
  }

  /// A text as one of a list of words; nil for NULL and for another word.
  public func word<Word>(_ column: Int, of vocabulary: Vocabulary<Word>) throws(PostgresError) -> Word? {
    try optionalBorrowed(column).flatMap(vocabulary.word)
  }

  /// A text where it lies, until the next row is read. Throws as `text` does.
  public func borrowed(_ column: Int) throws(PostgresError) -> BorrowedText {
    try withText(column) { text in text.withUnsafeBytes { BorrowedText($0) } }
  }

  /// As `borrowed`; nil for NULL.
  public func optionalBorrowed(_ column: Int) throws(PostgresError) -> BorrowedText? {
    try isNull(column) ? nil : borrowed(column)
  }

  /// A point in time; nil for NULL.
  public func optionalInstant(_ column: Int) throws(PostgresError) -> Instant? {
    try optionalTimestamp(column).map { Instant(microseconds: $0) }
  }
}

/// The words of a list by how they are spelt.
public struct Vocabulary<Word: RawRepresentable<String> & CaseIterable & Sendable>: Sendable {
  private let spellings: Spellings
  private let words: [Word]

  public init() {
    words = Array(Word.allCases)
    spellings = Spellings(words.map(\.rawValue))
  }

  public func word(_ spelling: BorrowedText) -> Word? { spellings.place(of: spelling).map { words[$0] } }

  /// Where a word stands in the list, below 255.
  func place(of word: Word) -> UInt8 {
    // A case without values is one byte, its place among the cases.
    withUnsafeBytes(of: word) { $0[0] }
  }

  /// The word that stands there; nil where none does.
  func word(at place: UInt8) -> Word? { Int(place) < words.count ? words[Int(place)] : nil }
}

/// Apart from the words, so that looking for one is the same code for all lists.
///
/// Unchecked: what the pointers lead to is never changed once they are made, which the compiler cannot see.
private struct Spellings: @unchecked Sendable {
  /// Of memory that is never given back: what words there are is known as long as the program lives.
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

/// The lists of words that rows are written in.
public enum Vocabularies {
  public static let orderStatus = Vocabulary<OrderStatus>()
  public static let environment = Vocabulary<AppleEnvironment>()
  public static let ownership = Vocabulary<Ownership>()
  public static let channel = Vocabulary<EvidenceChannel>()
  public static let outcome = Vocabulary<CheckOutcome>()
  public static let reason = Vocabulary<PaymentReason>()
  public static let receiptKind = Vocabulary<ReceiptKind>()
}
