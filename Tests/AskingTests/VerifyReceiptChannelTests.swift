import Reconciliation
import Settings
import Testing

@testable import AppStore
@testable import Asking
@testable import AuditStore
@testable import Run

/// Apple's answers about receipts, compared with the contents of the receipts.
@Suite struct VerifyReceiptChannelTests {
  private static let asOf = RecheckFixture.asOf

  private func channel() throws -> VerifyReceiptChannel {
    let endpoint = VerifyReceiptClient.Endpoint(
      url: try EndpointURL("http://127.0.0.1:9/verifyReceipt"), gate: RateGate(rate: nil))
    return VerifyReceiptChannel(
      app: Settings.App(name: "game", bundleId: "com.example.game"),
      client: VerifyReceiptClient(
        transport: Self.transport, production: endpoint, sandbox: endpoint, version: "test", now: { Self.asOf }),
      sharedSecret: nil)
  }

  /// Sends no request. It lives as long as the tests, because a transport must not be released before it is shut down.
  private static let transport = HTTPTransport()

  private func check(
    _ judgement: OfflineJudgement, attempts: Int = 0, containedCount: Int = 0, before: String = "whole payload",
    now: String = "whole payload"
  ) -> CheckInProgress {
    let subject = CheckSubject(kind: .receipt, id: "r1")
    var check = CheckInProgress(
      row: CheckRow(subject: subject, history: CheckHistory(dated: Self.asOf, knownSince: Self.asOf)))
    check.payload = "payload"
    check.kind = .app
    check.judgement = judgement
    check.row.history.attempts = Int32(attempts)
    (check.row.containedCount, check.row.fingerprint, check.shop.fingerprint) = (containedCount, before, now)
    return check
  }

  private static let fact = TransactionFact(
    environment: .production, transactionId: "1", productId: "gems", channel: .offline, signedDate: asOf)
  private static let genuine = OfflineJudgement.genuine(
    GenuineProof(environment: .production, bundleId: "com.example.game", facts: [fact]))

  private static let forged = ChannelAnswer(.forged)
  private static let refused = ChannelAnswer(.fault(.sharedSecretRefused))
  private static let unreadable = OfflineJudgement.claim(UnprovenClaim(why: "unknown", transactionIds: []))

  /// The outcome, the reason, and whether the result has facts.
  private func words(_ check: CheckInProgress, _ answer: ChannelAnswer? = nil) throws -> String {
    let result = try channel().result(of: check, answers: answer.map { [$0] } ?? [])
    return [result.outcome.rawValue, result.reason?.rawValue, result.facts.isEmpty ? nil : "with its facts"]
      .compactMap(\.self).joined(separator: " ")
  }

  private func silence(status: Int?) -> ChannelAnswer {
    var answer = ChannelAnswer(.silent(Silence(reason: .appleError, detail: "status")))
    answer.appleStatus = status
    return answer
  }

  /// Apple's answer about a receipt with one purchase.
  private func verified(
    _ environment: AppleEnvironment = .production, _ bundleId: String = "com.example.game", own id: String?,
    contradictions: [AnswerContradiction] = []
  ) -> ChannelAnswer {
    var receipt = VerifiedReceipt(
      environment: environment, bundleId: bundleId, facts: [Self.fact], requestDate: Self.asOf, status: 0)
    receipt.ownTransactionId = id
    receipt.contradictions = contradictions
    return ChannelAnswer(ReceiptAnswer(outcome: .verified(receipt)))
  }

  /// Apple contradicts itself about a payload that it signed or accepted before. It never accepted another payload, or
  /// one with a false signature.
  @Test func onlyAnUncontradicted21003IsAForgery() throws {
    let (rejected, contradiction) = ("rejected signature_invalid", "review contradiction")
    for (judgement, containedCount, now, expected) in [
      (.noRoots(nil), 0, "whole payload", rejected), (.refused(.signatureInvalid), 0, "whole payload", rejected),
      (Self.unreadable, 0, "whole payload", rejected),
      (Self.genuine, 0, "whole payload", contradiction + " with its facts"),
      (.noRoots(nil), 1, "whole payload", contradiction), (Self.unreadable, 2, "whole payload", contradiction),
      // The shop has filled in the order's transaction ID. The payload is the accepted one.
      (.noRoots(nil), 1, "otherwise payload", contradiction), (.noRoots(nil), 1, "otherwise another", rejected),
      (.refused(.signatureInvalid), 1, "whole payload", rejected),
    ] as [(OfflineJudgement, Int, String, String)] {
      let check = check(judgement, containedCount: containedCount, now: now)
      #expect(try words(check, Self.forged) == expected, "\(judgement), \(now)")
    }
    // An empty receipt can be an accepted one, too.
    for (reason, environment, isKnown) in [
      (PaymentReason?.none, AppleEnvironment?.some(.production), true), (nil, nil, false), (.accountGone, nil, true),
      (.contradiction, nil, true), (.systemic, .production, false), (.appleError, nil, false),
    ] {
      let check = check(.noRoots(nil)).with(\.row.history.reason, reason).with(\.row.environment, environment)
      #expect(try words(check, Self.forged) == (isKnown ? contradiction : rejected), "\(reason as Any)")
    }
  }

