import Reconciliation
import Testing

@testable import SampleWorlds

/// The size and remedy of each failure, and the limits above which refusals are systemic.
@Suite struct FailurePolicyTests {
  private static let table: [Failure: (FailureScope, FailureRemedy)] = [
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

  /// No answer of Apple's and no row ends a night.
  @Test func dataEndsNoNight() {
    for failure in [Failure.brokenRow, .silence, .refusedQuestion, .refusedCredential, .systemicRefusals, .value] {
      #expect(failure.size < .night && failure.remedy != .endNight)
    }
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
  func serverErrorsHaveTheirClass(sqlState: String?, failure: Failure) {
    #expect(Failure(sqlState: sqlState) == failure)
  }

  // MARK: - Credentials

  @Test func aSingleRefusalIsNotSystemic() {
    var trial = CredentialRefusals<Int>()
    trial.accept()
    for id in 1...50 {
      #expect(trial.refuse(401, id: "\(id)", isSecondAttempt: false) == .askAgain)
      #expect(trial.refuse(401, id: "\(id)", isSecondAttempt: true) == .park)
    }
  }

  @Test func threeEqualRefusalsWithoutAnAcceptanceEndTheApp() {
    var trial = CredentialRefusals<Int>()
    #expect(trial.refuse(401, id: "a", isSecondAttempt: true) == .park)
    #expect(trial.refuse(401, id: "a", isSecondAttempt: true) == .park)
    #expect(trial.refuse(21004, id: "b", isSecondAttempt: true) == .park)
    #expect(trial.refuse(401, id: "c", isSecondAttempt: true) == .park)
    #expect(trial.refuse(401, id: "d", isSecondAttempt: true) == .endApp)
  }

  @Test func anAnswerBetweenThemClearsTheCredential() {
    var trial = CredentialRefusals<Int>()
    _ = trial.refuse(401, id: "a", isSecondAttempt: true)
    _ = trial.refuse(401, id: "b", isSecondAttempt: true)
    trial.accept()
    #expect(trial.refuse(401, id: "c", isSecondAttempt: true) == .park)
    #expect(trial.refuse(401, id: "d", isSecondAttempt: true) == .park)
  }

  // MARK: - Shares

  @Test(arguments: [
    (79, 20, "0.25", true), (80, 20, "0.25", false), (19, 19, "0.25", false), (20, 20, "0.25", true),
    (20, 20, "1", false), (100_000, 25_000, "0.25", false), (100_000, 25_001, "0.25", true), (20, 20, "0", true),
    // The nearest double of 0.29 is slightly less than 0.29.
    (100, 29, "0.29", false), (100, 30, "0.29", true),
  ])
  func tooManyRefusalsOfOneKindAreSystemic(persons: Int, refused: Int, share: String, isSystemic: Bool) throws {
    let share = try #require(Share(share))
    for kind in Refusal.allCases {
      let answers = FirstAnswers(persons: persons, refusals: [kind: refused])
      #expect(answers.systemic(share: share) == (isSystemic ? [kind] : []))
      let faultMessage = answers.faultMessage(app: "game", subject: "receipts", share: share)
      #expect((faultMessage?.contains(kind.remedy) ?? false) == isSystemic)
    }
  }

  /// Kinds are counted separately, because every shop has some refusals of every kind.
  @Test func kindsAreNotAddedUp() {
    let answers = FirstAnswers(persons: 100, refusals: [.malformed: 24, .notFound: 24, .idMismatch: 30])
    #expect(answers.systemic(share: Share(millionths: 250_000)) == [.idMismatch])
  }

  // MARK: - First answers

  private static let night = Instant(seconds: 1_800_000_000)
  private static let earlier = night - .days(1)

  /// Answers: verified, refused, verified for another app, for review, and denied.
  private static let answers: [(outcome: CheckOutcome, refusal: Refusal?, denial: Refusal?)] = [
    (.verified, nil, nil), (.rejected, .malformed, nil), (.verified, .wrongBundle, nil), (.review, nil, nil),
    (.review, nil, .notFound),
  ]

  @Test func repeatedRefusalsAreNoFirstAnswers() {
    let none = AnswerCount(isFirst: false)
    let one = AnswerCount(isFirst: true)
    let denied = AnswerCount(isFirst: true, refusal: .notFound)
    func pending(_ kind: Refusal) -> AnswerCount { AnswerCount(isFirst: true, refusal: kind, pendingSince: Self.night) }
    let pendingStill = AnswerCount(isFirst: false, pendingSince: Self.earlier)
    let table: [(earlier: EarlierAnswer, counts: [AnswerCount])] = [
      (.none, [one, pending(.malformed), pending(.wrongBundle), one, denied]),
      (.pendingRefusal(.malformed, since: Self.earlier), [none, pendingStill, pending(.wrongBundle), none, denied]),
      (.pendingRefusal(.wrongBundle, since: Self.earlier), [none, pending(.malformed), pendingStill, none, denied]),
      (.refused(.malformed), [none, none, pending(.wrongBundle), none, denied]),
      (.refused(.wrongBundle), [none, pending(.malformed), none, none, denied]),
      (.verified, [none, pending(.malformed), none, none, denied]),
    ]
    for (earlier, counts) in table {
      for (answer, expected) in zip(Self.answers, counts) {
        let count = earlier.count(
          answer.outcome, refusal: answer.refusal, denial: answer.denial, asOf: Self.night)
        #expect(count == expected, "\(earlier), \(answer)")
      }
    }
  }

  /// First answers of persons, some of them refused.
  private func refused(_ refused: Int, of persons: Int) -> FirstAnswers {
    FirstAnswers(persons: persons, refusals: [.notFound: refused])
  }

  @Test func refusalsAreSystemicWhenAnySpanHasTooMany() {
    let share = Share(millionths: 250_000)
    for (spans, isSystemic) in [
      ([refused(22, of: 132)], false), ([refused(22, of: 80)], true), ([refused(12, of: 12)], false),
      ([refused(12, of: 12), refused(24, of: 25)], true),
      ([refused(22, of: 132), refused(22, of: 132), refused(44, of: 154)], true),
    ] {
      let pending = PendingRefusals(since: Self.night, asked: Self.night, spans: spans)
      #expect(pending.systemic(among: [pending], share: share) == (isSystemic ? [.notFound] : []), "\(spans)")
    }
  }

  /// A few new refusals are systemic if refusals of the same kind from the night before are.
  @Test func fewNewRefusalsOfAnOngoingKindAreSystemic() {
    let now = PendingRefusals(since: Self.night, asked: Self.night, spans: [refused(5, of: 5)])
    for (still, isSystemic) in [(30, true), (5, false)] {
      let again = PendingRefusals(since: Self.earlier, asked: Self.night, spans: [refused(still, of: 40)])
      let systemic = now.systemic(among: [now, again], share: Share(millionths: 250_000))
      #expect(systemic == (isSystemic ? [.notFound] : []))
    }
  }

  @Test func refusalsAreDistinguishedFromOtherAnswers() {
    #expect(Refusal(.rejected, reason: .malformed) == .malformed)
    #expect(Refusal(.rejected, reason: .signatureInvalid) == .signatureInvalid)
    #expect(Refusal(.rejected, reason: .xcode) == nil)
    #expect(Refusal(.notFound, reason: .notFoundYet) == .notFound)
    #expect(Refusal(.verified, reason: nil, provenBundleId: "b", expectedBundleIds: ["a"]) == .wrongBundle)
    #expect(Refusal(.verified, reason: nil, provenBundleId: "a", expectedBundleIds: ["a"]) == nil)
    #expect(Refusal(.verified, reason: nil, provenBundleId: "b", expectedBundleIds: []) == nil)
    #expect(Refusal(.verified, reason: nil, provenIds: ["1"], namedId: "2") == .idMismatch)
    // An original transaction ID is no mismatch, and an app receipt is about no single transaction.
    #expect(Refusal(.verified, reason: nil, provenIds: ["1", "2"], namedId: "2") == nil)
    #expect(Refusal(.verified, reason: nil, provenIds: [], namedId: "2") == nil)
    #expect(Refusal(.verified, reason: nil, provenProductId: "gems", orderedProductId: "gold") == .productMismatch)
    #expect(Refusal(.verified, reason: nil, provenProductId: "gems", orderedProductId: "gems") == nil)
    #expect(Refusal(.verified, reason: nil, provenProductId: nil, orderedProductId: "gems") == nil)
    for outcome in [CheckOutcome.pending, .unanswered, .review] { #expect(Refusal(outcome, reason: .malformed) == nil) }
    #expect(Refusal.allCases.filter(\.isOfProof) == [.malformed, .signatureInvalid, .notFound])
  }
}
