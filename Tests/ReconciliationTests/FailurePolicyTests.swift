import Reconciliation
import Testing

@testable import SampleWorlds

/// What each failure costs, and when refusals are a fault of ours.
@Suite struct FailurePolicyTests {
  private static let table: [Failure: (FailureSize, FailureRemedy)] = [
    .brokenRow: (.row, .report), .brokenColumn: (.night, .endNight),
    .silence: (.answer, .postpone), .refusedQuestion: (.answer, .park),
    .refusedCredential: (.app, .endApp), .systemicRefusals: (.app, .endApp),
    .value: (.answer, .park), .unreadable: (.answer, .park), .conflict: (.batch, .again),
    .lostSession: (.batch, .reopen),
    .exhausted: (.night, .endNight), .readOnly: (.night, .endNight), .access: (.night, .endNight),
    .cancelled: (.night, .endNight), .defect: (.night, .endNight),
  ]

  @Test(arguments: Failure.allCases) func everyFailureHasItsSizeAndRemedy(_ failure: Failure) throws {
    let expected = try #require(Self.table[failure])
    #expect(failure.size == expected.0 && failure.remedy == expected.1)
  }

  /// Nothing that Apple says or a row holds ends a night.
  @Test func dataEndsNoNight() {
    for failure in [Failure.brokenRow, .silence, .refusedQuestion, .refusedCredential, .systemicRefusals, .value] {
      #expect(failure.size < .night && failure.remedy != .endNight)
    }
  }

  @Test func whatCanHelpIsTriedAgain() {
    #expect(Failure.allCases.filter(\.remedy.isRetriable) == [.silence, .conflict, .lostSession])
  }

  @Test(
    arguments: [
      ("40001", Failure.conflict), ("40P01", .conflict), ("55P03", .conflict), ("57014", .conflict),
      ("57P01", .lostSession), ("57P03", .lostSession), ("08006", .lostSession), ("25P03", .lostSession),
      ("22003", .value), ("22P02", .value), ("22021", .value), ("23505", .value), ("23514", .value), ("54000", .value),
      ("21000", .value), ("53100", .exhausted), ("53300", .exhausted), ("58030", .exhausted), ("25006", .readOnly),
      ("42501", .access), ("42P01", .access), ("42P22", .access), ("28P01", .access), ("3D000", .access),
      ("XX000", .defect),
      ("0A000", .defect), ("", .defect), (nil, .defect),
    ] as [(String?, Failure)])
  func theServersWordsHaveTheirMeaning(sqlState: String?, failure: Failure) {
    #expect(Failure(sqlState: sqlState) == failure)
  }

  // MARK: - Credentials

  @Test func oneRefusalAmongThousandsIsOneQuestionsTrouble() {
    var trial = CredentialTrial<Int>()
    trial.accept()
    for id in 1...50 {
      #expect(trial.refuse(401, id: "\(id)", isSecondTime: false) == .askAgain)
      #expect(trial.refuse(401, id: "\(id)", isSecondTime: true) == .park)
    }
  }

  @Test func threeIdsRefusedAlikeAndNothingAcceptedEndTheApp() {
    var trial = CredentialTrial<Int>()
    #expect(trial.refuse(401, id: "a", isSecondTime: true) == .park)
    #expect(trial.refuse(401, id: "a", isSecondTime: true) == .park)
    #expect(trial.refuse(21004, id: "b", isSecondTime: true) == .park)
    #expect(trial.refuse(401, id: "c", isSecondTime: true) == .park)
    #expect(trial.refuse(401, id: "d", isSecondTime: true) == .endApp)
  }

  @Test func anAnswerBetweenThemClearsTheCredential() {
    var trial = CredentialTrial<Int>()
    _ = trial.refuse(401, id: "a", isSecondTime: true)
    _ = trial.refuse(401, id: "b", isSecondTime: true)
    trial.accept()
    #expect(trial.refuse(401, id: "c", isSecondTime: true) == .park)
    #expect(trial.refuse(401, id: "d", isSecondTime: true) == .park)
  }

  // MARK: - Shares

  @Test(arguments: [
    (79, 20, "0.25", true), (80, 20, "0.25", false), (19, 19, "0.25", false), (20, 20, "0.25", true),
    (20, 20, "1", false), (100_000, 25_000, "0.25", false), (100_000, 25_001, "0.25", true), (20, 20, "0", true),
    // The nearest fraction of two is a little less than 0.29.
    (100, 29, "0.29", false), (100, 30, "0.29", true),
  ])
  func tooManyRefusalsOfOneKindAreOurs(count: Int, refused: Int, share: String, isSystemic: Bool) throws {
    let share = try #require(Share(share))
    for kind in Refusal.allCases {
      let answers = FirstAnswers(count: count, refusals: [kind: refused])
      #expect(answers.systemic(share: share) == (isSystemic ? [kind] : []))
      #expect((answers.complaint(app: "game", share: share)?.contains(kind.remedy) ?? false) == isSystemic)
    }
  }

