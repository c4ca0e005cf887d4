import AppStore
import Asking
import Auditing
import Reconciliation
import Run
import Settings

/// Looks one invoice up at Apple and finds its orders here. Changes nothing.
package enum InvoiceRun {
  struct Unknown: RunEndingError, CustomStringConvertible {
    var exitStatus: ExitStatus { .nothingThere }
    var orderId: String
    var apps: [String]

    var description: String {
      """
      there is no order \(orderId) here, and Apple knows no order with that ID for \(apps.joined(separator: ", ")). The order ID \
      in Apple's mail begins with M. Check the digit 0 and the letter O, which look alike.
      """
    }
  }

  struct Unanswered: RunEndingError, CustomStringConvertible {
    var exitStatus: ExitStatus { .incomplete }
    var orderId: String
    var app: String
    var detail: String

    var description: String {
      """
      there is no order \(orderId) here, and Apple has not answered whether it is an order of \(app) (\(detail)). Try again \
      later. An order of the shop is explained by the shop's order ID, without asking Apple.
      """
    }
  }

  package static func invoice(_ orderId: String, _ settings: Settings, asOf: Instant) async throws -> Invoice {
    let apps = settings.apps.filter { settings.effectiveChannel(of: $0) == .serverApi }
    if apps.isEmpty {
      throw ConfigurationError(
        key: "app.\(settings.apps.first?.name ?? "app").privateKeyFile",
        problem: """
          there is no order \(orderId) here. If it is the order ID of a mail from Apple, only Apple can look it up. Configure a key \
          of the App Store Server API. Or ask the customer for the date and the product, and run night-audit findings list \
          --user
          """)
    }
    let transport = HTTPTransport(timeout: settings.timeout, concurrency: settings.concurrency)
    return try await finally({ await transport.shutdown() }) {
      try await ask(orderId, of: apps, settings, transport, asOf: asOf)
    }
  }

  private static func ask(
    _ orderId: String, of apps: [Settings.App], _ settings: Settings, _ transport: HTTPTransport, asOf: Instant
  ) async throws -> Invoice {
    let roots = try AppleClients.roots(settings) ?? TrustedRoots.none
    for app in apps {
      let client = try AppleClients.serverAPI(of: app, settings: settings, transport: transport, roots: roots) { .now }
      let answer = try await client.lookUpOrder(orderId)
      switch answer.outcome {
      case .notFound, .malformedId, .accountGone: continue
      case .unanswered(let silence): throw Unanswered(orderId: orderId, app: app.name, detail: silence.detail)
      case .fault(let fault): throw ConfigurationError(key: "app.\(app.name)", problem: fault.message)
      case .found(let transactions):
        let ids = transactions.flatMap { [$0.transactionId, $0.originalTransactionId].compactMap(\.self) }
        let orders = try await Explain(settings: settings).orders(behind: ids.map { Identifier($0) }, asOf: asOf)
        return Invoice(
          appleOrderId: orderId, app: app.name, asOf: asOf,
          transactions: transactions.map { Invoice.Transaction($0, orders) }, notBelieved: answer.refused)
      }
    }
    throw Unknown(orderId: orderId, apps: apps.map(\.name))
  }
}

extension Invoice.Transaction {
  init(_ fact: TransactionFact, _ explanations: [Explanation]) {
    let id = Identifier(fact.transactionId)
    var refundedAt: Instant?
    if case .stated(.some(let revocation)) = fact.revocation { refundedAt = revocation.date }
    self.init(
      transactionId: id, environment: fact.environment, productId: fact.productId, quantity: fact.quantity,
      purchasedAt: fact.purchaseDate, price: fact.priceMilliunits.map { Money.decimalText(Int128($0), digits: 3) },
      currency: fact.currency, refundedAt: refundedAt,
      orders: explanations.compactMap { Invoice.Order($0, id, fact.environment) })
  }
}

extension Invoice.Order {
  init?(_ explanation: Explanation, _ id: Identifier, _ environment: AppleEnvironment) {
    let known = explanation.transactions.first {
      ($0.transactionId == id || $0.otherIds.contains(id)) && $0.environment == environment
    }
    guard known != nil || explanation.order.transactionId == id else { return nil }
    self.init(
      orderId: explanation.order.orderId, userId: explanation.order.userId, disposition: explanation.disposition,
      payment: explanation.payment, paymentReason: explanation.paymentReason, owns: known?.isOwned ?? false,
      standing: known?.standing ?? "This order states it. Apple has not been asked about it yet.")
  }
}
