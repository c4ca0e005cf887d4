import Reconciliation
import Testing

@testable import SampleWorlds

/// Subscriptions: renewals, upgrades, grace periods, family sharing, lapses and restores. Each case is beside a similar
/// one without a finding.
@Suite struct SubscriptionTests {
  @Test(arguments: renewals + access + sharing)
  func findings(row: Case<String>) {
    #expect(row.findings == row.expected)
  }

  static let renewals: [Case<String>] = [
    Case("each period booked by the order that states it", "nothing") { scene in
      scene.lapsed()
      scene.order("second", stating: scene.renewal().transactionId, isServed: true) { $0.createdAt = end }
    },
    Case("a later period by an order that states the first, with a proof of the later one", "nothing") { scene in
      scene.lapsed()
      scene.order("second", stating: "T1", with: .signed(scene.renewal()), isServed: true) { $0.createdAt = end }
    },
    Case(
      "a later period outside the window, by an order that states the first one",
      "duplicate_claim on second, renewal_without_order on T2, status_mismatch on second"
    ) { scene in
      scene.lapsed()
      scene.order("second", stating: "T1", with: .list(scene.renewal())) { $0.createdAt = end + .hours(73) }
    },
    Case("a refunded renewal that is still served", "renewal_without_order on T2") { scene in
      scene.lapsed()
      scene.renewal { $0.revocation = Revocation(date: asOf - .hours(1)) }
    },
    Case("a refunded renewal that is no longer served", "nothing") { scene in
      scene.lapsed({ $0.subscriptionStatus = .revoked }, goods: { $0.revokedAt = end })
      scene.renewal { $0.revocation = Revocation(date: asOf - .hours(1)) }
    },
    Case("a resubscription without an order", "orphan_payment on T2") { scene in
      scene.lapsed()
      scene.renewal { $0.isRenewal = false }
    },
    Case(
      "an app receipt does not link an order to a renewal", "renewal_without_order on T2, stuck_unconfirmed on second"
    ) { scene in
      scene.lapsed()
      scene.order("second", with: .list(scene.renewal())) { $0.createdAt = end }
    },
    Case("an upgrade in the middle of a period, both orders booked", "nothing") { scene in
      scene.lapsed({ $0.isUpgraded = true }, goods: { $0.revokedAt = end })
      let upgraded = scene.renewal {
        ($0.productId, $0.isRenewal, $0.purchaseDate) = ("gold", false, bought + .days(10))
      }
      scene.order("second", with: .signed(upgraded), isServed: true) {
        ($0.productId, $0.createdAt) = ("gold", bought + .days(10))
      }
    },
    Case("the old plan is taken back as soon as Apple has replaced it", "nothing") {
      $0.lapsed({ $0.isUpgraded = true }, goods: { $0.revokedAt = bought + .days(10) })
    },
    Case("an upgrade without an order", "orphan_payment on T2") { scene in
      scene.lapsed()
      scene.renewal { ($0.productId, $0.isRenewal) = ("gold", false) }
    },
  ]

  static let access: [Case<String>] = [
    Case("Apple's status is from the instant of the end", "lapsed_still_served on T1 user") {
      $0.lapsed { $0.subscriptionStatusDate = end }
    },
    Case("Apple's status is older", "nothing") { $0.lapsed { $0.subscriptionStatusDate = end - .microsecond } },
    Case("Apple's status is from the end, and a newer question is unanswered", "nothing") { scene in
      scene.lapsed { $0.subscriptionStatusDate = end }
      for place in scene.world.receipts.indices { scene.world.receipts[place].state.unansweredSince = asOf }
      scene.world.lookups["order"]?.unansweredSince = asOf
    },
    Case("in Apple's grace period while billing is tried again", "nothing") {
      $0.lapsed { $0.subscriptionExpiresDate = asOf + .days(2) }
    },
    Case("the grace period is over as well", "lapsed_still_served on T1 user") {
      $0.lapsed { ($0.expiresDate, $0.subscriptionExpiresDate) = (end - .days(16), end) }
    },
    Case(
      "taken back when the period was over, although the subscription went on",
      "paid_not_delivered, renewal_without_order on T2"
    ) { scene in
      scene.lapsed(goods: { $0.revokedAt = end })
      scene.renewal()
    },
    Case("taken back when the period was over, and another order owns the next one", "nothing") { scene in
      scene.lapsed(goods: { $0.revokedAt = end })
      scene.order("next", stating: scene.renewal().transactionId, isServed: true) { $0.createdAt = end }
    },
    Case("taken back after the end of an unbooked renewal", "renewal_without_order on T2") { scene in
      scene.lapsed(goods: { $0.revokedAt = end + .days(5) })
      scene.renewal { $0.expiresDate = end + .days(5) }
    },
    Case("a trial without an order, beside the paid first period", "nothing") { scene in
      let trial = scene.transaction("T0") {
        ($0.expiresDate, $0.priceMilliunits, $0.purchaseDate) = (ordered + .days(3), 0, ordered - .hours(71))
      }
      let paid = scene.transaction { ($0.expiresDate, $0.originalTransactionId) = (ordered + .days(30), "T0") }
      scene.order(stating: "T1", with: .list(trial, paid), isServed: true)
    },
  ]