  /// Each kind is counted for itself: a shop has some of every kind.
  @Test func kindsAreNotAddedUp() {
    let answers = FirstAnswers(count: 100, refusals: [.malformed: 24, .notFound: 24, .idMismatch: 30])
    #expect(answers.systemic(share: Share(millionths: 250_000)) == [.idMismatch])
  }

  // MARK: - What an answer counts for

  private static let night = Instant(seconds: 1_800_000_000)
  private static let earlier = night - .days(1)

  @Test(
    arguments: [
      (.pending, nil, nil, .first), (.unanswered, nil, nil, .first),
      (.review, nil, nil, .undecided), (.verified, nil, nil, .verified),
      // Of another payload, or for what no kind counts.
      (.rejected, nil, nil, .refused(nil)), (.notFound, nil, nil, .refused(nil)),
      (.rejected, .malformed, nil, .refused(.malformed)), (.notFound, .notFound, nil, .refused(.notFound)),
      // Judged anew, silent, or for a person: it was refused all the same.
      (.pending, .malformed, nil, .refused(.malformed)), (.unanswered, .malformed, nil, .refused(.malformed)),
      (.review, .malformed, nil, .refused(.malformed)), (.verified, .wrongBundle, nil, .refused(.wrongBundle)),
      (.review, nil, earlier, .held(.malformed, since: earlier)),
      (.unanswered, nil, earlier, .held(.malformed, since: earlier)),
      (.pending, nil, earlier, .held(.malformed, since: earlier)),
    ] as [(CheckOutcome, Refusal?, Instant?, AnswerStanding)])
  func whatAnAnswerIsToTheGuard(
    outcome: CheckOutcome, refused: Refusal?, heldSince: Instant?, expected: AnswerStanding
  ) {
    let held = heldSince.map { (refusal: Refusal.malformed, since: $0) }
    #expect(AnswerStanding(after: outcome, refused: refused, held: held) == expected)
  }

  /// What an answer may be: verified, refused, verified of another app, for a person, and denied.
  private static let answers: [(outcome: CheckOutcome, refusal: Refusal?, denial: Refusal?)] = [
    (.verified, nil, nil), (.rejected, .malformed, nil), (.verified, .wrongBundle, nil), (.review, nil, nil),
    (.review, nil, .notFound),
  ]

  @Test func whatAnAnswerCountsFor() {
    let none = AnswerWeight(isCounted: false, refusal: nil, heldSince: nil)
    let one = AnswerWeight(isCounted: true, refusal: nil, heldSince: nil)
    let denied = AnswerWeight(isCounted: true, refusal: .notFound, heldSince: nil)
    func held(_ kind: Refusal) -> AnswerWeight {
      AnswerWeight(isCounted: true, refusal: kind, heldSince: Self.night)
    }
    let heldStill = AnswerWeight(isCounted: false, refusal: nil, heldSince: Self.earlier)
    let table: [(standing: AnswerStanding, weights: [AnswerWeight])] = [
      (.first, [one, held(.malformed), held(.wrongBundle), one, denied]),
      (.undecided, [one, held(.malformed), held(.wrongBundle), none, denied]),
      // What repeats itself is no news, what is refused otherwise is.
      (.held(.malformed, since: Self.earlier), [none, heldStill, held(.wrongBundle), none, denied]),
      (.held(.wrongBundle, since: Self.earlier), [none, held(.malformed), heldStill, none, denied]),
      (.refused(.malformed), [none, none, held(.wrongBundle), none, denied]),
      (.refused(.wrongBundle), [none, held(.malformed), none, none, denied]),
      (.refused(nil), [none, held(.malformed), held(.wrongBundle), none, denied]),
      (.verified, [none, held(.malformed), none, none, denied]),
    ]
    for (standing, weights) in table {
      for (answer, weight) in zip(Self.answers, weights) {
        let counted = standing.weight(
          of: answer.outcome, refusal: answer.refusal, denial: answer.denial, asOf: Self.night)
        #expect(counted == weight, "\(standing), \(answer)")
      }
    }
  }

  /// The nights of one app: how many first answers, how many of them refusals, and how many of those still. All are of
  /// one kind.
  private func runs(
    _ told: [(Instant, Int, Int, Int)], held: [AnsweredRuns.Held]
  ) -> AnsweredRuns {
    var runs = AnsweredRuns(asOf: Self.night, share: Share(millionths: 250_000))
    for (run, count, refused, still) in told {
      runs.told[run] = FirstAnswers(count: count, refusals: [.notFound: refused])
      runs.stillRefused[run] = [.notFound: still]
    }
    runs.held = Set(held)
    return runs
  }

