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

  private func receipt(
    info: String = purchaseInfo, outer: (String) -> String = { "\"purchase-info\" = \"\($0)\";" }
  ) -> String {
    let inner = Data(info.utf8).base64EncodedString()
    let text = """
      {
      \t"signature" = "AgBDb29s/+=";
      \t\(outer(inner))
      \t"pod" = "100";
      \t"signing-status" = 0;
      }
      """
    return Data(text.utf8).base64EncodedString()
  }

  @Test("The transaction, the product and the app are read")
  func readsClaim() throws {
    let claim = try OldTransactionReceipt.parse(base64: receipt()).get()
    #expect(claim.transactionId == "1000000046178817")
    #expect(claim.productId == "com.example.game.gems")
    #expect(claim.bundleId == "com.example.game")
  }

  @Test("Escapes are resolved")
  func readsEscapes() throws {
    let info = #"{ "transaction-id" = "1"; "product-id" = "a\"b\\c"; }"#
    #expect(try OldTransactionReceipt.parse(base64: receipt(info: info)).get().productId == #"a"b\c"#)
  }

  @Test(
    "Text in another format is unreadable",
    arguments: [
      "", "%%%", "{\"a\":1}", "{ \"a\" = \"b", "{ a = b }", "{ a = b; } }", "{ a = ; }", "{ = b; }", "a = b;",
      "{ \"a\\",
    ])
  func refusesOther(text: String) {
    let encoded = Data(text.utf8).base64EncodedString()
    #expect(OldTransactionReceipt.parse(base64: encoded) == .failure(.payloadUnreadable))
    #expect(OldTransactionReceipt.parse(base64: "%%%") == .failure(.payloadUnreadable))
  }

  @Test("A list with more entries than Apple's ever have is unreadable")
  func refusesLongList() {
    let entries = { (count: Int) in (0..<count).map { "k\($0)=1;" }.joined() }
    let text = { (count: Int) in
      Data("{ \"purchase-info\" = \"\(Data(Self.purchaseInfo.utf8).base64EncodedString())\"; \(entries(count)) }".utf8)
        .base64EncodedString()
    }
    #expect(throws: Never.self) { try OldTransactionReceipt.parse(base64: text(255)).get() }
    #expect(OldTransactionReceipt.parse(base64: text(256)) == .failure(.payloadUnreadable))
  }

  @Test("A receipt without its inner list is unreadable")
  func refusesEmpty() {
    let encoded = Data("{ }".utf8).base64EncodedString()
    #expect(OldTransactionReceipt.parse(base64: encoded) == .failure(.payloadUnreadable))
  }

  @Test("A receipt without its IDs is unreadable", arguments: ["transaction-id", "product-id"])
  func refusesIncomplete(field: String) {
    let info = Self.purchaseInfo.replacing("\"\(field)\"", with: "\"x\"")
    #expect(OldTransactionReceipt.parse(base64: receipt(info: info)) == .failure(.payloadUnreadable))
  }

  @Test("A receipt with a broken inner list is unreadable")
  func refusesBrokenInner() {
    let cut = receipt { "\"purchase-info\" = \"\($0.dropLast(8))\";" }
    #expect(OldTransactionReceipt.parse(base64: cut) == .failure(.payloadUnreadable))
    let garbled = receipt { _ in "\"purchase-info\" = \"%%%\";" }
    #expect(OldTransactionReceipt.parse(base64: garbled) == .failure(.payloadUnreadable))
  }
}
