import AuditStore
import Postgres
import Reconciliation
import Reporting
import Run
import SalesStore
import Streams

/// Reads the facts about one order, by the same rules as the audit of all orders.
struct ExplanationReader {
  let orders: OrderReader
  let lookback: Reconciliation.Span

  private var rules: Rules { orders.rules }

  func explanation(of orderId: Identifier) throws -> Explanation? {
    let around = try RelatedOrders(around: [orderId], orders)
    guard let group = around.groups[orderId] else { return nil }
    var matching = around.matched(for: orderId, rules: rules)
    let deliveries = try orders.deliveries(of: orderId)

    let because: String
    var judgement: Judgement
    var reasoning: Reasoning?
    var facts: OrderFacts?
    var orphanFindings: [Finding] = []
    switch group.row {
    case .bad(let bad):
      because = "The row breaks the contract of the sales schema, so nothing is decided about it: \(bad.defect)."
      judgement = Judgement(reporting: bad)
      orphanFindings = group.findings(besideBadRow: deliveries, rules: rules)
    case .valid(let order):
      try addTokenUsers(&matching, of: order)
      let assembled = OrderFacts.assembled(
        order, group, deliveries, matching.transactions, matching.matched, rules: rules, open: around.open)
      facts = assembled
      let explained = Judgement.explained(assembled, rules: rules)
      (judgement, reasoning) = (explained.judgement, explained.reasoning)
      because = explained.reasoning.disposition
      if let twice = try boughtTwice(judgement) { judgement.add(twice) }
    }
    let (transactions, leftOver) = try transactions(group, facts, around, matching)
    let unclaimed = try sharingStakes(leftOver, with: judgement)
    let findings = judgement.findings + orphanFindings + unclaimed
    let repeatedRows = around.repeatedRows[orderId] ?? 0
    let sorted = deliveries.sorted { ($0.deliveredAt, $0.deliveryId) < ($1.deliveredAt, $1.deliveryId) }
    var explanation = Explanation(
      asOf: rules.asOf, isInLookback: judgement.row.createdAt >= rules.lookbackStart, lookback: lookback.words,
      order: Explanation.Order(judgement.row, repeatedRows: repeatedRows), disposition: judgement.disposition,
      dispositionBecause: because, payment: judgement.verdict?.name, paymentReason: judgement.verdict?.reason,
      rules: (reasoning?.steps ?? []).map { Explanation.Rule($0) },
      findings: try history(of: findings, group, deliveries), considered: [], transactions: transactions,
      proofs: try proofs(group, isAccused: findings.contains { $0.kind.has(.accusesCustomer) }),
      deliveries: sorted.map { Explanation.Delivery($0) }, events: [])
    let kinds = Set(findings.map(\.kind))
    explanation.considered = FindingKind.allCases.filter { !kinds.contains($0) }.compactMap { kind in
      reasoning?.declined[kind].map { Explanation.DeclinedFinding(kind: kind, because: $0) }
    }
    explanation.events = explanation.history
    return explanation
  }

  // MARK: - The shop's side

  private func boughtTwice(_ judgement: Judgement) throws -> Finding? {
    guard case .valid(let order) = judgement.row, rules.catalogue?.isNonConsumable(order.productId) ?? false else {
      return nil
    }
    var repeated = RepeatedPurchases(rules: rules)
    repeated.take(judgement)
    for other in try orders.nonConsumables(beside: [order.orderId]) ?? []
    where other.productId == order.productId && other.orderId != order.orderId {
      if let judgement = try self.judgement(of: other, []) { repeated.take(judgement) }
    }
    return repeated.findings().first { $0.orderId == order.orderId }
  }

  private func judgement(of order: Order, _ deliveries: [Delivery]) throws -> Judgement? {
    let around = try RelatedOrders(around: [order.orderId], orders)
    guard let group = around.groups[order.orderId] else { return nil }
    let matching = around.matched(for: order.orderId, rules: rules)
    let facts = OrderFacts.assembled(
      order, group, deliveries, matching.transactions, matching.matched, rules: rules, open: around.open)
    return Judgement(judging: facts, rules: rules)
  }

