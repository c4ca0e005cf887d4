import Reconciliation
import Testing

@testable import SampleWorlds

/// What each failure costs, and when refusals are a fault of ours.
@Suite struct FailurePolicyTests {
  private static let table: [Failure: (FailureSize, FailureRemedy)] = [
    .brokenRow: (.row, .report), .brokenColumn: (.night, .endNight),
    .silence: (.answer, .postpone), .refusedQuestion: (.answer, .park),
    .refusedCredential: (.app, .endApp), .systemicRefusals: (.app, .endApp),
    .value: (.answer, .park), .conflict: (.batch, .again), .lostSession: (.batch, .reopen),
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
    (79, 20, 0.25, true), (80, 20, 0.25, false), (19, 19, 0.25, false), (20, 20, 0.25, true), (20, 20, 1, false),
    (100_000, 25_000, 0.25, false), (100_000, 25_001, 0.25, true), (20, 20, 0, true),
  ])
  func tooManyRefusalsOfOneKindAreOurs(count: Int, refused: Int, share: Double, isSystemic: Bool) {
    for kind in Refusal.allCases {
      let answers = FirstAnswers(count: count, refusals: [kind: refused])
      #expect(answers.systemic(share: share) == (isSystemic ? [kind] : []))
      #expect((answers.complaint(app: "game", share: share)?.contains(kind.remedy) ?? false) == isSystemic)
    }
  }

  /// Each kind is counted for itself: a shop has some of every kind.
  @Test func kindsAreNotAddedUp() {
    let answers = FirstAnswers(count: 100, refusals: [.malformed: 24, .notFound: 24, .idMismatch: 30])
    #expect(answers.systemic(share: 0.25) == [.idMismatch])
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
  }
}