  static let sharing: [Case<String>] = [
    Case("sold for the smallest amount", "family_shared_sale, status_mismatch") { scene in
      scene.amount = .of(1)
      scene.sale(bought: { $0.ownership = .familyShared })
    },
    Case("the family lost a past period, and the subscription is active", "family_shared_sale, status_mismatch") {
      $0.lapsed {
        loseAccess(&$0)
        $0.subscriptionStatus = .active
      }
    },
    Case("the family lost a past period, and Apple was not asked", "family_shared_sale, status_mismatch") {
      $0.lapsed {
        loseAccess(&$0)
        $0.subscriptionStatus = nil
      }
    },
    Case(
      "the family lost a running period, and is still served",
      "family_shared_sale, lapsed_still_served on T1 user, status_mismatch"
    ) { scene in
      scene.lapsed {
        loseAccess(&$0)
        ($0.expiresDate, $0.subscriptionStatus) = (asOf + .days(9), .revoked)
      }
    },
    Case("a restore on another device is no new sale", "nothing") { scene in
      scene.sale()
      let restored = scene.transaction("T2") { ($0.originalTransactionId, $0.purchaseDate) = ("T1", asOf - .hours(3)) }
      scene.receipt(for: nil, .verified(.app), containing: [restored])
    },
    Case("a free redemption is no orphan payment", "unclaimed_redemption on T2") {
      $0.receipt(for: nil, .verified(.app), containing: [$0.transaction("T2") { $0.priceMilliunits = 0 }])
    },
  ]

  @Test("Every kind of finding is in a table of small cases, beside cases without a finding")
  func tables() {
    let tables: [[Case<String>]] = [
      PurchaseStoryTests.stories, PaymentFindingTests.goods, PaymentFindingTests.claims, PaymentFindingTests.proofs,
      PaymentFindingTests.refunds,
      RecordFindingTests.users, RecordFindingTests.comparison, RecordFindingTests.dates, RecordFindingTests.statuses,
      RecordFindingTests.rows, Self.renewals, Self.access, Self.sharing, SaleTests.sales, SaleTests.catalogue,
    ]
    let kinds = Set(
      tables.joined().flatMap { $0.expected.replacing(",", with: "").split(separator: " ").map(String.init) })
    #expect(kinds.isSuperset(of: Set(FindingKind.allCases).subtracting(FindingKind.foundElsewhere).map(\.rawValue)))
    for table in tables { #expect(table.contains { $0.expected == "nothing" }) }
  }

  /// Ends a family member's access to a period five weeks before the audit.
  private static func loseAccess(_ record: inout TransactionRecord) {
    (record.ownership, record.revocation) = (
      .familyShared, Revocation(date: asOf - .days(35), type: "FAMILY_REVOKE")
    )
  }

  /// The end of the first period, longer ago than any grace.
  private static let end = asOf - .days(20)
  private static let bought = asOf - .days(50)
}

extension ShopFixture {
  /// An order of fifty days ago for a subscription that ended twenty days ago, longer than any grace, and its goods.
  fileprivate mutating func lapsed(
    _ bought: (inout TransactionRecord) -> Void = { _ in }, goods: (inout Delivery) -> Void = { _ in }
  ) {
    time = Self.asOf - .days(50)
    sale(
      bought: { record in
        record.expiresDate = Self.asOf - .days(20)
        bought(&record)
      }, goods: goods)
  }

  /// The period after the lapsed one.
  @discardableResult
  fileprivate mutating func renewal(_ change: (inout TransactionRecord) -> Void = { _ in }) -> TransactionRecord {
    let first = id("T1")
    return transaction("T2") { record in
      record.originalTransactionId = first
      record.purchaseDate = ShopFixture.asOf - .days(20)
      record.expiresDate = ShopFixture.asOf + .days(10)
      record.isRenewal = true
      change(&record)
    }
  }
}
