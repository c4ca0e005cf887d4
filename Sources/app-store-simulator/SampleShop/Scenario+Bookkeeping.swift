extension Scenario {
  /// Paid and delivered, but the records are wrong or show more than one sale.
  static var bookedWrong: [Scenario] {
    [
      Scenario(count: 4) { sale, _ in
        sale.order.status = "pending"
        sale.expected = .settled("status_mismatch")
      },
      Scenario(count: 3) { sale, _ in
        sale.proof?.claimedEnvironment = .sandbox
        sale.expected = .settled("environment_mislabelled")
      },
      Scenario(count: 3, quantity: 3) { sale, _ in
        sale.transaction?.quantity = 2
        if let price = sale.transaction?.price { sale.transaction?.price = price / 3 * 2 }
        sale.expected = .settled("quantity_mismatch")
      },
      Scenario(count: 2) { sale, shop in
        sale.order.verifiedAt = shop.timeline.asOf + 40 * Timeline.hour
        sale.expected = .settled("future_dated")
      },
      // An impatient customer tapped twice, and one order was made.
      Scenario(count: 3) { sale, shop in
        guard var second = sale.transaction else { return }
        second.transactionId = shop.transactionId()
        second.originalTransactionId = second.transactionId
        second.purchaseDate += 9 * Timeline.second
        second.originalPurchaseDate = second.purchaseDate
        shop.add(second)
        sale.proof?.others = [second]
        sale.expected = .settled("charged_twice")
      },
      // The receipt shows a purchase whose order was never made.
      Scenario(count: 3) { sale, shop in
        let product = shop.random.pick(Catalogue.heroes)
        let lost = shop.transaction(for: sale.user, of: product, at: sale.order.createdAt - 3 * Timeline.hour)
        shop.add(lost)
        shop.expect("orphan_payment", on: lost.transactionId)
        sale.proof?.others = [lost]
      },
      // Two orders of the same goods in a hurry, neither with an id; the later receipt lists both purchases.
      Scenario(count: 12, orders: 2) { sale, shop in
        let product = Catalogue.gems.first { $0.productId == sale.order.productId } ?? Catalogue.gems[0]
        var first = shop.sale(to: sale.user, of: product, at: sale.order.createdAt - 4 * Timeline.minute)
        first.order.transactionId = nil
        shop.record(first)
        sale.order.transactionId = nil
        sale.proof?.others = [first.transaction].compactMap(\.self)
      },
      Scenario(count: 1) { sale, shop in
        var broken = sale.deliveries[0]
        broken.deliveryId = shop.deliveryId()
        broken.quantity = 0
        sale.deliveries.append(broken)
        sale.expected = .settled("bad_row")
      },
      Scenario(count: 1) { sale, _ in sale.breakOrder { $0.amount = "-4.99" } },
      Scenario(count: 1) { sale, _ in
        sale.breakOrder {
          $0.amount = "160.5"
          $0.currency = "JPY"
        }
      },
      Scenario(count: 1) { sale, _ in sale.breakOrder { $0.currency = "XYZ" } },
      Scenario(count: 1) { sale, _ in sale.breakOrder { $0.status = "done" } },
      Scenario(count: 1) { sale, _ in sale.breakOrder { $0.quantity = 0 } },
    ]
  }
}

extension Sale {
  /// An order that breaks the sales schema's contract, with nothing else about it.
  fileprivate mutating func breakOrder(_ change: (inout OrderRow) -> Void) {
    removePayment()
    deliveries = []
    change(&order)
    expected = Expectation(disposition: "bad_row", findings: ["bad_row"])
  }
}
