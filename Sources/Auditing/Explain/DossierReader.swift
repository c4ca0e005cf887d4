import AuditStore
import Postgres
import Reconciliation
import Reporting
import Run
import SalesStore

/// Reads what is known about one order, in one snapshot and through indexes: the same facts that the audit of all orders
/// judges it by.
struct DossierReader: ~Copyable {
  let connection: BlockingConnection
  let sales: SalesRows
  let rules: Rules
  let lookback: Reconciliation.Span

  /// nil when there is no order of that id.
  func dossier(_ orderId: Identifier) throws -> OrderDossier? {
    let rows = try orders(orderId)
    guard let row = rows.first else { return nil }
    let circle = try ClaimCircle.orders(around: orderId, connection, sales)
    let contests = try Contests(connection, sales, among: circle, batchSize: 1_000)
    var contested = ContestedKeys()
    var contestants: [Contestant] = []
    for batch in contests.batches {
      let receipts = try Contests.receipts(batch.orderIds, connection, sales, asOf: rules.asOf)
      let settled = try Contests.settle(batch, receipts: receipts, connection, sales, rules: rules)
      contested.take(batch, claimed: settled.claimed)
      contestants += settled.contestants
    }
    let deliveries = try deliveries(orderId)
    let filed = try Contests.transactions("t.order_id", [orderId], connection)
    let receipts = try Contests.receipts([orderId], connection, sales, asOf: rules.asOf)[orderId] ?? []
    let lookups = try lookups(orderId)
    let links = try links(receipts.map { CheckSubject(kind: .receipt, id: $0.receiptId) } + lookups.map(\.subject))

    var dossier: OrderDossier
    var facts: OrderFacts?
    switch row {
    case .bad(let bad):
      dossier = OrderDossier(rules, lookback, Judgement(reporting: bad), nil)
      dossier.findings += deliveries.filter { $0.defect != nil }.map { Unowned.finding(on: $0) }
      dossier.findings += receipts.filter { $0.defect != nil }.flatMap { Unowned.findings(on: $0) }
    case .valid(let order):
      var assembled = OrderFacts.assembled(
        order, deliveries: deliveries, transactions: filed.map(\.record),
        receipts: receipts.filter { receipt in
          receipt.needsAttention(
            hasDetour: links.contains {
              $0.isDetour && $0.subject.kind == .receipt && $0.subject.id == receipt.receiptId
            })
        },
        lookup: lookups.first?.state, contestant: contestants.first { $0.orderId == orderId },
        rules: rules,
        everyReceipt: { receipts })
      assembled.accountTokenUser = try AccountTokens(sales).otherUser(forOnly: assembled, connection)
      facts = assembled
      let (judgement, reasoning) = Judgement.explained(assembled, rules: rules)
      dossier = OrderDossier(rules, lookback, judgement, reasoning)
    }
    dossier.repeatedRows = rows.count - 1
    dossier.deliveries = deliveries.sorted { ($0.deliveredAt, $0.deliveryId) < ($1.deliveredAt, $1.deliveryId) }
    dossier.transactions = try transactions(row, facts, filed, links, contested)
    try addCompetitors(&dossier.transactions, of: orderId, contestants)
    dossier.findings += dossier.transactions.compactMap(\.leftOver)
    dossier.proofs = try proofs(receipts, lookups, links)
    dossier.known = try knownFindings(dossier)
    return dossier
  }

  // MARK: - The shop's side

  private func orders(_ orderId: Identifier) throws -> [OrderRow] {
    var found: [OrderRow] = []
    var reader = try connection.copyOut(
      """
      SELECT \(SalesRows.orderColumns) FROM \(sales.schema).orders o
      WHERE o.order_id::text COLLATE "C" = \(try PostgresLiteral.text(orderId.text))
      """)
    while try reader.advance() { found.append(try SalesRows.order(reader, asOf: rules.asOf)) }
    return found
  }

  private func deliveries(_ orderId: Identifier) throws -> [Delivery] {
    var found: [Delivery] = []
    var reader = try connection.copyOut(
      """
      SELECT \(SalesRows.deliveryColumns) FROM \(sales.schema).deliveries d
      WHERE d.order_id::text COLLATE "C" = \(try PostgresLiteral.text(orderId.text))
      """)
    while try reader.advance() { found.append(try SalesRows.delivery(reader, asOf: rules.asOf)) }
    return found
  }

  // MARK: - Apple's side

  /// Which proof brought which transaction.
  private struct Link {
    var subject: CheckSubject
    var key: TransactionKey
    var isDetour: Bool
  }

  private func links(_ subjects: [CheckSubject]) throws -> [Link] {
    if subjects.isEmpty { return [] }
    return try connection.execute(
      """
      SELECT subject_kind, subject_id, environment, transaction_id, is_detour FROM night_audit.receipt_transactions
      JOIN unnest($1::text[], $2::text[]) AS wanted (subject_kind, subject_id) USING (subject_kind, subject_id)
      ORDER BY transaction_id, environment
      """, subjects.parameters
    ).map { row in
      Link(
        subject: try CheckSubject(row),
        key: TransactionKey(
          environment: AppleEnvironment(rawValue: try row.text("environment")) ?? .localTesting,
          transactionId: Identifier(try row.text("transaction_id"))), isDetour: try row.bool("is_detour"))
    }
  }

