import AuditStore
import Postgres
import Reconciliation
import Reporting
import Run
import SalesStore
import Streams

/// Reads what is known about one order: the same facts that the audit of all orders judges it by, brought together by the
/// same rules.
struct DossierReader: ~Copyable {
  /// To the shop's relations, in a snapshot.
  let shop: BlockingConnection
  /// To our own schema, in a snapshot.
  let own: BlockingConnection
  let sales: SalesRows
  let rules: Rules
  let lookback: Reconciliation.Span

  /// nil when there is no order of that id.
  func dossier(_ orderId: Identifier) throws -> OrderDossier? {
    let around = try Neighbourhood(around: orderId, shop: shop, own: own, sales, rules: rules)
    guard let group = around.groups[orderId] else { return nil }
    var matching = around.matched(for: orderId, rules: rules)
    let deliveries = AuditPass.markingRepeated(try deliveries(orderId))
    let receipts = group.proofs.map(\.receipt)

    var dossier: OrderDossier
    var facts: OrderFacts?
    switch group.row {
    case .bad(let bad):
      dossier = OrderDossier(rules, lookback, Judgement(reporting: bad), nil)
      dossier.findings += deliveries.filter { $0.defect != nil }.map { Unowned.finding(on: $0) }
      dossier.findings += receipts.filter { $0.defect != nil }.flatMap { Unowned.findings(on: $0) }
    case .valid(let order):
      try addTokenUser(&matching, of: order)
      let assembled = OrderFacts.assembled(
        order, group, deliveries, matching.transactions, matching.matched, rules: rules)
      facts = assembled
      let (judgement, reasoning) = Judgement.explained(assembled, rules: rules)
      dossier = OrderDossier(rules, lookback, judgement, reasoning)
    }
    dossier.repeatedRows = around.repeatedRows[orderId] ?? 0
    dossier.deliveries = deliveries.sorted { ($0.deliveredAt, $0.deliveryId) < ($1.deliveredAt, $1.deliveryId) }
    dossier.transactions = try transactions(group, facts, around, matching)
    dossier.findings += dossier.transactions.compactMap(\.leftOver)
    dossier.proofs = try proofs(group)
    dossier.known = try knownFindings(dossier)
    return dossier
  }

  // MARK: - The shop's side

  private func deliveries(_ orderId: Identifier) throws -> [Delivery] {
    var found: [Delivery] = []
    var reader = try shop.copyOut(
      """
      SELECT \(SalesRows.deliveryColumns) FROM \(sales.schema).deliveries d
      WHERE d.order_id::text COLLATE "C" IN (SELECT id FROM ids)
      """, ids: [orderId])
    while try reader.advance() { found.append(try sales.delivery(reader, asOf: rules.asOf)) }
    return found
  }

  /// Who else has the account token on file that a transaction of this order carries.
  private func addTokenUser(_ matching: inout Neighbourhood.Matching, of order: Order) throws {
    guard order.appAccountToken == nil else { return }
    let records = matching.transactions.claimable + (matching.matched?.contested ?? [])
    for case .says(.some(let text)) in records.map(\.appAccountToken) {
      let token = AccountToken.normalized(text)
      var users: Set<Identifier> = []
      var reader = try shop.copyOut(
        """
        SELECT \(SalesRows.orderColumns) FROM \(sales.schema).orders o
        WHERE replace(lower(o.app_account_token::text), '-', '') COLLATE "C" IN (SELECT id FROM ids)
        """, ids: [Identifier(token)])
      while try reader.advance() {
        if case .valid(let holder) = try sales.order(reader, asOf: rules.asOf) { users.insert(holder.userId) }
      }
      guard !users.contains(where: { rules.people.isSame($0, order.userId) }), let other = users.min() else { continue }
      matching.transactions.take(.tokenUser(token: token, userId: other))
    }
  }

  // MARK: - Apple's side

  private func proofs(_ group: OrderGroup) throws -> [OrderDossier.Proof] {
    var proofs = group.proofs.map { proof in
      OrderDossier.Proof(
        subject: CheckSubject(kind: .receipt, id: proof.receipt.receiptId), receipt: proof.receipt,
        state: proof.receipt.state, brought: proof.brought.sorted())
    }
    proofs.sort {
      ($0.receipt?.receivedAt ?? rules.asOf, $0.subject.id) < ($1.receipt?.receivedAt ?? rules.asOf, $1.subject.id)
    }
    if let lookup = group.lookup {
      proofs.append(
        OrderDossier.Proof(
          subject: CheckSubject(kind: .lookup, id: lookup.subjectId), state: lookup.state,
          brought: lookup.brought.sorted()))
    }
    let answers = try answers(proofs.map(\.subject))
    for index in proofs.indices { proofs[index].answers = answers[proofs[index].subject] ?? [] }
    return proofs
  }

