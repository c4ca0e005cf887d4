/// Excel's rules for names of ranges and tables, limited to ASCII.
enum DefinedName {
  static func isAllowed(_ name: String) -> Bool {
    guard let first = name.utf8.first, isLetter(first) || first == UInt8(ascii: "_") else { return false }
    guard name.utf8.count <= 255, name.utf8.allSatisfy(isPart) else { return false }
    return !isReference(name.uppercased())
  }

  // A name must not read as a cell in either notation: `AB12`, `R1C1`, `R`, `C`.
  private static func isReference(_ name: String) -> Bool {
    name.wholeMatch(of: /[A-Z]{1,3}[0-9]+|R[0-9]*(C[0-9]*)?|C[0-9]*/) != nil
  }

  private static func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) }

  private static func isPart(_ byte: UInt8) -> Bool {
    isLetter(byte) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
      || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".")
  }
}
