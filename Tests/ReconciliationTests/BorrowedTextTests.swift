import Testing

@testable import Reconciliation

@Suite struct BorrowedTextTests {
  @Test("Texts are the same where all their bytes are, whatever their length and whichever byte differs")
  func sameness() {
    for length in 0...40 {
      let bytes = (0..<length).map { UInt8(97 + $0 % 26) }
      let text = String(decoding: bytes, as: UTF8.self)
      bytes.withUnsafeBytes { content in
        let borrowed = BorrowedText(content)
        #expect(borrowed.text == text && borrowed.id == Identifier(text))
        #expect(borrowed.isSame(as: text) && borrowed.isSame(as: Identifier(text)))
        #expect(!borrowed.isSame(as: text + "a") && !borrowed.isSame(as: Identifier(text + "a")))
        for place in 0..<length {
          var other = bytes
          other[place] ^= 1
          let isSame = other.withUnsafeBytes { borrowed == BorrowedText($0) }
          #expect(!isSame, "\(length), \(place)")
        }
        let copy = bytes
        let isSame = copy.withUnsafeBytes { borrowed == BorrowedText($0) }
        #expect(isSame)
      }
    }
  }

  @Test("Spellings that look alike are told apart by their bytes")
  func spellings() {
    "\u{E9}".utf8CString.withUnsafeBytes { composed in
      let borrowed = BorrowedText(UnsafeRawBufferPointer(rebasing: composed.dropLast()))
      #expect(borrowed.isSame(as: "\u{E9}") && !borrowed.isSame(as: "e\u{301}"))
    }
  }
}
