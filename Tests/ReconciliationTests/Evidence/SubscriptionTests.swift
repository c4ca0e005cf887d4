import Reconciliation
import Testing

@testable import SampleWorlds

/// Subscriptions: renewals, upgrades, grace periods, family sharing, lapses and restores. Each case is beside a similar
/// one without a finding.
@Suite struct SubscriptionTests {
  @Test(arguments: renewals + access + sharing)
  func findings(row: Case<[String]>) {
    #expect(row.scene.world.findingNames == row.expected)
  }

  static let renewals: [Case<[String]>] = [
    Case("each period booked by the order that states it", []) { scene in
      scene.delivery("d1", of: scene.subscription(transaction: { $0.expiresDate = end }))
      let renewal = scene.renewal()
      let order = scene.order("second") { order in
        order.transactionId = renewal.transactionId
        order.createdAt = end
      }
      scene.delivery("d2", of: order)
    },
    Case("a later period by an order that states the first, with a proof of the later one", []) { scene in
      scene.delivery("d1", of: scene.subscription(transaction: { $0.expiresDate = end }))
      let renewal = scene.renewal()
      let order = scene.order("second") { order in
        order.transactionId = "T1"
        order.createdAt = end
      }
      scene.signedProof(for: order, of: renewal)
      scene.delivery("d2", of: order)
    },
    Case(
      "a later period outside the window, by an order that states the first one",
      ["duplicate_claim on second", "renewal_without_order on T2", "status_mismatch on second"]
    ) { scene in
      scene.delivery("d1", of: scene.subscription(transaction: { $0.expiresDate = end }))
      let renewal = scene.renewal()
      let order = scene.order("second") { order in
        order.transactionId = "T1"
        order.createdAt = end + .hours(73)
      }
      scene.receipt(for: order, .verified(.app), containing: [renewal])
    },
    Case("a renewal without an order", ["renewal_without_order on T2"]) { scene in
      scene.delivery(of: scene.subscription(transaction: { $0.expiresDate = end }))
      scene.renewal()
    },
    Case("a refunded renewal that is still served", ["renewal_without_order on T2"]) { scene in
      scene.delivery(of: scene.subscription(transaction: { $0.expiresDate = end }))
      scene.renewal { $0.revocation = Revocation(date: ShopFixture.asOf - .hours(1)) }
    },
    Case("a refunded renewal that is no longer served", []) { scene in
      let order = scene.subscription(transaction: { ($0.expiresDate, $0.subscriptionStatus) = (end, .revoked) })
      scene.delivery(of: order) { $0.revokedAt = end }
      scene.renewal { $0.revocation = Revocation(date: ShopFixture.asOf - .hours(1)) }
    },
    Case("a second purchase that is no renewal", ["orphan_payment on T2"]) { scene in
      scene.delivery(of: scene.subscription(transaction: { $0.expiresDate = end }))
      scene.renewal { $0.isRenewal = false }
    },
    Case(
      "an app receipt does not link an order to a renewal",
      ["renewal_without_order on T2", "stuck_unconfirmed on second"]
    ) { scene in
      scene.delivery("d1", of: scene.subscription(transaction: { $0.expiresDate = end }))
      let renewal = scene.renewal()
      let order = scene.order("second") { $0.createdAt = end }
      scene.receipt(for: order, .verified(.app), containing: [renewal])
    },
    Case("an upgrade in the middle of a period, both orders booked", []) { scene in
      let first = scene.subscription(transaction: { record in
        record.expiresDate = end
        record.isUpgraded = true
      })
      scene.delivery("d1", of: first) { $0.revokedAt = end }
      let upgraded = scene.renewal { record in
        record.productId = "gold"
        record.isRenewal = false
        record.purchaseDate = bought + .days(10)
      }
      let order = scene.order("second") { order in
        order.productId = "gold"
        order.createdAt = bought + .days(10)
      }
      scene.signedProof(for: order, of: upgraded)
      scene.delivery("d2", of: order)
    },
    Case("the old plan is taken back as soon as Apple has replaced it", []) { scene in
      let first = scene.subscription(transaction: { record in
        record.expiresDate = end
        record.isUpgraded = true
      })
      scene.delivery(of: first) { $0.revokedAt = bought + .days(10) }
    },
    Case("a plan that was not replaced is taken back before its end", ["paid_not_delivered on order"]) { scene in
      scene.delivery(of: scene.subscription(transaction: { $0.expiresDate = end })) {
        $0.revokedAt = bought + .days(10)
      }
    },
    Case("an upgrade without an order", ["orphan_payment on T2"]) { scene in
      scene.delivery(of: scene.subscription(transaction: { $0.expiresDate = end }))
      scene.renewal { record in
        record.productId = "gold"
        record.isRenewal = false
      }
    },
  ]

