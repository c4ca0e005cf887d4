import Foundation
import Testing
import X509

@testable import AppStore

/// Writes the fuzzer's corpus, signed by new test authorities: `FUZZ_CORPUS=Tests/Fuzz/Corpus swift test --filter
/// FuzzCorpusTests`. The letters are those of `FuzzDecoder`.
@Suite struct FuzzCorpusTests {
  private static let directory = ProcessInfo.processInfo.environment["FUZZ_CORPUS"]

  @Test(.enabled(if: directory != nil))
  func theCorpusHasInputsOfEachKind() throws {
    let directory = URL(fileURLWithPath: try #require(Self.directory))
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    for (name, letter, contents) in try signed() + answers() + forms() {
      for (number, content) in contents.enumerated() {
        try Data(Array(letter.utf8) + content).write(to: directory.appendingPathComponent("\(name)-\(number + 1)"))
      }
      #expect(!contents.isEmpty, "\(name)")
    }
  }

  private typealias Entry = (name: String, letter: String, contents: [[UInt8]])

  private let payloads: [[String: any Sendable]] = [
    TestJWS.transaction,
    TestJWS.transaction {
      $0["revocationDate"] = milliseconds(2026, 7)
      $0["revocationType"] = "REFUND_PRORATED"
      $0["revocationPercentage"] = 33_333
      $0["revocationReason"] = 1
      $0["signedDate"] = milliseconds(2026, 8)
    },
    TestJWS.transaction {
      $0["environment"] = "Sandbox"
      $0["type"] = "Auto-Renewable Subscription"
      $0["transactionReason"] = "RENEWAL"
      $0["expiresDate"] = Double(milliseconds(2026, 7)) + 0.5
      $0["offerType"] = 4
      $0["offerDiscountType"] = "FREE_TRIAL"
      $0["isUpgraded"] = true
    },
  ]

  private let notification: [String: any Sendable] = [
    "notificationType": "DID_RENEW", "subtype": "BILLING_RECOVERY", "version": "2.0",
    "notificationUUID": "002e14d5-51f5-4503-b5a8-c3a1af68eb20", "signedDate": milliseconds(2026, 6),
    "data": ["bundleId": "com.example.game", "environment": "Production", "appAppleId": 1_234_567_890]
      as [String: any Sendable],
  ]

  private func notifications() throws -> [String] {
    [try ServerAPIScript.notification("u1"), try TestJWS(payload: notification).text]
  }

  private func signed() throws -> [Entry] {
    let transactions = try payloads.map { try TestJWS(payload: $0).text }
    let renewal = try TestJWS(payload: TestJWS.renewalInfo).text
    let parts = transactions[0].utf8.split(separator: UInt8(ascii: ".")).compactMap {
      Base64Text.decodeURLSafe(Array($0)[...])
    }
    var receipts = [try TestAppReceipt(), try TestAppReceipt(), try TestAppReceipt()]
    receipts[1].encoding = .indefinite
    receipts[2].digest = .sha1WithRSAEncryption
    receipts[2].attributes = TestAppReceipt.attributes(
      environment: "ProductionSandbox", created: "2020-06-01T00:00:00Z")
    receipts[2].purchases.append(TestAppReceipt.refundedPeriod)
    return [
      ("signed-transaction", "t", bytes(transactions)), ("signed-renewal", "r", bytes([renewal])),
      ("signed-notification", "n", bytes(try notifications())),
      ("signed-parts", "p", [Array(parts.joined(separator: [0x0A]))]),
      ("transaction-payload", "T", bytes(try payloads.map(TestJWS.json))),
      ("renewal-payload", "R", bytes([try TestJWS.json(TestJWS.renewalInfo)])),
      ("notification-payload", "N", bytes([try TestJWS.json(notification)])),
      ("app-receipt", "a", try receipts.map { try $0.bytes }), ("app-receipt-content", "A", receipts.map(\.content)),
      (
        "root", "c",
        [try TestCertificateAuthority.transactions.root.der, try TestCertificateAuthority.receipts.root.der]
      ),
      (
        "kind", "k", bytes([transactions[0], try receipts[0].base64, TestOldReceipt.base64])
      ),
    ]
  }

  private func answers() throws -> [Entry] {
    let transaction = try TestJWS().text
    let subscription =
      #"{"status":1,"originalTransactionId":"2000000123456780","signedTransactionInfo":"\#(transaction)","#
      + #""signedRenewalInfo":"\#(try TestJWS(payload: TestJWS.renewalInfo).text)"}"#
    return [
      ("transaction-answer", "i", bytes([#"{"signedTransactionInfo":"\#(transaction)"}"#])),
      (
        "history-answer", "h", bytes([try ServerAPIScript.history(["2000000123456789"], revision: "r1", hasMore: true)])
      ),
      (
        "subscription-answer", "s",
        bytes([
          #"{"environment":"Production","bundleId":"com.example.game","data":[{"subscriptionGroupIdentifier":"g","#
            + #""lastTransactions":[\#(subscription)]}]}"#
        ])
      ),
      (
        "notification-answer", "m",
        bytes([ServerAPIScript.notifications(try notifications(), token: "t1", hasMore: true)])
      ),
      (
        "error-answer", "e",
        bytes([
          #"{"errorCode":4040010,"errorMessage":"Transaction id not found."}"#, #"{"errorCode":"4290000"}"#,
          "Unauthenticated\n",
        ])
      ),
      ("verify-receipt-answer", "v", bytes(Self.verifyReceiptAnswers)),
    ]
  }

  private func forms() -> [Entry] {
    [
      ("old-receipt", "o", bytes([TestOldReceipt.text()])), ("old-purchase-info", "O", bytes([TestOldReceipt.info])),
      (
        "retry-after", "y",
        bytes(["1795212000000", "1795212000", "120", "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT"])
      ),
      (
        "date", "d",
        bytes(["2026-06-01T00:00:00Z", "2026-05-31T23:59:60.123456789+02:00", "0000-01-01T00:00:00-23:59"])
      ),
      ("base64", "b", bytes(["TmlnaHQgYXVkaXQ=", "TmlnaHQgYXVkaXQ", "_-8", "Tmln\r\naHQ"])),
      (
        "json", "j",
        bytes([
          #"{"transactionId":"a\u0041\uD83D\uDE00","signedDate":1.5e12,"price":-0,"environment":null,"x5c":["a",1,null],"#
            + #""data":{"environment":"Production"},"isUpgraded":true}"#, #" { } "#,
        ])
      ),
    ]
  }

  private func bytes(_ texts: [String]) -> [[UInt8]] { texts.map { Array($0.utf8) } }

  private static let verifyReceiptAnswers = [
    VerifiedReceiptTests.unified,
    VerifiedReceiptTests.oldSubscription(status: 21_006, latestKey: "latest_expired_receipt_info"),
    #"{"status":21104,"environment":"Production","is_retryable":true,"exception":"com.apple.jingle"}"#,
  ]
}
