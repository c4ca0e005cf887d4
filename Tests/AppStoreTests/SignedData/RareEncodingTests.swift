import CryptoExtras
import Foundation
import Reconciliation
import TestSupport
import Testing

@testable import AppStore

/// Payloads in rare encodings. `TEST_EFFORT` sets their number and adds new RSA keys; `TEST_SEED` sets the seed.
@Suite struct RareEncodingTests {
  private static let environment = ProcessInfo.processInfo.environment
  private static let effort = environment["TEST_EFFORT"].flatMap { Int($0) } ?? 1
  private static let seed = environment["TEST_SEED"].flatMap { UInt64($0) } ?? 1

  enum Kind: CaseIterable { case signedTransaction, appReceipt }

  @Test("Payloads in all encodings that DER allows are genuine", arguments: Kind.allCases)
  func allowed(kind: Kind) throws {
    try forEachPayload(kind, isForbidden: false) { judgement in
      if case .genuine = judgement { true } else { false }
    }
  }

  @Test("Genuine payloads in unsupported encodings are genuine or claims, never refused", arguments: Kind.allCases)
  func forbidden(kind: Kind) throws {
    try forEachPayload(kind, isForbidden: true) { judgement in
      switch judgement {
      case .genuine, .claim: true
      case .refused, .noRoots: false
      }
    }
  }

  // Writes a failing payload to a file, because elliptic curve signatures do not follow from a seed.
  private func forEachPayload(_ kind: Kind, isForbidden: Bool, _ isRight: (OfflineJudgement) -> Bool) throws {
    var keys = try RecordedKeys.rsa.get()
    for number in 0..<(Self.effort > 1 ? 150 * Self.effort : 60) {
      var encoding = RareEncoding(random: SeededGenerator(seed: Self.seed &* 1_000_003 &+ UInt64(number)))
      encoding.isForbidden = isForbidden
      // One new key at a time, in each position of the chain in turn.
      if Self.effort > 1, number % 10 == 9 { keys[number / 10 % 3] = try _RSA.Signing.PrivateKey(keySize: .bits2048) }
      let payload =
        switch kind {
        case .signedTransaction: try encoding.signedTransaction()
        case .appReceipt: try encoding.appReceipt(keys)
        }
      let judge = OfflineJudge(roots: try TrustedRoots(certificates: [payload.root], pinned: false))
      let (judgedKind, judgement) = judge.judge(payload.text)
      if judgedKind != .malformed, isRight(judgement) { continue }
      let file = FileManager.default.temporaryDirectory.appendingPathComponent("rare-encoding-\(UUID()).txt")
      try Data("\(Data(payload.root).base64EncodedString())\n\(payload.text)\n".utf8).write(to: file)
      Issue.record(
        "\(kind) \(number) of seed \(Self.seed) is \(judgement); its root and its payload are in \(file.path)")
    }
  }
}
