import Foundation
import Reconciliation
import Testing

@testable import AppStore

struct ReceiptKindTests {
  private static let oldReceipt = TestOldReceipt.text()
  private static let signedData: [UInt8] = [
    0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02, 0xA0, 0x03, 0x02, 0x01, 0x01,
  ]
  private static let jws = jws(header: #"{"alg":"ES256","x5c":["MIIB"]}"#)

  @Test(
    arguments: [
      [0x30, 0x10] + signedData, [0x30, 0x81, 0x10] + signedData, [0x30, 0x82, 0x00, 0x10] + signedData,
      [0x30, 0x84, 0x00, 0x00, 0x00, 0x10] + signedData, [0x30, 0x80] + signedData + [0x00, 0x00],
      [0x30, 0x10] + signedData + [0x00],
    ] as [[UInt8]])
  func signedDataIsAnAppReceipt(bytes: [UInt8]) {
    let payload = Data(bytes).base64EncodedString()
    #expect(kind(payload) == .app)
    #expect(kind(" \n\t\(payload)\r\n") == .app)
    #expect(kind(payload.prefix(4) + "\r\n" + payload.dropFirst(4)) == .app)
    #expect(kind(payload.filter { $0 != "=" }) == .app)
  }

  @Test(
    arguments: [
      // Truncated, another content type, no content, a set instead of a sequence, invalid lengths.
      [0x30, 0x11] + signedData, [0x30, 0x82, 0x01, 0x10] + signedData,
      [0x30, 0x10] + signedData.map { $0 == 0x02 ? 0x01 : $0 }, [0x30, 0x0B] + signedData.prefix(11),
      [0x30, 0x10] + signedData.map { $0 == 0xA0 ? 0x30 : $0 }, [0x31, 0x10] + signedData,
      [0x30, 0x85, 0x00, 0x00, 0x00, 0x00, 0x10] + signedData, [0x30, 0xFF] + signedData,
      [0x30], [0x30, 0x10], [0x30, 0x82], [0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF], [],
    ] as [[UInt8]])
  func bytesThatAreNoReceipt(bytes: [UInt8]) {
    #expect(kind(Data(bytes).base64EncodedString()) == .malformed)
  }

  @Test(arguments: [
    oldReceipt, "\n" + oldReceipt + "\n", #"{"purchase-info"="QQ==";}"#, #"{ "purchase-info"  =  "" }"#,
  ])
  func propertyListsAreTransactionReceipts(text: String) {
    #expect(kind(Data(text.utf8).base64EncodedString()) == .transaction)
    let wrapped = Data(text.utf8).base64EncodedString(options: [.lineLength64Characters])
    #expect(kind(wrapped) == .transaction)
  }

  @Test(arguments: [
    oldReceipt.replacingOccurrences(of: "purchase-info", with: "purchase-data"), String(oldReceipt.dropLast()),
    #"{"purchase-info":"QQ=="}"#, #"{"purchase-info" = 1}"#, "{}", "{", "\"purchase-info\" = \"QQ==\"",
  ])
  func textsThatAreNoReceipt(text: String) {
    #expect(kind(Data(text.utf8).base64EncodedString()) == .malformed)
    #expect(kind(text) == .malformed)
  }

  @Test(arguments: [
    jws, " \r\n\(jws)\n", jws.dropLast() + "A", jws.split(separator: ".").prefix(2).joined(separator: ".") + ".",
    jws(header: #"{"alg":"none"}"#), jws(header: #"{"kid":"Apple_Xcode_Key","alg":"ES256"}"#),
    jws(header: #"{"alg":"HS256"}"#, signature: "short"),
  ])
  func threePartsWithAnAlgorithmAreSigned(payload: String) {
    #expect(kind(payload) == .signed)
  }

  @Test(arguments: [
    jws(header: #"{"typ":"JWT"}"#), jws(header: #"["alg"]"#), jws(header: "alg"), jws(header: #"{"alg":""}"#),
    jws + ".AAAA", "..", "a.b", "eyJhbGciOiJFUzI1NiJ9..AAAA", "eyJhbGciOiJFUzI1NiJ9.e30.AA*A",
    "", " ", "x", "====", "null", "<receipt/>", "MIIT*", "\u{0}", "受領書", "%2BMIIT", "\\x", "{}", "[]",
  ])
  func otherTextIsMalformed(payload: String) {
    #expect(kind(payload) == .malformed)
  }

  /// Apple's JSON and that of common apps: the receipt is found beside other fields.
  @Test(arguments: [
    #"[{"transactionReceipt":"JWS"}]"#, #"{"signedTransactions":["JWS"],"revision":"r","hasMore":false}"#,
    #"{"transactions":[{"jwsRepresentation":"JWS","price":990}]}"#, #"{"data":{"signedTransactionInfo":"JWS"}}"#,
    #"{"notificationType":"SUBSCRIBED","data":{"bundleId":"b","signedTransactionInfo":"JWS","signedRenewalInfo":"OTHER"}}"#,
    #"[{"a":{"b":["JWS"]}}]"#, #"{"payload":"JWS","data":{"signedTransactionInfo":"OTHER"}}"#,
  ])
  func aReceiptIsFoundInJSON(shape: String) {
    guard case .signed(let text) = ReceivedPayload(Self.filled(shape)).content else {
      Issue.record("nothing is read in \(shape)")
      return
    }
    #expect(text == Self.jws)
  }

  @Test(arguments: [#"["JWS","OTHER"]"#, #"{"signedTransactions":["JWS","OTHER"]}"#, #"{"a":"JWS","b":["OTHER"]}"#])
  func severalReceiptsInJSONAreNone(shape: String) {
    #expect(kind(Self.filled(shape)) == .malformed)
  }

  private static let cutOff: [String] = {
    let receipt = Data([0x30, 0x82, 0x01, 0x10] + signedData).base64EncodedString()
    let old = Data(oldReceipt.utf8).base64EncodedString()
    let header = jws.prefix { $0 != "." }
    let lengths = [jws.utf8.count - 3, jws.utf8.count / 2, header.utf8.count]
    return lengths.map { String(jws.prefix($0)) } + [receipt, String(receipt.dropLast(2)), String(old.dropLast(40))]
  }()

  @Test(arguments: cutOff)
  func truncatedPayloadsAreReportedAsTruncated(payload: String) {
    #expect(ReceivedPayload(payload).unreadable == .truncated)
    #expect(ReceivedPayload(payload).kind == .malformed)
  }

  @Test func emptyPayloadsAreReportedAsEmpty() {
    for payload in ["", " \r\n\"", "''"] { #expect(ReceivedPayload(payload).unreadable == .empty) }
    for payload in ["受領書", "hello world", "{}"] { #expect(ReceivedPayload(payload).unreadable == .unknown) }
    #expect(ReceivedPayload(Self.jws).unreadable == nil)
  }

  @Test func longPayloadsAreNotInspected() {
    let padding = String(repeating: " ", count: ReceivedPayload.maximumBytes - Self.jws.utf8.count)
    #expect(kind(padding + Self.jws) == .signed)
    #expect(ReceivedPayload(" " + padding + Self.jws).unreadable == .tooLong)
    let dots = String(repeating: ".", count: 1_000_000)
    #expect(kind(dots) == .malformed)
  }

  private func kind(_ payload: String) -> ReceiptKind { ReceivedPayload(payload).kind }

  private static func filled(_ shape: String) -> String {
    let other = jws(header: #"{"alg":"ES256"}"#, signature: String(repeating: "o", count: 64))
    return shape.replacing("JWS", with: jws).replacing("OTHER", with: other)
  }

  private static func jws(header: String, signature: String = String(repeating: "s", count: 64)) -> String {
    [header, #"{"transactionId":"1"}"#, signature].map { TestJWS.base64URL($0.utf8) }.joined(separator: ".")
  }
}