  /// Removes the amount at risk of orphan payments that an accused order of the person carries, as in the report.
  private func sharingStakes(_ payments: [Finding], with judgement: Judgement) throws -> [Finding] {
    var stakes = SharedStakes(rules: rules)
    for payment in payments { stakes.add(payment: payment) }
    if stakes.isEmpty { return payments }
    for finding in judgement.findings { stakes.add(order: finding) }
    let users = payments.compactMap(\.userId).reduce(into: Set<Identifier>()) { $0.formUnion(rules.people.ids(of: $1)) }
    let placed = try orders.orders(orders.orderIds(ofUsers: users)).values
    for other in placed where other.orderId != judgement.row.orderId && other.createdAt >= rules.lookbackStart {
      let mayShare = payments.contains { payment in
        payment.productId == other.productId && payment.bundleId == rules.bundleId(of: other)
          && payment.occurredAt.map { ($0 - other.createdAt).magnitude <= rules.matchWindow } ?? false
      }
      guard mayShare, let accused = try self.judgement(of: other, orders.deliveries(of: other.orderId)) else {
        continue
      }
      for finding in accused.findings { stakes.add(order: finding) }
    }
    let carried = stakes.carriedPayments()
    return payments.map { payment in
      var payment = payment
      if carried.contains(payment.identity) { payment.atStake = nil }
      return payment
    }
  }

  /// Adds users with the account tokens that the audit asks about for this order.
  private func addTokenUsers(_ matching: inout RelatedOrders.Matching, of order: Order) throws {
    for token in matching.otherTokens {
      let users = try orders.orders(holding: [token])
        .filter { $0.appAccountToken.map(AccountToken.spelling) == token }.map(\.userId)
      guard let user = rules.people.tokenUser(among: users, for: order.userId) else { continue }
      matching.transactions.take(.tokenUser(token: token, userId: user))
    }
  }

  // MARK: - Apple's side

  private func proofs(_ group: OrderGroup, isAccused: Bool) throws -> [Explanation.Proof] {
    let received = group.proofs.sorted {
      ($0.receipt.receivedAt, $0.receipt.receiptId) < ($1.receipt.receivedAt, $1.receipt.receiptId)
    }
    var proofs: [(subject: CheckSubject, receipt: Receipt?, state: ProofState, contained: [TransactionKey])] = []
    for proof in received {
      let subject = CheckSubject(kind: .receipt, id: proof.receipt.receiptId)
      proofs.append((subject, proof.receipt, proof.receipt.state, proof.contained))
    }
    if let lookup = group.lookup {
      proofs.append((CheckSubject(kind: .lookup, id: lookup.subjectId), nil, lookup.state, lookup.contained))
    }
    let answers = try answers(Set(proofs.map(\.subject)))
    return proofs.map { proof in
      let isRepeated = proof.receipt?.isRepeated ?? false
      return Explanation.Proof(
        proof.subject, proof.receipt, proof.state, contained: proof.contained, isAccused: isAccused,
        answers: isRepeated ? [] : answers[proof.subject] ?? [])
    }
  }

  private func answers(_ subjects: Set<CheckSubject>) throws -> [CheckSubject: [Explanation.Answer]] {
    if subjects.isEmpty { return [:] }
    var found: [CheckSubject: [Explanation.Answer]] = [:]
    let rows = try orders.stores.own.execute(
      """
      SELECT subject_kind, subject_id, as_of, channel, outcome, reason, environment, apple_status, facts
      FROM night_audit.answers
      JOIN unnest($1::text[], $2::text[]) AS wanted (subject_kind, subject_id) USING (subject_kind, subject_id)
      WHERE outcome <> 'pending' ORDER BY answer_id
      """, [.textArray(subjects.map(\.kind.rawValue)), .textArray(subjects.map(\.id.text))])
    for row in rows {
      found[try CheckSubject(row), default: []].append(
        Explanation.Answer(
          asOf: Instant(microseconds: try row.timestamp("as_of")), channel: try row.text("channel"),
          outcome: CheckOutcome(rawValue: try row.text("outcome")) ?? .pending,
          reason: try row.optionalText("reason").flatMap(PaymentReason.init),
          environment: try row.optionalText("environment"), appleStatus: try row.optionalInt32("apple_status"),
          transactions: Int(try row.int32("facts"))))
    }
    return found
  }

  // MARK: - Transactions

