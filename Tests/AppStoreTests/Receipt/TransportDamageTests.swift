import Foundation
import Reconciliation
import Testing

@testable import AppStore

/// The transport damage of a payload. The simulator applies the same damage.
enum TransportDamage: String, CaseIterable {
  case none, spaceForPlus, otherAlphabet, lostPadding, addedPadding, linesOf64, linesOf76, linesOf64AndSpaces, quotes
  case singleQuotes, escapedQuotes, escapedSlashes, escapedLineBreaks, jsonReceiptData, jsonPayload, jsonOtherName
  case jsonNested, jsonList, jsonInQuotes, percent, base64, base64OfJSON, bytea, byteaOfBytes, byteOrderMark, zeroByte
  case blanksAround

  func applied(to payload: String) -> String? {
    let isJWS = payload.contains(".")
    switch self {
    case .none: return payload
    case .spaceForPlus: return isJWS ? nil : payload.replacing("+", with: " ")
    case .otherAlphabet:
      return isJWS
        ? payload.replacing("-", with: "+").replacing("_", with: "/")
        : payload.replacing("+", with: "-").replacing("/", with: "_")
    case .lostPadding: return payload.replacing("=", with: "")
    case .addedPadding:
      return isJWS
        ? payload.split(separator: ".").map { $0 + String(repeating: "=", count: (4 - $0.utf8.count % 4) % 4) }
          .joined(separator: ".") : payload + "=="
    case .linesOf64: return Self.lines(payload, 64, "\r\n")
    case .linesOf76: return Self.lines(payload, 76, "\n")
    case .linesOf64AndSpaces: return isJWS ? nil : Self.lines(payload.replacing("+", with: " "), 64, "\n")
    case .quotes: return "\"\(payload)\""
    case .singleQuotes: return "'\(payload)'\n"
    case .escapedQuotes: return #"\"\#(payload)\""#
    case .escapedSlashes: return payload.replacing("/", with: "\\/") + "\\n"
    case .escapedLineBreaks: return Self.lines(payload, 64, "\\r\\n")
    case .jsonReceiptData: return #"{"password":"secret","receipt-data":"\#(payload)","exclude-old-transactions":true}"#
    case .jsonPayload: return #" {"payload" : "\#(payload)"} "#
    case .jsonOtherName: return #"{"id":17,"name":"Zoë","token_of_ours":"\#(payload)","note":null}"#
    case .jsonNested: return #"{"data":{"store":"apple","proof":{"blob":"\#(payload)"}}}"#
    case .jsonList: return #"["\#(payload)"]"#
    case .jsonInQuotes: return #""{\"signedPayload\":\"\#(payload)\"}""#
    case .percent: return payload.addingPercentEncoding(withAllowedCharacters: .alphanumerics)
    case .base64: return Data(payload.utf8).base64EncodedString()
    case .base64OfJSON: return Data(#"{"signedTransaction":"\#(payload)"}"#.utf8).base64EncodedString()
    case .bytea: return "\\x" + Self.hexadecimal(Array(payload.utf8))
    case .byteaOfBytes: return Data(base64Encoded: payload).map { "\\x" + Self.hexadecimal(Array($0)).uppercased() }
    case .byteOrderMark: return "\u{FEFF}" + payload
    case .zeroByte: return payload + "\u{0}"
    case .blanksAround: return "\t\n  \(payload) \r\n"
    }
  }

  private static func lines(_ text: String, _ length: Int, _ end: String) -> String {
    stride(from: 0, to: text.count, by: length).map { text.dropFirst($0).prefix(length) }.joined(separator: end)
  }

  private static func hexadecimal(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}

@Suite("Transport damage")
struct TransportDamageTests {
  private static func judge() throws -> OfflineJudge { OfflineJudge(roots: try TestCertificateAuthority.bothRoots) }

  /// Receipts whose base64 has plus signs, slashes and padding.
  private static let payloads: [String] = {
    do {
      var receipt = try TestAppReceipt()
      receipt.attributes.append(TestASN1.attribute(77, [UInt8](repeating: 0xFB, count: 40)))
      return [try TestJWS().text, try receipt.base64, TestOldReceipt.base64]
    } catch { preconditionFailure("\(error)") }
  }()

  @Test("The kind is recognised, and the signature is valid", arguments: TransportDamage.allCases)
  func undone(damage: TransportDamage) throws {
    for payload in Self.payloads {
      guard let damaged = damage.applied(to: payload) else { continue }
      let (kind, judgement) = try Self.judge().judge(damaged)
      #expect(kind == ReceivedPayload(payload).kind)
      // Apple gets a receipt in its original form.
      if kind == .app { #expect(ReceivedPayload(damaged).base64 == payload) }
      switch judgement {
      case .genuine(let proof): #expect(proof.facts.count == 1)
      case .claim(let claim): #expect(claim.transactionIds == [TestOldReceipt.transactionId])
      case .refused, .noRoots: Issue.record("\(kind) with \(damage.rawValue): \(judgement)")
      }
    }
  }

  @Test("A lost plus sign at the end is restored")
  func lastPlus() throws {
    var receipt = try TestAppReceipt()
    let attributes = receipt.attributes
    var payload = ""
    // One in 64 signatures ends with a plus sign if the length is a multiple of three, as a third of these lengths are.
    for salt in 0..<4_000 where !payload.hasSuffix("+") {
      let filler = [UInt8](repeating: UInt8(ascii: "-"), count: salt % 3)
      receipt.attributes = attributes + [TestASN1.attribute(77, Array("\(salt + 10_000)".utf8) + filler)]
      payload = try receipt.base64
    }
    try #require(payload.hasSuffix("+"))
    for after in ["", " ", "\n", "\"", " \r\n"] {
      let damaged = (after == "\"" ? after : "") + payload.replacing("+", with: " ") + after
      let (kind, judgement) = try Self.judge().judge(damaged)
      #expect(kind == .app && judgement.proof != nil, "\(kind): \(judgement)")
    }
    #expect(ReceivedPayload(String(payload.dropLast())).unreadable == .truncated)
  }

  @Test("Two kinds of damage at once are undone", arguments: TransportDamage.allCases)
  func twice(damage: TransportDamage) throws {
    for payload in Self.payloads {
      for second in [TransportDamage.quotes, .bytea, .linesOf76, .base64, .jsonList, .blanksAround] {
        guard let damaged = damage.applied(to: payload), let twice = second.applied(to: damaged) else { continue }
        // Transport breaks no lines within JSON, and a quotation mark would end its string.
        let isJSON = damaged.contains("{") || damaged.contains("[")
        let breaksJSON = damaged.utf8.contains { $0 < 0x20 || $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }
        guard !(isJSON && second == .linesOf76), !(breaksJSON && second == .jsonList) else { continue }
        let (_, judgement) = try Self.judge().judge(twice)
        #expect(
          judgement.proof != nil || judgement.unproven != nil,
          "\(damage.rawValue), then \(second.rawValue): \(judgement) \(payload.prefix(20))")
      }
    }
  }

  @Test("A truncated payload is malformed, never forged")
  func truncated() throws {
    let judge = try Self.judge()
    for payload in Self.payloads {
      for length in stride(from: 1, to: payload.utf8.count - 2, by: 97) {
        let (kind, judgement) = judge.judge(String(payload.prefix(length)))
        #expect(kind == .malformed && judgement.refusal == .malformed, "\(length) of \(payload.utf8.count)")
      }
    }
  }

  @Test("A payload of ten megabytes is read")
  func tenMegabytes() throws {
    var receipt = try TestAppReceipt()
    // Few purchases with a long unknown attribute, because building many takes longer than reading them.
    let (count, filler) = (2_400, TestASN1.attribute(9_999, [UInt8](repeating: 0xFB, count: 2_500)))
    receipt.purchases = (0..<count).map { TestAppReceipt.purchase(id: "\(1_000_000_000_000_000 + $0)") + [filler] }
    let payload = try receipt.base64
    #expect(payload.utf8.count > 8 << 20 && payload.utf8.count <= ReceivedPayload.maximumBytes)
    let proof = try #require(try Self.judge().judge(payload).judgement.proof)
    #expect(proof.facts.count == count)
  }
}
