import AuditStore
import Reconciliation
import Reporting
import Run
import Settings

/// An explanation as plain text, for a terminal or a mail.
package struct ExplanationText {
  private let explanation: Explanation
  private let time: LocalTimeText
  private var lines: [String] = []

  private init(_ explanation: Explanation, settings: Settings) {
    self.explanation = explanation
    time = LocalTimeText(zone: settings.timeZone, name: settings.timeZoneName)
  }

  package static func text(_ explanation: Explanation, settings: Settings) -> String {
    var page = ExplanationText(explanation, settings: settings)
    page.writeVerdict()
    page.writeOrder()
    page.writeProofs()
    page.writeTransactions()
    page.writeDeliveries()
    page.writeRules()
    page.writeFindings()
    page.writeDeclinedReasons()
    page.writeEvents()
    return page.lines.joined(separator: "\n")
  }

  // MARK: - Sections

  private mutating func writeVerdict() {
    lines.append(
      "Order \(explanation.order.orderId), as of \(time.text(explanation.asOf)). Times are in \(time.zoneName).")
    lines.append("")
    lines.append("\(explanation.disposition.title): \(explanation.dispositionBecause)")
    if let payment = explanation.payment {
      let reason = explanation.paymentReason.map { " (\($0.rawValue.replacing("_", with: " ")))" } ?? ""
      lines.append("Payment: \(payment)\(reason). \(explanation.rules.last?.because ?? "")")
    }
    if explanation.order.repeatedRows > 0 {
      lines.append(
        "order_id is not unique: \(explanation.order.repeatedRows) more rows have this ID; each is an invalid source row."
      )
    }
    if !explanation.isInLookback {
      lines.append(
        "The order is older than audit.lookback (\(explanation.lookback)): nights no longer list findings on it.")
    }
  }

  private func times(_ quantity: (some BinaryInteger)?) -> String { quantity.map { "\($0) x " } ?? "" }

  private mutating func writeOrder() {
    begin("The order in the shop")
    let order = explanation.order
    field("user", order.userId.text)
    field("product", "\(times(order.quantity))\(order.productId)")
    field("amount", "\(Money.grouped(order.amount)) \(order.currency)")
    field("status", order.status)
    field("app", order.bundleId)
    field("transaction id", order.transactionId?.text)
    field("account token", order.appAccountToken)
    field("created", time.text(order.createdAt))
    field("verified", order.verifiedAt.map { time.text($0) })
  }

  private mutating func writeProofs() {
    begin("Receipts and Apple's answers")
    if explanation.proofs.isEmpty { lines.append("  None was sent for this order.") }
    for proof in explanation.proofs {
      let kind = proof.kind.map { " (\(words($0)))" } ?? ""
      if let receivedAt = proof.receivedAt {
        let sender = proof.userId.map { " by \($0)" } ?? ""
        lines.append("  Receipt \(proof.subjectId)\(kind), sent \(time.text(receivedAt))\(sender)")
        if let defect = proof.defect {
          lines.append("    The row breaks the contract and counts for nothing: \(defect).")
        }
        if let claimed = proof.claimedEnvironment {
          lines.append("    Environment by the client: \(claimed); by Apple: \(proof.environment?.rawValue ?? "none").")
        }
      } else {
        lines.append("  Look-up of transaction id \(proof.subjectId)")
      }
      lines.append("    \(sentence(about: proof))")
      lines += proof.answers.map { "    \(answer($0))" }
      if !proof.transactions.isEmpty {
        let contained = proof.transactions.map { "\($0.transactionId) (\($0.environment.rawValue))" }
        lines.append("    Contains \(contained.joined(separator: ", ")).")
      }
    }
  }

  private mutating func writeTransactions() {
    begin("Transactions and their owners")
    if explanation.transactions.isEmpty { lines.append("  No known transaction is related to this order.") }
    for transaction in explanation.transactions { write(transaction) }
  }

  private mutating func write(_ transaction: Explanation.Transaction) {
    var what = "\(times(transaction.quantity))\(transaction.productId)"
    if let price = transaction.price, let currency = transaction.currency {
      what += " for \(Money.grouped(price)) \(currency)"
    }
    lines.append("  Transaction \(transaction.transactionId) (\(transaction.environment.rawValue)): \(what)")
    lines.append("    \(transaction.standing)")
    let others = transaction.otherIds.map(\.text).joined(separator: ", ")
    field("other IDs", others.isEmpty ? nil : others, indent: 4)
    field("bought", transaction.purchasedAt.map { time.text($0) }, indent: 4)
    field("app", transaction.bundleId, indent: 4)
    field("expires", transaction.expiresAt.map { time.text($0) }, indent: 4)
    field("refunded", transaction.refund.map(refund), indent: 4)
    field("refund reversed", transaction.refundWithdrawnAt.map { "reported \(time.text($0))" }, indent: 4)
    if transaction.isFamilyShared { field("ownership", "Family Sharing", indent: 4) }
    field("account token", transaction.appAccountToken, indent: 4)
    for competitor in transaction.competitors {
      let how = competitor.names ? "states it, too" : "has a receipt that contains it, too"
      lines.append(
        "    Order \(competitor.orderId) of user \(competitor.userId), created "
          + "\(time.text(competitor.createdAt)), \(how)\(competitor.owns ? ", and owns it" : "").")
    }
    if let reason = transaction.unclaimed { lines.append("    No order claims it: \(reason)") }
    if !transaction.matching.isEmpty { lines.append("    How its owner was found:") }
    for step in transaction.matching {
      lines.append("      \(step.question)")
      lines.append("        \(step.because)")
    }
    if !transaction.evidence.isEmpty { lines.append("    Evidence:") }
    for statement in transaction.evidence { lines.append("      \(text(of: statement))") }
  }

  private mutating func writeDeliveries() {
    begin("Deliveries")
    if explanation.deliveries.isEmpty { lines.append("  Nothing is recorded for this order.") }
    for delivery in explanation.deliveries {
      let back = delivery.revokedAt.map { ", taken back \(time.text($0))" } ?? ""
      lines.append(
        "  \(delivery.deliveryId): \(times(delivery.quantity))\(delivery.productId) to user \(delivery.userId) on "
          + "\(time.text(delivery.deliveredAt))\(back)")
      if let defect = delivery.defect {
        lines.append("    The row breaks the contract and counts for nothing: \(defect).")
      }
    }
  }

  private mutating func writeRules() {
    if explanation.rules.isEmpty { return }
    begin("Rules of the payment: the first rule that applies decides")
    for rule in explanation.rules {
      lines.append("  \(rule.holds ? "YES" : "no ")  \(rule.question)")
      lines.append("       \(rule.because)")
    }
    let rest = VerdictRule.allCases.count - explanation.rules.count
    if rest > 0 { lines.append("  \(rest) more rules were not needed.") }
  }

  private mutating func writeFindings() {
    begin("Findings")
    if !explanation.findings.contains(where: \.stands) { lines.append("  None.") }
    for finding in explanation.findings {
      let subject = finding.subject == explanation.order.orderId ? "" : " on \(finding.subject)"
      if finding.stands {
        let stake = finding.atStake.map { ", \(Money.grouped($0)) \(finding.currency ?? "") at risk" } ?? ""
        lines.append("  \(finding.kind.title)\(subject) (\(finding.severity.rawValue)\(stake))")
        lines.append("    \(finding.reason)")
        lines.append("    What to do: \(finding.suggestedAction)")
      } else {
        lines.append("  Before: \(finding.kind.title)\(subject)")
        lines.append("    \(finding.reason)")
      }
      if let history = finding.history {
        write(history)
      } else {
        lines.append("    Not in any report yet; the next night will list it.")
      }
    }
  }

  private mutating func write(_ history: Explanation.History) {
    let age = "\(history.ageDays) \(history.ageDays == 1 ? "day" : "days")"
    var line = "    First seen \(time.text(history.firstSeen)) (\(age)), "
    line += history.closedAt.map { "closed \(time.text($0))" } ?? "last seen \(time.text(history.lastSeen))"
    line += ", \(history.status)"
    if let owner = history.owner { line += ", owner \(owner)" }
    lines.append(line)
    if let remark = history.remark { lines.append("    Remark: \(remark)") }
    for event in history.events {
      let actor = event.actor.map { " by \($0)" } ?? ""
      let detail = event.detail.map { ": \($0)" } ?? ""
      lines.append("      \(time.text(event.asOf))  \(event.event)\(actor)\(detail)")
    }
  }

  private mutating func writeDeclinedReasons() {
    if explanation.considered.isEmpty { return }
    begin("Findings that do not apply")
    for reason in explanation.considered { lines.append("  \(reason.kind.title): \(reason.because)") }
  }

  private mutating func writeEvents() {
    begin("Events in order of time")
    for event in explanation.events { lines.append("  \(time.text(event.at))  \(event.event)") }
  }

  // MARK: - Lines

  private mutating func begin(_ title: String) { lines += ["", title] }

  private mutating func field(_ name: String, _ value: String?, indent: Int = 2) {
    guard let value else { return }
    lines.append(
      String(repeating: " ", count: indent) + name + String(repeating: " ", count: max(1, 18 - name.count)) + value)
  }

  private func sentence(about proof: Explanation.Proof) -> String {
    var text =
      switch proof.outcome {
      case .pending: "Apple has not been asked about it yet."
      case .verified:
        proof.isUnproven == true ? "Apple knows the IDs in it. Its signature could not be verified." : "Genuine."
      case .rejected: "Rejected: \(proof.reason?.explanation ?? "it is not a valid proof")."
      case .unanswered: "No usable answer: \(proof.reason?.explanation ?? "Apple answered with an error")."
      case .review: "A person must check it: \(proof.reason?.explanation ?? "Apple's answer is unusual")."
      case .notFound: "Apple does not know it."
      }
    if let check = proof.failedCheck { text += " The check that failed: \(check)." }
    if proof.attempts > 0 { text += " Attempts in a row: \(proof.attempts)." }
    if let last = proof.lastAttempt { text += " Last asked \(time.text(last))." }
    if let next = proof.nextAttempt { text += " Next \(time.text(next))." }
    return text
  }

  private func answer(_ answer: Explanation.Answer) -> String {
    var text = "\(time.text(answer.asOf))  \(answer.channel): \(answer.outcome.rawValue)"
    if let reason = answer.reason { text += ", \(reason.explanation)" }
    if let status = answer.appleStatus { text += " (Apple's status \(status))" }
    if let environment = answer.environment { text += ", \(environment)" }
    let count = answer.transactions
    if count > 0 { text += ", \(count) transaction\(count == 1 ? "" : "s")" }
    return text
  }

  private func text(of statement: Explanation.Statement) -> String {
    var parts: [String] = []
    switch statement.refunded {
    case .silent: parts.append("nothing about refunds, which this channel cannot show here")
    case .no: parts.append("not refunded")
    case .yes: parts.append("refunded \(statement.refund.map(refund) ?? "")")
    }
    if let price = statement.price, let currency = statement.currency {
      parts.append("price \(Money.text(price: price, currency: currency))")
    }
    if statement.hasOffer == true {
      parts.append("an offer or trial\(statement.offerPeriod.map { " of \($0)" } ?? "")")
    }
    if statement.isRenewal == true { parts.append("a renewal") }
    if let date = statement.expiresAt { parts.append("expires \(time.text(date))") }
    if let price = statement.renewalPrice, let currency = statement.renewalCurrency {
      parts.append("renews at \(Money.text(price: price, currency: currency))")
    }
    var source = ""
    if let kind = statement.aboutKind, let id = statement.aboutId { source = " about \(kind) \(id)" }
    return "\(time.text(statement.signedAt))  \(statement.channel.rawValue)\(source): \(parts.joined(separator: "; "))"
  }

  private func refund(_ refund: Explanation.Refund) -> String {
    time.text(refund.date) + (refund.percentage.map { " (\($0) %)" } ?? "")
  }

  private func words(_ kind: ReceiptKind) -> String {
    switch kind {
    case .app: "an app receipt"
    case .transaction: "an old receipt of one purchase"
    case .signed: "a signed transaction"
    case .malformed: "no receipt at all"
    }
  }
}
