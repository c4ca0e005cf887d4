import Foundation
import Reconciliation
import Testing

@testable import AppStore

/// Changes bytes of genuine data at random, the same way in every run.
private struct Mutator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  /// splitmix64
  private mutating func next(below bound: Int) -> Int {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return Int((value ^ (value >> 31)) % UInt64(bound))
  }

  mutating func mutated(_ bytes: [UInt8], alphabet: [UInt8]) -> [UInt8] {
    var bytes = bytes
    for _ in 0...next(below: 3) where !bytes.isEmpty {
      let position = next(below: bytes.count)
      let character = alphabet[next(below: alphabet.count)]
      switch next(below: 8) {
      case 0: bytes.remove(at: position)
      case 1: bytes.insert(character, at: position)
      case 2: bytes.removeSubrange(position..<min(bytes.count, position + next(below: 64)))
      case 3: bytes.swapAt(position, next(below: bytes.count))
      case 4: bytes[position] = bytes[position] ^ (1 << UInt8(next(below: 8)))
      case 5: bytes.insert(contentsOf: bytes[position..<min(bytes.count, position + next(below: 64))], at: position)
      default: bytes[position] = character
      }
    }
    return bytes
  }
}

@Suite("Changed at random, nothing is taken for genuine")
struct SignedDataMutationTests {
  @Test("a signed transaction")
  func mutatesJWS() throws {
    let verifier = JWSVerifier(roots: try TestCertificateAuthority.transactions.roots)
    let genuine = Array(try TestJWS().text.utf8)
    let alphabet = Array("ABCXYZabcxyz0189-_.=+/ \n".utf8)
    var mutator = Mutator(seed: 1)
    for _ in 0..<15_000 {
      let bytes = mutator.mutated(genuine, alphabet: alphabet)
      let answer = verifier.verifyTransaction(String(decoding: bytes, as: UTF8.self), channel: .offline)
      if case .success = answer { #expect(bytes == genuine) }
    }
  }

  @Test("its header and its payload, signed anew")
  func mutatesSignedText() throws {
    let verifier = JWSVerifier(roots: try TestCertificateAuthority.transactions.roots)
    let jws = try TestJWS()
    let header = try jws.headerText
    let payload = try TestJWS.json(jws.payload)
    let alphabet = Array("{}[]\",:0129eE+-.\\u \0tfn\u{7F}".utf8)
    var mutator = Mutator(seed: 2)
    for round in 0..<2_000 {
      let text = Array((round.isMultiple(of: 2) ? header : payload).utf8)
      let mutated = String(decoding: mutator.mutated(text, alphabet: alphabet), as: UTF8.self)
      let changed = try TestJWS.signed(
        header: round.isMultiple(of: 2) ? mutated : header, payload: round.isMultiple(of: 2) ? payload : mutated,
        key: jws.key)
      // What Apple's key signed is believed; only a crash would be wrong here.
      _ = verifier.verifyTransaction(changed, channel: .offline)
    }
  }

  @Test("an app receipt", arguments: [TestAppReceipt.Encoding.definite, .indefinite])
  func mutatesReceipt(encoding: TestAppReceipt.Encoding) throws {
    let verifier = AppReceiptVerifier(roots: try TestCertificateAuthority.receipts.roots)
    var built = try TestAppReceipt()
    built.encoding = encoding
    let genuine = try built.bytes
    let expected = try verifier.verify(base64: built.base64).get()
    var mutator = Mutator(seed: 3)
    let alphabet = Array(UInt8.min...UInt8.max)
    for _ in 0..<4_000 {
      let bytes = mutator.mutated(genuine, alphabet: alphabet)
      // Parts of the container are signed by nobody; what is signed must be unchanged.
      if case .success(let receipt) = verifier.verify(base64: Data(bytes).base64EncodedString()) {
        #expect(receipt == expected)
      }
    }
  }

  @Test("an app receipt's content, signed anew")
  func mutatesReceiptContent() throws {
    let genuine = try TestAppReceipt().content
    var mutator = Mutator(seed: 4)
    let alphabet = Array(UInt8.min...UInt8.max)
    for _ in 0..<10_000 {
      // Only a crash would be wrong: with Apple's signature any content is believed.
      _ = Result { () throws(SignedDataRefusal) in
        try AppReceipt(ReceiptContent(mutator.mutated(genuine, alphabet: alphabet)[...]))
      }
    }
  }

  @Test("an old transaction receipt")
  func mutatesOldReceipt() {
    let inner = Array("{ \"transaction-id\" = \"1\"; \"product-id\" = \"a\\\"b\"; quantity = 2; }".utf8)
    var mutator = Mutator(seed: 5)
    let alphabet = Array("{}=;\"\\ \nabc019-".utf8)
    for _ in 0..<10_000 {
      let info = Data(mutator.mutated(inner, alphabet: alphabet)).base64EncodedString()
      let outer = Array("{ \"purchase-info\" = \"\(info)\"; }".utf8)
      _ = OldTransactionReceipt.parse(base64: Data(mutator.mutated(outer, alphabet: alphabet)).base64EncodedString())
    }
  }
}