  private func answers(_ subjects: [CheckSubject]) throws -> [CheckSubject: [OrderDossier.Answer]] {
    if subjects.isEmpty { return [:] }
    var found: [CheckSubject: [OrderDossier.Answer]] = [:]
    let rows = try own.execute(
      """
      SELECT subject_kind, subject_id, as_of, channel, outcome, reason, environment, apple_status, facts
      FROM night_audit.answers
      JOIN unnest($1::text[], $2::text[]) AS wanted (subject_kind, subject_id) USING (subject_kind, subject_id)
      ORDER BY answer_id
      """, subjects.parameters)
    for row in rows {
      found[try CheckSubject(row), default: []].append(
        OrderDossier.Answer(
          asOf: Instant(microseconds: try row.timestamp("as_of")), channel: try row.text("channel"),
          outcome: CheckOutcome(rawValue: try row.text("outcome")) ?? .pending,
          reason: try row.optionalText("reason").flatMap(PaymentReason.init),
          environment: try row.optionalText("environment"), appleStatus: try row.optionalInt32("apple_status"),
          facts: Int(try row.int32("facts"))))
    }
    return found
  }

  // MARK: - Transactions

  private func transactions(
    _ group: OrderGroup, _ facts: OrderFacts?, _ around: Neighbourhood, _ matching: Neighbourhood.Matching
  ) throws -> [OrderDossier.Transaction] {
    let claims = facts?.claims ?? OrderClaims()
    let own = Set(group.mentions.map(\.transactionId))
    let records = own.flatMap { around.records[$0] ?? [] }.filter { record in
      group.brings(record.key) || matching.claimants[record.key]?.contains(group.row.orderId) ?? false
    }
    let evidence = try evidence(records.map(\.key))
    return records.sorted { $0.key < $1.key }.map { record in
      let key = record.key
      let isOwned = claims.owned.contains { $0.key == key }
      var transaction = OrderDossier.Transaction(
        record: record, isOwned: isOwned,
        standing: facts?.standing(of: record, rules: rules)
          ?? "The order row breaks the contract of the sales schema, so it claims nothing.")
      if let userId = matching.unclaimed[key] {
        transaction.leftOver = Unowned.finding(on: record, userId: userId, receiptId: nil, rules: rules)
      } else if matching.claimants[key] == [group.row.orderId], !claims.areAbout(key) {
        transaction.leftOver = Unowned.finding(on: record, userId: group.row.userId, receiptId: nil, rules: rules)
      }
      transaction.competitors = competitors(for: key, of: group.row.orderId, around, matching)
      transaction.evidence = evidence[key] ?? []
      return transaction
    }
  }

  /// Which other orders name a transaction, or have proofs that brought it, oldest first.
  private func competitors(
    for key: TransactionKey, of orderId: Identifier, _ around: Neighbourhood, _ matching: Neighbourhood.Matching
  ) -> [OrderDossier.Competitor] {
    let ids = Set((around.mentions[key.transactionId] ?? []).compactMap { $0.order?.orderId }).subtracting([orderId])
    return ids.compactMap { id -> OrderDossier.Competitor? in
      guard let group = around.groups[id], case .valid(let order) = group.row else { return nil }
      let names = order.transactionId == key.transactionId
      guard names || group.brings(key) else { return nil }
      return OrderDossier.Competitor(order: order, names: names, owns: matching.owners[key] == id)
    }
    .sorted { ($0.order.createdAt, $0.order.orderId) < ($1.order.createdAt, $1.order.orderId) }
  }

  private func evidence(_ keys: [TransactionKey]) throws -> [TransactionKey: [OrderDossier.Statement]] {
    if keys.isEmpty { return [:] }
    var found: [TransactionKey: [OrderDossier.Statement]] = [:]
    let rows = try own.execute(
      """
      SELECT \(EvidenceTable.columns.dropFirst().joined(separator: ", ")) FROM night_audit.evidence
      JOIN unnest($1::text[], $2::text[]) AS wanted (transaction_id, environment) USING (transaction_id, environment)
      ORDER BY signed_at, evidence_id
      """, [.textArray(keys.map(\.transactionId.text)), .textArray(keys.map(\.environment.rawValue))])
    for row in rows {
      let fact = try EvidenceTable.fact(row)
      let key = TransactionKey(environment: fact.environment, transactionId: Identifier(fact.transactionId))
      found[key, default: []].append(
        OrderDossier.Statement(
          fact: fact, asOf: Instant(microseconds: try row.timestamp("as_of")),
          subject: try row.isNull("subject_id") ? nil : try CheckSubject(row)))
    }
    return found
  }