  private func transactions(
    _ group: OrderGroup, _ facts: OrderFacts?, _ around: RelatedOrders, _ matching: RelatedOrders.Matching
  ) throws -> ([Explanation.Transaction], [Finding]) {
    let claims = facts?.claims ?? OrderClaims()
    let orderId = group.row.orderId
    // An account token or a subscription links orders to transactions without a receipt or a stated ID.
    let linked = matching.claimants.lazy.filter { $0.value.contains(orderId) }.map(\.key.transactionId)
    let own = Set(group.references.map(\.transactionId)).union(linked)
    let records = own.flatMap { around.records[$0] ?? [] }.filter { record in
      group.containsTransaction(record.key) || matching.claimants[record.key]?.contains(orderId) ?? false
    }
    let purchases = Dictionary(grouping: records) { $0.purchaseKey }.values
      .map { around.purchase(of: $0, stated: group.row.named) }.sorted { $0.shown.key < $1.shown.key }
    let evidence = try evidence(about: purchases.map(\.shown))
    var presumedUsers = matching.unclaimed
    for (record, userId) in matching.transactions.unshared(by: group, rules: rules)
    where !claims.referTo(record, stating: group.row.named) {
      presumedUsers[record.key] = .some(userId)
    }
    var leftOver: [Finding] = []
    let transactions = purchases.map { purchase in
      let shown = purchase.shown
      let isOwned = claims.owned.contains { $0.purchaseKey == shown.purchaseKey }
      let finding = purchase.records.compactMap { record in
        presumedUsers[record.key].flatMap {
          OrphanFindings.finding(on: record, userId: $0, receiptId: nil, rules: rules)
        }
      }.first
      if let finding { leftOver.append(finding) }
      return Explanation.Transaction(
        shown, isOwned: isOwned,
        standing: facts?.relation(to: purchase, rules: rules)
          ?? "The order row breaks the contract of the sales schema, so it claims nothing.",
        unclaimed: finding?.reason.text, competitors: competitors(for: shown.keys, of: orderId, around, matching),
        around.reasoning(about: shown, matching, ownedBy: isOwned ? orderId : nil, rules),
        evidence: evidence[shown.key] ?? [])
    }
    return (transactions, leftOver)
  }

  /// Other orders that state one of a purchase's transaction IDs or have proofs of it, oldest first.
  private func competitors(
    for keys: [TransactionKey], of orderId: Identifier, _ around: RelatedOrders, _ matching: RelatedOrders.Matching
  ) -> [Explanation.Competitor] {
    let references = keys.flatMap { around.references[$0.transactionId] ?? [] }
    let ids = Set(references.compactMap { $0.order?.orderId }).subtracting([orderId])
    return ids.compactMap { id -> Explanation.Competitor? in
      guard let group = around.groups[id], case .valid(let order) = group.row else { return nil }
      let names = keys.contains { $0.transactionId == order.transactionId }
      guard names || keys.contains(where: { group.containsTransaction($0) }) else { return nil }
      return Explanation.Competitor(
        orderId: id, userId: order.userId, createdAt: order.createdAt, names: names,
        owns: keys.contains { matching.owners[$0] == id })
    }
    .sorted { ($0.createdAt, $0.orderId) < ($1.createdAt, $1.orderId) }
  }

  /// The evidence about all transaction IDs of purchases, by the key of the shown record.
  private func evidence(about purchases: [TransactionRecord]) throws -> [TransactionKey: [Explanation.Statement]] {
    if purchases.isEmpty { return [:] }
    var shown: [TransactionKey: TransactionKey] = [:]
    for record in purchases { for key in record.keys { shown[key] = record.key } }
    let keys = Array(shown.keys)
    var found: [TransactionKey: [Explanation.Statement]] = [:]
    let rows = try orders.stores.own.execute(
      """
      SELECT \(EvidenceTable.columns.dropFirst().joined(separator: ", ")) FROM night_audit.evidence
      JOIN unnest($1::text[], $2::text[]) AS wanted (transaction_id, environment) USING (transaction_id, environment)
      ORDER BY signed_at, evidence_id
      """, [.textArray(keys.map(\.transactionId.text)), .textArray(keys.map(\.environment.rawValue))])
    for row in rows {
      let fact = try EvidenceTable.fact(row, from: EvidenceTable.firstOfFact - 1)
      let key = TransactionKey(environment: fact.environment, transactionId: Identifier(fact.transactionId))
      guard let purchase = shown[key] else { continue }
      found[purchase, default: []].append(
        Explanation.Statement(
          fact, asOf: Instant(microseconds: try row.timestamp("as_of")),
          about: try row.isNull("subject_id") ? nil : try CheckSubject(row)))
    }
    return found
  }

