import Foundation
import Reconciliation
import Testing

@testable import AppStore

@Suite("Old transaction receipts")
struct OldTransactionReceiptTests {
  private func receipt(_ text: String) throws(SignedDataRefusal) -> OldTransactionReceipt {
    try OldTransactionReceipt(Array(text.utf8))
  }

  @Test("The transaction, the product and the app are read, and escapes are resolved")
  func readsClaim() throws {
    let claim = try receipt(TestOldReceipt.text())
    #expect(claim.transactionId == TestOldReceipt.transactionId && claim.productId == "com.example.game.gems")
    #expect(claim.bundleId == "com.example.game")
    let info = TestOldReceipt.base64(#"{ "transaction-id" = "1"; "product-id" = "a\"b\\c"; }"#)
    #expect(try receipt(TestOldReceipt.text(info)).productId == #"a"b\c"#)
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
      return "{ \"purchase-info\" = \"\(TestOldReceipt.base64(TestOldReceipt.info))\"; \(entries) }"
    }
    #expect(throws: Never.self) { try receipt(text(255)) }
    #expect(throws: SignedDataRefusal.payloadUnreadable) { try receipt(text(256)) }
  }

  @Test("A receipt without its IDs, or with a broken inner list, is unreadable")
  func refusesBrokenInner() {
    let incomplete = ["transaction-id", "product-id"].map {
      TestOldReceipt.base64(TestOldReceipt.info.replacing("\"\($0)\"", with: "\"x\""))
    }
    for info in incomplete + [String(TestOldReceipt.base64(TestOldReceipt.info).dropLast(8)), "%%%"] {
      #expect(throws: SignedDataRefusal.payloadUnreadable, "\(info)") { try receipt(TestOldReceipt.text(info)) }
    }
  }
}
