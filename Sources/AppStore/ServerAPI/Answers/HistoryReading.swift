import Reconciliation

/// The paging of a history: takes a page and returns the next step. Pure: no I/O and no clock.
struct HistoryReading {
  enum Step: Hashable {
    case ask(revision: String?)
    case finish
  }

  private(set) var answer: HistoryAnswer
  private let verifier: AnswerVerifier
  private let host: AppleHost
  // The revision sent to Apple, which runs ahead of the answer's after a page of rejected transactions.
  private var position: String?
  private var seen: Set<String> = []
  private var pagesLeft: Int
  private var mayRestart: Bool

  /// - Parameter revision: the end of an earlier reading; nil to read everything.
  init(verifier: AnswerVerifier, host: AppleHost, revision: String?, pages: Int) {
    (self.verifier, self.host) = (verifier, host)
    answer = HistoryAnswer(revision: revision, end: .complete)
    position = revision
    if let revision { seen = [revision] }
    pagesLeft = max(1, pages)
    mayRestart = revision != nil
  }

  mutating func note(_ exchange: ServerAPIReading) { answer.trail.note(exchange, from: host) }

  mutating func received(_ page: Result<JSONFields, ServerAPIRefusal>) -> Step {
    switch page {
    case .success(let fields): return read(fields)
    case .failure(.revisionRefused) where mayRestart:
      mayRestart = false
      answer.trail.warn("Apple does not know the stored revision any more; the history is read from its start")
      answer.revision = nil
      answer.transactions = []
      answer.refused = 0
      position = nil
      seen = []
      return .ask(revision: nil)
    case .failure(let refusal): return finish(HistoryAnswer.End(refusal))
    }
  }

  private mutating func read(_ page: JSONFields) -> Step {
    guard let signed = page.texts("signedTransactions") else { return fail("an answer without signedTransactions") }
    let before = (believed: answer.transactions.count, refused: answer.refused)
    for jws in signed {
      switch verifier.verify(jws ?? "", host: host) {
      case .success(let transaction): answer.transactions.append(transaction)
      case .failure(let refusal):
        answer.refused += 1
        answer.trail.warn("a transaction in Apple's history could not be verified: \(refusal)")
      }
    }
    guard let next = page.cursor("revision") else {
      return page.flag("hasMore") == true ? fail("more pages without a revision") : finish(.complete)
    }
    // A single rejected transaction is skipped, because it would block everything after it for ever. A page without any
    // verified transaction is read again the next time.
    let isBelieved = answer.refused == before.refused || answer.transactions.count > before.believed
    if isBelieved, answer.revision == position { answer.revision = next }
    position = next
    guard page.flag("hasMore") == true else { return finish(.complete) }
    // Apple ends with hasMore; a repeated revision would loop for ever.
    guard seen.insert(next).inserted else { return fail("the same revision came twice") }
    pagesLeft -= 1
    return pagesLeft > 0 ? .ask(revision: next) : finish(.pageLimit)
  }

  private mutating func fail(_ detail: String) -> Step {
    finish(.unanswered(.appleError(detail)))
  }

  private mutating func finish(_ end: HistoryAnswer.End) -> Step {
    answer.end = end
    return .finish
  }
}