  // MARK: - Findings

  /// Current and earlier findings about the order and its proofs. Their IDs follow from kind and subject.
  private func history(
    of current: [Finding], _ group: OrderGroup, _ deliveries: [Delivery]
  ) throws -> [Explanation.Finding] {
    var subjects: Set<Subject> = [.order(group.row.orderId)]
    subjects.formUnion(deliveries.map { .delivery($0.deliveryId) })
    subjects.formUnion(group.proofs.map { .receipt($0.receipt.receiptId) })
    subjects.formUnion(group.references.map { .transaction($0.transactionId) })
    let ids = FindingKind.allCases.flatMap { kind in
      subjects.map { Finding(kind: kind, subject: $0, reason: "").findingId }
    }
    var known: [String: Explanation.Finding] = [:]
    let rows = try orders.stores.own.execute(
      "SELECT \(StoredFinding.columns) FROM night_audit.findings f WHERE f.finding_id = ANY ($1)", [.textArray(ids)])
    for row in rows {
      guard let stored = try StoredFinding(row) else { continue }
      let (reported, finding) = (stored.reported, stored.reported.finding)
      // A bad copy of a receipt or delivery of this order may be a row of another order, whose finding it is.
      if stored.closedAt == nil, let orderId = finding.orderId, orderId != group.row.orderId { continue }
      known[reported.findingId] = Explanation.Finding(
        findingId: reported.findingId, kind: finding.kind, severity: finding.severity, subject: finding.subject.id,
        stands: false, reason: finding.reason.text, suggestedAction: finding.suggestedAction,
        history: Explanation.History(
          firstSeen: reported.firstSeen, lastSeen: stored.lastSeen, closedAt: stored.closedAt,
          ageDays: max(0, (rules.asOf - reported.firstSeen).wholeDays), status: reported.status,
          owner: reported.owner, remark: reported.remark, events: []))
    }
    let events = try orders.stores.own.execute(
      """
      SELECT finding_id, as_of, event, actor, detail FROM night_audit.finding_events
      WHERE finding_id = ANY ($1) AND event <> 'changed' ORDER BY event_id
      """, [.textArray(known.keys.sorted())])
    for row in events {
      known[try row.text("finding_id")]?.history?.events.append(
        Explanation.Event(
          asOf: Instant(microseconds: try row.timestamp("as_of")), event: try row.text("event"),
          actor: try row.optionalText("actor"), detail: try row.optionalText("detail")))
    }
    // Several bad rows with one ID are one finding, as in the report.
    var stands: Set<String> = []
    let distinct = current.filter { stands.insert($0.findingId).inserted }
    return distinct.map { Explanation.Finding($0, known[$0.findingId]?.history) }
      + known.values.filter { !stands.contains($0.findingId) }.sorted { $0.findingId < $1.findingId }
  }
}

extension CheckSubject {
  fileprivate init(_ row: PostgresRow) throws(PostgresError) {
    self.init(
      kind: Kind(rawValue: try row.text("subject_kind")) ?? .receipt, id: Identifier(try row.text("subject_id")))
  }
}

extension OrderFacts {
  fileprivate func relation(to purchase: RelatedOrders.Purchase, rules: Rules) -> String {
    let key = purchase.shown.purchaseKey
    if let owned = claims.owned.first(where: { $0.purchaseKey == key }) {
      return owned.isOf(order.transactionId)
        ? "This order states it and owns it."
        : "This order owns it. \(claimant(rules).explanationOfUnstatedClaim(owned, rules: rules))"
    }
    if let lost = claims.lost.first(where: { $0.transaction.purchaseKey == key }) {
      return "This order claims it, but order \(lost.ownerOrderId) of user \(lost.ownerUserId) owns it."
    }
    if let refused = claims.refused, refused.transaction.purchaseKey == key {
      return "This order states it, but \(explanation(of: refused.reason))."
    }
    if claims.contradictory?.purchaseKey == key {
      return "This order states it, but Apple's records about it contradict each other."
    }
    let own = claimant(rules).explanationOfUnstatedClaim(purchase.records[0], rules: rules)
    return "This order does not own it. \(own)"
  }
}
