import AppStore
import Reconciliation
import Settings
import Testing

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
    (check.row.containedCount, check.row.fingerprint, check.fingerprint) = (containedCount, before, now)
    return check
  }

  private static let fact = TransactionFact(
    environment: .production, transactionId: "1", productId: "gems", channel: .offline, signedDate: asOf)
  private static let genuine = OfflineJudgement.genuine(
    GenuineProof(environment: .production, bundleId: "com.example.game", facts: [fact]))

  private func result(_ judgement: OfflineJudgement, _ answer: ChannelAnswer, attempts: Int = 0) throws -> String {
    let result = try channel().result(of: check(judgement, attempts: attempts), answers: [answer])
    return [result.outcome.rawValue, result.reason?.rawValue, result.facts.isEmpty ? nil : "with its facts"]
      .compactMap(\.self).joined(separator: " ")
  }

  private func silence(status: Int?) -> ChannelAnswer {
    var answer = ChannelAnswer(.silent(Silence(reason: .appleError, detail: "status")))
    answer.appleStatus = status
    return answer
  }

  @Test func onlyAnUncontradicted21003IsAForgery() throws {
    #expect(try result(.noRoots(nil), ChannelAnswer(.forged)) == "rejected signature_invalid")
    #expect(try result(.refused(.signatureInvalid), ChannelAnswer(.forged)) == "rejected signature_invalid")
    #expect(
      try result(.claim(UnprovenClaim(why: "unknown", transactionIds: [])), ChannelAnswer(.forged))
        == "rejected signature_invalid")
    #expect(try result(Self.genuine, ChannelAnswer(.forged)) == "review contradiction with its facts")
  }

  /// Apple contradicts itself about a payload that it accepted before. It never accepted another payload, or one with a
  /// false signature.
  @Test func acceptedPayloadsAreNotRejectedAsForged() throws {
    let claim = OfflineJudgement.claim(UnprovenClaim(why: "unknown", transactionIds: []))
    for (judgement, containedCount, now, wanted) in [
      (OfflineJudgement.noRoots(nil), 1, "whole payload", "review contradiction"),
      (claim, 2, "whole payload", "review contradiction"),
      (.noRoots(nil), 0, "whole payload", "rejected signature_invalid"),
      // The shop has filled in the order's transaction ID. The payload is the accepted one.
      (.noRoots(nil), 1, "otherwise payload", "review contradiction"),
      (.noRoots(nil), 1, "otherwise another", "rejected signature_invalid"),
      (.refused(.signatureInvalid), 1, "whole payload", "rejected signature_invalid"),
    ] {
      let check = check(judgement, containedCount: containedCount, now: now)
      let result = try channel().result(of: check, answers: [ChannelAnswer(.forged)])
      #expect("\(result.outcome.rawValue) \(result.reason?.rawValue ?? "")" == wanted)
    }
    // An empty receipt can be an accepted one, too.
    for (reason, environment, isKnown) in [
      (PaymentReason?.none, AppleEnvironment?.some(.production), true), (nil, nil, false), (.accountGone, nil, true),
      (.contradiction, nil, true), (.systemic, .production, false), (.appleError, nil, false),
    ] {
      var check = check(.noRoots(nil))
      check.row.history.reason = reason
      check.row.environment = environment
      let result = try channel().result(of: check, answers: [ChannelAnswer(.forged)])
      #expect(result.reason == (isKnown ? .contradiction : .signatureInvalid), "\(reason as Any)")
    }
  }

  /// A refused secret is our fault, and does not change verified facts. A receipt of another developer has the same
  /// answer.
  @Test func aRejectedSecretKeepsVerifiedTransactions() throws {
    #expect(
      try result(Self.genuine, ChannelAnswer(.fault(.sharedSecretRefused))) == "unanswered apple_error with its facts")
    #expect(try result(.noRoots(nil), ChannelAnswer(.fault(.sharedSecretRefused))) == "review apple_error")
    let accepted = check(.noRoots(nil), containedCount: 1)
    #expect(
      try channel().result(of: accepted, answers: [ChannelAnswer(.fault(.sharedSecretRefused))]).outcome == .unanswered)
  }

  /// Earlier programs stored no fingerprint of the payload.
  @Test func payloadsAreEqualUnlessTheirFingerprintsDiffer() throws {
    let check = check(.noRoots(nil), containedCount: 1, before: "whole", now: "otherwise payload")
    #expect(try channel().result(of: check, answers: [ChannelAnswer(.forged)]).reason == .contradiction)
    for (before, now, isSame) in [
      ("whole", "whole payload", true), ("whole payload", "whole payload", true), ("whole", "otherwise payload", false),
      ("whole payload", "otherwise payload", false),
    ] {
      #expect(ProofFingerprint(before).isSame(as: ProofFingerprint(now)) == isSame, "\(before), \(now)")
    }
  }

  /// Our secret is not valid for another developer's app, and Apple does not accept Xcode's signatures.
  @Test func receiptsOfOtherAppsAndXcodeAreNotSentToApple() throws {
    let stranger = GenuineProof(environment: .production, bundleId: "com.example.stranger", facts: [Self.fact])
    #expect(try channel().questions(about: check(Self.genuine)).count == 1)
    for (judgement, wanted) in [
      (OfflineJudgement.genuine(stranger), "verified "), (.refused(.xcode), "rejected xcode"),
    ] {
      #expect(try channel().questions(about: check(judgement)).isEmpty)
      let result = try channel().result(of: check(judgement), answers: [])
      #expect("\(result.outcome.rawValue) \(result.reason?.rawValue ?? "")" == wanted)
    }
  }

  @Test func answersToOtherReceiptsAreRejected() throws {
    let other = GenuineProof(
      environment: .production, bundleId: "com.example.game", facts: [Self.fact], signedTransactionId: "1")
    var receipt = VerifiedReceipt(
      environment: .production, bundleId: "com.example.game", facts: [Self.fact], requestDate: Self.asOf, status: 0)
    receipt.ownTransactionId = "2"
    #expect(
      try result(.genuine(other), ChannelAnswer(ReceiptAnswer(outcome: .verified(receipt))))
        == "review contradiction with its facts")
    receipt.ownTransactionId = "1"
    #expect(
      try result(.genuine(other), ChannelAnswer(ReceiptAnswer(outcome: .verified(receipt))))
        == "verified with its facts")
    receipt.contradictions = [.unreadableDate(transactionId: "1", field: "cancellation_date")]
    #expect(
      try result(.noRoots(nil), ChannelAnswer(ReceiptAnswer(outcome: .verified(receipt)))) == "review contradiction")
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
      if isAccepted {
        (check.row.environment, check.row.bundleId) = (.production, "com.example.game")
      }
      var receipt = VerifiedReceipt(
        environment: environment, bundleId: bundleId, facts: [Self.fact], requestDate: Self.asOf, status: 0)
      receipt.ownTransactionId = id
      let answer = ChannelAnswer(ReceiptAnswer(outcome: .verified(receipt)))
      let result = try channel().result(of: check, answers: [answer])
      #expect(result.reason == (isNone ? .contradiction : nil), "\(judgement), \(receipt)")
      if isNone { #expect(result.facts.isEmpty && result.environment == nil && result.bundleId == nil) }
    }
  }

  @Test func status21002ForAGenuineReceiptIsRetried() throws {
    for attempts in 0..<4 {
      let outcome = try result(Self.genuine, silence(status: 21_002), attempts: attempts)
      #expect(outcome == "unanswered apple_error with its facts")
    }
    #expect(try result(Self.genuine, silence(status: 21_002), attempts: 4) == "review apple_error with its facts")
    // Without a verified receipt, or with another status, retries go on.
    #expect(try result(.noRoots(nil), silence(status: 21_002), attempts: 40) == "unanswered apple_error")
    // The offline check refused the signature, too, so that retries end.
    #expect(
      try result(.refused(.signatureInvalid), silence(status: 21_002), attempts: 3) == "unanswered apple_error")
    #expect(
      try result(.refused(.signatureInvalid), silence(status: 21_002), attempts: 4) == "rejected signature_invalid")
    #expect(try result(Self.genuine, silence(status: 21_005), attempts: 40) == "unanswered apple_error with its facts")
  }

  @Test func genuineReceiptsAreSentToApple() throws {
    let channel = try channel()
    for judgement in [
      Self.genuine, .refused(.signatureInvalid), .refused(.malformed),
      .claim(UnprovenClaim(why: "unknown", transactionIds: [])), .noRoots(nil),
    ] {
      #expect(channel.questions(about: check(judgement)).count == 1)
    }
    let signed = check(Self.genuine).with(\.kind, .signed)
    #expect(channel.questions(about: signed).isEmpty)
    #expect(channel.result(of: signed, answers: []).outcome == .verified)
  }
}
