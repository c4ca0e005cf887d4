import Foundation
import Reconciliation
import Testing

@testable import AppStore

@Suite("Refunds of Advanced Commerce items")
struct SignedRevocationTests {
  private static let date = milliseconds(2026, 7)

  private func revocation(_ json: String) throws -> Statement<Revocation?> {
    .stated(try #require(JSONFields(Array("{\(json)}".utf8))).revocation())
  }

  private func stated(_ json: String) throws -> Revocation? {
    if case .stated(let revocation) = try revocation(json) { revocation } else { nil }
  }

  private func items(_ items: String...) -> String {
    #""advancedCommerceInfo":{"items":[\#(items.joined(separator: ","))]}"#
  }

  private func item(_ price: Int, _ refunds: String = "") -> String {
    #"{"SKU":"a","price":\#(price),"refunds":[\#(refunds)]}"#
  }

  private func refund(_ amount: Int, _ type: String) -> String {
    #"{"refundAmount":\#(amount),"refundDate":\#(Self.date),"refundReason":"OTHER","refundType":"\#(type)"}"#
  }

  @Test("A refund of one item of several is a partial refund")
  func oneOfSeveral() throws {
    let part = Statement.stated(
      Revocation?.some(
        Revocation(date: Instant(milliseconds: Self.date), percentage: 25_000, coversSomeItemsOnly: true)))
    #expect(try revocation(#""price":4000,"# + items(item(1_000, refund(1_000, "FULL")), item(3_000))) == part)
    #expect(try revocation(items(item(1_000, refund(1_000, "CUSTOM")), item(3_000))) == part)
    #expect(try revocation(items(item(2_000), item(2_000, refund(1_000, "PRORATED")))) == part)
    // Even if Apple sets the transaction's own date, without a percentage.
    #expect(
      try revocation(#""revocationDate":\#(Self.date),"# + items(item(1_000, refund(1_000, "FULL")), item(3_000)))
        == part)
  }

  @Test("A revocation date of zero is no revocation")
  func zero() throws {
    #expect(try revocation(items(#"{"SKU":"a","price":1000,"revocationDate":0}"#, item(3_000))) == .stated(nil))
  }

  @Test(
    "An unreadable date of a refund is not taken for none",
    arguments: [
      #""revocationDate":"2026-10-19T16:00:00Z""#, #""revocationDate":true"#, #""revocationDate":1e300"#,
      #""advancedCommerceInfo":{"items":[{"SKU":"a","revocationDate":"soon"}]}"#,
      #""advancedCommerceInfo":{"items":[{"SKU":"a","refunds":[{"refundType":"FULL","refundDate":"soon"}]}]}"#,
      #""revocationDate":1782864000000,"advancedCommerceInfo":{"items":[{"SKU":"a","revocationDate":"soon"}]}"#,
    ])
  func unreadable(json: String) {
    #expect(throws: SignedDataRefusal.self) { try revocation(json) }
  }

  @Test("A refund of one item without an amount is a partial refund of unknown share")
  func unknownShare() throws {
    let json = items(#"{"revocationDate":\#(Self.date)}"#, #"{"SKU":"b"}"#)
    let part = try #require(try stated(json))
    #expect(!part.isFull && part.percentage == nil && part.coversSomeItemsOnly)
    // Impossible amounts make no full refund.
    #expect(try stated(items(item(.max, refund(.max, "CUSTOM")), item(.max)))?.isFull == false)
  }

  @Test("A refund of every item is a full refund")
  func everyItem() throws {
    let all = items(
      item(1_000, refund(1_000, "FULL")), item(3_000, refund(1_000, "CUSTOM") + "," + refund(2_000, "CUSTOM")))
    let whole = try #require(try stated(all))
    #expect(whole.isFull && !whole.coversSomeItemsOnly)
  }

  @Test("Without a refunded item, Apple's revocation of the transaction counts")
  func noItem() throws {
    #expect(try revocation(items(item(1_000), item(3_000))) == .stated(nil))
    #expect(try revocation(items()) == .stated(nil))
    #expect(
      try revocation(#""revocationDate":\#(Self.date),"revocationReason":1,"# + items())
        == .stated(Revocation(date: Instant(milliseconds: Self.date), reason: 1)))
    #expect(
      try revocation(#""revocationDate":\#(Self.date),"revocationType":"REFUND_FULL","# + items(item(1_000)))
        == .stated(Revocation(date: Instant(milliseconds: Self.date), type: "REFUND_FULL")))
  }
}
