/// The cases of an enum by their raw values.
public struct Vocabulary<Word: RawRepresentable<String> & CaseIterable & Sendable>: Sendable {
  private let spellings: Spellings
  private let words: [Word]

  public init() {
    words = Array(Word.allCases)
    spellings = Spellings(words.map(\.rawValue))
  }

  public func word(_ spelling: BorrowedText) -> Word? { spellings.place(of: spelling).map { words[$0] } }

  public func place(of word: Word) -> UInt8 {
    // A case without associated values is one byte, its index.
    withUnsafeBytes(of: word) { $0[0] }
  }

  public func word(at place: UInt8) -> Word? { Int(place) < words.count ? words[Int(place)] : nil }
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

/// The vocabularies of the enums that are stored, each beside its enum.
public enum Vocabularies {}
