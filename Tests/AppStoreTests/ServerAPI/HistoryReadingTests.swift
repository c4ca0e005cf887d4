import Reconciliation
import Testing

@testable import AppStore

struct HistoryReadingTests {
  private static let failure = Silence(reason: .appleError, detail: "HTTP 500")

  private func reading(revision: String? = nil, pages: Int = 100) throws -> HistoryReading {
    let verifier = JWSVerifier(roots: try TestCertificateAuthority.transactions.roots)
    return HistoryReading(
      verifier: AnswerVerifier(verifier: verifier, bundleId: "com.example.game"), host: .production,
      revision: revision, pages: pages)
  }

  private func page(
    _ ids: [String], revision: String?, hasMore: Bool
  ) throws -> Result<JSONFields, ServerAPIRefusal> {
    .success(try fields(ServerAPIScript.history(ids, revision: revision, hasMore: hasMore)))
  }

  private func fields(_ json: String) throws -> JSONFields { try #require(JSONFields(json.utf8)) }

  @Test func pagesAreReadToTheEnd() throws {
    var reading = try reading()
    #expect(reading.received(try page(["1", "2"], revision: "a", hasMore: true)) == .ask(revision: "a"))
    #expect(reading.received(try page(["3", "1"], revision: "b+/=", hasMore: true)) == .ask(revision: "b+/="))
    #expect(reading.received(try page(["4"], revision: "c", hasMore: false)) == .finish)
    #expect(reading.answer.transactions.map(\.fact.transactionId) == ["1", "2", "3", "1", "4"])
    #expect(reading.answer.end == .complete && reading.answer.revision == "c" && reading.answer.health == .success)
  }

  @Test func anEmptyHistoryPageKeepsTheRevision() throws {
    var reading = try reading(revision: "c")
    #expect(reading.received(try page([], revision: "c", hasMore: false)) == .finish)
    #expect(reading.answer.revision == "c" && reading.answer.end == .complete && reading.answer.transactions.isEmpty)
  }

  @Test func anAnswerWithoutPagingIsTheEnd() throws {
    for json in [
      #"{"signedTransactions":[]}"#, #"{"signedTransactions":[],"hasMore":null}"#,
      #"{"signedTransactions":[],"hasMore":"no","revision":""}"#,
    ] {
      var reading = try reading(revision: "c")
      #expect(reading.received(.success(try fields(json))) == .finish)
      #expect(reading.answer.end == .complete && reading.answer.revision == "c")
    }
  }

  @Test func pagesBeforeAFailureAreKept() throws {
    var reading = try reading()
    _ = reading.received(try page(["1"], revision: "a", hasMore: true))
    #expect(reading.received(.failure(.unanswered(Self.failure))) == .finish)
    #expect(reading.answer.transactions.count == 1 && reading.answer.revision == "a")
    #expect(reading.answer.end == .unanswered(Self.failure) && reading.answer.health == .failure)
  }

  @Test(arguments: ["a", "b"])
  func aRepeatedRevisionEndsTheReading(repeated: String) throws {
    var reading = try reading()
    _ = reading.received(try page(["1"], revision: "a", hasMore: true))
    _ = reading.received(try page(["2"], revision: "b", hasMore: true))
    #expect(reading.received(try page(["3"], revision: repeated, hasMore: true)) == .finish)
    #expect(reading.answer.end == .unanswered(Silence(reason: .appleError, detail: "the same revision came twice")))
    #expect(reading.answer.transactions.count == 3)
  }

  @Test func aRepeatedStoredRevisionEndsTheReading() throws {
    var reading = try reading(revision: "a")
    #expect(reading.received(try page(["1"], revision: "a", hasMore: true)) == .finish)
    #expect(reading.answer.health == .failure)
  }

  @Test func hasMoreWithoutARevisionIsAnError() throws {
    var reading = try reading()
    #expect(reading.received(try page(["1"], revision: nil, hasMore: true)) == .finish)
    #expect(reading.answer.health == .failure && reading.answer.revision == nil)
  }

  @Test func pagesAreLimited() throws {
    var reading = try reading(pages: 2)
    #expect(reading.received(try page(["1"], revision: "a", hasMore: true)) == .ask(revision: "a"))
    #expect(reading.received(try page(["2"], revision: "b", hasMore: true)) == .finish)
    #expect(reading.answer.end == .pageLimit && reading.answer.revision == "b")
  }

  @Test func aForgottenRevisionRestartsTheReadingOnce() throws {
    var reading = try reading(revision: "old")
    #expect(reading.received(.failure(.revisionRefused)) == .ask(revision: nil))
    #expect(reading.received(try page(["1"], revision: "a", hasMore: true)) == .ask(revision: "a"))
    #expect(reading.received(.failure(.revisionRefused)) == .finish)
    #expect(reading.answer.transactions.count == 1 && reading.answer.trail.warnings.count == 1)
    #expect(reading.answer.end == .unanswered(Silence(reason: .appleError, detail: "Apple refuses its own revision")))
  }

  /// A single rejected transaction is skipped, because it would block everything after it.
  @Test func aRejectedTransactionInAPageIsSkipped() throws {
    var reading = try reading()
    _ = reading.received(try page(["1"], revision: "a", hasMore: true))
    let good = try TestJWS(payload: TestJWS.transaction { $0["transactionId"] = "3" }).text
    let bad = ServerAPIScript.spoilt(good)
    let spoilt = #"{"revision":"b","hasMore":true,"signedTransactions":["\#(bad)","\#(good)",7]}"#
    #expect(reading.received(.success(try fields(spoilt))) == .ask(revision: "b"))
    #expect(reading.received(try page(["4"], revision: "c", hasMore: false)) == .finish)
    #expect(reading.answer.transactions.map(\.fact.transactionId) == ["1", "3", "4"])
    #expect(reading.answer.refused == 2 && reading.answer.revision == "c" && reading.answer.end == .complete)
    #expect(reading.answer.trail.warnings.count == 2)
  }

  /// A page whose transactions are all rejected must be read again, so the revision stays before it.
  @Test func theRevisionStopsBeforeAnUnverifiablePage() throws {
    var reading = try reading()
    _ = reading.received(try page(["1"], revision: "a", hasMore: true))
    let bad = ServerAPIScript.spoilt(try TestJWS(payload: TestJWS.transaction { _ in }).text)
    let spoilt = #"{"revision":"b","hasMore":true,"signedTransactions":["\#(bad)",7]}"#
    #expect(reading.received(.success(try fields(spoilt))) == .ask(revision: "b"))
    #expect(reading.received(try page(["4"], revision: "c", hasMore: false)) == .finish)
    #expect(reading.answer.refused == 2 && reading.answer.revision == "a" && reading.answer.end == .complete)
  }

  @Test func transactionsOfOtherAppsAreRejected() throws {
    var reading = try reading()
    let other = try TestJWS(payload: TestJWS.transaction { $0["bundleId"] = "com.example.other" }).text
    let sandbox = try TestJWS(payload: TestJWS.transaction { $0["environment"] = "Sandbox" }).text
    let json = #"{"revision":"a","hasMore":false,"signedTransactions":["\#(other)","\#(sandbox)"]}"#
    #expect(reading.received(.success(try fields(json))) == .finish)
    #expect(reading.answer.refused == 2 && reading.answer.transactions.isEmpty && reading.answer.revision == nil)
  }

  @Test(arguments: [
    (ServerAPIRefusal.notFound, HistoryAnswer.End.notFound), (.accountGone, .accountGone),
    (.malformedId, .malformedId), (.fault(.accessRefused), .fault(.accessRefused)),
  ])
  func refusalsEndIt(refusal: ServerAPIRefusal, end: HistoryAnswer.End) throws {
    var reading = try reading()
    #expect(reading.received(.failure(refusal)) == .finish)
    #expect(reading.answer.end == end && reading.answer.health == .success)
  }

  @Test(arguments: ["\u{0}", "a\nb", "é", ""])
  func aCursorIsPrintable(text: String) throws {
    let escaped = text.unicodeScalars.map { "\\u" + String(String($0.value + 0x10000, radix: 16).suffix(4)) }.joined()
    #expect(try fields(#"{"revision":"\#(escaped)"}"#).cursor("revision") == nil)
  }

  @Test func aCursorMayBeLong() throws {
    let long = String(repeating: "a", count: 8_192)
    #expect(try fields(#"{"revision":"\#(long)"}"#).cursor("revision") == long)
    #expect(try fields(#"{"revision":"\#(long)a"}"#).cursor("revision") == nil)
  }
}
