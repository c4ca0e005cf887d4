import Foundation
import NIOCore
import NIOHTTP1
import Reconciliation

@testable import AppStore

/// Passes an input to its decoder and checks the result.
///
/// A decoder may reject anything but must not crash; accepted signed data must be what was signed; and accepted text
/// must fit the tables.
struct FuzzHarness {
  struct Violation: Error, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
  }

  private static let bundleId = "com.example.game"
  /// 2026-06-01T00:00:00Z.
  private static let now = Instant(seconds: 1_780_272_000)

  private let jws: JWSVerifier
  private let receipts: AppReceiptVerifier
  private let answers: AnswerVerifier
  private let judge: OfflineJudge
  private let readers: FuzzReaders
  // Everything that was signed, and so may be accepted.
  private var transactions: Set<TransactionFact> = []
  private var renewals: Set<SignedRenewalInfo> = []
  private var notifications: Set<SignedNotification> = []
  private var appReceipts: Set<AppReceipt> = []

  /// Throws unless the whole corpus is genuine.
  init(_ corpus: FuzzCorpus) throws {
    let roots = try TrustedRoots(certificates: corpus[.rootCertificate], pinned: false)
    jws = JWSVerifier(roots: roots)
    receipts = AppReceiptVerifier(roots: roots)
    judge = OfflineJudge(roots: roots)
    readers = try FuzzReaders(corpus)
    answers = AnswerVerifier(verifier: jws, bundleId: Self.bundleId)
    for text in corpus[.signedTransaction] {
      for channel in [EvidenceChannel.offline, .serverApi, .notification] {
        transactions.insert(try jws.verifyTransaction(Self.text(text), channel: channel).get())
      }
    }
    for text in corpus[.signedRenewalInfo] { renewals.insert(try jws.verifyRenewalInfo(Self.text(text)).get()) }
    for text in corpus[.signedNotification] { notifications.insert(try jws.verifyNotification(Self.text(text)).get()) }
    for bytes in corpus[.appReceipt] { appReceipts.insert(try receipts.verify(bytes).get()) }
  }

  @discardableResult
  func check(_ input: [UInt8]) throws(Violation) -> Bool {
    guard let decoder = input.first.flatMap(FuzzDecoder.init) else { return false }
    return try check(Array(input.dropFirst()), with: decoder)
  }

  private func check(_ bytes: [UInt8], with decoder: FuzzDecoder) throws(Violation) -> Bool {
    switch decoder {
    case .signedTransaction: try require(jws.verifyTransaction(Self.text(bytes), channel: .offline), in: transactions)
    case .signedRenewalInfo: try require(jws.verifyRenewalInfo(Self.text(bytes)), in: renewals)
    case .signedNotification: try require(jws.verifyNotification(Self.text(bytes)), in: notifications)
    case .signedParts: try require(jws.verifyTransaction(Self.joined(bytes), channel: .offline), in: transactions)
    case .transactionPayload:
      try payload(bytes) { json throws(SignedDataRefusal) in try TransactionFact(signed: json, channel: .offline) }
    case .renewalInfoPayload: try payload(bytes) { json throws(SignedDataRefusal) in _ = try SignedRenewalInfo(json) }
    case .notificationPayload:
      try payload(bytes) { json throws(SignedDataRefusal) in
        _ = try SignedNotification(json, transaction: nil, renewalInfo: nil)
      }
    case .appReceipt: try require(receipts.verify(bytes), in: appReceipts)
    case .appReceiptContent: try content(bytes)
    case .oldReceipt: oldReceipt(bytes)
    case .oldPurchaseInfo: oldReceipt(Array("{ \"purchase-info\" = \"\(Self.base64(bytes))\"; }".utf8))
    case .verifyReceiptAnswer: try verifyReceiptAnswer(bytes)
    case .transactionAnswer: try transactionAnswer(bytes)
    case .historyAnswer: try historyAnswer(bytes)
    case .subscriptionAnswer: try subscriptionAnswer(bytes)
    case .notificationAnswer: try notificationAnswer(bytes)
    case .errorAnswer: try errorAnswer(bytes)
    case .retryAfter: try retryAfter(bytes)
    case .receiptKind: try payload(asSent: Self.text(bytes))
    case .rootCertificate: try rootCertificate(bytes)
    case .dateAndTime: try dateAndTime(bytes)
    case .base64: try base64(bytes)
    case .json: try json(bytes)
    case .record: try readers.record(bytes)
    case .salesReport: try readers.salesReport(bytes)
    case .financeReport: try readers.financeReport(bytes)
    case .connectAnswer: try readers.connectAnswer(bytes)
    case .configuration: try readers.configuration(bytes)
    case .workbook: try readers.workbook(bytes)
    case .workbookPart: try readers.workbookPart(bytes)
    }
  }

  // MARK: Signed data

  private func require<Document: Hashable>(
    _ result: Result<Document, SignedDataRefusal>, in genuine: Set<Document>
  ) throws(Violation) -> Bool {
    guard case .success(let document) = result else { return false }
    guard genuine.contains(document) else { throw Violation("accepted, but not signed: \(document)") }
    return true
  }

  private func payload(
    _ bytes: [UInt8], _ read: (JSONFields) throws(SignedDataRefusal) -> TransactionFact
  ) throws(Violation) -> Bool {
    guard let json = JSONFields(bytes), let fact = try? read(json) else { return false }
    try require(fact)
    return true
  }

  private func payload(
    _ bytes: [UInt8], _ read: (JSONFields) throws(SignedDataRefusal) -> Void
  ) throws(Violation) -> Bool {
    JSONFields(bytes).map { json in (try? read(json)) != nil } ?? false
  }

  /// Only signed data may be genuine, also after transport damage is undone.
  private func payload(asSent text: String) throws(Violation) -> Bool {
    let (kind, judgement) = judge.judge(text)
    guard case .genuine(let proof) = judgement else { return kind != .malformed }
    let genuine = transactions.union(appReceipts.flatMap(\.transactions))
    for fact in proof.facts where !genuine.contains(fact) { throw Violation("accepted, but not signed: \(fact)") }
    return true
  }

  private func content(_ bytes: [UInt8]) throws(Violation) -> Bool {
    guard let receipt = try? AppReceipt(ReceiptContent(bytes[...])) else { return false }
    guard receipt.transactions.count <= DecodingLimits.receiptPurchases else {
      throw Violation("\(receipt.transactions.count) purchases")
    }
    for fact in receipt.transactions { try require(fact) }
    return true
  }

  private func oldReceipt(_ bytes: [UInt8]) -> Bool {
    (try? OldTransactionReceipt(bytes)) != nil
  }

  private func rootCertificate(_ bytes: [UInt8]) throws(Violation) -> Bool {
    if (try? TrustedRoots(certificates: [bytes], pinned: true)) != nil { throw Violation("taken for Apple's root") }
    for pin in TrustedRoots.applePins where (try? pin.certificate(in: bytes)) != nil {
      throw Violation("taken for \(pin.name)")
    }
    return (try? TrustedRoots(certificates: [bytes], pinned: false)) != nil
  }

  // MARK: Apple's answers

  private func reply(_ body: [UInt8], status: Int = 200) -> Result<HTTPReply, Silence> {
    .success(HTTPReply(status: status, headers: HTTPHeaders(), body: ByteBuffer(bytes: body)))
  }

  private func verifyReceiptAnswer(_ bytes: [UInt8]) throws(Violation) -> Bool {
    let reading = VerifyReceiptReading.read(reply(bytes), from: .production, maySwitch: true, receivedAt: Self.now)
    guard case .finish(.verified(let receipt)) = reading.step else { return false }
    guard Set(receipt.facts.map(\.transactionId)).count == receipt.facts.count else {
      throw Violation("two facts about one transaction")
    }
    for fact in receipt.facts { try require(fact) }
    return true
  }

  private func fields(_ bytes: [UInt8]) -> JSONFields? {
    let reading = ServerAPIReading.read(reply(bytes), receivedAt: Self.now)
    return try? reading.resolved(from: .production, bundleId: Self.bundleId).get()
  }

  private func transactionAnswer(_ bytes: [UInt8]) throws(Violation) -> Bool {
    guard let jws = fields(bytes)?.document("signedTransactionInfo"),
      case .success(let transaction) = answers.verify(jws, host: .production)
    else { return false }
    try require(signed: [transaction])
    return true
  }

  private func historyAnswer(_ bytes: [UInt8]) throws(Violation) -> Bool {
    guard let page = fields(bytes) else { return false }
    var reading = HistoryReading(verifier: answers, host: .production, revision: nil, pages: 3)
    // The same page three times: a repeated revision must end the reading.
    for _ in 0..<3 where reading.received(.success(page)) == .finish { break }
    try require(signed: reading.answer.transactions)
    return !reading.answer.transactions.isEmpty
  }

  private func subscriptionAnswer(_ bytes: [UInt8]) throws(Violation) -> Bool {
    guard let page = fields(bytes) else { return false }
    let answer = SubscriptionAnswer.subscriptions(page, verifier: answers, host: .production, trail: ServerAPITrail())
    guard case .found(let found) = answer.outcome else { return false }
    // The status is beside the transaction, and the rest is that of renewal information.
    for fact in found {
      let renewal = renewals.first {
        $0.originalTransactionId == fact.originalTransactionId && $0.renewalDate == fact.renewalDate
          && $0.gracePeriodExpiresDate == fact.gracePeriodExpiresDate
      }
      var signed = fact
      (signed.subscriptionStatus, signed.gracePeriodExpiresDate, signed.renewalDate) = (nil, nil, nil)
      (signed.renewalPriceMilliunits, signed.renewalCurrency) = (nil, nil)
      let hasRenewal = fact.renewalDate != nil || fact.gracePeriodExpiresDate != nil
      guard transactions.contains(signed), !hasRenewal || renewal != nil else {
        throw Violation("accepted, but not signed: \(fact)")
      }
    }
    return !found.isEmpty
  }

  private func notificationAnswer(_ bytes: [UInt8]) throws(Violation) -> Bool {
    guard let page = fields(bytes) else { return false }
    var reading = NotificationReading(verifier: answers, host: .production, paginationToken: nil, pages: 3)
    _ = reading.received(.success(page))
    let found = reading.answer.notifications
    try require(signed: found.compactMap { try? $0.transaction?.get() })
    let genuine = Set(notifications.map(\.notificationUUID))
    for notification in found where !genuine.contains(notification.uuid) {
      throw Violation("accepted, but not signed: \(notification)")
    }
    return !found.isEmpty
  }

  private func require(signed found: [TransactionFact]) throws(Violation) {
    for transaction in found where !transactions.contains(transaction) {
      throw Violation("accepted, but not signed: \(transaction)")
    }
  }

  private func errorAnswer(_ bytes: [UInt8]) throws(Violation) -> Bool {
    for status in [400, 401, 404, 429, 500] {
      let reading = ServerAPIReading.read(reply(bytes, status: status), receivedAt: Self.now)
      guard case .failure = reading.resolved(from: .production, bundleId: Self.bundleId) else {
        throw Violation("an answer read from HTTP \(status)")
      }
    }
    return JSONFields(bytes)?.integer("errorCode") != nil
  }

  private func retryAfter(_ bytes: [UInt8]) throws(Violation) -> Bool {
    guard let instant = RetryAfter.parse(Self.text(bytes), now: Self.now) else { return false }
    guard Self.now <= instant, instant <= Self.now + RetryAfter.longest else {
      throw Violation("wait until \(instant)")
    }
    return true
  }

  // MARK: Forms

  private func dateAndTime(_ bytes: [UInt8]) throws(Violation) -> Bool {
    guard let instant = Instant(rfc3339: Self.text(bytes)) else { return false }
    // Years 0 to 9999, and a day for offsets.
    guard (-62_167_305_600...253_402_387_200).contains(instant.seconds) else { throw Violation("\(instant)") }
    return true
  }

  /// Strict base64 has exactly one text for each content.
  private func base64(_ bytes: [UInt8]) throws(Violation) -> Bool {
    let standard = Base64Text.decodePadded(bytes[...])
    if let standard, Array(Data(standard).base64EncodedString().utf8) != bytes { throw Violation("a second spelling") }
    let urlSafe = Base64Text.decodeURLSafe(bytes[...])
    if let urlSafe, Array(Data(urlSafe).base64URL.utf8) != bytes { throw Violation("a second spelling") }
    let receipt = Base64Text.decodeReceipt(bytes)
    if let receipt, receipt.count > bytes.count { throw Violation("longer than its text") }
    return standard != nil || urlSafe != nil || receipt != nil
  }

  private func json(_ bytes: [UInt8]) throws(Violation) -> Bool {
    guard let fields = JSONFields(bytes) else { return false }
    for key in ["transactionId", "signedDate", "price", "environment", "x5c", "data", "isUpgraded"] {
      try require(fields.text(key))
      try require(fields.json(key))
      _ = (fields.integer(key), fields.integer32(key), fields.instant(key), fields.flag(key), fields.texts(key))
      _ = (fields.has(key), fields.document(key), fields.object(key)?.text("environment"), fields.cursor(key))
      _ = fields.objects(key)?.map { $0.text("environment") }
    }
    _ = fields.everyText(depth: 3)
    return true
  }

  // MARK: Limits of our tables

  private func require(_ fact: TransactionFact) throws(Violation) {
    guard !fact.transactionId.isEmpty, !fact.productId.isEmpty else { throw Violation("a fact without its ids") }
    for text in [
      fact.transactionId, fact.productId, fact.originalTransactionId, fact.webOrderLineItemId, fact.bundleId,
      fact.currency,
    ] { try require(text) }
    if case .stated(let token) = fact.appAccountToken { try require(token) }
    if case .stated(let revocation) = fact.revocation { try require(revocation?.type) }
  }

  /// Postgres rejects zero bytes, and terminals obey control characters.
  private func require(_ text: String?) throws(Violation) {
    guard let text else { return }
    guard !text.isEmpty, text.utf8.count <= DecodingLimits.textLength,
      text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
    else { throw Violation("a text that no table accepts: \(text.debugDescription)") }
  }

  // MARK: Inputs

  private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

  private static func base64(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

  private static func joined(_ bytes: [UInt8]) -> String {
    bytes.split(separator: 0x0A, maxSplits: 2, omittingEmptySubsequences: false).map { Data($0).base64URL }
      .joined(separator: ".")
  }
}
