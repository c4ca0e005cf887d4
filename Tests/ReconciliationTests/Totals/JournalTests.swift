import TestSupport
import Testing

@testable import Reconciliation
@testable import SampleWorlds

/// The journal's entries for facts that become known in any order.
@Suite struct JournalTests {
  private static func day(_ number: Int) -> String { "2026-11-\(number < 10 ? "0" : "")\(number)" }

  /// The posted entries. The newest entry of an event is the current one.
  private struct Ledger {
    var entries: [JournalEntry] = []
    private var newest: [JournalEvent: JournalEntry] = [:]

    mutating func post(_ wanted: [(JournalEvent, JournalPosting?)], on day: Int) {
      for (event, posting) in wanted {
        let added = Journal.entries(
          event, newest: newest[event], wanted: posting, on: JournalTests.day(day), firstDay: JournalTests.day(1))
        entries += added
        if let last = added.last { newest[event] = last }
      }
    }

    /// The posted content of the event; nil: nothing, or a reversal.
    func currentPosting(of event: JournalEvent) -> JournalPosting? {
      newest[event].flatMap { $0.isReversal ? nil : $0.posting }
    }

    func net(_ event: JournalEvent, upTo day: Int) -> Int128 {
      entries.reduce(0) { sum, entry in
        entry.event == event && entry.postedFor <= JournalTests.day(day) ? sum + entry.signedUnits : sum
      }
    }
  }