  static let access: [Case<[String]>] = [
    Case("lapsed, still served", ["lapsed_still_served on T1 user"]) { scene in
      scene.delivery(of: scene.subscription(transaction: { $0.expiresDate = end }))
    },
    Case("Apple's status is from the instant of the end", ["lapsed_still_served on T1 user"]) { scene in
      scene.delivery(
        of: scene.subscription(transaction: { record in
          record.expiresDate = end
          record.subscriptionStatusDate = end
        }))
    },
    Case("Apple's status is older than the end", []) { scene in
      scene.delivery(
        of: scene.subscription(transaction: { record in
          record.expiresDate = end
          record.subscriptionStatusDate = end - .microsecond
        }))
    },
    Case("Apple's status is from the end, and a newer question is unanswered", []) { scene in
      scene.delivery(
        of: scene.subscription(transaction: { record in
          record.expiresDate = end
          record.subscriptionStatusDate = end
        }))
      for place in scene.world.receipts.indices { scene.world.receipts[place].state.unansweredSince = ShopFixture.asOf }
      scene.world.lookups["order"]?.unansweredSince = ShopFixture.asOf
    },
    Case("in Apple's grace period while billing is tried again", []) { scene in
      scene.delivery(
        of: scene.subscription(transaction: { record in
          record.expiresDate = end
          record.subscriptionExpiresDate = ShopFixture.asOf + .days(2)
        }))
    },
    Case("the grace period is over as well", ["lapsed_still_served on T1 user"]) { scene in
      scene.delivery(
        of: scene.subscription(transaction: { record in
          record.expiresDate = end - .days(16)
          record.subscriptionExpiresDate = end
        }))
    },
    Case("a later period keeps the access of the first order", ["renewal_without_order on T2"]) { scene in
      scene.delivery(of: scene.subscription(transaction: { $0.expiresDate = end }))
      scene.renewal { $0.expiresDate = ShopFixture.asOf + .days(10) }
    },
    Case("lapsed, and access was taken back when the period was over", []) { scene in
      scene.delivery(of: scene.subscription(transaction: { $0.expiresDate = end })) { $0.revokedAt = end }
    },
    Case(
      "taken back when the period was over, although the subscription went on",
      ["paid_not_delivered on order", "renewal_without_order on T2"]
    ) { scene in
      scene.delivery(of: scene.subscription(transaction: { $0.expiresDate = end })) { $0.revokedAt = end }
      scene.renewal()
    },
    Case("taken back when the period was over, and another order owns the next one", []) { scene in
      scene.delivery(of: scene.subscription(transaction: { $0.expiresDate = end })) { $0.revokedAt = end }
      scene.renewal()
      scene.delivery("next", of: scene.order("next") { ($0.transactionId, $0.createdAt) = ("T2", end) })
    },
    Case("taken back after the end of an unbooked renewal", ["renewal_without_order on T2"]) { scene in
      scene.delivery(of: scene.subscription(transaction: { $0.expiresDate = end })) { $0.revokedAt = end + .days(5) }
      scene.renewal { $0.expiresDate = end + .days(5) }
    },
    Case("taken back before the period was over", ["paid_not_delivered on order"]) { scene in
      scene.delivery(of: scene.subscription(transaction: { $0.expiresDate = end })) { $0.revokedAt = end - .days(1) }
    },
    Case("a trial that was booked at full price", ["amount_mismatch on order"]) { scene in
      scene.delivery(
        of: scene.subscription(transaction: { record in
          record.expiresDate = ShopFixture.asOf + .days(1)
          record.priceMilliunits = 0
          record.hasOffer = true
        }))
    },
    Case("a trial without an order, beside the paid first period", []) { scene in
      let time = scene.time
      let trial = scene.transaction("trial") { record in
        (record.expiresDate, record.priceMilliunits, record.hasOffer) = (time + .days(3), 0, true)
        record.purchaseDate = time - .hours(71)
      }
      let paid = scene.transaction { record in
        record.expiresDate = time + .days(30)
        record.originalTransactionId = trial.transactionId
      }
      let order = scene.order { $0.transactionId = paid.transactionId }
      scene.receipt(for: order, .verified(.app), containing: [trial, paid])
      scene.delivery(of: order)
    },
    Case("a price of 0 without a trial", ["amount_mismatch on order"]) { scene in
      scene.delivery(
        of: scene.subscription(transaction: { record in
          record.expiresDate = ShopFixture.asOf + .days(1)
          record.priceMilliunits = 0
          record.hasOffer = false
        }))
    },
  ]

