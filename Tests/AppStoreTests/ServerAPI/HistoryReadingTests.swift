import Reconciliation
import Testing

@testable import AppStore

struct HistoryReadingTests {
  private typealias Page = Result<JSONFields, ServerAPIRefusal>

  /// The steps after each page, and the answer at the end.
  private func read(
    revision: String? = nil, pages: Int = 100, _ events: Page...
  ) throws -> (steps: [HistoryReading.Step], answer: HistoryAnswer) {
    let verifier = JWSVerifier(roots: try TestCertificateAuthority.transactions.roots)
    var reading = HistoryReading(
      verifier: AnswerVerifier(verifier: verifier, bundleId: "com.example.game"), host: .production,
      revision: revision, pages: pages)
    let steps = events.map { reading.received($0) }
    return (steps, reading.answer)
  }

  private func page(_ ids: [String], _ revision: String?, hasMore: Bool = true) throws -> Page {
    try page(ServerAPIScript.history(ids, revision: revision, hasMore: hasMore))
  }

  private func page(_ json: String) throws -> Page { .success(try #require(JSONFields(json.utf8))) }

  private func unanswered(_ detail: String) -> HistoryAnswer.End {
    .unanswered(Silence(reason: .appleError, detail: detail))
  }

  @Test func pagesAreReadToTheEnd() throws {
    let (steps, answer) = try read(page(["1", "2"], "a"), page(["3", "1"], "b+/="), page(["4"], "c", hasMore: false))
    #expect(steps == [.ask(revision: "a"), .ask(revision: "b+/="), .finish])
    #expect(answer.transactions.map(\.transactionId) == ["1", "2", "3", "1", "4"])
    #expect(answer.end == .complete && answer.revision == "c")
  }

  @Test func anAnswerWithoutPagingIsTheEndAndKeepsTheRevision() throws {
    for json in [
      #"{"signedTransactions":[]}"#, #"{"signedTransactions":[],"hasMore":null}"#,
      #"{"signedTransactions":[],"hasMore":"no","revision":""}"#,
      #"{"signedTransactions":[],"hasMore":false,"revision":"c"}"#,
    ] {
      let (steps, answer) = try read(revision: "c", page(json))
      #expect(steps == [.finish] && answer.end == .complete && answer.revision == "c", "\(json)")
    }
  }

  @Test func pagesBeforeAFailureAreKept() throws {
    let failure = Silence(reason: .appleError, detail: "HTTP 500")
    let (steps, answer) = try read(page(["1"], "a"), .failure(.unanswered(failure)))
    #expect(steps.last == .finish && answer.transactions.count == 1 && answer.revision == "a")
    #expect(answer.end == .unanswered(failure))
  }

  @Test(arguments: ["a", "b"])
  func aRepeatedRevisionEndsTheReading(repeated: String) throws {
    let (steps, answer) = try read(page(["1"], "a"), page(["2"], "b"), page(["3"], repeated))
    #expect(steps.last == .finish && answer.transactions.count == 3)
    #expect(answer.end == unanswered("the same revision came twice"))
    let stored = try read(revision: repeated, page(["1"], repeated))
    #expect(stored.steps == [.finish] && stored.answer.reason == .appleError)
  }

  @Test func hasMoreWithoutARevisionIsAnError() throws {
    let (steps, answer) = try read(page(["1"], nil))
    #expect(steps == [.finish] && answer.reason == .appleError && answer.revision == nil)
  }

  @Test func pagesAreLimited() throws {
    let (steps, answer) = try read(pages: 2, page(["1"], "a"), page(["2"], "b"))
    #expect(steps == [.ask(revision: "a"), .finish] && answer.end == .pageLimit && answer.revision == "b")
  }

  @Test func aForgottenRevisionRestartsTheReadingOnce() throws {
    let (steps, answer) = try read(
      revision: "old", .failure(.revisionRefused), page(["1"], "a"), .failure(.revisionRefused))
    #expect(steps == [.ask(revision: nil), .ask(revision: "a"), .finish])
    #expect(answer.transactions.count == 1 && answer.trail.warnings.count == 1)
    #expect(answer.end == unanswered("Apple refuses its own revision"))
  }

  /// A single rejected transaction is skipped, because it would block everything after it.
  @Test func aRejectedTransactionInAPageIsSkipped() throws {
    let good = try TestJWS(payload: TestJWS.transaction { $0["transactionId"] = "3" }).text
    let bad = ServerAPIScript.spoilt(good)
    let spoilt = #"{"revision":"b","hasMore":true,"signedTransactions":["\#(bad)","\#(good)",7]}"#
    let (steps, answer) = try read(page(["1"], "a"), page(spoilt), page(["4"], "c", hasMore: false))
    #expect(steps == [.ask(revision: "a"), .ask(revision: "b"), .finish])
    #expect(answer.transactions.map(\.transactionId) == ["1", "3", "4"] && answer.trail.warnings.count == 2)
    #expect(answer.refused == 2 && answer.revision == "c" && answer.end == .complete)
  }

  /// A page whose transactions are all rejected must be read again, so the revision stays before it.
  @Test func theRevisionStopsBeforeAnUnverifiablePage() throws {
    let bad = ServerAPIScript.spoilt(try TestJWS().text)
    let spoilt = #"{"revision":"b","hasMore":true,"signedTransactions":["\#(bad)",7]}"#
    let (steps, answer) = try read(page(["1"], "a"), page(spoilt), page(["4"], "c", hasMore: false))
    #expect(steps == [.ask(revision: "a"), .ask(revision: "b"), .finish])
    #expect(answer.refused == 2 && answer.revision == "a" && answer.end == .complete)
  }

  @Test func transactionsOfOtherAppsAreRejected() throws {
    let other = try TestJWS(payload: TestJWS.transaction { $0["bundleId"] = "com.example.other" }).text
    let sandbox = try TestJWS(payload: TestJWS.transaction { $0["environment"] = "Sandbox" }).text
    let json = #"{"revision":"a","hasMore":false,"signedTransactions":["\#(other)","\#(sandbox)"]}"#
    let (steps, answer) = try read(page(json))
    #expect(steps == [.finish] && answer.refused == 2 && answer.transactions.isEmpty && answer.revision == nil)
  }

  @Test(arguments: [
    (ServerAPIRefusal.notFound, HistoryAnswer.End.notFound), (.accountGone, .accountGone),
    (.malformedId, .malformedId), (.fault(.accessRefused), .fault(.accessRefused)),
  ])
  func refusalsEndTheReading(refusal: ServerAPIRefusal, end: HistoryAnswer.End) throws {
    let (steps, answer) = try read(.failure(refusal))
    #expect(steps == [.finish] && answer.end == end)
  }

  @Test func aCursorIsPrintableAndHasUpTo8KiB() throws {
    let long = String(repeating: "a", count: 8_192)
    for (text, isCursor) in [
      ("\\u0000", false), ("a\\nb", false), ("é", false), ("", false), (long, true), (long + "a", false),
    ] {
      let fields = try #require(JSONFields(#"{"revision":"\#(text)"}"#.utf8))
      #expect(fields.cursor("revision") == (isCursor ? text : nil), "\(text.prefix(9))")
    }
  }
}
