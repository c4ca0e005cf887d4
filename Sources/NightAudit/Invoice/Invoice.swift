import Auditing
import Foundation
import Reconciliation
import Run
import Settings

/// `explain M…`: an invoice of Apple's, by the order ID in its mail, with our orders beside it.
package struct Invoice: Encodable, Sendable {
  package struct Order: Encodable, Sendable {
    package var orderId: Identifier
    package var userId: Identifier
    package var disposition: Disposition
    package var payment: String?
    package var paymentReason: PaymentReason?
    package var owns: Bool
    /// How the order is linked to the transaction, as a sentence.
    package var standing: String
  }

  package struct Transaction: Encodable, Sendable {
    package var transactionId: Identifier
    package var environment: AppleEnvironment
    package var productId: String
    package var quantity: Int32?
    package var purchasedAt: Instant?
    package var price: String?
    package var currency: String?
    package var refundedAt: Instant?
    package var orders: [Order]
  }

  package var appleOrderId: String
  package var app: String
  package var asOf: Instant
  package var transactions: [Transaction]
  /// Number of transactions whose signature was rejected.
  package var notBelieved: Int

  /// True if a text has the form of an order ID in Apple's mails.
  package static func isOrderId(_ text: String) -> Bool {
    text.wholeMatch(of: /M[0-9A-Z]{7,30}/) != nil
  }

  package func text(_ settings: Settings) -> String {
    let time = LocalTimeText(zone: settings.timeZone, name: settings.timeZoneName)
    var lines = [
      "Apple's order \(appleOrderId) of the app \(app), as Apple answered now. Times are in \(time.zoneName)."
    ]
    if notBelieved > 0 {
      lines.append("\(notBelieved) of its transactions do not carry Apple's signature, and are left out.")
    }
    if transactions.isEmpty { lines.append("It contains no transaction.") }
    for transaction in transactions {
      var what = "\(transaction.quantity.map { "\($0) x " } ?? "")\(transaction.productId)"
      if let price = transaction.price, let currency = transaction.currency {
        what += " for \(Money.text(price: price, currency: currency))"
      }
      lines += ["", "Transaction \(transaction.transactionId) (\(transaction.environment.rawValue)): \(what)"]
      lines.append("  bought \(time.text(transaction.purchasedAt))")
      if let refunded = transaction.refundedAt { lines.append("  refunded \(time.text(refunded))") }
      if transaction.orders.isEmpty { lines.append("  No order here states it, and no receipt here contains it.") }
      for order in transaction.orders {
        let payment = order.payment.map { payment in
          ", payment \(payment)\(order.paymentReason.map { " (\($0.rawValue))" } ?? "")"
        }
        lines.append("  Order \(order.orderId) of user \(order.userId): \(order.disposition.title)\(payment ?? "")")
        lines.append("    \(order.standing)")
      }
    }
    let orders = Set(transactions.flatMap(\.orders).map(\.orderId)).sorted()
    if !orders.isEmpty {
      lines.append("")
      lines += orders.map { "More: night-audit explain \($0)" }
    }
    return lines.joined(separator: "\n")
  }
}