  static let sharing: [Case<[String]>] = [
    Case("a family member's subscription, sold", ["family_shared_sale on order", "status_mismatch on order"]) { scene in
      scene.delivery(
        of: scene.paidOrder(transaction: { record in
          record.expiresDate = ShopFixture.asOf + .days(1)
          record.ownership = .familyShared
        }))
    },
    Case("sold for the smallest amount", ["family_shared_sale on order", "status_mismatch on order"]) { scene in
      scene.amount = .of(1)
      scene.delivery(of: scene.paidOrder(transaction: { $0.ownership = .familyShared }))
    },
    Case("a family member's subscription, recorded with amount 0", []) { scene in
      scene.amount = .of(0)
      scene.delivery(
        of: scene.paidOrder(
          { $0.status = .pending },
          transaction: { record in
            record.expiresDate = ShopFixture.asOf + .days(1)
            record.ownership = .familyShared
          }))
    },
    Case("a restore on another device is no new sale", []) { scene in
      scene.delivery(of: scene.paidOrder())
      let restored = scene.transaction("T2") { record in
        record.originalTransactionId = "T1"
        record.purchaseDate = ShopFixture.asOf - .hours(3)
      }
      scene.receipt(for: nil, .verified(.app), containing: [restored])
    },
    Case("a free redemption is no orphan payment", ["unclaimed_redemption on T2"]) { scene in
      let redeemed = scene.transaction("T2") { $0.priceMilliunits = 0 }
      scene.receipt(for: nil, .verified(.app), containing: [redeemed])
    },
    Case("a second purchase of the same product is an orphan payment", ["orphan_payment on T2"]) { scene in
      scene.delivery(of: scene.paidOrder())
      let bought = scene.transaction("T2") { $0.purchaseDate = ShopFixture.asOf - .hours(3) }
      scene.receipt(for: nil, .verified(.app), containing: [bought])
    },
  ]

  @Test("Every kind of finding is in a table of small cases, beside cases without a finding")
  func tables() {
    let tables: [[Case<[String]>]] = [
      PaymentFindingTests.goods, PaymentFindingTests.claims, PaymentFindingTests.proofs, PaymentFindingTests.refunds,
      RecordFindingTests.users, RecordFindingTests.comparison, RecordFindingTests.dates, RecordFindingTests.statuses,
      RecordFindingTests.rows, Self.renewals, Self.access, Self.sharing, SaleTests.sales, SaleTests.catalogue,
    ]
    let rows = tables.flatMap(\.self)
    let kinds = Set(rows.flatMap(\.expected).compactMap { $0.split(separator: " ").first.map(String.init) })
    #expect(kinds.union(FindingKind.foundElsewhere.map(\.rawValue)) == Set(FindingKind.allCases.map(\.rawValue)))
    for table in tables { #expect(table.contains { $0.expected.isEmpty }) }
  }

  /// The end of the first period, longer ago than any grace.
  private static let end = ShopFixture.asOf - .days(20)
  private static let bought = ShopFixture.asOf - .days(50)
}

extension ShopFixture {
  /// An order of fifty days ago that states its transaction.
  fileprivate mutating func subscription(transaction: (inout TransactionRecord) -> Void = { _ in }) -> Order {
    time = ShopFixture.asOf - .days(50)
    return paidOrder(transaction: transaction)
  }

  /// The period after the one that `subscription` pays.
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