  /// A refused secret is our fault, and does not change verified facts. A receipt of another developer has the same
  /// answer.
  @Test func aRejectedSecretKeepsVerifiedTransactions() throws {
    #expect(try words(check(Self.genuine), Self.refused) == "unanswered apple_error with its facts")
    #expect(try words(check(.noRoots(nil)), Self.refused) == "review apple_error")
    #expect(try words(check(.noRoots(nil), containedCount: 1), Self.refused) == "unanswered apple_error")
  }

  /// Earlier programs stored no fingerprint of the payload.
  @Test func payloadsAreEqualUnlessTheirFingerprintsDiffer() throws {
    let check = check(.noRoots(nil), containedCount: 1, before: "whole", now: "otherwise payload")
    #expect(try words(check, Self.forged) == "review contradiction")
    for (before, now, isSame) in [
      ("whole", "whole payload", true), ("whole payload", "whole payload", true), ("whole", "otherwise payload", false),
      ("whole payload", "otherwise payload", false),
    ] {
      #expect(ProofFingerprint(before).isSame(as: ProofFingerprint(now)) == isSame, "\(before), \(now)")
    }
  }

  /// Our secret is not valid for another developer's app, Apple does not accept Xcode's signatures, and a signed
  /// transaction needs no answer.
  @Test func onlyReceiptsThatAppleCanJudgeAreSent() throws {
    for judgement in [Self.genuine, .refused(.signatureInvalid), .refused(.malformed), Self.unreadable, .noRoots(nil)] {
      #expect(try channel().questions(about: check(judgement)).count == 1)
    }
    let stranger = GenuineProof(environment: .production, bundleId: "com.example.stranger", facts: [Self.fact])
    for (check, expected) in [
      (check(.genuine(stranger)), "verified with its facts"), (check(.refused(.xcode)), "rejected xcode"),
      (check(Self.genuine).with(\.kind, .signed), "verified with its facts"),
    ] {
      #expect(try channel().questions(about: check).isEmpty)
      #expect(try words(check) == expected)
    }
  }

  @Test func answersToOtherReceiptsAreRejected() throws {
    let other = OfflineJudgement.genuine(
      GenuineProof(
        environment: .production, bundleId: "com.example.game", facts: [Self.fact], signedTransactionId: "1"))
    #expect(try words(check(other), verified(own: "2")) == "review contradiction with its facts")
    #expect(try words(check(other), verified(own: "1")) == "verified with its facts")
    let odd = verified(own: "1", contradictions: [.unreadableDate(transactionId: "1", field: "cancellation_date")])
    #expect(try words(check(.noRoots(nil)), odd) == "review contradiction")
  }

  /// The content of a receipt, or Apple's earlier answer about it, shows without a root certificate that an answer is
  /// about another receipt.
  @Test func withoutRootsAnswersToOtherReceiptsAreRejected() throws {
    var written = WrittenContent(environment: .production, bundleId: "com.example.game")
    written.ownTransactionId = "1"
    let claim = OfflineJudgement.claim(UnprovenClaim(why: "unknown", transactionIds: ["1"], content: written))
    for (judgement, environment, bundleId, id, isAccepted, isNone) in [
      (OfflineJudgement.noRoots(written), AppleEnvironment.production, "com.example.game", "1", false, false),
      (.noRoots(written), .sandbox, "com.example.game", "1", false, true),
      (.noRoots(written), .production, "com.example.stranger", "1", false, true),
      (claim, .production, "com.example.game", "2", false, true),
      // The content cannot be read.
      (.noRoots(nil), .sandbox, "com.example.stranger", "2", false, false),
      (.noRoots(nil), .production, "com.example.game", "2", true, false),
      (.noRoots(nil), .sandbox, "com.example.game", "1", true, true),
      (.noRoots(nil), .production, "com.example.stranger", "1", true, true),
    ] {
      var check = check(judgement, containedCount: isAccepted ? 1 : 0)
      if isAccepted { (check.row.environment, check.row.bundleId) = (.production, "com.example.game") }
      let answer = verified(environment, bundleId, own: id)
      let result = try channel().result(of: check, answers: [answer])
      #expect(result.reason == (isNone ? .contradiction : nil), "\(judgement), \(answer)")
      if isNone { #expect(result.facts.isEmpty && result.environment == nil && result.bundleId == nil) }
    }
  }

  /// Retries go on without a verified receipt, or with another status. They end where the offline check refused the
  /// signature, too.
  @Test func status21002ForAGenuineReceiptIsRetried() throws {
    for (judgement, status, attempts, expected) in [
      (Self.genuine, 21_002, 0, "unanswered apple_error with its facts"),
      (Self.genuine, 21_002, 3, "unanswered apple_error with its facts"),
      (Self.genuine, 21_002, 4, "review apple_error with its facts"),
      (Self.genuine, 21_005, 40, "unanswered apple_error with its facts"),
      (.noRoots(nil), 21_002, 40, "unanswered apple_error"),
      (.refused(.signatureInvalid), 21_002, 3, "unanswered apple_error"),
      (.refused(.signatureInvalid), 21_002, 4, "rejected signature_invalid"),
    ] as [(OfflineJudgement, Int, Int, String)] {
      let check = check(judgement, attempts: attempts)
      #expect(try words(check, silence(status: status)) == expected, "\(judgement), \(status), \(attempts)")
    }
  }
}
