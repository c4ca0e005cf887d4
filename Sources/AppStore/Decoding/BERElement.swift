/// One element of ASN.1's basic encoding rules (X.690), read on demand. App receipts are DER, but Xcode's are BER with
/// indefinite lengths, and must be readable to be told from forgeries.
struct BERElement: Sendable {
  /// The identifier octet with its constructed bit. Tags above 30 do not occur in receipts and are rejected.
  let identifier: UInt8
  let encoded: ArraySlice<UInt8>
  let content: ArraySlice<UInt8>

  static let integer: UInt8 = 0x02
  static let bitString: UInt8 = 0x03
  static let octetString: UInt8 = 0x04
  static let constructedOctetString: UInt8 = 0x24
  static let objectIdentifier: UInt8 = 0x06
  static let utf8String: UInt8 = 0x0C
  static let ia5String: UInt8 = 0x16
  static let sequence: UInt8 = 0x30
  static let set: UInt8 = 0x31

  /// The identifier of a constructed context-specific element, `[number]` in ASN.1.
  static func context(_ number: UInt8) -> UInt8 { 0xA0 | number }

  var children: BERReader { BERReader(content) }

  /// The bytes of an octet string, joined if it is constructed (X.690 section 8.7).
  func octets(depth: Int = DecodingLimits.nesting) -> ArraySlice<UInt8>? {
    if identifier == Self.octetString { return content }
    guard identifier == Self.constructedOctetString, depth > 0 else { return nil }
    var joined: ArraySlice<UInt8> = []
    var pieces = children
    while let piece = pieces.next() {
      guard let octets = piece.octets(depth: depth - 1) else { return nil }
      joined.append(contentsOf: octets)
    }
    return pieces.isAtEnd ? joined : nil
  }

  var integerValue: Int64? {
    guard identifier == Self.integer, let first = content.first, content.count <= 8 else { return nil }
    return content.reduce(Int64(Int8(bitPattern: first)) >> 8) { $0 << 8 | Int64($1) }
  }
}

extension BERElement {
  /// Parses the only element of `bytes`; nil if there is none, if it is malformed, or if more follows.
  init?(_ bytes: ArraySlice<UInt8>) {
    var reader = BERReader(bytes)
    guard let element = reader.next(), reader.isAtEnd else { return nil }
    self = element
  }
}

struct BERReader: Sendable {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func next() -> BERElement? { next(depth: DecodingLimits.nesting) }

  /// The next element if it has one of these identifiers; otherwise nil, and nothing is read.
  mutating func next(_ identifiers: UInt8...) -> BERElement? {
    guard let first = rest.first, identifiers.contains(first) else { return nil }
    return next()
  }

  private mutating func next(depth: Int) -> BERElement? {
    let start = rest
    guard depth > 0, let identifier = rest.popFirst(), identifier & 0x1F != 0x1F, let length = rest.popFirst(),
      let contentLength = definiteLength(length) ?? (length == 0x80 && identifier & 0x20 != 0 ? -1 : nil)
    else { return fail(start) }
    if contentLength >= 0 {
      guard contentLength <= rest.count else { return fail(start) }
      let content = rest.prefix(contentLength)
      rest.removeFirst(contentLength)
      return BERElement(identifier: identifier, encoded: start[..<rest.startIndex], content: content)
    }
    // X.690 section 8.1.3.6: two zero bytes in place of an element end the content.
    let contentStart = rest.startIndex
    while !rest.starts(with: [0, 0]) {
      guard next(depth: depth - 1) != nil else { return fail(start) }
    }
    let content = start[contentStart..<rest.startIndex]
    rest.removeFirst(2)
    return BERElement(identifier: identifier, encoded: start[..<rest.startIndex], content: content)
  }

  /// X.690 sections 8.1.3.3 to 8.1.3.5.
  private mutating func definiteLength(_ first: UInt8) -> Int? {
    guard first & 0x80 != 0 else { return Int(first) }
    let count = Int(first & 0x7F)
    guard (1...4).contains(count), count <= rest.count else { return nil }
    let length = rest.prefix(count).reduce(0) { $0 << 8 | Int($1) }
    rest.removeFirst(count)
    return length
  }

  private mutating func fail(_ start: ArraySlice<UInt8>) -> BERElement? {
    rest = start
    return nil
  }
}
