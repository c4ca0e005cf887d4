import Reconciliation

extension ReportTable {
  /// What its rows are.
  var meaning: String {
    switch self {
    case .findings: "Discrepancies that a person must look at: everything open in the lookback."
    case .users: "Orders created in the period, by user and currency. Without sandbox orders and broken rows."
    case .amounts:
      "Orders created in the period, by currency, amount and product. Without sandbox orders and broken rows."
    case .refunds: "What Apple took back in the period, in full or in part, whenever the order was."
    case .sandbox: "Orders of the period paid in Apple's sandbox. Play money: in no total."
    case .receipts: "Every proof of purchase in scope, and what came of asking Apple about it."
    case .orders: "Every order created in the period, with the one bucket that it ended in."
    }
  }

  /// The columns that tell its rows apart.
  var primaryKey: [String] {
    switch self {
    case .findings: ["finding_id"]
    case .users: ["user_id", "currency"]
    case .amounts: ["currency", "amount", "product_id"]
    case .refunds: ["transaction_id"]
    case .sandbox: ["user_id", "product_id", "currency"]
    case .receipts: ["receipt_id"]
    case .orders: ["order_id"]
    }
  }
}

extension Column {
  /// What stands in it, for people who read `datapackage.json`.
  func meaning(in table: ReportTable) -> String {
    switch (name, table) {
    case ("amount", .refunds): return "What was refunded, negative. Empty when nobody knows how much that is."
    case ("amount", .amounts): return "The price point: amount of one order as the shop recorded it."
    case ("amount", .sandbox): return "Sum of the orders, in play money."
    case ("amount", .orders): return "Total of the order as the shop recorded it."
    case ("amount", _): return "Amount of the order as the shop recorded it, or of the payment where there is no order."
    case ("kind", .receipts): return "What the payload is: app receipt, old transaction receipt, or signed transaction."
    case ("reason", .receipts): return "Why it is not verified."
    case ("reason", .refunds): return "Why Apple gave the money back, as Apple has it."
    case ("status", .orders): return "What the shop believes."
    case ("status", _): return "What people made of the finding."
    case ("age_days", .receipts): return "Whole days since the receipt came in."
    case ("orders", _): return "Number of orders."
    case ("findings", _): return "Kinds of the order's findings, separated by a space."
    default: return meaning
    }
  }

  private var meaning: String {
    if let disposition = Disposition(rawValue: name) { return disposition.columnMeaning }
    return switch name {
    case "finding_id": "Stable id: the same discrepancy has the same one every night."
    case "kind": "What is wrong."
    case "severity": "critical: now; major: this week; minor: data quality."
    case "order_id": "The shop's id of the order."
    case "user_id": "The shop's id of the user."
    case "product_id": "App Store product identifier."
    case "transaction_id": "Apple's id of the purchase; in orders, the one that pays it or that the shop names."
    case "receipt_id": "The shop's id of the proof of purchase."
    case "delivery_id": "The shop's id of the delivery."
    case "environment": "Apple's environment of the payment: Production, Sandbox, Xcode or LocalTesting."
    case "currency": "ISO 4217 code."
    case "at_stake": "Money at stake; on one finding of an order only, so that it can be added up."
    case "paid_at": "Apple's purchase date."
    case "delivered_at": "The latest delivery that was not taken back."
    case "first_seen": "As-of of the run that met the finding first."
    case "age_days": "Whole days since first_seen."
    case "owner": "Who takes care of it."
    case "reason": "What was seen, in words."
    case "suggested_action": "What to do about it."
    case "ordered": "Sum of the orders' amounts: the sum of the columns that follow."
    case "percentage": "How much of the purchase was refunded."
    case "purchased_at": "Apple's purchase date."
    case "refunded_at": "Apple's revocation date."
    case "disposition": "The one bucket that the order ended in."
    case "allowed": "Whether the user is on the list of test users."
    case "channel": "Which of Apple's interfaces answered."
    case "outcome": "What came of asking."
    case "apple_status": "Apple's status or error number."
    case "attempts": "How often Apple was asked."
    case "last_attempt": "As-of of the run that asked last."
    case "next_attempt": "When it is due again."
    case "quantity": "Units ordered."
    case "payment": "The verdict on payment: paid, reversed, unpaid or unconfirmed."
    case "payment_reason": "Why it is unpaid or unconfirmed."
    case "created_at": "When the shop recorded the order."
    case "checked_at": "As-of of the run that asked Apple."
    default: title
    }
  }

  /// The words that it holds, where they are the program's own and few.
  var words: [String]? {
    switch name {
    case "severity": Severity.allCases.map(\.rawValue)
    case "disposition": Disposition.allCases.map(\.rawValue)
    case "payment": ["paid", "reversed", "unpaid", "unconfirmed"]
    default: nil
    }
  }
}

extension Disposition {
  fileprivate var columnMeaning: String {
    switch self {
    case .settled: "Amounts of orders paid and delivered in full."
    case .paidNotDelivered: "Amounts of orders paid and not delivered."
    case .deliveredNotPaid: "Amounts of orders delivered and proven unpaid."
    case .partlyDelivered: "Amounts of orders paid and delivered in part."
    case .refunded: "Amounts of orders refunded, their goods taken back."
    case .refundedStillDelivered: "Amounts of orders refunded while the user holds the goods."
    case .inFlight: "Amounts of orders paid a moment ago, the goods still on their way."
    case .unconfirmed: "Amounts of orders of which nobody knows whether they are paid."
    case .void: "Amounts of orders neither paid nor delivered."
    case .sandbox: "Amounts of sandbox orders."
    case .badRow: "Amounts of broken rows."
    }
  }
}
