import Foundation
import Postgres
import Publishing
import Reconciliation
import Reporting
import Settings
import Streams
import Testing

@testable import AuditStore
@testable import Auditing
@testable import Run

/// Nights store the orders, refunds, journal entries and sandbox purchases that have changed.
@Suite struct OrderNightsTests {
  private static func order() throws -> Order {
    Order(
      orderId: "order", userId: "user", productId: "gems",
      amount: Money(minorUnits: 990, currency: try #require(Currency(code: "USD"))), status: .pending,
      createdAt: StoredNights.asOf - .days(2))
  }

  private static func judged(_ order: Order, _ deliveries: [Delivery] = []) -> Judgement {
    Judgement(
      judging: OrderFacts(order: order, deliveries: deliveries),
      rules: StoredNights.plan(asOf: StoredNights.asOf).rules)
  }

  private static func repeated(_ order: Order) -> Judgement {
    Judgement(
      reporting: BadOrder(
        orderId: order.orderId, userId: order.userId, bundleId: nil, productId: order.productId, quantity: 1,
        amountText: "9.90", currencyText: "USD", statusText: "pending", transactionId: nil, createdAt: order.createdAt,
        defect: "order_id is not unique"))
  }

  private func keep(
    _ night: Int, _ judgements: [Judgement], testUsers: Set<Identifier> = [], after lastComplete: Int? = nil,
    on connection: borrowing BlockingConnection
  ) throws -> (adjusted: [ChangeRow], figures: NightFigures) {
    let orders = OrderNights(isWanted: true, testUsers: testUsers, temporaryDirectory: NSTemporaryDirectory())
    for judgement in judgements { try orders.add(judgement) }
    let asOf = StoredNights.asOf(night)
    let base = night == 0 ? nil : StoredNights.base(lastComplete ?? night - 1)
    var (adjusted, figures) = ([ChangeRow](), NightFigures())
    try connection.transaction { connection in
      try orders.compare(
        with: base, isKept: true, Selection(), asOf: asOf, createdBefore: asOf, lookbackStart: asOf - .days(120),
        in: StoredNights.dimensions, on: connection, figures: &figures, each: { _, _ in }
      ) { adjusted.append($0) }
      try orders.save(
        StoredNights.record(night), lookbackStart: asOf - .days(120),
        in: StoredNights.dimensions, on: connection)
    }
    return (adjusted, figures)
  }

  private func kept(_ connection: borrowing BlockingConnection) throws -> [String] {
    try connection.texts(
      """
      SELECT concat_ws(' ', row_number() OVER (ORDER BY as_of), user_id, amount, disposition)
      FROM night_audit.order_nights ORDER BY as_of
      """)
  }

  @Test func duplicateRowsKeepTheirOrdersDisposition() async throws {
    try await StoredNights.with { connection in
      let order = try Self.order()
      let (judged, repeated) = (Self.judged(order), Self.repeated(order))
      #expect(try keep(0, [judged], on: connection).adjusted == [])
      #expect(try keep(1, [repeated, judged, repeated], on: connection).adjusted == [])
      let word = judged.disposition.rawValue
      #expect(try kept(connection) == ["1 user 9.90 \(word)"])
      let adjusted = try keep(2, [repeated, repeated], on: connection).adjusted
      #expect(adjusted.map(\.before) == [word] && adjusted.map(\.after) == ["bad_row"])
    }
  }

  /// The tie-out reads the orders first and may fail half-way; the comparison must still read all of them.
  @Test func ordersAreEmittedBeforeTheComparison() async throws {
    struct Failure: Error {}
    try await StoredNights.with { connection in
      let order = try Self.order()
      let orders = OrderNights(isWanted: true, testUsers: [], temporaryDirectory: NSTemporaryDirectory())
      for judgement in [Self.repeated(order), Self.judged(order)] { try orders.add(judgement) }
      var told: [JudgedOrder] = []
      for _ in 0..<2 { try orders.forEachOrder { told.append($0) } }
      let said = try #require(JudgedOrder(Self.judged(order)))
      #expect(told == [said, said])
      #expect(throws: Failure.self) { try orders.forEachOrder { _ in throw Failure() } }
      var compared: [Identifier] = []
      var figures = NightFigures()
      try orders.compare(
        with: nil, isKept: true, Selection(), asOf: StoredNights.asOf, createdBefore: StoredNights.asOf,
        lookbackStart: StoredNights.asOf - .days(120), in: StoredNights.dimensions, on: connection,
        figures: &figures, each: { id, _ in compared.append(id) }
      ) { _ in }
      #expect(compared == ["order"])
    }
  }

  @Test func ordersThatLostTheirPurchaseOrChangedTheirAmountAreCounted() async throws {
    try await StoredNights.with { connection in
      var free = try Self.order()
      free.amount = Money(minorUnits: 0, currency: free.amount.currency)
      let delivery = Delivery(
        deliveryId: "d", orderId: free.orderId, userId: free.userId, productId: free.productId, quantity: 1,
        deliveredAt: free.createdAt)
      var figures: [NightFigures] = []
      for (night, order) in [free, free, try Self.order()].enumerated() {
        figures.append(try keep(night, [Self.judged(order, [delivery])], on: connection).figures)
      }
      #expect(figures.map(\.ordersBefore) == [0, 1, 1] && figures.map(\.purchasesBefore) == [0, 1, 1])
      #expect(figures.map(\.otherAmounts.examples) == [[], [], ["order order: 0.00 USD, now 9.90 USD"]])
      #expect(figures.map(\.lostPurchases.examples) == [[], [], ["order order: Settled, now Delivered, not paid"]])
      let gone = try keep(3, [], on: connection)
      #expect(figures.allSatisfy { $0.missingOrders.count == 0 })
      #expect(gone.figures.missingOrders == NightFigures.Sample(count: 1, examples: ["order order"]))
      #expect(gone.adjusted.map(\.because) == ["The shop no longer has this order"])
    }
  }

  @Test func anOrderThatTheShopDeletedIsAdjustedOnce() async throws {
    try await StoredNights.with { connection in
      let order = Self.judged(try Self.order())
      #expect(try keep(0, [order], on: connection).adjusted == [])
      // The first night without the order is incomplete, so the next one is compared with the night before it.
      for (night, lastComplete, isAdjusted) in [(1, 0, true), (2, 0, true), (3, 2, false)] {
        let adjusted = try keep(night, [], after: lastComplete, on: connection).adjusted
        #expect(
          adjusted.map(\.because) == (isAdjusted ? ["The shop no longer has this order"] : []), "night \(night)")
      }
      #expect(try kept(connection) == ["1 user 9.90 \(order.disposition.rawValue)", "2 user"])
      #expect(try connection.texts("SELECT order_id FROM night_audit.bi_orders") == [])
    }
  }