  // MARK: - Findings

  /// Every finding that ever stood on the order or on what belongs to it: their ids follow from kind and subject.
  private func knownFindings(_ dossier: OrderDossier) throws -> [String: OrderDossier.Known] {
    var subjects: Set<Subject> = [.order(dossier.judgement.row.orderId)]
    subjects.formUnion(dossier.deliveries.map { .delivery($0.deliveryId) })
    subjects.formUnion(dossier.proofs.compactMap { $0.receipt.map { .receipt($0.receiptId) } })
    subjects.formUnion(dossier.transactions.map { .transaction($0.record.transactionId) })
    let ids = FindingKind.allCases.flatMap { kind in
      subjects.map { Finding(kind: kind, subject: $0, reason: "").findingId }
    }
    var found: [String: OrderDossier.Known] = [:]
    let rows = try own.execute(
      """
      SELECT finding_id, kind, subject, reason, first_seen, last_seen, closed_at, status, owner, remark
      FROM night_audit.findings WHERE finding_id = ANY ($1)
      """, [.textArray(ids)])
    for row in rows {
      guard let kind = FindingKind(rawValue: try row.text("kind")) else { continue }
      let id = try row.text("finding_id")
      found[id] = OrderDossier.Known(
        findingId: id, kind: kind, subject: Identifier(try row.text("subject")), reason: try row.text("reason"),
        firstSeen: Instant(microseconds: try row.timestamp("first_seen")),
        lastSeen: Instant(microseconds: try row.timestamp("last_seen")),
        closedAt: try row.optionalTimestamp("closed_at").map { Instant(microseconds: $0) },
        status: try row.text("status"), owner: try row.optionalText("owner"), remark: try row.optionalText("remark"))
    }
    let events = try own.execute(
      """
      SELECT finding_id, as_of, event, actor, detail FROM night_audit.finding_events
      WHERE finding_id = ANY ($1) ORDER BY event_id
      """, [.textArray(found.keys.sorted())])
    for row in events {
      found[try row.text("finding_id")]?.events.append(
        OrderDossier.Event(
          asOf: Instant(microseconds: try row.timestamp("as_of")), event: try row.text("event"),
          actor: try row.optionalText("actor"), detail: try row.optionalText("detail")))
    }
    return found
  }
}

extension OrderDossier {
  fileprivate init(_ rules: Rules, _ lookback: Reconciliation.Span, _ judgement: Judgement, _ reasoning: Reasoning?) {
    self.init(
      asOf: rules.asOf, isInLookback: judgement.row.createdAt >= rules.lookbackStart, lookback: lookback,
      judgement: judgement, reasoning: reasoning, findings: judgement.findings, known: [:], deliveries: [], proofs: [],
      transactions: [], repeatedRows: 0)
  }
}

extension [CheckSubject] {
  fileprivate var parameters: [PostgresValue] { [.textArray(map(\.kind.rawValue)), .textArray(map(\.id.text))] }
}

extension CheckSubject {
  fileprivate init(_ row: PostgresRow) throws(PostgresError) {
    self.init(
      kind: Kind(rawValue: try row.text("subject_kind")) ?? .receipt, id: Identifier(try row.text("subject_id")))
  }
}

extension OrderFacts {
  /// What the order has to do with a transaction, as a sentence.
  fileprivate func standing(of record: TransactionRecord, rules: Rules) -> String {
    let isNamed = order.transactionId == record.transactionId
    if claims.owned.contains(where: { $0.key == record.key }) {
      return isNamed
        ? "This order names it and owns it."
        : "This order owns it. \(claimant.reasonAboutUnnamed(record, rules: rules))"
    }
    if let lost = claims.lost.first(where: { $0.transaction.key == record.key }) {
      return "This order claims it, but order \(lost.ownerOrderId) of user \(lost.ownerUserId) owns it."
    }
    if let refused = claims.refused, refused.transaction.key == record.key {
      return "This order names it, but \(refused.reason.explanation)."
    }
    if claims.contradictory?.key == record.key {
      return "This order names it, but Apple's records about it contradict each other."
    }
    return "This order does not own it. \(claimant.reasonAboutUnnamed(record, rules: rules))"
  }
}
