import Foundation
import Reconciliation
import Testing

@testable import AppStore

@Suite("Old transaction receipts")
struct OldTransactionReceiptTests {
  private static let purchaseInfo = """
    {
    \t"original-purchase-date-pst" = "2012-04-30 08:05:55 America/Los_Angeles";
    \t"purchase-date-ms" = "1335798355868";
    \t"original-transaction-id" = "1000000046178816";
    \t"transaction-id" = "1000000046178817";
    \t"quantity" = "2";
    \t"bvrs" = "20120427";
    \t"product-id" = "com.example.game.gems";
    \t"item-id" = "521129812";
    \t"bid" = "com.example.game";
    }
    """

  private func receipt(_ text: String) throws(SignedDataRefusal) -> OldTransactionReceipt {
    try OldTransactionReceipt(Array(text.utf8))
  }

  private func base64(_ text: String) -> String { Data(text.utf8).base64EncodedString() }

  private func outer(_ purchaseInfo: String) -> String {
    """
    {
    \t"signature" = "AgBDb29s/+=";
    \t"purchase-info" = "\(purchaseInfo)";
    \t"pod" = "100";
    \t"signing-status" = 0;
    }
    """
  }

  @Test("The transaction, the product and the app are read, and escapes are resolved")
  func readsClaim() throws {
    let claim = try receipt(outer(base64(Self.purchaseInfo)))
    #expect(claim.transactionId == "1000000046178817" && claim.productId == "com.example.game.gems")
    #expect(claim.bundleId == "com.example.game")
    let info = #"{ "transaction-id" = "1"; "product-id" = "a\"b\\c"; }"#
    #expect(try receipt(outer(base64(info))).productId == #"a"b\c"#)
  }

  @Test(
    "Text in another format is unreadable",
    arguments: [
      "", "%%%", "{\"a\":1}", "{ \"a\" = \"b", "{ a = b }", "{ a = b; } }", "{ a = ; }", "{ = b; }", "a = b;",
      "{ \"a\\", "{ }",
    ])
  func refusesOther(text: String) {
    #expect(throws: SignedDataRefusal.payloadUnreadable) { try receipt(text) }
  }

  @Test("A list with more entries than Apple's ever have is unreadable")
  func refusesLongList() {
    let text = { (count: Int) in
      let entries = (0..<count).map { "k\($0)=1;" }.joined()
      return "{ \"purchase-info\" = \"\(base64(Self.purchaseInfo))\"; \(entries) }"
    }
    #expect(throws: Never.self) { try receipt(text(255)) }
    #expect(throws: SignedDataRefusal.payloadUnreadable) { try receipt(text(256)) }
  }

  @Test("A receipt without its IDs, or with a broken inner list, is unreadable")
  func refusesBrokenInner() {
    let whole = base64(Self.purchaseInfo)
    let incomplete = ["transaction-id", "product-id"].map {
      base64(Self.purchaseInfo.replacing("\"\($0)\"", with: "\"x\""))
    }
    for info in incomplete + [String(whole.dropLast(8)), "%%%"] {
      #expect(throws: SignedDataRefusal.payloadUnreadable, "\(info)") { try receipt(outer(info)) }
    }
  }
}