  @Test func ordersThatAreNewOnAReportedDayOrOfAnotherDayAreAdjusted() async throws {
    try await StoredNights.with { connection in
      func order(_ id: Identifier, hours: Int64) throws -> Judgement {
        var order = try Self.order()
        (order.orderId, order.createdAt) = (id, StoredNights.asOf + .hours(hours))
        return Self.judged(order)
      }
      for state in [
        "'publication', 'publishing', 'orders_read', 1",
        "'publication', 'published', 'directory', '/d', 'complete', true",
      ] {
        try connection.execute(
          "SELECT night_audit.write_run($1::uuid, jsonb_build_object(\(state)))", [.text(StoredNights.runs[0])])
      }
      #expect(try keep(0, [order("moved", hours: -12)], on: connection).adjusted == [])
      // No night has reported the day of the order "new".
      let orders = try [order("late", hours: -6), order("moved", hours: -36), order("new", hours: 6)]
      for (night, lastComplete, isAdjusted) in [(1, 0, true), (2, 0, true), (3, 2, false)] {
        let adjusted = try keep(night, orders, after: lastComplete, on: connection).adjusted
        #expect(
          adjusted.map(\.because)
            == (isAdjusted
              ? [
                "The shop added this order after the day was reported",
                "The shop now dates this order 2026-11-18 instead of 2026-11-19",
              ] : []),
          "night \(night)")
        #expect(adjusted.map(\.orderId) == (isAdjusted ? ["late", "moved"] : []))
      }
    }
  }

  @Test func correctedOrdersAreStoredAndCorrectedAmountsReported() async throws {
    try await StoredNights.with { connection in
      var order = try Self.order()
      let word = Self.judged(order).disposition.rawValue
      #expect(try keep(0, [Self.judged(order)], on: connection).adjusted == [])
      let before = order.amount
      order.amount = Money(minorUnits: 1_990, currency: order.amount.currency)
      let row = ChangeRow(
        adjusted: order.orderId, userId: order.userId, before: before, after: order.amount, createdAt: order.createdAt)
      #expect(row.before == "9.90" && row.after == "19.90")
      #expect(try keep(1, [Self.judged(order)], on: connection).adjusted == [row])
      order.userId = "another"
      #expect(try keep(2, [Self.judged(order)], on: connection).adjusted == [])
      #expect(try keep(3, [Self.judged(order)], on: connection).adjusted == [])
      #expect(try kept(connection) == ["1 user 9.90 \(word)", "2 user 19.90 \(word)", "3 another 19.90 \(word)"])
    }
  }

  @Test func paymentsAndDeliveriesWithoutAnOrderCountOnTheirDay() throws {
    let (plan, collector) = (StoredNights.plan(asOf: StoredNights.asOf), StoredNights.collector())
    let found: [(kind: FindingKind, hours: Int64)] = [
      (.orphanPayment, 0), (.orphanPayment, 23), (.orphanPayment, 24), (.orphanPayment, -1), (.orphanDelivery, 1),
      (.signatureInvalid, 1),
    ]
    for (number, (kind, hours)) in found.enumerated() {
      var finding = Finding(kind: kind, subject: .transaction(Identifier("\(number)")), reason: "x")
      finding.occurredAt = plan.period.start + .hours(hours)
      try collector.add(finding, subjects: [], plan: plan)
    }
    let counts = collector.totals.ordersByKind
    #expect(counts[FindingKind.orphanPayment.index] == 2 && counts[FindingKind.orphanDelivery.index] == 1)
    #expect(counts.reduce(0, +) == 3)
  }

  /// An order for a whole subscription is not late, although it owns the newest renewal.
  @Test(arguments: [true, false]) func renewalsAreNoLatePayments(_ isRenewal: Bool) throws {
    let (plan, collector) = (StoredNights.plan(asOf: StoredNights.asOf), StoredNights.collector())
    var order = try Self.order()
    order.createdAt = StoredNights.asOf - .days(10)
    var record = TransactionRecord(environment: .production, transactionId: "T", productId: "gems")
    record.purchaseDate = order.createdAt + .hours(80)
    record.expiresDate = order.createdAt + .days(30)
    record.isRenewal = isRenewal
    var claims = OrderClaims()
    claims.owned = [record]
    let judgement = Judgement(judging: OrderFacts(order: order, claims: claims), rules: plan.rules)
    try collector.add(judgement, subjects: [], plan: plan)
    #expect(collector.paymentTimes.orders == (isRenewal ? 0 : 1) && collector.paymentTimes.late == (isRenewal ? 0 : 1))
  }

  // MARK: - Journal

  private static func paid(_ id: Identifier, createdAt: Instant) throws -> Judgement {
    var order = try Self.order()
    (order.orderId, order.createdAt) = (id, createdAt)
    var judgement = judged(order)
    judgement.verdict = .paid(TransactionRecord(environment: .production, transactionId: "T", productId: "gems"))
    judgement.disposition = .settled
    return judgement
  }

  /// Prepares the journal of a night, and posts it if the night is complete.
  private func post(
    _ night: Int, _ judgements: [Judgement], _ settlement: [(JournalEvent, JournalPosting)] = [],
    isComplete: Bool = true, on connection: borrowing BlockingConnection
  ) throws {
    let orders = OrderNights(isWanted: true, testUsers: [], temporaryDirectory: NSTemporaryDirectory())
    for judgement in judgements { try orders.add(judgement) }
    let plan = StoredNights.plan(asOf: StoredNights.asOf(night))
    let journal = NightJournal(plan, Settings(), isPosting: true, directory: NSTemporaryDirectory())
    var figures = NightFigures()
    try connection.transaction { connection in
      try orders.compare(
        with: night == 0 ? nil : StoredNights.base(night - 1), isKept: true, Selection(), asOf: plan.asOf,
        createdBefore: plan.period.start, lookbackStart: plan.rules.lookbackStart, in: StoredNights.dimensions,
        on: connection, figures: &figures, each: { _, _ in }, adjusted: { _ in })
      try journal.prepare(orders, settlement, on: connection)
      try orders.save(
        StoredNights.record(night), lookbackStart: plan.rules.lookbackStart, in: StoredNights.dimensions,
        on: connection)
      if isComplete { try journal.save(StoredNights.record(night), on: connection) }
      try Self.begin(night, journalSince: journal.firstDay, on: connection)
    }
  }

  private static func begin(
    _ night: Int, journalSince day: String?, on connection: borrowing BlockingConnection
  ) throws {
    try connection.execute(
      """
      SELECT night_audit.write_run(
        $1::uuid, jsonb_build_object('publication', 'publishing', 'journal_since', $2::text))
      """, [.text(StoredNights.runs[night]), .text(day)])
  }

  private func posted(_ connection: borrowing BlockingConnection) throws -> [String] {
    try connection.texts(
      """
      SELECT concat_ws(' ', posted_for, kind, subject, version, amount, event_day) FROM night_audit.bi_journal
      ORDER BY posted_for, kind, subject, version, is_reversal DESC
      """)
  }

  @Test func aCompleteNightPostsSalesAndApplesAmountsOfIncompleteOnes() async throws {
    try await StoredNights.with { connection in
      let currency = try Self.order().amount.currency
      func posting(_ minorUnits: Int64, _ day: String) -> JournalPosting {
        JournalPosting(amount: Money(minorUnits: minorUnits, currency: currency), day: day)
      }
      func settlement(commission: Int64) -> [(JournalEvent, JournalPosting)] {
        [
          (JournalEvent(.commission, "2027-01 USD"), posting(commission, "2026-11-20")),
          (JournalEvent(.payout, "2027-01 USD"), posting(650, "2026-11-21")),
        ]
      }
      let first = try Self.paid("a", createdAt: StoredNights.asOf - .hours(12))
      let both = [first, try Self.paid("b", createdAt: StoredNights.asOf + .hours(12))]
      try post(0, [first], on: connection)
      try post(1, both, settlement(commission: 300), isComplete: false, on: connection)
      #expect(try posted(connection) == ["2026-11-19 sale a 1 9.90 2026-11-19"])
      try post(2, both, settlement(commission: 300), on: connection)
      try post(3, both, settlement(commission: 400), on: connection)
      #expect(
        try posted(connection) == [
          "2026-11-19 sale a 1 9.90 2026-11-19", "2026-11-21 commission 2027-01 USD 1 3.00 2026-11-20",
          "2026-11-21 payout 2027-01 USD 1 6.50 2026-11-21", "2026-11-21 sale b 1 9.90 2026-11-20",
          "2026-11-22 commission 2027-01 USD 1 -3.00 2026-11-20", "2026-11-22 commission 2027-01 USD 2 4.00 2026-11-20",
        ])
    }
  }

  @Test func theJournalBeginsWithTheFirstNightWhateverItPosts() async throws {
    try await StoredNights.with { connection in
      let (first, late) = (
        try Self.paid("a", createdAt: StoredNights.asOf - .hours(12)),
        try Self.paid("b", createdAt: StoredNights.asOf - .hours(6))
      )
      try post(0, [first], isComplete: false, on: connection)
      try post(1, [], on: connection)
      #expect(try posted(connection) == [])
      try post(2, [first, late], on: connection)
      #expect(
        try posted(connection) == ["2026-11-21 sale a 1 9.90 2026-11-19", "2026-11-21 sale b 1 9.90 2026-11-19"])
    }
  }

  /// A refund of a day before the lookback, and an order that the shop dated anew after it had left the lookback.
  @Test func anEventIsPostedOnceWhateverItsDay() async throws {
    try await StoredNights.with { connection in
      let asOf = StoredNights.asOf(1)
      var refunded = try Self.paid("a", createdAt: asOf - .days(119))
      var record = TransactionRecord(environment: .production, transactionId: "T", productId: "gems")
      record.revocation = Revocation(date: asOf - .days(125))
      (refunded.verdict, refunded.disposition) = (.reversed(record), .refunded)
      refunded.refundedAt = record.revocation?.date
      try Self.begin(0, journalSince: "2026-01-01", on: connection)
      try connection.execute(
        """
        INSERT INTO night_audit.journal_entries (subject, kind, version, is_reversal, run_id, as_of, posted_for, event_day,
          currency, amount)
        VALUES ('b', 'sale', 1, false, $1::uuid, $2, '2026-01-10', '2026-01-10', 'USD', 9.90)
        """, [.text(StoredNights.runs[0]), .timestamp(StoredNights.asOf.microseconds)])
      try post(1, [refunded], on: connection)
      let before = try posted(connection)
      #expect(before.count == 3)
      try post(2, [refunded, try Self.paid("b", createdAt: asOf + .hours(12))], on: connection)
      #expect(
        try posted(connection) == before + [
          "2026-11-21 sale b 1 -9.90 2026-01-10", "2026-11-21 sale b 2 9.90 2026-11-21",
        ])
    }
  }

  // MARK: - Refunds

  private static func refund(_ id: Identifier, _ milliPercent: Int32, of order: Identifier? = nil) throws -> RefundRow {
    RefundRow(
      transactionId: id, orderId: order, productId: "gems",
      refunded: try Self.order().amount.share(milliPercent: milliPercent), milliPercent: milliPercent,
      purchasedAt: StoredNights.asOf - .days(2), refundedAt: StoredNights.asOf - .days(1), reason: "other")
  }

  private func keep(
    _ night: Int, refunds rows: [RefundRow], _ selection: Selection = Selection(), after lastComplete: Int? = nil,
    on connection: borrowing BlockingConnection
  ) throws -> [ChangeRow] {
    let sorter = SpillSorter(directory: NSTemporaryDirectory())
    var content = RecordBytes()
    for row in rows {
      content.clear()
      row.write(to: &content)
      try sorter.add(row.transactionId, content)
    }
    let asOf = StoredNights.asOf(night)
    let refunds = RefundNights(
      sorter, Period.dayBefore(asOf, in: .gmt), temporaryDirectory: NSTemporaryDirectory())
    let base = night == 0 ? nil : StoredNights.base(lastComplete ?? night - 1)
    var adjusted: [ChangeRow] = []
    try connection.transaction { connection in
      try refunds.compare(with: base, selection, asOf: asOf, in: StoredNights.dimensions, on: connection) {
        adjusted.append($0)
      }
      // Filtered runs record no night.
      if selection.isNarrowing { return }
      try refunds.save(StoredNights.record(night), in: StoredNights.dimensions, on: connection)
    }
    return adjusted
  }

  /// Apple states one refund of a transaction: with its share so far, and its newest date.
  @Test func aRefundThatGrewIsCountedOnce() async throws {
    try await StoredNights.with { connection in
      #expect(try keep(0, refunds: [Self.refund("T1", 50_000, of: "order")], on: connection) == [])
      // Without its order, which has lost the purchase since.
      var grown = try Self.refund("T1", 100_000)
      grown.refundedAt = StoredNights.asOf + .hours(1)
      let adjusted = try keep(1, refunds: [grown], on: connection)
      #expect(adjusted.map(\.amount) == [grown.refunded?.share(milliPercent: 50_000)])
      #expect(adjusted.map(\.after) == ["0.00"] && adjusted.first?.because?.contains("replaces") == true)
    }
  }

  /// The incomplete night is no base, but its report lists the refund.
  @Test func aRefundThatAnIncompleteNightListedIsAdjusted() async throws {
    try await StoredNights.with { connection in
      func refund(_ milliPercent: Int32) throws -> RefundRow {
        var row = try Self.refund("T1", milliPercent, of: "order")
        row.refundedAt = StoredNights.asOf + .hours(1)
        return row
      }
      #expect(try keep(0, refunds: [], on: connection) == [])
      #expect(try keep(1, refunds: [refund(50_000)], on: connection) == [])
      let adjusted = try keep(2, refunds: [refund(100_000)], after: 0, on: connection)
      #expect(adjusted.map(\.before) == ["4.95"] && adjusted.map(\.after) == ["9.90"])
    }
  }

  /// A night of an earlier day with the as-of of a saved night would replace that night's rows by fewer refunds.
  @Test(arguments: [("2026-11-18", false), ("2026-11-19", true), ("2026-11-20", true)])
  func onlyTheNightOfTheNewestDayOfAnAsOfIsSaved(day: String, isSaved: Bool) async throws {
    try await StoredNights.with { connection in
      let asOf = StoredNights.asOf(1)
      try connection.execute(
        "INSERT INTO night_audit.findings_met (run_id, as_of) VALUES ($1::uuid, $2)",
        [.text(StoredNights.runs[1]), .timestamp(asOf.microseconds)])
      var plan = StoredNights.plan(asOf: asOf)
      plan.period = try Period(since: day, until: day, in: .gmt)
      let audit = Audit(settings: Settings(), plan: plan, faults: [:], stop: StopSignal(), progress: .quiet)
      #expect(try audit.isNewestNight(StoredNights.record(1), on: connection) == isSaved)
    }
  }

  private func listedRefunds(_ connection: borrowing BlockingConnection) throws -> [String] {
    try connection.texts(
      """
      SELECT concat_ws(' ', transaction_id, order_id, amount, percentage, business_day, reason)
      FROM night_audit.bi_refunds ORDER BY 1
      """)
  }

  /// Of an order, of a further charge of the same order, and without an order.
  @Test func aRefundThatWasReportedWithAnotherAmountIsAnAdjustment() async throws {
    try await StoredNights.with { connection in
      let owners: [(id: Identifier, order: Identifier?)] = [("T1", nil), ("T2", "order"), ("T3", "order")]
      func refunds(_ milliPercent: Int32) throws -> [RefundRow] {
        try owners.map { try Self.refund($0.id, milliPercent, of: $0.order) }
      }
      func money(_ minorUnits: Int64) throws -> Money {
        Money(minorUnits: minorUnits, currency: try Self.order().amount.currency)
      }
      #expect(try keep(0, refunds: refunds(40_000), on: connection) == [])
      // The order of T4 leaves the lookback; without it, Apple's price counts.
      let owned = try Self.refund("T4", 40_000, of: "old")
      #expect(try keep(1, refunds: refunds(40_000) + [owned], on: connection) == [])
      let rows = try connection.execute("SELECT count(*) FROM night_audit.refund_nights").single().int64(0)
      #expect(rows == 4, "a night wrote rows for unchanged refunds")
      let adjusted = try owners.map {
        ChangeRow.adjustedRefund(
          of: $0.id, orderId: $0.order, userId: nil, try money(396), .share(try money(990)),
          refundedAt: StoredNights.asOf - .days(1))
      }.flatMap(\.self)
      let unowned = try Self.refund("T4", 50_000)
      #expect(try keep(2, refunds: refunds(100_000) + [unowned], on: connection) == adjusted)
      #expect(try adjusted.allSatisfy { try $0.amount == money(-594) && $0.kindText == "refund" })
      #expect(
        try listedRefunds(connection) == [
          "T1 -9.90 100 2026-11-19 other", "T2 order -9.90 100 2026-11-19 other",
          "T3 order -9.90 100 2026-11-19 other", "T4 -4.95 50 2026-11-19 other",
        ])
      try connection.execute(
        """
        INSERT INTO night_audit.transactions (environment, transaction_id, product_id, tells_account_token,
          is_contradictory, channel, signed_at, checked_at, revocation_withdrawn_at)
        SELECT 'Production', id, 'gems', false, false, 'serverApi', $1::timestamptz, $1, $1 FROM unnest(ARRAY['T1', 'T3']) id
        """, [.timestamp(StoredNights.asOf(2).microseconds)])
      for (orderId, withdrawn) in [("order", ["order"]), ("other", [])] as [(Identifier, [Identifier?])] {
        var selection = Selection()
        selection.orderId = orderId
        #expect(try keep(3, refunds: [], selection, on: connection).map(\.orderId) == withdrawn)
      }
      let withdrawn = try keep(3, refunds: [Self.refund("T2", 100_000, of: "order")], on: connection)
      #expect(withdrawn.map(\.orderId) == [nil, "order"])
      #expect(try withdrawn.allSatisfy { try $0.after == "0.00" && $0.amount == money(990) })
      #expect(try listedRefunds(connection) == ["T2 order -9.90 100 2026-11-19 other"])
    }
  }

  /// The incomplete night of the withdrawal has stored that there is no refund any more.
  @Test func aCompleteNightListsAWithdrawalThatAnIncompleteOneListed() async throws {
    try await StoredNights.with { connection in
      #expect(try keep(0, refunds: [Self.refund("T1", 100_000, of: "order")], on: connection) == [])
      try connection.execute(
        """
        INSERT INTO night_audit.transactions (environment, transaction_id, product_id, tells_account_token,
          is_contradictory, channel, signed_at, checked_at, revocation_withdrawn_at)
        VALUES ('Production', 'T1', 'gems', false, false, 'serverApi', $1::timestamptz, $1, $1)
        """, [.timestamp(StoredNights.asOf(1).microseconds)])
      for (night, lastComplete, orders) in [(1, 0, ["order"]), (2, 0, ["order"]), (3, 2, [])]
        as [(Int, Int, [Identifier?])]
      {
        let adjusted = try keep(night, refunds: [], after: lastComplete, on: connection)
        #expect(adjusted.map(\.orderId) == orders, "night \(night)")
        #expect(adjusted.allSatisfy { $0.before == "9.90" && $0.after == "0.00" })
      }
    }
  }

  /// Apple's refund is the same. The shop first changes the amount of the order, then its currency.
  @Test func theRefundOfAnOrderWithAnotherAmountIsAdjusted() async throws {
    try await StoredNights.with { connection in
      var refund = try Self.refund("T1", 100_000, of: "order")
      #expect(try keep(0, refunds: [refund], on: connection) == [])
      refund.refunded = refund.refunded.map { Money(minorUnits: 500, currency: $0.currency) }
      let smaller = try keep(1, refunds: [refund], on: connection)
      #expect(
        smaller.map(\.because) == [
          "The order's amount has changed, and the refund of transaction T1 is now 5.00 USD instead of 9.90 USD"
        ])
      let euro = try #require(Currency(code: "EUR"))
      refund.refunded = Money(minorUnits: 500, currency: euro)
      let other = try keep(2, refunds: [refund], on: connection)
      #expect(other.map(\.amount?.text) == ["5.00 USD", "\u{2212}5.00 EUR"])
      #expect(other.allSatisfy { $0.because?.hasSuffix("is now 5.00 EUR instead of 5.00 USD") == true })
    }
  }

  /// The refunds that a report of earlier days lists: transaction ID and amount. Tonight, 75 % are refunded.
  private func listed(
    _ tonight: [(id: Identifier, ids: [Identifier])], before night: Int, on connection: borrowing BlockingConnection
  ) throws -> [String] {
    let sorter = SpillSorter(directory: NSTemporaryDirectory())
    var content = RecordBytes()
    for purchase in tonight {
      content.clear()
      try Self.refund(purchase.id, 75_000, of: "order").write(to: &content)
      content.put(purchase.ids) { $1.put($0) }
      try sorter.add(purchase.id, content)
    }
    let stored = try connection.transaction { connection in
      try RefundNights.stored(
        insteadOf: sorter, before: StoredNights.asOf(night), StoredNights.plan(asOf: StoredNights.asOf(3)),
        temporaryDirectory: NSTemporaryDirectory(), on: connection)
    }
    var rows: [String] = []
    while let found = try stored.next() {
      var reader = RecordReader(found.content)
      let row = try RefundRow(from: &reader)
      rows.append("\(row.transactionId.text) \(row.refunded?.text ?? "")")
    }
    return rows
  }

  /// The stored row counts, whether the purchase has another refund tonight, another transaction ID, or no refund.
  @Test func aReportOfEarlierDaysListsRefundsAsTheirNightsStoredThem() async throws {
    try await StoredNights.with { connection in
      for (night, milliPercent) in [(0, 50_000), (1, 100_000)] as [(Int, Int32)] {
        _ = try keep(night, refunds: [Self.refund("T1", milliPercent, of: "order")], on: connection)
      }
      #expect(try listed([("T1", ["T1"])], before: 1, on: connection) == ["T1 4.95 USD"])
      #expect(try listed([("T1", ["T1"])], before: 2, on: connection) == ["T1 9.90 USD"])
      #expect(try listed([("T0", ["T0", "T1"])], before: 1, on: connection) == ["T1 4.95 USD"])
      #expect(try listed([], before: 1, on: connection) == ["T1 4.95 USD"])
      // The night of a later day has stored the refund first, and its next night adjusts what it stored.
      #expect(try listed([], before: 0, on: connection) == ["T1 4.95 USD"])
      // No night has stored the refund of T2.
      #expect(try listed([("T2", ["T2"])], before: 1, on: connection) == ["T1 4.95 USD", "T2 7.43 USD"])
      _ = try keep(2, refunds: [], on: connection)
      #expect(try listed([], before: 3, on: connection) == [])
    }
  }

  // MARK: - Sandbox

  private static func tested(
    _ id: Identifier, by user: Identifier, _ product: Identifier, _ disposition: Disposition
  ) throws -> Judgement {
    var order = try Self.order()
    (order.orderId, order.userId, order.productId) = (id, user, product)
    var judgement = judged(order)
    (judgement.environment, judgement.disposition) = (.sandbox, disposition)
    return judgement
  }

  private func allowed(_ connection: borrowing BlockingConnection) throws -> [String] {
    try connection.texts(
      "SELECT concat_ws(' ', user_id, product_id, orders, allowed) FROM night_audit.bi_sandbox ORDER BY 1")
  }

  @Test func listedTestUsersAreAllowedInTheSandbox() async throws {
    try await StoredNights.with { connection in
      let orders = [
        try Self.tested("a", by: "tester", "gems", .sandbox), try Self.tested("b", by: "tester", "gems", .unconfirmed),
        try Self.tested("c", by: "tester", "coins", .unconfirmed),
        try Self.tested("d", by: "customer", "gems", .deliveredNotPaid),
      ]
      _ = try keep(0, orders, testUsers: ["tester"], on: connection)
      #expect(try allowed(connection) == ["customer gems 1 f", "tester coins 1 t", "tester gems 2 t"])
      // Only the list of test users changes, and one order is missing.
      _ = try keep(1, Array(orders.dropFirst()), testUsers: ["customer"], on: connection)
      #expect(try allowed(connection) == ["customer gems 1 t", "tester coins 1 f", "tester gems 1 f"])
    }
  }
}
