import Testing

@testable import Reconciliation

@Suite struct BorrowedTextTests {
  @Test("Texts are equal exactly if all their bytes are, at any length")
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

  @Test("Texts sort like identifiers with the same bytes, a prefix before the longer text")
  func order() {
    var texts: [[UInt8]] = []
    for length in 0...18 {
      let text = [UInt8](repeating: 0x62, count: length)
      texts.append(text)
      for place in 0..<length {
        for byte: UInt8 in [0x61, 0x7A] {
          texts.append(text)
          texts[texts.count - 1][place] = byte
        }
      }
    }
    for left in texts {
      for right in texts {
        let precedes = left.withUnsafeBytes { left in
          right.withUnsafeBytes { BorrowedText(left) < BorrowedText($0) }
        }
        #expect(precedes == left.lexicographicallyPrecedes(right), "\(left), \(right)")
      }
    }
  }

  @Test("The default identifier is empty")
  func empty() {
    #expect(Identifier() == Identifier("") && Identifier().text.isEmpty)
  }

  @Test("Canonically equivalent spellings are different texts")
  func spellings() {
    "\u{E9}".utf8CString.withUnsafeBytes { composed in
      let borrowed = BorrowedText(UnsafeRawBufferPointer(rebasing: composed.dropLast()))
      #expect(borrowed.isSame(as: "\u{E9}") && !borrowed.isSame(as: "e\u{301}"))
    }
  }
}
