import TestSupport
import Testing

@testable import Reconciliation
@testable import SampleWorlds

/// Facts about one transaction, folded into its record.
@Suite struct FoldingTests {
  @Test("A refund request is open until Apple declines or refunds, and hidden facts do neither")
  func refundRequests() throws {
    func fact(_ hours: Int64, _ change: (inout TransactionFact) -> Void) -> TransactionFact {
      var fact = TransactionFact(
        environment: .production, transactionId: "T", productId: "gems", channel: .notification,
        signedDate: asOf + .hours(hours))
      change(&fact)
      return fact
    }
    let asked = fact(1) { $0.refundRequest = .requested(reason: "OTHER") }
    let declined = fact(2) { $0.refundRequest = .declined }
    let refunded = fact(3) { $0.revocation = .stated(Revocation(date: asOf + .hours(3))) }
    let reversed = fact(4) { ($0.revocation, $0.reversesRefund) = (.stated(nil), true) }
    let askedAgain = fact(5) { $0.refundRequest = .requested(reason: nil) }
    let cases: [(facts: [TransactionFact], open: Int64?)] = [
      ([asked], 1), ([asked, declined], nil), ([declined, asked], nil), ([declined], nil), ([asked, refunded], nil),
      ([asked, refunded, reversed], nil), ([asked, declined, askedAgain], 5),
      ([asked, refunded, reversed, askedAgain], 5),
    ]
    for (facts, open) in cases {
      let record = try #require(TransactionRecord.folding(facts.reversed()))
      #expect(
        record.openRefundRequest?.date == open.map { asOf + .hours($0) }, "\(facts.map(\.signedDate))")
    }
    let all = [asked, declined, askedAgain]
    let past = try #require(TransactionRecord.folding(all)).removingHiddenRefunds(all) {
      $0 > asOf + .hours(1)
    }
    #expect(past.openRefundRequest == RefundRequest(date: asOf + .hours(1), reason: "OTHER"))
  }

  @Test("Signed data decides product, original ID and period, in every order of arrival")
  func bundlePartInAReceipt() throws {
    func fact(_ channel: EvidenceChannel, hours: Int64, product: String, original: String, period: String)
      -> TransactionFact
    {
      var fact = TransactionFact(
        environment: .production, transactionId: "T", productId: product, channel: channel,
        signedDate: asOf + .hours(hours))
      (fact.originalTransactionId, fact.webOrderLineItemId) = (original, period)
      fact.expiresDate = asOf + .days(30)
      if channel != .verifyReceipt { fact.appAccountToken = .stated(nil) }
      return fact
    }
    let signed = fact(.serverApi, hours: 2, product: "bundle", original: "B0", period: "B1")
    let older = fact(.verifyReceipt, hours: 1, product: "part", original: "P0", period: "P1")
    let newer = fact(.verifyReceipt, hours: 3, product: "part", original: "P0", period: "0")
    for facts in [[signed], [older, signed], [signed, newer], [older, signed, newer]] {
      let record = try #require(TransactionRecord.folding(facts))
      #expect(record.productId == "bundle" && !record.isContradictory)
      #expect(record.originalTransactionId == "B0" && record.webOrderLineItemId == "B1")
    }
    // A fact that cannot be added gives nil; all facts are then folded again.
    let known = try #require(TransactionRecord.folding([signed]))
    #expect(known.adding([newer]) == nil)
    let alone = try #require(TransactionRecord.folding([older]))
    #expect(alone.productId == "part" && alone.adding([signed]) == nil)
    let other = fact(.notification, hours: 4, product: "other", original: "B0", period: "B1")
    #expect(TransactionRecord.folding([signed, other])?.isContradictory == true)
  }

  @Test("A field keeps its value while newer facts are silent, and a newer statement replaces it")
  func everyField() throws {
    func fact(_ text: String, _ number: Int32, _ signed: Instant) -> TransactionFact {
      var fact = TransactionFact(
        environment: .production, transactionId: "T", productId: "gems", channel: .serverApi, signedDate: signed)
      (fact.webOrderLineItemId, fact.originalTransactionId, fact.currency) = (text, text, text)
      (fact.quantity, fact.details.offerType, fact.refundRequest) = (number, number, .requested(reason: text))
      fact.details.storefront = number == 1 ? "DEU" : "143441"
      (fact.details.appTransactionId, fact.details.offerIdentifier) = (text, text)
      (fact.details.subscriptionGroupIdentifier, fact.details.commitmentInfo) = (text, text)
      (fact.details.billingPlanType, fact.details.previousOriginalTransactionId) = (text, text)
      fact.subscriptionStatus = number == 1 ? .active : .expired
      fact.productType = number == 1 ? .consumable : .autoRenewable
      fact.ownership = number == 1 ? .purchased : .familyShared
      (fact.hasOffer, fact.isUpgraded, fact.isRenewal) = (number == 1, number == 1, number == 1)
      (fact.purchaseDate, fact.originalPurchaseDate) = (signed - .hours(1), signed - .hours(2))
      (fact.expiresDate, fact.renewalDate) = (signed + .hours(3), signed + .hours(4))
      (fact.priceMilliunits, fact.appAccountToken) = (Int64(number), .stated(text))
      return fact
    }
    let (old, new) = (fact("old", 1, asOf - .days(2)), fact("new", 2, asOf - .days(1)))
    let silent = TransactionFact(
      environment: .production, transactionId: "T", productId: "gems", channel: .serverApi, signedDate: asOf
    )
    for (facts, last, status) in [
      ([old, silent], old, SubscriptionState.active), ([silent, new, old], new, .expired),
    ] {
      let record = try #require(TransactionRecord.folding(facts))
      #expect(record.details == last.details && record.webOrderLineItemId?.text == last.webOrderLineItemId)
      #expect(record.originalTransactionId?.text == last.originalTransactionId && record.quantity == last.quantity)
      #expect(record.currency == last.currency && record.refundRequest?.reason == last.refundRequest?.reason)
      #expect(record.subscriptionStatus == status && record.subscriptionStatusDate == last.signedDate)
      #expect(record.productType == last.productType && record.ownership == last.ownership)
      #expect(record.hasOffer == last.hasOffer && record.isUpgraded == last.isUpgraded)
      #expect(record.isRenewal == last.isRenewal && record.appAccountToken == last.appAccountToken)
      #expect(record.purchaseDate == last.purchaseDate && record.originalPurchaseDate == last.originalPurchaseDate)
      #expect(record.expiresDate == last.expiresDate && record.renewalDate == last.renewalDate)
      #expect(record.subscriptionExpiresDate == last.renewalDate && record.priceMilliunits == last.priceMilliunits)
      #expect(record.firstSignedDate == old.signedDate && record.signedDate == facts.map(\.signedDate).max())
    }
    // A storefront ID of an unknown country does not hide a known country.
    var elsewhere = new
    elsewhere.details.storefront = "199999"
    #expect(TransactionRecord.folding([old, elsewhere])?.details.storefront == "DEU")
    #expect(TransactionRecord.folding([elsewhere])?.details.storefront == "199999")
    // Without an original purchase date, a transaction is no restore.
    var bare = old
    (bare.originalTransactionId, bare.purchaseDate) = ("T", asOf)
    (bare.originalPurchaseDate, bare.expiresDate, bare.isRenewal) = (nil, nil, nil)
    #expect(try !#require(TransactionRecord.folding([bare])).isRestore)
  }

  @Test("The share of a refund is kept until another share or another refund is stated")
  func share() throws {
    let date = asOf - .days(3) + Span(microseconds: 250_000)
    let half = Revocation(date: date, percentage: 50_000, type: "REFUND_PRORATED", reason: 1)
    let second = Instant(seconds: date.seconds)
    for (newer, expected) in [
      (Revocation(date: second, reason: 0), Revocation(date: date, percentage: 50_000, type: half.type, reason: 0)),
      (Revocation(date: date), half), (Revocation(date: date + .seconds(1)), Revocation(date: date + .seconds(1))),
      (Revocation(date: date, type: "REFUND_FULL"), Revocation(date: date, type: "REFUND_FULL")),
      (Revocation(date: date, percentage: 10_000), Revocation(date: date, percentage: 10_000)),
    ] {
      let old = TransactionFact.evidence(at: 1, by: .serverApi, .stated(half))
      let facts = [old, .evidence(at: 2, by: .serverApi, .stated(newer))]
      #expect(TransactionRecord.folding(facts)?.revocation == expected)
    }
  }

  @Test(
    "A receipt does not remove the share of a refund; a date a day later or more is another refund",
    arguments: [EvidenceChannel.verifyReceipt, .offline])
  func shareBesideReceipts(channel: EvidenceChannel) {
    let date = Instant(seconds: 1_000_000)
    let part = Revocation(date: date, percentage: 30_000, type: "REFUND_PRORATED")
    for (newer, expected) in [
      (Revocation(date: date + .seconds(2)), part), (Revocation(date: date - .days(2)), part),
      (
        Revocation(date: date + .hours(23), type: "REFUND_PRORATED", reason: 1),
        Revocation(date: date, percentage: 30_000, type: "REFUND_PRORATED", reason: 1)
      ),
      (Revocation(date: date + .days(1)), Revocation(date: date + .days(1), isUnsigned: true)),
    ] {
      let facts = [
        TransactionFact.evidence(at: 1, by: .serverApi, .stated(part)), .evidence(at: 2, by: channel, .stated(newer)),
      ]
      #expect(TransactionRecord.folding(facts)?.revocation == expected)
    }
    let full = TransactionFact.evidence(at: 1, by: channel, .stated(Revocation(date: date)))
    let other = TransactionFact.evidence(at: 2, by: channel, .stated(Revocation(date: date + .hours(1))))
    #expect(TransactionRecord.folding([full, other])?.revocation?.date == date, "it is the same refund")
  }

  @Test("A refund with two dates keeps the first date, and a larger refund has its own")
  func firstDate() {
    let date = Instant(seconds: 1_000_000)
    for (first, second, isSame) in [
      (Revocation(date: date, type: "REFUND_FULL"), Revocation(date: date + .days(11), type: "REFUND_FULL"), true),
      (Revocation(date: date, percentage: 30_000), Revocation(date: date + .days(11), percentage: 30_000), true),
      (Revocation(date: date, percentage: 30_000), Revocation(date: date + .days(11), percentage: 60_000), false),
      (Revocation(date: date, percentage: 30_000), Revocation(date: date + .days(11)), false),
    ] {
      let facts = [
        TransactionFact.evidence(at: 1, by: .notification, .stated(first)),
        .evidence(at: 2, by: .serverApi, .stated(second)),
      ]
      #expect(TransactionRecord.folding(facts)?.revocation?.date == (isSame ? first : second).date)
      // After a withdrawal, it is another refund.
      let reversal = TransactionFact.evidence(at: 2, by: .serverApi, .stated(nil))
      let again = TransactionFact.evidence(at: 3, by: .serverApi, .stated(second))
      #expect(TransactionRecord.folding([facts[0], reversal, again])?.revocation == second)
    }
  }

  @Test("Of two statements at one instant the refund counts, whichever its channel")
  func refundAtOneInstant() {
    for one in EvidenceChannel.allCases {
      for other in EvidenceChannel.allCases {
        let facts = [
          TransactionFact.evidence(at: 1, by: one, .stated(refund)), .evidence(at: 1, by: other, .stated(nil)),
        ]
        #expect(TransactionRecord.folding(facts)?.revocation?.date == refund.date, "\(one), \(other)")
      }
    }
  }

  @Test(
    "A receipt's cancellation of an upgraded plan is no refund, and reverses none that Apple signed",
    arguments: [EvidenceChannel.verifyReceipt, .offline])
  func upgrades(channel: EvidenceChannel) {
    let date = Instant(seconds: 1_000_000)
    var upgraded = TransactionFact.evidence(at: 1, by: .serverApi, .stated(nil))
    upgraded.isUpgraded = true
    let bare = TransactionFact.evidence(at: 2, by: channel, .stated(Revocation(date: date)))
    let record = TransactionRecord.folding([upgraded, bare])
    #expect(record?.revocation == nil && record?.revocationWithdrawnDate == nil)
    #expect(TransactionRecord.folding([bare])?.isReversed == true)
    var stated = TransactionFact.evidence(at: 3, by: .verifyReceipt, .stated(Revocation(date: date)))
    stated.isUpgraded = true
    #expect(TransactionRecord.folding([stated])?.revocation == nil)
    #expect(TransactionRecord.folding([bare, stated])?.revocation == nil)
    let full = Revocation(date: date, type: "REFUND_FULL")
    let signed = TransactionFact.evidence(at: 2, by: .notification, .stated(full))
    #expect(TransactionRecord.folding([signed, stated])?.revocation == full)
    #expect(TransactionRecord.folding([upgraded, bare, signed, stated])?.revocation == full)
    let signedBare = TransactionFact.evidence(at: 2, by: .notification, .stated(Revocation(date: date)))
    #expect(TransactionRecord.folding([signedBare, stated])?.isReversed == true)
  }

  @Test("A receipt without a cancellation date withdraws no partial refund that only others stated")
  func partsBesideReceipts() {
    let part = Revocation(date: Instant(seconds: 50), percentage: 30_000, type: "REFUND_PRORATED")
    let gone = TransactionFact.evidence(at: 3, by: .verifyReceipt, .stated(nil))
    let known = TransactionRecord.folding([.evidence(at: 1, by: .serverApi, .stated(part)), gone])
    #expect(known?.revocation == part && known?.revocationWithdrawnDate == nil)
    let shown = [
      TransactionFact.evidence(at: 1, by: .serverApi, .stated(part)),
      .evidence(at: 2, by: .verifyReceipt, .stated(refund)),
      gone,
    ]
    #expect(TransactionRecord.folding(shown)?.revocation == nil, "a receipt showed this refund before")
    let full = TransactionRecord.folding([.evidence(at: 1, by: .serverApi, .stated(refund)), gone])
    #expect(full?.revocation == nil && full?.revocationWithdrawnDate == gone.signedDate)
  }

  @Test("An answer that cannot state refunds withdraws none")
  func oldReceipts() {
    var old = TransactionFact.evidence(at: 2, by: .verifyReceipt, .absent)
    old.cannotStateRefunds = true
    let record = TransactionRecord.folding([.evidence(at: 1, by: .verifyReceipt, .stated(refund)), old])
    #expect(record?.revocation?.date == refund.date && record?.revocationWithdrawnDate == nil)
  }

  @Test(
    "The share of a receipt's refund is unknown until signed data states the refund",
    arguments: [EvidenceChannel.verifyReceipt, .offline])
  func shareOfUnsignedRefunds(channel: EvidenceChannel) throws {
    func isShareUnknown(_ facts: TransactionFact...) throws -> Bool {
      let isUnknown = try #require(TransactionRecord.folding(facts)).isRefundShareUnknown
      #expect(TransactionRecord.folding(facts.reversed())?.isRefundShareUnknown == isUnknown)
      return isUnknown
    }
    var sale = TransactionFact.evidence(at: 1, by: .notification, .stated(nil))
    sale.appAccountToken = .stated(nil)
    let receipt = TransactionFact.evidence(at: 2, by: channel, .stated(refund))
    var later = sale
    (later.signedDate, later.revocation) = (Instant(seconds: 3), .absent)
    #expect(try isShareUnknown(receipt) && isShareUnknown(sale, receipt) && isShareUnknown(sale, receipt, later))
    later.revocation = .stated(refund)
    #expect(try !isShareUnknown(sale, receipt, later))
    var earlier = later
    earlier.signedDate = Instant(seconds: 1)
    #expect(try !isShareUnknown(earlier, receipt))
    var upgraded = sale
    upgraded.isUpgraded = true
    #expect(try !isShareUnknown(upgraded, receipt))
  }

  @Test(
    "A receipt never overrides signed data, however late it is",
    arguments: [EvidenceChannel.offline, .serverApi, .notification])
  func signed(reportingTransaction: EvidenceChannel) throws {
    var signed = TransactionFact.evidence(at: 10, by: reportingTransaction, .stated(nil))
    signed.appAccountToken = .stated(nil)
    (signed.purchaseDate, signed.originalPurchaseDate) = (Instant(seconds: 9), Instant(seconds: 8))
    (signed.isRenewal, signed.hasOffer) = (false, true)
    for channel in [EvidenceChannel.verifyReceipt, .offline] {
      for time in [Int64(1), 20] {
        var receipt = TransactionFact.evidence(at: time, by: channel, .absent)
        (receipt.purchaseDate, receipt.originalPurchaseDate) = (Instant(seconds: time), Instant(seconds: 2))
        (receipt.isRenewal, receipt.hasOffer) = (true, false)
        let record = try #require(TransactionRecord.folding([receipt, signed]))
        #expect(record.purchaseDate == signed.purchaseDate && record.hasOffer == true)
        #expect(record.originalPurchaseDate == signed.originalPurchaseDate && record.isRenewal == false)

        // Receipts fill fields that signed data lacks. Without signed data the newest receipt counts.
        var sparse = signed
        (sparse.purchaseDate, sparse.originalPurchaseDate, sparse.isRenewal, sparse.hasOffer) = (nil, nil, nil, nil)
        let filled = try #require(TransactionRecord.folding([sparse, receipt]))
        #expect(filled.purchaseDate == receipt.purchaseDate && filled.hasOffer == nil)
        #expect(filled.originalPurchaseDate == receipt.originalPurchaseDate && filled.isRenewal == nil)
        var newer = receipt
        (newer.signedDate, newer.purchaseDate, newer.hasOffer) = (Instant(seconds: 30), Instant(seconds: 29), true)
        let alone = try #require(TransactionRecord.folding([receipt, newer]))
        #expect(alone.purchaseDate == newer.purchaseDate && alone.hasOffer == true)
        #expect(TransactionRecord.folding([receipt])?.adding([newer]) == nil, "unknown whether it was signed")
      }
    }
  }

  @Test("The order in which facts arrive changes nothing", arguments: Effort.blocks)
  func permutations(block: UInt64) {
    var random = SeededGenerator(seed: block)
    for _ in 0..<250 {
      let facts = (0..<random.number(1...6)).map { _ in TransactionFact.random(using: &random) }
      let folded = TransactionRecord.folding(facts)
      for _ in 0..<4 { #expect(TransactionRecord.folding(facts.shuffled(using: &random)) == folded) }
      #expect(TransactionRecord.folding(facts + facts) == folded, "a repeated fact changes nothing")
    }
  }

  @Test("A fact with the same content as both neighbours changes nothing", arguments: Effort.blocks)
  func repeated(block: UInt64) {
    var generator = SeededGenerator(seed: block)
    for number in 0..<200 {
      var facts: [TransactionFact] = []
      for time in 0..<Int64(generator.number(1...12)) {
        var fact = facts.last ?? .random(using: &generator)
        if generator.oneIn(3) { fact = facts.randomElement(using: &generator) ?? .random(using: &generator) }
        if generator.oneIn(4) { fact = .random(using: &generator) }
        fact.signedDate = asOf + .minutes(time)
        facts.append(fact)
      }
      func words(_ place: Int) -> TransactionFact? {
        guard facts.indices.contains(place) else { return nil }
        var fact = facts[place]
        fact.signedDate = asOf
        return fact
      }
      let kept = facts.indices.filter { words($0) != words($0 - 1) || words($0) != words($0 + 1) }.map { facts[$0] }
      #expect(TransactionRecord.folding(kept) == TransactionRecord.folding(facts), "\(number)")
    }
  }

  @Test("A record with added facts equals the fold of all facts", arguments: Effort.blocks)
  func inParts(block: UInt64) throws {
    var random = SeededGenerator(seed: block)
    var spared = 0
    for number in 0..<250 {
      var facts = (0..<random.number(2...8)).map { _ in TransactionFact.random(using: &random) }
      // In half of the cases, facts arrive in the order of their dates.
      if random.oneIn(2) { facts.sort { $0.signedDate < $1.signedDate } }
      var known = try #require(TransactionRecord.folding([facts[0]]))
      var count = 1
      while count < facts.count {
        let next = min(facts.count, count + random.number(1...3))
        let whole = try #require(TransactionRecord.folding(Array(facts[..<next])))
        if let added = known.adding(Array(facts[count..<next])) {
          #expect(added == whole, "\(number)")
          spared += 1
        }
        (known, count) = (whole, next)
      }
    }
    #expect(spared > 20, "facts were added without a new fold")
  }

  @Test("An older fact only fills fields that newer facts left empty", arguments: Effort.blocks)
  func older(block: UInt64) throws {
    var random = SeededGenerator(seed: block)
    for _ in 0..<250 {
      let facts = (0..<random.number(1...4)).map { _ in TransactionFact.random(using: &random) }
      let known = try #require(TransactionRecord.folding(facts))
      var old = TransactionFact.random(using: &random)
      old.signedDate = Instant(seconds: -1)
      let after = try #require(TransactionRecord.folding(facts + [old]))
      #expect(after.signedDate == known.signedDate)
      #expect(after.channel == known.channel)
      #expect(after.quantity == known.quantity ?? old.quantity)
      // A signed date replaces a receipt's date, even if it is older.
      let isGuess = !facts.contains { $0.isSigned && $0.purchaseDate != nil }
      let (first, second) =
        old.isSigned && isGuess ? (old.purchaseDate, known.purchaseDate) : (known.purchaseDate, old.purchaseDate)
      #expect(after.purchaseDate == first ?? second)
      #expect(after.priceMilliunits == known.priceMilliunits ?? old.priceMilliunits)
      #expect(after.ownership == known.ownership ?? old.ownership)
      if known.appAccountToken != .absent { #expect(after.appAccountToken == known.appAccountToken) }
      // A receipt's statement about a refund depends on the earlier facts.
      let speaks = facts.contains { $0.revocation != .absent && $0.isSigned }
      if speaks { #expect(after.revocation == known.revocation) }
    }
  }

  private typealias Facts = [(seconds: Int64, channel: EvidenceChannel, revocation: Statement<Revocation?>)]
  /// Facts, the resulting refund, and the date of a withdrawal.
  private typealias RefundRow = (name: String, facts: Facts, refund: Revocation?, withdrawn: Int64?)

  private static let refunds: [RefundRow] =
    [
      ("an older receipt lacks it", [(9, .serverApi, .stated(refund)), (1, .offline, .stated(nil))], refund, nil),
      (
        "newer facts lack it: the first of them reverses it",
        [
          (1, .serverApi, .stated(nil)), (2, .notification, .stated(refund)), (3, .notification, .stated(nil)),
          (4, .serverApi, .stated(nil)),
        ], nil, 3
      ),
      (
        "a second refund after a reversal",
        [(2, .serverApi, .stated(refund)), (3, .serverApi, .stated(nil)), (4, .serverApi, .stated(refund))], refund, nil
      ),
      ("never refunded", [(1, .offline, .stated(nil)), (2, .serverApi, .stated(nil))], nil, nil),
      (
        "a cancellation that verifyReceipt no longer shows is withdrawn",
        [(1, .verifyReceipt, .stated(refund)), (2, .verifyReceipt, .absent)], nil, 2
      ),
      (
        "a cancellation that another channel has confirmed is not withdrawn",
        [(1, .verifyReceipt, .stated(refund)), (2, .serverApi, .stated(refund)), (3, .verifyReceipt, .absent)],
        refund, nil
      ),
    ]

  private static let silence: [RefundRow] = EvidenceChannel.allCases.map { channel in
    ("a fact without a statement", [(1, .serverApi, .stated(refund)), (2, channel, .absent)], refund, nil)
  }

  @Test("A refund stands until a newer statement of a channel that can state refunds lacks it")
  func refundsAndReversals() {
    #expect(TransactionRecord.folding([]) == nil)
    for (name, facts, refund, withdrawn) in Self.refunds + Self.silence {
      let record = TransactionRecord.folding(
        facts.map { .evidence(at: $0.seconds, by: $0.channel, $0.revocation) })
      #expect(record?.revocation == refund, "\(name)")
      #expect(record?.revocationWithdrawnDate == withdrawn.map { Instant(seconds: $0) }, "\(name)")
      #expect(record?.signedDate == facts.map { Instant(seconds: $0.seconds) }.max(), "\(name)")
    }
  }

  @Test("A record shows whether any channel could state a refund")
  func tells() {
    let silent = TransactionFact.evidence(at: 2, by: .verifyReceipt, .absent)
    #expect(TransactionRecord.folding([silent])?.isRevocationKnown == false)
    let spoken = TransactionRecord.folding([silent, .evidence(at: 1, by: .offline, .stated(nil))])
    #expect(spoken?.isRevocationKnown == true)
  }

  /// verifyReceipt shows no refund of a consumable. Its later answers are therefore no statement.
  @Test("A fact that cannot state a refund does not renew an older statement")
  func factsWithoutRefundStatement() throws {
    let facts: [TransactionFact] = [
      .evidence(at: 1, by: .offline, .stated(nil)), .evidence(at: 3, by: .verifyReceipt, .absent),
      .evidence(at: 4, by: .offline, .absent),
    ]
    for facts in [facts, facts.reversed()] {
      let record = try #require(TransactionRecord.folding(facts))
      #expect(record.hasRevocationStatement(since: Instant(seconds: 1)) && record.hasRevocationStatement(since: nil))
      #expect(!record.hasRevocationStatement(since: Instant(seconds: 2)))
    }
    let first = try #require(TransactionRecord.folding([facts[0]]))
    #expect(first.adding(Array(facts[1...])) == TransactionRecord.folding(facts))
  }

  @Test("A stated absence of a token is kept until a token is stated")
  func tokens() {
    var first = TransactionFact.evidence(at: 1, by: .serverApi, .absent)
    first.appAccountToken = .stated(nil)
    let silent = TransactionFact.evidence(at: 2, by: .verifyReceipt, .absent)
    var last = TransactionFact.evidence(at: 3, by: .serverApi, .absent)
    last.appAccountToken = .stated("token")
    #expect(TransactionRecord.folding([first, silent])?.appAccountToken == .stated(nil))
    #expect(TransactionRecord.folding([first, silent, last])?.appAccountToken == .stated("token"))
    #expect(TransactionRecord.folding([silent])?.appAccountToken == .absent)
  }

  @Test("Another product or app under one transaction ID is a contradiction")
  func contradiction() {
    let one = TransactionFact.evidence(at: 1, by: .serverApi, .absent)
    var other = TransactionFact.evidence(at: 2, by: .serverApi, .absent)
    #expect(TransactionRecord.folding([one, other])?.isContradictory == false)
    other.productId = "gems.500"
    #expect(TransactionRecord.folding([one, other])?.isContradictory == true)
    other.productId = one.productId
    other.bundleId = otherApp
    #expect(TransactionRecord.folding([one, other])?.isContradictory == true)
    other.bundleId = nil
    #expect(TransactionRecord.folding([one, other])?.isContradictory == false)
  }

  @Test("The latest expiry counts, including the end of a grace period")
  func expiry() {
    var first = TransactionFact.evidence(at: 1, by: .serverApi, .absent)
    first.expiresDate = Instant(seconds: 100)
    first.gracePeriodExpiresDate = Instant(seconds: 130)
    var second = TransactionFact.evidence(at: 2, by: .serverApi, .absent)
    second.expiresDate = Instant(seconds: 120)
    let record = TransactionRecord.folding([second, first])
    #expect(record?.expiresDate == Instant(seconds: 120))
    #expect(record?.subscriptionExpiresDate == Instant(seconds: 130))
  }

  @Test("Of facts at one instant, the fact of the more detailed channel counts")
  func ties() {
    let byWeight = [EvidenceChannel.verifyReceipt, .offline, .notification, .serverApi]
    #expect(Set(byWeight) == Set(EvidenceChannel.allCases))
    for (less, more) in zip(byWeight, byWeight.dropFirst()) {
      // Both orders of values, because the values would decide between channels of equal rank.
      for (said, last) in [("a", "b"), ("b", "a")] {
        var facts = [TransactionFact.evidence(at: 1, by: less, .absent), .evidence(at: 1, by: more, .absent)]
        (facts[0].currency, facts[1].currency) = (said, last)
        for facts in [facts, facts.reversed()] {
          let record = TransactionRecord.folding(facts)
          #expect(record?.currency == last && record?.channel == more, "\(less): \(said), \(more): \(last)")
        }
      }
    }
  }

  private static let refund = Revocation(date: Instant(seconds: 50))
  private var refund: Revocation { Self.refund }

  @Test("Facts of one instant and channel are ordered by each field, numbers by value")
  func tieBreakers() {
    let plain = TransactionFact(
      environment: .production, transactionId: "T", productId: "gems", channel: .serverApi, signedDate: asOf
    )
    func fact(_ change: (inout TransactionFact) -> Void) -> TransactionFact {
      var fact = plain
      change(&fact)
      return fact
    }
    let nine = fact { $0.quantity = 9 }
    let ten = fact { $0.quantity = 10 }
    #expect(TransactionRecord.folding([ten, nine])?.quantity == 10)
    #expect(TransactionRecord.folding([nine, ten])?.quantity == 10)
    // Another value for each stored property, except the environment and the ID, which all facts share.
    let details: [WritableKeyPath<TransactionDetails, String?>] = [
      \.storefront, \.appTransactionId, \.offerIdentifier, \.subscriptionGroupIdentifier, \.commitmentInfo,
      \.billingPlanType, \.previousOriginalTransactionId,
    ]
    let others: [TransactionFact] = [
      fact { $0.originalTransactionId = "O" }, fact { $0.webOrderLineItemId = "W" }, fact { $0.bundleId = "b" },
      fact { $0.productId = "coins" }, fact { $0.productType = .consumable }, nine,
      fact { $0.purchaseDate = asOf }, fact { $0.originalPurchaseDate = asOf },
      fact { $0.expiresDate = asOf }, fact { $0.revocation = .stated(nil) },
      fact { $0.priceMilliunits = 1 }, fact { $0.currency = "USD" }, fact { $0.appAccountToken = .stated(nil) },
      fact { $0.ownership = .purchased }, fact { $0.isRenewal = false }, fact { $0.hasOffer = false },
      fact { $0.isUpgraded = false }, fact { $0.gracePeriodExpiresDate = asOf },
      fact { $0.renewalDate = asOf }, fact { $0.subscriptionStatus = .active },
      fact { $0.renewalPriceMilliunits = 1 }, fact { $0.renewalCurrency = "USD" }, fact { $0.offerPeriod = "P1M" },
      fact { $0.refundRequest = .requested(reason: "OTHER") }, fact { $0.reversesRefund = true },
      fact { $0.cannotStateRefunds = true }, fact { $0.details.offerType = 1 }, fact { $0.channel = .offline },
      fact { $0.signedDate = asOf + .seconds(1) },
    ]
    #expect(others.count + 2 == Mirror(reflecting: plain).children.count)
    #expect(details.count + 1 == Mirror(reflecting: plain.details).children.count)
    for other in others + details.map({ path in fact { $0.details[keyPath: path] = "x" } }) {
      #expect(other.tieBreakers != plain.tieBreakers, "\(other)")
    }
    let refunds: [Revocation] = [
      Revocation(date: asOf), Revocation(date: asOf - .days(1)),
      Revocation(date: asOf, percentage: 1), Revocation(date: asOf, type: "REFUND_FULL"),
      Revocation(date: asOf, reason: 1), Revocation(date: asOf, coversSomeItemsOnly: true),
    ]
    let ranks = refunds.map { refund in fact { $0.revocation = .stated(refund) }.tieBreakers }
    for (place, one) in ranks.enumerated() { #expect(ranks.firstIndex(of: one) == place) }
  }
}

extension TransactionFact {
  fileprivate static func evidence(
    at seconds: Int64, by channel: EvidenceChannel, _ revocation: Statement<Revocation?>
  ) -> TransactionFact {
    var fact = TransactionFact(
      environment: .production, transactionId: "T1", productId: "gems.100", channel: channel,
      signedDate: Instant(seconds: seconds))
    fact.bundleId = "com.example.game"
    fact.revocation = revocation
    return fact
  }

  /// A fact about T1, with times so close together that ties are frequent.
  fileprivate static func random(using random: inout SeededGenerator) -> TransactionFact {
    var fact = evidence(
      at: Int64(random.number(0...3)), by: random.pick(.verifyReceipt, .serverApi, .offline, .notification),
      random.pick(
        .absent, .stated(nil), .stated(Revocation(date: Instant(seconds: 7))),
        .stated(Revocation(date: Instant(seconds: 8), percentage: 50_000, type: "REFUND_PRORATED"))))
    if random.oneIn(8) { fact.productId = "gems.500" }
    if random.oneIn(2) { fact.quantity = Int32(random.number(1...3)) }
    if random.oneIn(2) { fact.purchaseDate = Instant(seconds: Int64(random.number(0...9))) }
    if random.oneIn(2) { fact.expiresDate = Instant(seconds: Int64(random.number(0...9))) }
    if random.oneIn(2) { fact.priceMilliunits = Int64(random.number(0...9)) }
    if random.oneIn(2) { fact.ownership = random.pick(.purchased, .familyShared) }
    if random.oneIn(4) { fact.originalPurchaseDate = Instant(seconds: Int64(random.number(0...9))) }
    fact.isRenewal = random.pick(nil, true, false)
    fact.hasOffer = random.pick(nil, true, false)
    fact.cannotStateRefunds = fact.revocation == .absent && random.oneIn(3)
    fact.appAccountToken = random.pick(.absent, .stated(nil), .stated("a"), .stated("b"))
    return fact
  }
}
