import Reconciliation
import Testing

@testable import SampleWorlds

/// The whole rule of what is due and when, row by row.
@Suite struct DuenessTests {
  private static let received = Instant(seconds: 1_800_000_000)
  private static let night = received + .hours(5)
  private static let policy = Dueness.Policy(staleAfter: .days(7), refundWindow: .days(120), lookback: .days(90))

  typealias Event = @Sendable (inout CheckHistory) -> Void

  /// A proof and what happened to it, night by night.
  struct Row: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let expected: Dueness?
    let check: CheckHistory

    init(_ name: String, _ expected: Dueness?, _ events: Event...) {
      testDescription = name
      self.expected = expected
      var check = CheckHistory(dated: received, knownSince: night)
      for happen in events { happen(&check) }
      self.check = check
    }
  }

  private static func due(_ from: Instant, until: Instant? = nil, _ rank: Dueness.Rank) -> Dueness {
    Dueness(from: from, until: until, rank: rank)
  }

  // MARK: - Events, each so long after the night

  private static func says(
    _ outcome: CheckOutcome, _ reason: PaymentReason?, _ span: Span = .hours(0), isOffline: Bool = false
  ) -> Event {
    { $0.note(outcome, reason: reason, isOffline: isOffline, asOf: night + span) }
  }

  private static func fails(_ span: Span = .hours(0)) -> Event { { $0.fail(night + span) } }
  private static func verifies(_ span: Span = .hours(0)) -> Event { { $0.verify(night + span) } }
  private static func rejects(_ span: Span = .hours(0), isOffline: Bool = false) -> Event {
    says(.rejected, .signatureInvalid, span, isOffline: isOffline)
  }
  private static func judgesAgain(_ span: Span) -> Event { { $0.judgeAgain(asOf: night + span) } }
  private static func renews(_ span: Span) -> Event { { $0.renew(asOf: night + span) } }
  private static func isDated(_ span: Span) -> Event { { $0.dated = night + span } }
  private static func isAccused(_ span: Span = .hours(0)) -> Event { { $0.accusedSince = night + span } }
  private static func isCritical(_ span: Span) -> Event { { $0.criticalSince = night + span } }

  private static let likely = received + .days(120)

  static let rows: [Row] = [
    Row("never asked: since it came", due(received, .urgent)),
    Row("never asked, and the shop believed it", due(received, .open), { $0.isUrgent = false }),
    Row("dated later than the run that took it in", due(night, .urgent), isDated(.days(3))),
    Row("nobody waits for it", nil, { $0.isWanted = false }),
    Row("one day short of the horizon when it became known", due(night - .days(119), .urgent), isDated(.days(-119))),
    Row("beyond the horizon when it became known", due(night - .days(120), .judgedOffline), isDated(.days(-120))),
    Row("the same, once in vain", due(night + .minutes(5), .judgedOffline), isDated(.days(-120)), fails()),
    Row(
      "recent when it became known, and silent for a year", due(night + .days(365) + .minutes(5), .urgent),
      fails(.days(365))),
    Row("once in vain", due(night + .minutes(5), .urgent), fails()),
    Row("twice in vain", due(night + .hours(2), .urgent), fails(), fails(.hours(1))),
    Row("three times", due(night + .hours(6), .urgent), fails(), fails(), fails()),
    Row("four times: the next night", due(night + .hours(20), .urgent), fails(), fails(), fails(), fails()),
    Row("a hundred times", due(night + .hours(20), .urgent), { check in (0..<100).forEach { _ in check.fail(night) } }),
    Row("no roots: nobody was asked", due(night + .minutes(5), .urgent), says(.unanswered, .noRoots, isOffline: true)),
    Row("verified: stale after a week", due(night + .days(7), until: likely, .stale), verifies()),
    Row(
      "verified by what Apple said two days before", due(night + .days(5), until: likely, .stale),
      { $0.note(.verified, reason: nil, isOffline: false, appleDate: night - .days(2), asOf: night) }),
    Row("verified when no refund is likely any more", nil, { $0.verify(received + .days(114)) }),
    Row("verified so that it is stale when no refund is likely", nil, { $0.verify(received + .days(113)) }),
    Row(
      "verified by itself alone", due(night + .days(7), until: likely, .judgedOffline),
      says(.verified, nil, isOffline: true)),
    Row(
      "verified, then silence", due(night + .days(8) + .minutes(5), until: likely, .stale), verifies(), fails(.days(8))),
    Row(
      "verified, silence, verified", due(night + .days(16), until: likely, .stale), verifies(), fails(.days(8)),
      verifies(.days(9))),
    Row("rejected by itself: for good", nil, rejects(isOffline: true)),
    Row("rejected by Apple: every night", due(night + .hours(20), until: likely, .accusation), rejects()),
    Row(
      "rejected by Apple for fourteen days: weekly", due(night + .days(21) - .hours(4), until: likely, .accusation),
      rejects(), rejects(.days(7)), rejects(.days(14))),
    Row("rejected by Apple, and beyond the horizon", nil, rejects(.days(120))),
    Row(
      "rejected by itself, and judged again", due(night + .days(2), .judgedOffline), rejects(isOffline: true),
      judgesAgain(.days(2))),
    Row(
      "rejected by itself twice", nil, rejects(isOffline: true), judgesAgain(.days(2)),
      rejects(.days(2), isOffline: true)),
    Row(
      "without roots, and judged again: at once", due(received, .urgent), says(.unanswered, .noRoots, isOffline: true),
      judgesAgain(.minutes(1))),
    Row(
      "asked in vain, and then by its order", due(night + .minutes(1), .critical), fails(), isCritical(.minutes(1))),
    Row("not found yet: the next night", due(night + .hours(20), .urgent), says(.notFound, .notFoundYet)),
    Row(
      "not found yet, however often: the next night", due(night + .days(1) + .hours(20), .urgent),
      says(.notFound, .notFoundYet), says(.notFound, .notFoundYet, .days(1))),
    Row("not found: once more the next night", due(night + .hours(20), .urgent), says(.notFound, .notFound)),
    Row(
      "not found in two nights: every night", due(night + .days(1) + .hours(20), until: likely, .accusation),
      says(.notFound, .notFoundYet), says(.notFound, .notFound, .days(1))),
    Row(
      "not found for fourteen days: weekly", due(night + .days(21) - .hours(4), until: likely, .accusation),
      says(.notFound, .notFoundYet), says(.notFound, .notFound, .days(14))),
    Row(
      "not found twice in one night is once", due(night + .hours(20), .urgent), says(.notFound, .notFound),
      says(.notFound, .notFound)),
    Row(
      "not found, found, not found: once", due(night + .days(2) + .hours(20), .urgent), says(.notFound, .notFound),
      verifies(.days(1)), says(.notFound, .notFound, .days(2))),
    Row("account gone: when stale", due(night + .days(7), .stale), says(.review, .accountGone)),
    Row(
      "account gone, half a year ago: still", due(night + .days(207), .stale), says(.review, .accountGone, .days(200))),
    Row("a critical would stand on it", due(night + .days(2), .critical), verifies(), isCritical(.days(2))),
    Row(
      "a critical on an ID that is not found in two nights", due(night + .days(2), .critical),
      says(.notFound, .notFound), says(.notFound, .notFound, .days(1)), isCritical(.days(2))),
    Row(
      "a critical, asked about in vain", due(night + .days(2) + .minutes(5), .critical), verifies(),
      isCritical(.days(2)), fails(.days(2))),
    Row(
      "a critical that was asked about: stale like any other", due(night + .days(9), until: likely, .stale),
      verifies(), isCritical(.days(2)), verifies(.days(2))),
    Row(
      "an accusation rests on a verified proof: every night", due(night + .hours(20), until: likely, .accusation),
      verifies(), isAccused()),
    Row(
      "an accusation opened days after the answer: the next run", due(night + .hours(20), until: likely, .accusation),
      verifies(), isAccused(.days(3))),
    Row(
      "accused for one day short of fourteen", due(night + .days(13) + .hours(20), until: likely, .accusation),
      verifies(.days(13)), isAccused()),
    Row(
      "accused for fourteen days: weekly", due(night + .days(21) - .hours(4), until: likely, .accusation),
      verifies(.days(14)), isAccused()),
    Row(
      "accused, then silence", due(night + .days(1) + .minutes(5), until: likely, .accusation), verifies(),
      isAccused(), fails(.days(1))),
    Row(
      "accused by a proof that only local checks can judge", due(night + .days(7), until: likely, .judgedOffline),
      says(.verified, nil, isOffline: true), isAccused()),
    Row("accused, and beyond the horizon", nil, verifies(.days(120)), isAccused(.days(119))),
    Row(
      "a refusal counts from its accusation", due(night + .days(15) + .hours(20), until: likely, .accusation),
      says(.notFound, .notFoundYet), says(.notFound, .notFound, .days(15)), isAccused(.days(2))),
    Row(
      "accused, and then the payload is another", due(received, .urgent), verifies(), isAccused(), renews(.days(1))),
    Row(
      "rejected, and then the payload is another", due(received, .urgent), says(.rejected, .malformed, isOffline: true),
      renews(.days(1))),
    Row("nothing was asked", due(received, .urgent), says(.pending, .neverChecked, isOffline: true)),
  ]

  @Test("Attempts are counted since the last final answer")
  func attempts() {
    var check = CheckHistory(dated: Self.received, knownSince: Self.night)
    func expect(_ attempts: Int32, _ happen: (inout CheckHistory) -> Void) {
      happen(&check)
      #expect(check.attempts == attempts)
    }
    expect(1) { $0.fail(Self.night) }
    expect(2) { $0.fail(Self.night) }
    expect(3) { $0.note(.review, reason: .appleError, isOffline: false, asOf: Self.night) }
    expect(4) { $0.note(.notFound, reason: .notFoundYet, isOffline: false, asOf: Self.night) }
    expect(5) { $0.verify(Self.night) }
    expect(1) { $0.verify(Self.night) }
    expect(1) { $0.fail(Self.night) }
    expect(2) { $0.fail(Self.night) }
  }

  @Test("That nothing was asked changes nothing, and what is mended is as if it were new")
  func nothingAndAnew() {
    var check = CheckHistory(dated: Self.received, knownSince: Self.night)
    (check.isUrgent, check.isWanted) = (false, false)
    let before = check
    #expect(!before.isOffline, "nothing was said yet, by itself or by anybody")
    check.note(.pending, reason: nil, isOffline: true, asOf: Self.night + .days(1))
    #expect(check == before)
    check.verify(Self.night + .days(1))
    check.renew(asOf: Self.night + .days(2))
    var expected = before
    expected.knownSince = Self.night + .days(2)
    #expect(check == expected)
    let proof = ProofState.neverChecked
    #expect(
      proof.outcome == .pending && proof.reason == .neverChecked && proof.attempts == 0 && proof.containedCount == 0)
    #expect(proof.isOwed(asOf: Self.night, stuckAfter: .hours(48)))
    #expect(!ProofState.verified(.app).isOwed(asOf: Self.night, stuckAfter: .hours(48)))
  }

  @Test func aQuestionMovesPaymentsUntilItIsStuck() {
    let rules = Rules(asOf: Self.night, bundleIds: ["com.example.game"], lookbackStart: Self.night - .days(120))
    var proof = ProofState()
    proof.kind = .transaction
    #expect(proof.mayMovePayment(rules))
    proof.due = Dueness(from: Self.night - .days(200), rank: .open)
    #expect(proof.mayMovePayment(rules))
    // Apple is not asked about proofs beyond the horizon.
    proof.due = Dueness(from: Self.night - .days(200), rank: .judgedOffline)
    #expect(!proof.mayMovePayment(rules))
    for (hours, mayMove) in [(47, true), (48, false)] {
      proof.unansweredSince = Self.night - .hours(Int64(hours))
      #expect(proof.mayMovePayment(rules) == mayMove, "\(hours) h")
    }
  }

  @Test func anOldAccusationIsAskedAboutWhenStaleAtTheLatest() {
    var check = CheckHistory(dated: Self.received, knownSince: Self.night)
    check.accusedSince = Self.night - .days(30)
    check.verify(Self.night)
    let daily = Dueness.Policy(staleAfter: .days(1), refundWindow: .days(120), lookback: .days(90))
    #expect(Dueness(of: check, policy: daily)?.from == Self.night + .days(1))
    #expect(Dueness(of: check, policy: Self.policy)?.from == Self.night + .days(7) - .hours(4))
  }

  @Test func accusationsAreAskedAboutAfterOpenQuestionsAndBeforeStaleAnswers() {
    let order: [Dueness.Rank] = [.urgent, .open, .critical, .accusation, .stale, .judgedOffline]
    #expect(Dueness.Rank.allCases.sorted { $0.rawValue < $1.rawValue } == order)
  }

  @Test(arguments: rows) func row(_ row: Row) { #expect(Dueness(of: row.check, policy: Self.policy) == row.expected) }

  @Test(arguments: [
    (1, Span.minutes(5)), (2, .hours(1)), (3, .hours(6)), (4, .hours(20)), (5, .hours(20)), (.max, .hours(20)),
    (0, .minutes(5)),
  ])
  func theRetryScheduleRestartsTheNextNight(attempt: Int, span: Span) {
    #expect(RetrySchedule.span(afterAttempt: attempt) == span)
  }

  /// Whatever only a person can take further is asked about again all the same: the next night, a gone account when stale.
  @Test(arguments: PaymentReason.allCases) func everyReviewHasANextAttempt(_ reason: PaymentReason) {
    var check = CheckHistory(dated: Self.received, knownSince: Self.night)
    check.note(.review, reason: reason, isOffline: false, asOf: Self.night)
    let expected = Self.night + (reason == .accountGone ? .days(7) : .hours(20))
    #expect(Dueness(of: check, policy: Self.policy)?.from == expected)
  }

  @Test func aFailureKeepsTheLastOutcome() {
    for (outcome, reason) in [
      (CheckOutcome.verified, nil), (.review, PaymentReason.contradiction), (.notFound, .notFound),
      (.rejected, .signatureInvalid),
    ] {
      var check = CheckHistory(dated: Self.received, knownSince: Self.night)
      check.note(outcome, reason: reason, isOffline: false, asOf: Self.night)
      check.fail(Self.night + .days(8))
      #expect(check.outcome == outcome && check.reason == reason && check.answeredAt == Self.night)
      #expect(check.unansweredSince == Self.night + .days(8))
    }
  }

  /// What Apple had said of the same purchase before anybody knew of the proof is no answer about the proof.
  @Test func anAnswerOlderThanTheProofIsLostAfterAFailure() {
    var check = CheckHistory(dated: Self.received, knownSince: Self.night)
    check.note(.verified, reason: nil, isOffline: false, appleDate: Self.night - .days(1), asOf: Self.night)
    #expect(check.outcome == .verified && check.answeredAt == Self.night - .days(1))
    check.fail(Self.night + .hours(1))
    #expect(check.outcome == .unanswered && check.reason == .unreachable && check.answeredAt == nil)
    #expect(check.unansweredSince == Self.night + .hours(1))
  }

  /// An answer that was one of too many of its kind was taken for none: the silence after it is what is told.
  @Test func aFailureAfterAPendingRefusalIsUnanswered() {
    var check = CheckHistory(dated: Self.received, knownSince: Self.received)
    check.note(.review, reason: .systemic, isOffline: false, asOf: Self.night)
    check.fail(Self.night + .days(1))
    #expect(check.outcome == .unanswered && check.reason == .unreachable && check.answeredAt == nil)
    check.note(.review, reason: .systemic, isOffline: false, asOf: Self.night + .days(1) + .hours(1))
    #expect(check.unansweredSince == Self.night + .days(1), "it is as silent as before")
    check.note(.review, reason: .contradiction, isOffline: false, asOf: Self.night + .days(2))
    check.fail(Self.night + .days(3))
    #expect(check.outcome == .review && check.reason == .contradiction)
  }

  @Test func aRangeHoldsItsFirstInstantAndNotItsLast() {
    let due = Dueness(from: Self.night, until: Self.night + .days(1), rank: .stale)
    #expect(due.includes(Self.night) && !due.includes(Self.night - Span(microseconds: 1)))
    #expect(!due.includes(Self.night + .days(1)) && due.includes(Self.night + .days(1) - Span(microseconds: 1)))
  }

  // MARK: - What a night is incomplete for

  private func isOwed(_ check: CheckHistory, _ asOf: Instant) -> Bool {
    Dueness.isOwed(
      Dueness(of: check, policy: Self.policy), outcome: check.outcome, unansweredSince: check.unansweredSince,
      reason: check.reason, asOf: asOf, stuckAfter: .hours(48))
  }

  @Test func dueChecksAreOwedUntilTheyAreAnswered() {
    var check = CheckHistory(dated: Self.received, knownSince: Self.night)
    #expect(isOwed(check, Self.night) && !isOwed(check, Self.received - .hours(1)))
    check.fail(Self.night)
    // The night that asked, and every one until somebody answers, whether or not it is its turn to ask.
    #expect(
      isOwed(check, Self.night) && isOwed(check, Self.night + .minutes(1)) && isOwed(check, Self.night + .hours(47)))
    check.verify(Self.night + .days(1))
    #expect(!isOwed(check, Self.night + .days(1)) && isOwed(check, Self.night + .days(8)))
    #expect(!isOwed(check, Self.received + .days(120)))
  }

  /// Silence of two days since the first question in vain is a finding, and no reason to call nights incomplete for ever.
  @Test func twoDaysWithoutAnAnswerEndTheWait() {
    var check = CheckHistory(dated: Self.received - .days(50), knownSince: Self.night)
    check.fail(Self.night)
    check.fail(Self.night + .days(1))
    #expect(isOwed(check, Self.night + .days(2) - .seconds(1)))
    check.fail(Self.night + .days(2))
    #expect(!isOwed(check, Self.night + .days(2)) && !isOwed(check, Self.night + .days(30)))
    // An answer ends the row: silence begins anew.
    check.verify(Self.night + .days(30))
    check.fail(Self.night + .days(40))
    #expect(isOwed(check, Self.night + .days(40)))
  }

  /// What was answered decides its order whatever comes after it: no finding tells of the silence, so each night does.
  @Test(
    arguments: [
      (CheckOutcome.verified, nil), (.rejected, .signatureInvalid), (.notFound, .notFound), (.review, .contradiction),
    ] as [(CheckOutcome, PaymentReason?)])
  func failuresAfterADecisiveAnswerAreOwedWhileTheyMatter(outcome: CheckOutcome, reason: PaymentReason?) {
    var check = CheckHistory(dated: Self.received, knownSince: Self.night)
    check.note(outcome, reason: reason, isOffline: false, asOf: Self.night)
    check.fail(Self.night + .days(8))
    check.fail(Self.night + .days(11))
    let isUndecided = outcome == .review
    #expect(isOwed(check, Self.night + .days(8)))
    #expect(isOwed(check, Self.night + .days(11)) != isUndecided)
    // When no refund is likely any more nobody is asked.
    #expect(isOwed(check, Self.received + .days(120)) == (outcome == .rejected || outcome == .notFound))
  }

  /// A refused credential says nothing about the proof. The night owes its answer, as if Apple were silent.
  @Test func refusedQuestionsAreOwedUntilTheyAreAFinding() {
    var check = CheckHistory(dated: Self.received - .days(50), knownSince: Self.night)
    check.note(.review, reason: .appleError, isOffline: false, asOf: Self.night)
    #expect(isOwed(check, Self.night))
    check.note(.review, reason: .appleError, isOffline: false, asOf: Self.night + .days(1))
    #expect(check.unansweredSince == Self.night && isOwed(check, Self.night + .days(1)))
    // The retry schedule applies to silence after it, and the next night to the refusal itself.
    #expect(Dueness(of: check, policy: Self.policy)?.from == Self.night + .days(1) + .hours(20))
    var silent = check
    silent.fail(Self.night + .days(1) + .hours(20))
    #expect(Dueness(of: silent, policy: Self.policy)?.from == Self.night + .days(1) + .hours(26))
    check.note(.review, reason: .appleError, isOffline: false, asOf: Self.night + .days(2))
    #expect(!isOwed(check, Self.night + .days(2)))
    check.verify(Self.night + .days(3))
    #expect(check.unansweredSince == nil && !isOwed(check, Self.night + .days(3)))
    var offline = CheckHistory(dated: Self.received, knownSince: Self.night)
    offline.note(.review, reason: .appleError, isOffline: true, asOf: Self.night)
    #expect(!isOwed(offline, Self.night))
  }

  @Test func finalOfflineOutcomesAreNotOwed() {
    var signed = CheckHistory(dated: Self.received, knownSince: Self.night)
    signed.note(.verified, reason: nil, isOffline: true, asOf: Self.night)
    #expect(!isOwed(signed, Self.night + .days(8)))
    var unreadable = CheckHistory(dated: Self.received, knownSince: Self.night)
    unreadable.note(.unanswered, reason: .noRoots, isOffline: true, asOf: Self.night)
    #expect(!isOwed(unreadable, Self.night))
    var gone = CheckHistory(dated: Self.received, knownSince: Self.night)
    gone.note(.review, reason: .accountGone, isOffline: false, asOf: Self.night)
    #expect(!isOwed(gone, Self.night) && !isOwed(gone, Self.night + .days(6)))
  }
}

extension CheckHistory {
  fileprivate mutating func fail(_ asOf: Instant) {
    note(.unanswered, reason: .unreachable, isOffline: false, asOf: asOf)
  }

  fileprivate mutating func verify(_ asOf: Instant) { note(.verified, reason: nil, isOffline: false, asOf: asOf) }
}