  /// The question about the transaction id that the order names, where it is asked.
  private func lookups(_ orderId: Identifier) throws -> [OrderDossier.Proof] {
    var reader = try connection.copyOut(
      LookupRow.query(where: "l.order_id = \(try PostgresLiteral.text(orderId.text))"))
    var found: [OrderDossier.Proof] = []
    while try reader.advance() {
      let row = try LookupRow(reader)
      found.append(OrderDossier.Proof(subject: CheckSubject(kind: .lookup, id: row.subjectId), state: row.state))
    }
    return found
  }

  private func proofs(
    _ receipts: [Receipt], _ lookups: [OrderDossier.Proof], _ links: [Link]
  ) throws -> [OrderDossier.Proof] {
    var proofs = receipts.map { receipt in
      OrderDossier.Proof(
        subject: CheckSubject(kind: .receipt, id: receipt.receiptId), receipt: receipt, state: receipt.state)
    }
    proofs.sort {
      ($0.receipt?.receivedAt ?? rules.asOf, $0.subject.id) < ($1.receipt?.receivedAt ?? rules.asOf, $1.subject.id)
    }
    proofs += lookups
    let answers = try answers(proofs.map(\.subject))
    for index in proofs.indices {
      proofs[index].answers = answers[proofs[index].subject] ?? []
      proofs[index].brought = links.filter { $0.subject == proofs[index].subject }.map(\.key)
    }
    return proofs
  }

  private func answers(_ subjects: [CheckSubject]) throws -> [CheckSubject: [OrderDossier.Answer]] {
    if subjects.isEmpty { return [:] }
    var found: [CheckSubject: [OrderDossier.Answer]] = [:]
    let rows = try connection.execute(
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
    _ row: OrderRow, _ facts: OrderFacts?, _ filed: [FiledTransaction], _ links: [Link], _ contested: ContestedKeys
  ) throws -> [OrderDossier.Transaction] {
    let claims = facts?.claims ?? OrderClaims()
    var records = Dictionary(filed.map { ($0.record.key, $0.record) }) { first, _ in first }
    for record in (facts?.brought ?? []) + claims.owned + claims.lost.map(\.transaction) {
      records[record.key] = record
    }
    let missing = Set(links.map(\.key)).subtracting(records.keys)
    for other in try Contests.transactions("t.transaction_id", missing.map(\.transactionId), connection)
    where missing.contains(other.record.key) {
      records[other.record.key] = other.record
    }
    let evidence = try evidence(Array(records.keys))
    return records.values.sorted { $0.key < $1.key }.map { record in
      let key = record.key
      var transaction = OrderDossier.Transaction(
        record: record, isOwned: claims.owned.contains { $0.key == key },
        standing: facts?.standing(of: record, rules: rules)
          ?? "The order row breaks the contract of the sales schema, so it claims nothing.")
      if filed.contains(where: { $0.record.key == key }), !contested.isClaimed(key, own: claims) {
        transaction.leftOver = Unowned.finding(on: record, userId: row.userId, receiptId: nil, rules: rules)
      }
      transaction.evidence = evidence[key] ?? []
      return transaction
    }
  }

  /// Tells of each transaction which other orders name it, or have proofs that brought it, oldest first.
  private func addCompetitors(
    _ transactions: inout [OrderDossier.Transaction], of orderId: Identifier, _ contestants: [Contestant]
  ) throws {
    let contestants = Dictionary(contestants.map { ($0.orderId, $0) }) { first, _ in first }
    var ordersById: [Identifier: Order] = [:]
    try Contests.orders(Set(contestants.keys), connection, sales, asOf: rules.asOf) { order in
      if ordersById[order.orderId] == nil { ordersById[order.orderId] = order }
    }
    let others = ordersById.values.filter { $0.orderId != orderId }.sorted {
      ($0.createdAt, $0.orderId) < ($1.createdAt, $1.orderId)
    }
    for place in transactions.indices {
      let key = transactions[place].record.key
      transactions[place].competitors = others.compactMap { order in
        guard let contestant = contestants[order.orderId] else { return nil }
        let names = order.transactionId == key.transactionId
        guard names || contestant.brought.contains(where: { $0.key == key }) else { return nil }
        return OrderDossier.Competitor(
          order: order, names: names, owns: contestant.claims.owned.contains { $0.key == key })
      }
    }
  }

  private func evidence(_ keys: [TransactionKey]) throws -> [TransactionKey: [OrderDossier.Statement]] {
    if keys.isEmpty { return [:] }
    var found: [TransactionKey: [OrderDossier.Statement]] = [:]
    let rows = try connection.execute(
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
    let rows = try connection.execute(
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
    let events = try connection.execute(
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