  @Test func whatIsHeldIsDecidedByItsNight() {
    let (night, earlier) = (Self.night, Self.earlier)
    let now = AnsweredRuns.Held(since: night, asked: night)
    let left = AnsweredRuns.Held(since: earlier, asked: earlier)
    let again = AnsweredRuns.Held(since: earlier, asked: night)
    for (told, held, isSystemic) in [
      // A night by itself, and one in two pieces.
      ([(night, 132, 22, 22)], now, false), ([(night, 80, 22, 22)], now, true),
      ([(night - .hours(1), 13, 12, 12), (night, 12, 12, 12)], now, true),
      ([(earlier, 13, 12, 12), (night, 12, 12, 12)], now, false),
      // Asked about again: by what is refused still, and before that by what was told.
      ([(earlier, 132, 52, 22)], again, false), ([(earlier, 132, 52, 52)], again, true),
      ([(earlier, 132, 52, 22)], left, true),
      // With what came tonight.
      ([(earlier, 132, 52, 22), (night, 22, 22, 22)], again, true),
    ] as [([(Instant, Int, Int, Int)], AnsweredRuns.Held, Bool)] {
      let nights = runs(told, held: [held])
      #expect(nights.systemic(held) == (isSystemic ? [.notFound] : []), "\(told), \(held)")
      #expect((nights.complaint(app: "game", about: held) != nil) == isSystemic, "\(told), \(held)")
    }
  }

  /// In an outage only what is false by itself has an answer of anybody's but its own.
  @Test(arguments: [(0, true), (65, true), (66, false)])
  func whatIsGenuineByItselfCountsWhileAppleIsSilent(waiting: Int, isSystemic: Bool) {
    let held = AnsweredRuns.Held(since: Self.night, asked: Self.night)
    var nights = runs([(Self.night, 22, 22, 22)], held: [held])
    nights.waiting = waiting
    #expect(nights.systemic(held) == (isSystemic ? [.notFound] : []))
    #expect((nights.complaint(app: "game") != nil) == isSystemic)
    // Tonight they say nothing about another night.
    let left = AnsweredRuns.Held(since: Self.earlier, asked: Self.earlier)
    nights = runs([(Self.earlier, 22, 22, 22)], held: [left])
    nights.waiting = waiting
    #expect(nights.systemic(left) == [.notFound])
  }

  /// A few new refusals of the kind that goes on from the night before are no more their customers' doing than the others.
  @Test func whatGoesOnIsTonightsToo() {
    let now = AnsweredRuns.Held(since: Self.night, asked: Self.night)
    let again = AnsweredRuns.Held(since: Self.earlier, asked: Self.night)
    for (still, isSystemic) in [(30, true), (5, false)] {
      let nights = runs([(Self.earlier, 40, 30, still), (Self.night, 5, 5, 5)], held: [now, again])
      #expect(nights.systemic(now) == (isSystemic ? [.notFound] : []))
      #expect(nights.complaint(app: "game") == nil)
    }
  }

  @Test func refusalsAreToldFromOtherAnswers() {
    #expect(Refusal(.rejected, reason: .malformed) == .malformed)
    #expect(Refusal(.rejected, reason: .signatureInvalid) == .signatureInvalid)
    #expect(Refusal(.rejected, reason: .xcode) == nil)
    #expect(Refusal(.notFound, reason: .notFoundYet) == .notFound)
    #expect(Refusal(.verified, reason: nil, provenBundleId: "b", expectedBundleIds: ["a"]) == .wrongBundle)
    #expect(Refusal(.verified, reason: nil, provenBundleId: "a", expectedBundleIds: ["a"]) == nil)
    #expect(Refusal(.verified, reason: nil, provenBundleId: "b", expectedBundleIds: []) == nil)
    #expect(Refusal(.verified, reason: nil, provenIds: ["1"], namedId: "2") == .idMismatch)
    // The original id is never a mismatch, and an app receipt is about no single transaction.
    #expect(Refusal(.verified, reason: nil, provenIds: ["1", "2"], namedId: "2") == nil)
    #expect(Refusal(.verified, reason: nil, provenIds: [], namedId: "2") == nil)
    for outcome in [CheckOutcome.pending, .unanswered, .review] { #expect(Refusal(outcome, reason: .malformed) == nil) }
    #expect(Refusal.allCases.filter(\.isOfProof) == [.malformed, .signatureInvalid, .notFound])
  }
}
