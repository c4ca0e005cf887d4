extension Scenario {
  // MARK: - Proven unpaid

  static var notPaid: [Scenario] {
    [
      // Left at the checkout.
      Scenario(count: 78, onLastDay: 1) { sale, shop in
        sale.removePayment()
        sale.block(status: shop.random.pick(["cancelled", "cancelled", "failed", "pending"]))
        sale.expected = .void("never_paid")
      },
      Scenario(count: 6, onLastDay: 1) { sale, _ in
        sale.removePayment()
        sale.expected = .deliveredNotPaid("no_evidence")
      },
      Scenario(count: 2) { sale, _ in
        sale.removePayment()
        sale.deliveries = []
        sale.expected = .void("no_evidence", "status_mismatch")
      },
      // The same purchase booked twice for one customer.
      Scenario(count: 4, timing: .settledIn) { sale, shop in
        guard let first = shop.donor(before: sale.order.createdAt) else { return }
        sale = shop.copy(first, to: first.user, at: first.order.createdAt + shop.random.whole(120_000...1_200_000))
        sale.lean(on: first)
        sale.expected = .deliveredNotPaid("duplicate", "duplicate_claim")
      },
      // Somebody else's receipt.
      Scenario(count: 5, timing: .settledIn) { sale, shop in
        guard let first = shop.donor(before: sale.order.createdAt) else { return }
        sale = shop.copy(first, to: sale.user, at: sale.order.createdAt)
        sale.lean(on: first)
        sale.proof?.payload = first.proof?.payload
        sale.expected = .deliveredNotPaid("duplicate", "duplicate_claim")
      },
      Scenario(count: 2, timing: .settledIn) { sale, shop in
        guard let first = shop.donor(before: sale.order.createdAt) else { return }
        sale = shop.copy(first, to: sale.user, at: sale.order.createdAt)
        sale.lean(on: first)
        sale.proof?.payload = first.proof?.payload
        sale.block()
        sale.expected = .void("duplicate", "duplicate_claim")
      },
      // Somebody else's old receipt under a made-up id.
      Scenario(count: 3, timing: .settledIn) { sale, shop in
        guard let first = shop.donor(before: sale.order.createdAt, kind: .transaction) else { return }
        sale = shop.copy(first, to: sale.user, at: sale.order.createdAt)
        sale.lean(on: first)
        sale.proof?.payload = first.proof?.payload
        sale.order.transactionId = shop.transactionId()
        sale.expected = .deliveredNotPaid("id_mismatch")
      },
      // The cheapest gems paid, the dearest delivered.
      Scenario(count: 4) { sale, shop in
        let currency = shop.customers.all[sale.user].currency
        let dearest = Catalogue.gems[Catalogue.gems.count - 1]
        sale.order.productId = dearest.productId
        sale.order.amount = currency.text(minorUnits: dearest.price(currency))
        sale.deliveries[0].productId = dearest.productId
        sale.transaction?.productId = Catalogue.gems[0].productId
        sale.transaction?.price = currency.milliunits(minorUnits: Catalogue.gems[0].price(currency))
        sale.expected = .deliveredNotPaid("product_mismatch", "product_mismatch")
      },
      Scenario(count: 3) { sale, _ in
        sale.transaction?.bundleId = Catalogue.foreignBundleId
        sale.expected = .deliveredNotPaid("wrong_bundle", "wrong_bundle")
      },
      Scenario(count: 4) { sale, _ in
        sale.proof?.isGenuine = false
        sale.expected = .deliveredNotPaid("signature_invalid", "signature_invalid")
      },
      Scenario(count: 3) { sale, _ in
        sale.proof?.isGenuine = false
        sale.proof?.kind = .transaction
        sale.proof?.shopStatus = "rejected"
        sale.block()
        sale.expected = .void("signature_invalid", "signature_invalid")
      },
      Scenario(count: 2) { sale, _ in
        sale.proof?.forcedStatus = 21_003
        sale.expected = .deliveredNotPaid("signature_invalid", "signature_invalid")
      },
      // What a client sends that prints a receipt it does not have.
      Scenario(count: 2) { sale, _ in
        // Named, its transaction could be asked about.
        sale.order.transactionId = nil
        sale.proof?.payload = "(null)"
        sale.proof?.isGenuine = false
        sale.expected = .deliveredNotPaid("malformed")
      },
      Scenario(count: 2, goods: .vip, timing: .recent) { sale, _ in
        sale.transaction?.inAppOwnershipType = .familyShared
        sale.transaction?.appAccountToken = nil
        sale.expected = .void("family_shared", "family_shared_sale", "status_mismatch")
      },
      Scenario(count: 40, byTester: true) { sale, _ in
        sale.moveToSandbox()
        sale.expected = Expectation(disposition: "sandbox", reason: "sandbox")
      },
      Scenario(count: 5, onLastDay: 1) { sale, _ in
        sale.moveToSandbox()
        sale.expected = .deliveredNotPaid("sandbox", "sandbox_delivered")
      },
      Scenario(count: 2) { sale, _ in
        sale.moveToSandbox()
        sale.proof?.claimedEnvironment = .production
        sale.expected = .deliveredNotPaid("sandbox", "sandbox_delivered", "environment_mislabelled")
      },
      Scenario(count: 4) { sale, _ in
        sale.moveToSandbox()
        sale.block()
        sale.expected = .void("sandbox")
      },
    ]
  }

  // MARK: - Nobody can say

  static var unconfirmed: [Scenario] {
    [
      // The app had finished the purchase before it read the receipt that it sent.
      Scenario(count: 16) { sale, _ in
        sale.transaction?.finished = true
        sale.expected = .unconfirmed("not_in_receipt")
      },
      Scenario(count: 4) { sale, _ in
        sale.proof?.forcedStatus = 21_010
        sale.expected = .unconfirmed("account_gone")
      },
      Scenario(count: 6) { sale, shop in
        sale.proof?.forcedStatus = shop.random.pick([21_002, 21_005, 21_009])
        sale.proof?.shopStatus = "timeout"
        sale.expected = .unconfirmed("apple_error")
      },
      // The receipt is lost; verifyReceipt cannot be asked about an id.
      Scenario(count: 6) { sale, _ in
        sale.proof = nil
        sale.expected = .unconfirmed("never_checked")
      },
      Scenario(count: 2, timing: .lastHour) { sale, _ in
        sale.removePayment()
        sale.block(status: "pending")
        sale.expected = .unconfirmed("awaiting_evidence")
      },
    ]
  }
}

extension ShopBuilder {
  /// A new order of what another sale sold.
  fileprivate mutating func copy(_ first: Sale, to user: Int, at instant: Int64) -> Sale {
    let product = Catalogue.gems.first { $0.productId == first.order.productId } ?? Catalogue.gems[0]
    return sale(to: user, of: product, quantity: first.order.quantity, at: instant)
  }
}
