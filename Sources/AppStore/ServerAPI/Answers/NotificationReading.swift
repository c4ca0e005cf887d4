import Reconciliation

/// The paging of a window of notifications: takes a page and returns the next step. Pure.
struct NotificationReading {
  enum Step: Hashable {
    case ask(paginationToken: String?)
    case finish
  }

  private(set) var answer: NotificationAnswer
  private let verifier: AnswerVerifier
  private let host: AppleHost
  private let type: String?
  private var seenTokens: Set<String> = []
  private var seenNotifications: Set<String> = []
  private var pagesLeft: Int

  /// - Parameter paginationToken: the end of an earlier reading of the same window; nil to start it.
  init(verifier: AnswerVerifier, host: AppleHost, type: String? = nil, paginationToken: String?, pages: Int) {
    (self.verifier, self.host, self.type) = (verifier, host, type)
    answer = NotificationAnswer(paginationToken: paginationToken, end: .complete)
    if let paginationToken { seenTokens = [paginationToken] }
    pagesLeft = max(1, pages)
  }

  mutating func note(_ exchange: ServerAPIReading) { answer.trail.note(exchange, from: host) }

  mutating func received(_ page: Result<JSONFields, ServerAPIRefusal>) -> Step {
    switch page {
    case .success(let fields): return read(fields)
    case .failure(let refusal):
      if case .windowExpired = refusal { answer.paginationToken = nil }
      return finish(NotificationAnswer.End(refusal))
    }
  }

  private mutating func read(_ page: JSONFields) -> Step {
    guard let items = page.objects("notificationHistory") else { return fail("an answer without notificationHistory") }
    let results = items.map { item in
      let jws = item.document("signedPayload") ?? ""
      return (jws: jws, result: verifier.verifier.verifyNotification(jws))
    }
    // A cache or proxy returned the answer to another question, so the content of this window is unknown.
    let types = Set(results.compactMap { try? $0.result.get().notificationType })
    if let type, !types.isEmpty, !types.contains(type) { return fail("notifications of other types than \(type)") }
    for (jws, result) in results {
      switch result {
      case .failure(let refusal): refuse("\(refusal)", jws)
      case .success(let notification): take(notification, jws: jws)
      }
    }
    let token = page.cursor("paginationToken")
    // If hasMore is missing, a token means that more pages follow.
    guard page.flag("hasMore") ?? (token != nil) else { return finish(.complete) }
    guard let next = token else { return fail("more pages without a token") }
    guard seenTokens.insert(next).inserted else { return fail("the same pagination token came twice") }
    answer.paginationToken = next
    pagesLeft -= 1
    return pagesLeft > 0 ? .ask(paginationToken: next) : finish(.pageLimit)
  }

  private mutating func take(_ notification: SignedNotification, jws: String) {
    // Summaries and other shapes have no data, and so neither bundle ID nor environment.
    guard notification.bundleId == nil || notification.bundleId == verifier.bundleId else {
      return refuse("\(AnswerRefusal.otherBundle)", jws)
    }
    if let environment = notification.environment, environment != host.environment {
      return refuse("\(AnswerRefusal.otherEnvironment(environment))", jws)
    }
    // Apple omits the app's Apple ID in the sandbox.
    if let expected = verifier.appAppleId, notification.environment == .production, notification.appAppleId != expected
    {
      return refuse("\(AnswerRefusal.otherApp(notification.appAppleId))", jws)
    }
    guard seenNotifications.insert(notification.notificationUUID).inserted else { return }
    let transaction = notification.transaction.map { result in
      result.mapError(AnswerRefusal.signature).flatMap { verifier.check($0, host: host) }
    }
    if case .failure(let refusal) = transaction { refuse("\(refusal)", jws) }
    answer.notifications.append(
      AppleNotification(
        uuid: notification.notificationUUID, type: notification.notificationType, subtype: notification.subtype,
        signedDate: notification.signedDate, transaction: transaction))
  }

  private mutating func refuse(_ reason: String, _ jws: String) {
    answer.unverifiable.append(NotificationAnswer.UnverifiableNotification(jws: jws, reason: reason))
    answer.trail.warn("a notification in Apple's history could not be verified: \(reason)")
  }

  private mutating func fail(_ detail: String) -> Step {
    finish(.unanswered(.appleError(detail)))
  }

  private mutating func finish(_ end: NotificationAnswer.End) -> Step {
    answer.end = end
    return .finish
  }
}
