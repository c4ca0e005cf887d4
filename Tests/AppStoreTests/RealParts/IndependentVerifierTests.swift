import Foundation
import Reconciliation
import SwiftASN1
import Testing
import X509

@testable import AppStore

/// Apple's server library and a public verifier verify the same receipts. A table explains the differences.
@Suite(.enabled(if: RealParts.areInstalled), .timeLimit(.minutes(10)))
struct IndependentVerifierTests {
  private struct Entry {
    var name: String
    var kind: String
    var payload: String
  }

  @Test func bothVerifiersAgree() throws {
    let corpus = try Self.corpus()
    #expect(Set(corpus.map(\.name)).count == corpus.count)
    let roots = try [TestCertificateAuthority.transactions.root, TestCertificateAuthority.receipts.root].map {
      try $0.certificate.serializeAsPEM().pemString
    }
    let verdicts = try RealParts.run(
      "second_judge.py",
      ["roots": roots, "entries": corpus.map { ["name": $0.name, "kind": $0.kind, "payload": $0.payload] }])
    let trusted = try TestCertificateAuthority.bothRoots
    var differences: Set<String> = []
    for entry in corpus {
      let ours = Self.verdict(entry, roots: trusted)
      let judges = try #require(verdicts[entry.name] as? [String: Any])
      for (judge, value) in judges {
        guard let verdict = value as? [String: Any] else { continue }
        let accepted = verdict["accepted"] as? Bool
        if accepted != (ours != nil) {
          let word = accepted == true ? "accepts" : "refuses (\(verdict["reason"] ?? ""))"
          differences.insert("\(judge) \(word): \(entry.name)")
        } else if let ours, try RealParts.text(ours) != RealParts.text(verdict["content"]) {
          differences.insert("\(judge) reads otherwise: \(entry.name)")
        }
      }
    }
    for difference in differences.subtracting(Self.explained.keys).sorted() { Issue.record("\(difference)") }
    // A difference that no longer occurs must be removed from the table.
    #expect(Set(Self.explained.keys).subtracting(differences).isEmpty)
  }

  private static func verdict(_ entry: Entry, roots: TrustedRoots) -> [[String]]? {
    if entry.kind == "signed" {
      let result = JWSVerifier(roots: roots).verifyTransaction(entry.payload, channel: .offline)
      return (try? result.get()).map { [[$0.transactionId, $0.productId]] }
    }
    guard let bytes = Base64Text.decodeReceipt(entry.payload.utf8) else { return nil }
    let result = AppReceiptVerifier(roots: roots).verify(bytes)
    return (try? result.get()).map { $0.transactions.map { [$0.transactionId, $0.productId] } }
  }

  private static func corpus() throws -> [Entry] {
    var entries: [Entry] = []
    let payloads: [(String, [String: any Sendable])] = [
      ("a transaction", TestJWS.transaction),
      ("a transaction of the sandbox", TestJWS.transaction { $0["environment"] = "Sandbox" }),
      ("a transaction with words of the future", TestJWS.transaction { $0["type"] = "Rental" }),
      ("a refunded transaction", TestJWS.transaction { $0["revocationDate"] = milliseconds(2026, 6) }),
    ]
    for (name, payload) in payloads {
      entries.append(Entry(name: name, kind: "signed", payload: try TestJWS(payload: payload).text))
    }
    for broken in RefusalCase.jws {
      entries.append(Entry(name: broken.testDescription, kind: "signed", payload: try broken.payload()))
    }
    for created in ["2015-06-01T00:00:00Z", "2026-06-01T00:00:00Z"] {
      for count in [0, 1, 3] {
        var receipt = try TestAppReceipt()
        receipt.attributes = TestAppReceipt.attributes(created: created)
        receipt.purchases = (0..<count).map { TestAppReceipt.purchase(id: "\($0 + 1)", type: $0) }
        entries.append(
          Entry(name: "an app receipt of \(created) with \(count)", kind: "app", payload: try receipt.base64))
      }
    }
    for broken in RefusalCase.receipts {
      entries.append(Entry(name: "receipt: \(broken.testDescription)", kind: "app", payload: try broken.payload()))
    }
    return entries
  }

  /// The explanation of each difference, by the verdicts. Ours accepts nothing that another one rejects.
  private static let explained: [String: String] = {
    let callers = "The public verifier checks bytes; its caller checks the required fields."
    let optional =
      "Every field is optional in Apple's library; a fact needs its IDs and its date, in a form that tables accept."
    let bits = "They do not check key usage. Apple's leaves may sign, and ours must."
    let strays = "OpenSSL ignores bytes behind a certificate, which are not part of it."
    let roots = "They trust each root for everything; ours trusts each for what Apple signs under it."
    let digests = "It checks the certificates' dates only; Apple signed no certificate with SHA-1 after 2025-01-24."
    return [
      "public accepts: receipt: SHA-1 after Apple's last such certificate": digests,
      "public accepts: receipt: leaf signed with SHA-1 after Apple's last such certificate": digests,
      "public accepts: receipt: Xcode's name under Apple's signature": callers,
      "public accepts: receipt: no bundle": callers, "public accepts: receipt: no environment": callers,
      "public accepts: receipt: unknown environment": callers,
      "public accepts: receipt: no creation date": "It judges undated receipts at the present time.",
      "public accepts: receipt: purchase that is no set": "It skips unreadable parts; ours refuses the receipt.",
      "public accepts: receipt: two signers":
        "One of them is enough for it; Apple's receipts have one, so Apple is asked about others.",
      "apple accepts: leaf larger than any of Apple's": strays, "apple accepts: leaf with bytes behind it": strays,
      "apple accepts: leaf that may not sign": bits, "public accepts: leaf that may not sign": bits,
      "public accepts: receipt: leaf that may not sign": bits,
      "apple accepts: P-256 leaf under the receipts' intermediate": roots,
      "public accepts: P-256 leaf under the receipts' intermediate": roots,
      "public accepts: receipt: leaf of the transactions' authority, which the verifier trusts for transactions": roots,
      "apple accepts: no productId": optional, "apple accepts: no transactionId": optional,
      "apple accepts: no signedDate": "It judges undated data at the present time, which says nothing about old data.",
      "apple accepts: transactionId with a NUL": optional,
      "apple accepts: padded signature":
        "Python ignores superfluous padding; ours accepts one spelling of a signature.",
      "public accepts: critical extension in the header":
        "RFC 7515 (4.1.11) requires the refusal of unknown critical extensions.",
      "public accepts: Xcode under Apple's chain": callers, "public accepts: no environment": callers,
      "public accepts: unknown environment": callers, "public accepts: no productId": callers,
      "public accepts: no transactionId": callers, "public accepts: transactionId with a NUL": callers,
      "public accepts: no signedDate": callers, "public accepts: signedDate that is no number": callers,
      "public accepts: purchaseDate that is no number": callers,
      "public accepts: expiresDate that is no number": callers,
      "public accepts: revocationDate that is no number": callers,
    ]
  }()
}
