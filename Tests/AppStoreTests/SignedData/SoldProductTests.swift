import Reconciliation
import Testing

@testable import AppStore

/// The product of bundle parts and Advanced Commerce items, which differs from their `productId`.
@Suite struct SoldProductTests {
  private func fact(_ change: (inout [String: any Sendable]) -> Void) throws -> TransactionFact {
    let json = try TestJWS.json(TestJWS.transaction(change))
    return try TransactionFact(signed: #require(JSONFields(Array(json.utf8))), channel: .serverApi)
  }

  @Test(
    "The parts of a subscription bundle are one purchase of its product, in either spelling", arguments: ["ID", "Id"])
  func bundle(spelling: String) throws {
    let facts = try ["1", "2"].map { part in
      try fact { payload in
        (payload["transactionId"], payload["originalTransactionId"]) = (part + "1", part + "0")
        (payload["webOrderLineItemId"], payload["productId"]) = (part + "9", "pass." + part)
        payload["expiresDate"] = milliseconds(2026, 7)
        // Of one part alone.
        if part == "2" { payload["price"] = 0 }
        payload["bundleProduct" + spelling] = "bundle.monthly"
        payload["bundleTransaction" + spelling] = "801"
        payload["bundleOriginalTransaction" + spelling] = "800"
        payload["bundleSubscriptionGroup" + spelling] = "group"
      }
    }
    let records = try facts.map { try #require(TransactionRecord.folding([$0])) }
    #expect(records.map(\.transactionId) == ["11", "21"] && Set(records.map(\.purchaseKey)).count == 1)
    #expect(records.allSatisfy { $0.productId == "bundle.monthly" && $0.originalTransactionId == "800" })
    #expect(records.allSatisfy { $0.details.subscriptionGroupIdentifier == "group" && $0.priceMilliunits == nil })
  }

  @Test("The terms of a commitment are read whatever blanks their JSON has", arguments: ["", " ", "\n  "])
  func commitment(blank: String) throws {
    let terms = [#"{"billingPeriodNumber":"#, #"1,"commitmentPrice":"#, #"59880,"totalBillingPeriods":"#, "12}"]
    let payload = String(try TestJWS.json(TestJWS.transaction { _ in }).dropLast())
    let json = "\(payload),\"commitmentInfo\":\(terms.joined(separator: blank))}"
    let fact = try TransactionFact(signed: #require(JSONFields(Array(json.utf8))), channel: .serverApi)
    #expect(fact.details.commitmentInfo == terms.joined())
  }

  @Test("A bundle without its transaction ID is read as an ordinary purchase")
  func incompleteBundle() throws {
    let fact = try fact { $0["bundleProductID"] = "bundle.monthly" }
    #expect(fact.productId == "gems.100" && fact.priceMilliunits == 1_990)
  }

  @Test(
    "The product of an Advanced Commerce purchase is its item's SKU",
    arguments: [(["a"], "a"), (["a", "b"], "a,b"), ([], "gems.100"), ([""], "gems.100")] as [([String], String)])
  func advancedCommerce(skus: [String], product: String) throws {
    let items: [[String: any Sendable]] = skus.map { ["SKU": $0, "price": 1_000] }
    #expect(try fact { $0["advancedCommerceInfo"] = ["items": items] }.productId == product)
  }
}