  @Test("A late change posts a reversal and an adjustment, a refund posts its own entry")
  func oneOrder() {
    var ledger = Ledger()
    let (sale, refund) = (JournalEvent(.sale, "o"), JournalEvent(.refund, "o"))
    func posting(_ units: Int64, _ day: Int) -> JournalPosting {
      JournalPosting(amount: .of(units), day: Self.day(day))
    }
    ledger.post([(sale, posting(500, 1))], on: 1)
    ledger.post([(sale, posting(500, 1))], on: 2)
    ledger.post([(sale, posting(700, 1)), (refund, posting(700, 3))], on: 3)
    ledger.post([(sale, nil), (refund, nil)], on: 4)
    let told = ledger.entries.map { entry in
      "\(entry.postedFor.suffix(2)) "
        + entry.lines.map { "\($0.isDebit ? "Dr" : "Cr") \($0.role.rawValue) \($0.minorUnits)" }.joined(separator: ", ")
    }
    #expect(
      told == [
        "01 Dr receivable 500, Cr sale 500", "03 Dr adjustment 500, Cr receivable 500",
        "03 Dr receivable 700, Cr adjustment 700", "03 Dr refund 700, Cr receivable 700",
        "04 Dr adjustment 700, Cr receivable 700", "04 Dr receivable 700, Cr adjustment 700",
      ])
  }

  @Test("Commission, tax and payout are debits of their own accounts, also when they are posted later")
  func settlement() {
    for kind in [JournalEvent.Kind.commission, .tax, .payout] {
      let event = JournalEvent(kind, "2026-02 USD")
      let posting = JournalPosting(amount: .of(300), day: Self.day(2))
      func lines(_ posting: JournalPosting, isReversal: Bool = false) -> [String] {
        JournalEntry(event: event, posting: posting, version: 1, isReversal: isReversal, postedFor: Self.day(9)).lines
          .map { "\($0.isDebit ? "Dr" : "Cr") \($0.role.rawValue) \($0.minorUnits)" }
      }
      let credit = ["Dr receivable 300", "Cr \(kind.rawValue) 300"]
      #expect(lines(posting) == ["Dr \(kind.rawValue) 300", "Cr receivable 300"])
      #expect(lines(posting, isReversal: true) == credit)
      var negative = posting
      negative.amount = .of(-300)
      #expect(lines(negative) == credit)
    }
  }

  @Test("Only orders with a confirmed payment are posted, with their refund", arguments: Disposition.allCases)
  func postedDispositions(_ disposition: Disposition) throws {
    var scene = ShopFixture()
    let refund = Revocation(date: asOf - .days(1), percentage: 50_000, type: "REFUND_PRORATED")
    scene.paidOrder(transaction: { $0.revocation = refund })
    var judgement = try #require(scene.world.audited().judgements["order"])
    judgement.disposition = disposition
    let sale = JournalSale(judgement)
    switch disposition {
    case .settled, .paidNotDelivered, .partlyDelivered, .inFlight: #expect(sale?.refund?.amount == Money.of(495))
    case .refunded, .refundedStillDelivered: #expect(sale?.refund?.amount == Money.of(990))
    case .deliveredNotPaid, .unconfirmed, .void, .sandbox, .badRow: #expect(sale == nil)
    }
    #expect(sale == nil || sale?.transactionId == "T1")
    #expect(JournalSale(Judgement(reporting: .broken("order"))) == nil)
  }

  @Test(
    "The refunds of an order's purchases are found and posted as one amount, each for its units",
    arguments: [
      ([0, 0, 0], "nothing", nil), ([100, 0, 0], "partial_refund", 99), ([0, 50, 0], "partial_refund", 50),
      ([50, 0, 0], "partial_refund", 50), ([0, 100, 50], "partial_refund", 149),
      ([100, 100, 100], "refund_not_booked, refunded_still_delivered", 297),
    ] as [([Int32], String, Int64?)])
  func refundsOfUnits(percentages: [Int32], findings: String, amount: Int64?) throws {
    let row = Case("three units by three purchases", findings) { scene in
      (scene.quantity, scene.amount) = (3, .of(297))
      let records = percentages.enumerated().map { place, percentage in
        scene.transaction("T\(place + 1)") { record in
          (record.quantity, record.priceMilliunits) = (1, 990)
          guard percentage > 0 else { return }
          record.revocation = Revocation(date: asOf - .hours(Int64(place)), percentage: 1_000 * percentage)
        }
      }
      scene.order(with: .signed(records[0]), .signed(records[1]), .signed(records[2]), isServed: true)
    }
    #expect(row.findings == row.expected)
    let judgement = try #require(row.judgement)
    let refund = JournalSale(judgement)?.refund
    #expect(refund?.amount == amount.map { .of($0) } && judgement.furtherCharges.isEmpty)
    #expect(refund?.date == percentages.firstIndex { $0 > 0 }.map { asOf - .hours(Int64($0)) })
    let partial = judgement.findings.first { $0.kind == .partialRefund }
    #expect(partial == nil || partial?.atStake == refund?.amount && partial?.occurredAt == refund?.date)
  }

  @Test("Future days, days before the journal and zero amounts are not posted")
  func unposted() {
    let event = JournalEvent(.sale, "o")
    for (units, day) in [(Int64(500), 4), (500, 1), (0, 3)] {
      let wanted = JournalPosting(amount: .of(units), day: Self.day(day))
      #expect(
        Journal.entries(event, newest: nil, wanted: wanted, on: Self.day(3), firstDay: Self.day(2)).isEmpty)
    }
    // A posted event of a later day stays as it is.
    let posting = JournalPosting(amount: .of(500), day: Self.day(4))
    let posted = JournalEntry(event: event, posting: posting, version: 1, postedFor: Self.day(4))
    #expect(
      Journal.entries(event, newest: posted, wanted: posting, on: Self.day(3), firstDay: Self.day(2)).isEmpty)
  }

  @Test("Another day, service period or app is posted anew, another transaction ID is not")
  func changedContent() {
    let event = JournalEvent(.refund, "o")
    let posted = JournalPosting(amount: .of(500), day: Self.day(2), app: "game", transactionId: "T1")
    let newest = JournalEntry(event: event, posting: posted, version: 1, postedFor: Self.day(2))
    let changes: [(String, (inout JournalPosting) -> Void)] = [
      ("amount", { $0.amount = .of(501) }), ("day", { $0.day = Self.day(3) }), ("app", { $0.app = "quiz" }),
      ("service", { $0.service = Self.day(2)...Self.day(9) }),
    ]
    func entries(_ wanted: JournalPosting) -> [JournalEntry] {
      Journal.entries(event, newest: newest, wanted: wanted, on: Self.day(4), firstDay: Self.day(1))
    }
    for (name, change) in changes {
      var wanted = posted
      change(&wanted)
      let added = entries(wanted)
      #expect(added.map(\.isReversal) == [true, false], "\(name)")
      #expect(added.map(\.posting) == [posted, wanted] && added.map(\.version) == [1, 2], "\(name)")
      #expect(added.allSatisfy { $0.postedFor == Self.day(4) }, "\(name)")
    }
    var same = posted
    same.transactionId = "T2"
    #expect(entries(same).isEmpty)
  }

  /// For late facts in any order: debits equal credits per day and currency, line names are unique, the entries up to a
  /// night add up to the facts of that night, and the order of events does not change the entries.
  @Test(arguments: 1...UInt64(150 * Effort.factor))
  func nightsAddUpToTheMonth(_ seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let nights = 30
    // The facts about each event, by night. A sale and a refund become known late, change, and disappear.
    var facts: [JournalEvent: [JournalPosting?]] = [:]
    for order in 0..<6 {
      let currency = ["USD", "EUR", "JPY"][order % 3]
      for kind in [JournalEvent.Kind.sale, .refund] {
        let day = Int.random(in: 1...nights, using: &random)
        var known: JournalPosting?
        facts[JournalEvent(kind, Identifier("o\(order)"))] = (1...nights).map { night in
          if night >= day, Int.random(in: 0..<5, using: &random) == 0 {
            let units = Int64.random(in: -300...900, using: &random)
            let eventDay = Int.random(in: 1...night, using: &random)
            known = JournalPosting(
              amount: .of(units, currency), day: Self.day(eventDay),
              app: ["game", "quiz", nil][Int(units.magnitude % 3)],
              transactionId: Identifier("T\(units)"),
              service: Bool.random(using: &random) ? nil : Self.day(eventDay)...Self.day(min(nights, eventDay + 7)))
            if Int.random(in: 0..<4, using: &random) == 0 { known = nil }
          }
          return known
        }
      }
    }
    func ledger(_ events: [JournalEvent]) -> Ledger {
      var ledger = Ledger()
      for night in 1...nights {
        ledger.post(events.map { ($0, facts[$0]?[night - 1] ?? nil) }, on: night)
        for event in events {
          let known = (facts[event]?[night - 1] ?? nil).flatMap { $0.amount.minorUnits == 0 ? nil : $0 }
          let isCurrent =
            known.map { ledger.currentPosting(of: event)?.isPosted(as: $0) }
            ?? (ledger.currentPosting(of: event) == nil)
          #expect(isCurrent == true, "\(event) after night \(night)")
        }
      }
      return ledger
    }
    let posted = ledger(facts.keys.sorted())
    let shuffled = ledger(facts.keys.sorted().shuffled(using: &random))
    #expect(Set(posted.entries) == Set(shuffled.entries) && posted.entries.count == shuffled.entries.count)
    var balance: [String: Int128] = [:]
    var names: Set<String> = []
    for entry in posted.entries {
      for line in entry.lines {
        balance["\(entry.postedFor) \(entry.posting.amount.currency)", default: 0] +=
          line.isDebit ? Int128(line.minorUnits) : -Int128(line.minorUnits)
        let isNew = names.insert(entry.name(of: line)).inserted
        #expect(isNew)
      }
    }
    #expect(balance.values.allSatisfy { $0 == 0 })
    for (event, known) in facts {
      for night in 1...nights {
        #expect(posted.net(event, upTo: night) == Int128((known[night - 1] ?? nil)?.amount.minorUnits ?? 0))
      }
    }
  }
}
