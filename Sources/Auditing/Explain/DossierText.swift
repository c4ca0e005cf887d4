import AuditStore
import Reconciliation
import Reporting
import Run

/// One order in plain words, for a terminal or a mail.
package struct DossierText {
  private let dossier: OrderDossier
  private let time: LocalTimeText
  private var lines: [String] = []

  package init(_ dossier: OrderDossier, settings: Settings) {
    self.dossier = dossier
    time = LocalTimeText(zone: settings.timeZone, name: settings.timeZoneName)
  }

  /// The whole text, in sections.
  package static func text(_ dossier: OrderDossier, settings: Settings) -> String {
    var page = DossierText(dossier, settings: settings)
    page.writeVerdict()
    page.writeOrder()
    page.writeProofs()
    page.writeTransactions()
    page.writeDeliveries()
    page.writeRules()
    page.writeFindings()
    page.writeReasonsAgainst()
    return page.lines.joined(separator: "\n")
  }

  // MARK: - Sections

  private mutating func writeVerdict() {
    let judgement = dossier.judgement
    lines.append(
      "Order \(judgement.row.orderId), as of \(time.text(dossier.asOf)). Times are those of \(time.zoneName).")
    lines.append("")
    lines.append("\(judgement.disposition.rawValue): \(dossier.reasoning?.disposition ?? badRow)")
    if let verdict = judgement.verdict {
      let reason = verdict.reason.map { " (\($0.rawValue))" } ?? ""
      lines.append("Payment: \(verdict.name)\(reason). \(dossier.reasoning?.steps.last?.because ?? "")")
    }
    if dossier.repeatedRows > 0 {
      lines.append("order_id is not unique: \(dossier.repeatedRows) more rows have this id; each is a bad_row.")
    }
    if !dossier.isInLookback {
      lines.append(
        "The order is older than audit.lookback (\(dossier.lookback.words)): nights no longer list findings on it.")
    }
  }

  private var badRow: String {
    guard case .bad(let bad) = dossier.judgement.row else { return "" }
    return "The row breaks the contract of the sales schema, so nothing is decided about it: \(bad.defect)."
  }

  private mutating func writeOrder() {
    begin("What we recorded")
    let row = dossier.judgement.row
    field("user", row.userId.text)
    switch row {
    case .valid(let order):
      field("product", "\(order.quantity) x \(order.productId)")
      field("amount", "\(order.amount.decimalText) \(order.amount.currency)")
      field("status", order.status.rawValue)
      field("app", order.bundleId)
      field("transaction id", order.transactionId?.text)
      field("account token", order.appAccountToken)
      field("created", time.text(order.createdAt))
      field("verified", order.verifiedAt.map { time.text($0) })
    case .bad(let bad):
      field("product", "\(bad.quantity) x \(bad.productId)")
      field("amount", "\(bad.amountText) \(bad.currencyText)")
      field("status", bad.statusText)
      field("app", bad.bundleId)
      field("transaction id", bad.transactionId?.text)
      field("created", time.text(bad.createdAt))
    }
  }

  private mutating func writeProofs() {
    begin("Receipts, and what Apple answered")
    if dossier.proofs.isEmpty { lines.append("  None was sent for this order.") }
    for proof in dossier.proofs {
      let state = proof.state
      let kind = state.kind.map { " (\(words($0)))" } ?? ""
      if let receipt = proof.receipt {
        let sender = receipt.userId.map { " by \($0)" } ?? ""
        lines.append("  Receipt \(receipt.receiptId)\(kind), sent \(time.text(receipt.receivedAt))\(sender)")
        if let defect = receipt.defect {
          lines.append("    The row breaks the contract and counts for nothing: \(defect).")
        }
        if let claimed = receipt.claimedEnvironment {
          lines.append("    The client called it \(claimed); Apple: \(state.environment?.rawValue ?? "not told").")
        }
      } else {
        lines.append("  Look-up of transaction id \(proof.subject.id)")
      }
      lines.append("    \(sentence(about: state))")
      lines += proof.answers.map { "    \(answer($0))" }
      if !proof.brought.isEmpty {
        lines.append(
          "    Brought \(proof.brought.map { "\($0.transactionId) (\($0.environment.rawValue))" }.joined(separator: ", "))."
        )
      }
    }
  }

  private mutating func writeTransactions() {
    begin("What Apple says")
    if dossier.transactions.isEmpty { lines.append("  No transaction is known that has to do with this order.") }
    for transaction in dossier.transactions {
      let record = transaction.record
      var what = "\(record.quantity.map { "\($0) x " } ?? "")\(record.productId)"
      if let price = record.price { what += " for \(price.decimalText) \(price.currency)" }
      lines.append("  Transaction \(record.transactionId) (\(record.environment.rawValue)): \(what)")
      lines.append("    \(transaction.standing)")
      field("bought", record.purchaseDate.map { time.text($0) }, indent: 4)
      field("app", record.bundleId, indent: 4)
      field("expires", (record.subscriptionExpiresDate ?? record.expiresDate).map { time.text($0) }, indent: 4)
      if let revocation = record.revocation { field("refunded", refund(revocation), indent: 4) }
      if let date = record.revocationWithdrawnDate {
        field("refund taken back", "told \(time.text(date))", indent: 4)
      }
      if record.isFamilyShared { field("ownership", "Family Sharing", indent: 4) }
      if case .says(.some(let token)) = record.appAccountToken { field("account token", token, indent: 4) }
      for competitor in transaction.competitors {
        let how = competitor.names ? "names it too" : "has a receipt that brought it, too"
        lines.append(
          "    Order \(competitor.order.orderId) of user \(competitor.order.userId), created "
            + "\(time.text(competitor.order.createdAt)), \(how)\(competitor.owns ? ", and owns it" : "").")
      }
      if let finding = transaction.leftOver { lines.append("    No order claims it: \(finding.reason)") }
      for statement in transaction.evidence { lines.append("    \(said(statement))") }
    }
  }

  private mutating func writeDeliveries() {
    begin("What was delivered")
    if dossier.deliveries.isEmpty { lines.append("  Nothing is recorded for this order.") }
    for delivery in dossier.deliveries {
      let back = delivery.revokedAt.map { ", taken back \(time.text($0))" } ?? ""
      lines.append(
        "  \(delivery.deliveryId): \(delivery.quantity) x \(delivery.productId) to user \(delivery.userId) on "
          + "\(time.text(delivery.deliveredAt))\(back)")
      if let defect = delivery.defect {
        lines.append("    The row breaks the contract and counts for nothing: \(defect).")
      }
    }
  }

  private mutating func writeRules() {
    guard let reasoning = dossier.reasoning else { return }
    begin("How the payment was decided: the first rule that holds")
    for step in reasoning.steps {
      lines.append("  \(step.verdict == nil ? "no " : "YES")  \(step.rule.question)")
      lines.append("       \(step.because)")
    }
    let rest = VerdictRule.allCases.count - reasoning.steps.count
    if rest > 0 { lines.append("  \(rest) more rules were not needed.") }
  }

  private mutating func writeFindings() {
    begin("Findings")
    if dossier.findings.isEmpty { lines.append("  None.") }
    for finding in dossier.findings {
      let subject = finding.subject == .order(dossier.judgement.row.orderId) ? "" : " on \(finding.subject.id)"
      let stake = finding.atStake.map { ", \($0.decimalText) \($0.currency) at stake" } ?? ""
      lines.append("  \(finding.kind.rawValue)\(subject) (\(finding.severity.rawValue)\(stake))")
      lines.append("    \(finding.reason)")
      lines.append("    What to do: \(finding.kind.suggestedAction)")
      if let known = dossier.known[finding.findingId], known.closedAt == nil {
        write(known)
      } else {
        lines.append("    Not in any report yet; the next night will list it.")
      }
    }
    let standing = Set(dossier.findings.map(\.findingId))
    let gone = dossier.known.values.filter { !standing.contains($0.findingId) || $0.closedAt != nil }
    for known in gone.sorted(by: { ($0.firstSeen, $0.findingId) < ($1.firstSeen, $1.findingId) }) {
      let subject = known.subject == dossier.judgement.row.orderId ? "" : " on \(known.subject)"
      lines.append("  Before: \(known.kind.rawValue)\(subject)")
      lines.append("    \(known.reason)")
      write(known)
    }
  }

  private mutating func write(_ known: OrderDossier.Known) {
    let age = max(0, (dossier.asOf - known.firstSeen).wholeDays)
    var line = "    First seen \(time.text(known.firstSeen)) (\(age) \(age == 1 ? "day" : "days")), "
    line += known.closedAt.map { "closed \(time.text($0))" } ?? "last seen \(time.text(known.lastSeen))"
    line += ", \(known.status)"
    if let owner = known.owner { line += ", owner \(owner)" }
    lines.append(line)
    if let remark = known.remark { lines.append("    Remark: \(remark)") }
    for event in known.events {
      let actor = event.actor.map { " by \($0)" } ?? ""
      let detail = event.detail.map { ": \($0)" } ?? ""
      lines.append("      \(time.text(event.asOf))  \(event.event)\(actor)\(detail)")
    }
  }

  private mutating func writeReasonsAgainst() {
    let reasons = dossier.reasonsAgainst
    if reasons.isEmpty { return }
    begin("What was considered and does not hold")
    for (kind, because) in reasons { lines.append("  \(kind.rawValue): \(because)") }
  }

  // MARK: - Lines

  private mutating func begin(_ title: String) { lines += ["", title] }

  private mutating func field(_ name: String, _ value: String?, indent: Int = 2) {
    guard let value else { return }
    lines.append(
      String(repeating: " ", count: indent) + name + String(repeating: " ", count: max(1, 18 - name.count)) + value)
  }

  private func sentence(about state: ProofState) -> String {
    var text =
      switch state.outcome {
      case .pending: "Nobody has asked Apple about it yet."
      case .verified: "Genuine."
      case .rejected: "Refused: \(state.reason?.explanation ?? "it is no proof")."
      case .unanswered: "No usable answer: \(state.reason?.explanation ?? "Apple answered with an error")."
      case .review: "A person has to look: \(state.reason?.explanation ?? "Apple's answer is unusual")."
      case .notFound: "Apple does not know it."
      }
    if state.attempts > 0 { text += " Attempts in a row: \(state.attempts)." }
    if let last = state.lastAttempt { text += " Last asked \(time.text(last))." }
    if let next = state.nextAttempt { text += " Next \(time.text(next))." }
    return text
  }

  private func answer(_ answer: OrderDossier.Answer) -> String {
    var text = "\(time.text(answer.asOf))  \(answer.channel): \(answer.outcome.rawValue)"
    if let reason = answer.reason { text += ", \(reason.explanation)" }
    if let status = answer.appleStatus { text += " (Apple's status \(status))" }
    if let environment = answer.environment { text += ", \(environment)" }
    if answer.facts > 0 { text += ", \(answer.facts) transaction\(answer.facts == 1 ? "" : "s")" }
    return text
  }

  private func said(_ statement: OrderDossier.Statement) -> String {
    let fact = statement.fact
    var parts: [String] = []
    switch fact.revocation {
    case .silent: parts.append("nothing about refunds, which this channel cannot show here")
    case .says(.none): parts.append("not refunded")
    case .says(.some(let revocation)): parts.append("refunded \(refund(revocation))")
    }
    if let milliunits = fact.priceMilliunits, let currency = fact.currency {
      parts.append("price \(Money.decimalText(Int128(milliunits), digits: 3)) \(currency)")
    }
    if fact.hasOffer == true { parts.append("an offer or trial") }
    if fact.isRenewal == true { parts.append("a renewal") }
    if let date = fact.expiresDate { parts.append("expires \(time.text(date))") }
    let source = statement.subject.map { " about \($0.kind.rawValue) \($0.id)" } ?? ""
    return "\(time.text(fact.signedDate))  \(fact.channel.rawValue)\(source): \(parts.joined(separator: "; "))"
  }

  private func refund(_ revocation: Revocation) -> String {
    let part = revocation.percentage.map { " (\(Money.decimalText(Int128($0), digits: 3)) %)" } ?? ""
    return time.text(revocation.date) + part
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
