import AppStore
import Foundation
import Postgres
import Reconciliation
import Reporting
import Settings
import TestSupport
import Testing

@testable import Auditing
@testable import Run
@testable import SampleWorlds

/// `explain` and the audit of all orders agree about each order.
@Suite struct ExplainTests {
  @Test func explainAgreesWithTheJudgementOfEachOrder() async throws {
    let folder = try TemporaryDirectory()
    let shop = CrowdedShop(seed: 2)
    let settings = try await shop.load(reports: folder.file(""))

    // All products are non-consumables, so that a second purchase of one is a finding.
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit tests")
    try await session.execute(
      """
      CREATE TABLE sales.products AS SELECT DISTINCT product_id, 'Non-Consumable'::text AS type, product_id AS name,
        NULL::timestamptz AS sold_from, NULL::timestamptz AS sold_until FROM sales.orders
      """)
    try await session.execute(
      """
      UPDATE sales.orders SET transaction_id = E'\t' || transaction_id || E' \r', app_account_token = ' ' || app_account_token
      WHERE encode(sha256(convert_to(order_id, 'UTF8')), 'hex') < '8'
      """)
    // Apple sold in another currency, which is then the currency of the amount at risk.
    try await session.execute(
      """
      UPDATE night_audit.transactions SET price_milliunits = 8990, currency = 'EUR'
      """)
    await session.close()
    let outcome = try await CrowdedShop.outcome(settings, CrowdedShop.asOf, folder.file("out"))
    #expect(outcome.totals.ordersRead == shop.orderIds.count)

    let orders = try table("orders.csv", in: folder.file("out"))
    let findings = try table("findings.csv", in: folder.file("out"))
    let findingsById = Dictionary(findings.map { ($0["finding_id"] ?? "", $0) }) { first, _ in first }
    var owners: [String: Identifier?] = [:]
    var unasked = 0
    var steps: Set<String> = []
    for row in orders {
      let id = row["order_id"] ?? ""
      let explanation = try await Explain(settings: settings).order(Identifier(id), asOf: CrowdedShop.asOf)
      #expect(row["disposition"] == explanation.disposition.rawValue, "\(id)")
      #expect(row["payment"] == explanation.payment ?? "", "\(id)")
      #expect(row["payment_reason"] == explanation.paymentReason?.rawValue ?? "", "\(id)")
      let current = explanation.findings.filter(\.stands)
      let cell = Set((row["findings"] ?? "").split(separator: " ").map(String.init))
      let ofOrder = Set(current.filter { $0.orderId?.text == id }.map(\.kind.rawValue))
      // An unclaimed payment in the order's receipt does not belong to the order.
      #expect(cell == ofOrder.subtracting(["orphan_payment", "renewal_without_order"]), "\(id)")
      let own = findings.filter { $0["order_id"] == id }.map(said).sorted()
      #expect(own == current.filter { $0.orderId?.text == id }.map(said).sorted(), "\(id)")
      for finding in current { #expect(findingsById[finding.findingId].map(said) == said(finding), "\(id)") }
      let isAskable = explanation.order.transactionId == nil || !explanation.proofs.isEmpty
      if explanation.paymentReason == .neverChecked, !isAskable { unasked += 1 }
      for transaction in explanation.transactions {
        let isPaidBy = row["transaction_id"] == transaction.transactionId.text && row["payment"] == "paid"
        #expect(!isPaidBy || transaction.isOwned, "\(id)")
        // The steps end with the owner, which is the same for every order with a reference to the payment.
        let key = "\(transaction.transactionId) \(transaction.environment)"
        let owner = transaction.matching.last?.left.first
        if transaction.isOwned { #expect(owner == explanation.order.orderId, "\(id)") }
        #expect(owners.updateValue(owner, forKey: key).map { $0 == owner } ?? true, "\(id) about \(key)")
        steps.formUnion(transaction.matching.map(\.question))
      }
      #expect(explanation.events.map(\.at) == explanation.events.map(\.at).sorted())
      #expect(!ExplanationText.text(explanation, settings: settings).contains("payload"))
      let document = try JSONEncoder().encode(explanation)
      #expect(!String(decoding: document, as: UTF8.self).contains("payload"))
    }
    #expect(outcome.summary.notAsked["game"] ?? 0 == unasked)
    let kinds = Set(findings.compactMap { $0["kind"] })
    #expect(kinds.isSuperset(of: ["orphan_payment", "charged_twice"]), "\(kinds)")
    #expect(steps.count >= 6, "\(steps)")
    let charged = findings.filter { $0["kind"] == "charged_twice" }
    #expect(charged.contains { $0["currency"] == "EUR" && $0["amount"] == "" }, "\(charged)")
  }

  @Test(
    "explain and the audit agree about receipts of several orders, and of orders that do not exist",
    arguments: [
      (
        1,
        """
        ALTER TABLE sales.receipts DROP CONSTRAINT receipts_pkey;
        INSERT INTO sales.receipts (SELECT receipt_id, 'order-' || ascii(encode(sha256(convert_to(receipt_id, 'UTF8')), 'hex')) % 60, user_id, payload, environment,
          status, checked_at, received_at FROM sales.receipts WHERE encode(sha256(convert_to(receipt_id, 'UTF8')), 'hex') < 'a')
        """
      ),
      // An orphan receipt supports no order, but it supports its sender.
      (
        3,
        """
        UPDATE sales.receipts SET order_id = 'gone-' || receipt_id WHERE encode(sha256(convert_to(receipt_id, 'UTF8')), 'hex') < '8';
        UPDATE sales.orders SET app_account_token = NULL
        """
      ),
    ] as [(UInt64, String)])
  func unusualReceipts(seed: UInt64, changes: String) async throws {
    let shop = CrowdedShop(seed: seed)
    let folder = try TemporaryDirectory()
    let settings = try await shop.load(reports: folder.file(""))
    try await execute(settings.databaseURL, changes)
    try await CrowdedShop.audit(settings, CrowdedShop.asOf, folder.file("out"))
    let findings = try table("findings.csv", in: folder.file("out"))
    for row in try table("orders.csv", in: folder.file("out")) where row["findings"] != "bad_row" {
      let id = row["order_id"] ?? ""
      let explanation = try await Explain(settings: settings).order(Identifier(id), asOf: CrowdedShop.asOf)
      #expect(row["disposition"] == explanation.disposition.rawValue, "\(id)")
      #expect(row["payment_reason"] == explanation.paymentReason?.rawValue ?? "", "\(id)")
      let own = findings.filter { $0["order_id"] == id && $0["kind"] != "bad_row" }.map(said).sorted()
      let current = explanation.findings.filter { $0.stands && $0.orderId?.text == id && $0.kind != .badRow }
      #expect(own == current.map(said).sorted(), "\(id)")
    }
  }

  @Test func anAnswerAboutARepeatedReceiptIsExplainedOnce() async throws {
    var rows = ShopRows()
    rows.transaction("T1")
    rows.order("order", by: "ann", containing: ["T1"])
    let settings = try await rows.loaded()
    try await execute(
      settings.databaseURL,
      """
      ALTER TABLE sales.receipts DROP CONSTRAINT receipts_pkey;
      INSERT INTO sales.receipts SELECT * FROM sales.receipts;
      INSERT INTO night_audit.answers (run_id, as_of, subject_kind, subject_id, channel, outcome, facts)
      SELECT '00000000-0000-0000-0000-000000000001', last_attempt, subject_kind, subject_id, 'verifyReceipt', outcome, 1
      FROM night_audit.receipt_checks
      """)
    let explanation = try await Explain(settings: settings).order("order", asOf: CrowdedShop.asOf)
    #expect(explanation.proofs.count == 2)
    for proof in explanation.proofs {
      let expected = proof.defect == nil ? 1 : 0
      #expect(proof.answers.count == expected && proof.transactions.count == expected)
    }
    #expect(explanation.events.count { $0.event.hasPrefix("asked about") } == 1)
  }

  @Test func badRowsOfOneReceiptAreOneFindingAndKeepTheirDefects() async throws {
    var rows = ShopRows()
    rows.transaction("T1")
    rows.order("order", by: "ann", containing: ["T1"])
    let settings = try await rows.loaded()
    try await execute(
      settings.databaseURL,
      """
      ALTER TABLE sales.receipts DROP CONSTRAINT receipts_pkey;
      INSERT INTO sales.receipts SELECT receipt_id, order_id, user_id, payload, environment, copy.status, checked_at,
        received_at FROM sales.receipts CROSS JOIN (VALUES ('verified'), ('lost')) copy (status)
      """)
    let explanation = try await Explain(settings: settings).order("order", asOf: CrowdedShop.asOf)
    #expect(explanation.findings.count { $0.kind == .badRow } == 1, "\(explanation.findings)")
    let defects = explanation.proofs.compactMap(\.defect).sorted()
    #expect(defects.count == 2 && defects.first == "receipt_id is not unique", "\(defects)")
    #expect(defects.last?.contains("status") == true && defects.last?.hasSuffix("; receipt_id is not unique") == true)
  }

  @Test func pastFindingsKeepTheirSeverityInExplain() async throws {
    let settings = try await CrowdedShop(seed: 9).load(reports: "/nonexistent")
    let explain = Explain(settings: settings)
    let disposition = try await explain.order("order-17", asOf: CrowdedShop.asOf).disposition
    // The other finding contradicts the disposition.
    let kind: FindingKind = disposition == .deliveredNotPaid ? .paidNotDelivered : .deliveredNotPaid
    let id = Finding(kind: kind, subject: .order("order-17"), reason: "").findingId
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit tests")
    try await session.execute(
      """
      INSERT INTO night_audit.findings (finding_id, kind, severity, subject_kind, subject, order_id, reason, first_seen,
        opened_at, last_seen, closed_at)
      VALUES ($1, $2, 'minor', 'order', 'order-17', 'order-17', 'App Review bought at that time.', now(), now(), now(), now())
      """, [.text(id), .text(kind.rawValue)])
    await session.close()
    let findings = try await explain.order("order-17", asOf: CrowdedShop.asOf).findings
    let before = try #require(findings.first { $0.findingId == id })
    #expect(!before.stands && before.severity == .minor)
    #expect(before.reason == "App Review bought at that time." && before.history?.closedAt != nil)
  }

  @Test func anUnknownOrderIsReportedWithSimilarIDs() async throws {
    let shop = CrowdedShop(seed: 9)
    let settings = try await shop.load(reports: "/nonexistent")
    let explain = Explain(settings: settings)
    let asOf = CrowdedShop.asOf
    await #expect(throws: Explain.Missing.self) { try await explain.order("nothing like it", asOf: asOf) }
    do {
      _ = try await explain.order("ORDER-17", asOf: asOf)
    } catch let missing as Explain.Missing {
      #expect(missing.similarIDs.first == "There is an order order-17.")
      #expect(ExitStatus(for: missing) == .nothingThere)
    }
    do {
      _ = try await explain.order("r1", asOf: asOf)
    } catch let missing as Explain.Missing {
      #expect(missing.description.contains("r1 is the ID of a receipt"))
    }
  }

  @Test("An answer about one ID of a purchase is an answer about the others, for the explanation of an orphan")
  func orphanWithAnAnswerAboutAnotherID() throws {
    let rules = ConflictingOrders.rules
    let sold = rules.asOf - .days(5)
    func record(_ id: Identifier, at date: Instant) -> TransactionRecord {
      var record = TransactionRecord(environment: .production, transactionId: id, productId: "gems")
      (record.bundleId, record.originalTransactionId) = ("com.example.game", "P1")
      (record.purchaseDate, record.originalPurchaseDate) = (date, sold)
      return record
    }
    let (purchase, restore) = (record("P1", at: sold), record("R2", at: sold + .hours(2)))
    let currency = try #require(Currency("USD"))
    let groups = (1...4).map { number in
      let order = Order(
        orderId: Identifier("o\(number)"), userId: Identifier("u\(number)"), productId: "coins", quantity: 1,
        amount: Money(minorUnits: 990, currency: currency), status: .verified, createdAt: sold)
      var receipt = Receipt(
        receiptId: Identifier("r\(number)"), orderId: order.orderId, userId: order.userId, receivedAt: sold,
        state: ProofState())
      // Two orders for each ID, because no other product's order alone could be its owner.
      let isOfPurchase = number <= 2
      receipt.state.kind = .app
      if !isOfPurchase { receipt.state.outcome = .verified }
      return OrderGroup(
        row: .valid(order), proofs: [Proof(receipt: receipt, contained: [isOfPurchase ? purchase.key : restore.key])])
    }
    let matching = RelatedOrders(groups: groups, records: [purchase, restore], rules: rules)
      .matched(for: "o1", rules: rules)
    let expected: [TransactionKey: Identifier?] = [purchase.key: "u1", restore.key: "u3"]
    #expect(matching.unclaimed == expected)
  }

  private func said(_ row: [String: String]) -> String {
    [
      row["finding_id"], row["kind"], row["reason"], row["transaction_id"], row["receipt_id"], row["user_id"],
      row["currency"], row["amount"], row["at_stake"],
    ].map { $0 ?? "" }.joined(separator: "|")
  }

  private func said(_ finding: Explanation.Finding) -> String {
    [
      finding.findingId, finding.kind.rawValue, finding.reason, finding.transactionId?.text ?? "",
      finding.receiptId?.text ?? "", finding.userId?.text ?? "", finding.currency ?? "", finding.amount ?? "",
      finding.atStake ?? "",
    ].joined(separator: "|")
  }

  /// The rows of a file by column, without quotes.
  private func table(_ name: String, in folder: String) throws -> [[String: String]] {
    let rows = try CrowdedShop.tables(folder)[name] ?? []
    return rows.dropFirst().map { row in
      Dictionary(uniqueKeysWithValues: zip(rows[0], row.map { $0.filter { $0 != "\"" } }))
    }
  }
}
