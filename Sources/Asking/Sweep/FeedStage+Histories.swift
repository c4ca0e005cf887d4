import AppStore
import AuditStore
import Reconciliation
import Run
import Synchronization

extension FeedStage {
  private static let customersAtATime = 16
  private static let pagesPerCustomer = 50
  private static let tries = 3
  /// After this many customers in a row without an answer, or with a refusal, no more are asked about in a round.
  private static let unansweredHistoryLimit = 8
  private static let requestBackoff = Backoff(base: .milliseconds(200), cap: .seconds(2))
  private static let pauses = Backoff(base: .seconds(1), cap: .seconds(60))

  /// Reads the purchase histories that this night wants and has not read. Histories without an answer are read again
  /// after growing pauses, until the deadline in an outage. Throws `PostgresError` if a page cannot be stored.
  package func readHistories() async throws -> SweepSummary {
    let isWhole = try await forEachApp { try await read($0) }
    return shared.values.withLock { values in
      values.summary.isShortOfHistories = values.summary.isShortOfHistories ?? !isWhole
      return values.summary
    }
  }

  private func read(_ app: SweptApp) async throws {
    let histories = CustomerHistories(bundleId: app.bundleId)
    let customers = try await session.withConnection { try histories.pending(asOf: asOf, $0) }
    if customers.isEmpty { return }
    try await progress.during("reading the purchase histories of customers", total: customers.count) {
      try await read(customers, of: app, in: histories)
    }
  }

  private func read(
    _ customers: [CustomerHistories.Customer], of app: SweptApp, in histories: CustomerHistories
  ) async throws {
    var due = customers
    var unanswered: [String: ContinuousClock.Instant] = [:]
    var answeredAt: ContinuousClock.Instant?
    var rounds = 0
    while true {
      let missing = try await readOnce(due[...], of: app, in: histories)
      if missing.count < due.count { answeredAt = .now }
      for customer in due { unanswered[customer.transactionId] = missing[customer.transactionId] }
      guard let next = unanswered.values.min() else { return }
      let isExhausted = answeredAt.map { max(next, ContinuousClock.now) - $0 >= waitLimit } ?? false
      if isExhausted || next >= deadline || isOver(for: app) { break }
      rounds += 1
      let rest = Self.pauses.delay(attempt: rounds, random: .random(in: 0.5..<1))
      await pause(until: max(next, .now + rest), for: app)
      let pending = try await session.withConnection { try histories.pending(asOf: asOf, $0) }
      // Another process may have read some of them.
      let wanted = Set(pending.map(\.transactionId))
      unanswered = unanswered.filter { wanted.contains($0.key) }
      due = pending.filter { customer in unanswered[customer.transactionId].map { $0 <= .now } ?? false }
    }
    // Unread histories stay wanted, which makes the night incomplete.
    noteShortfall()
  }

  /// Returns the customers without an answer, with the earliest time of their next request.
  private func readOnce(
    _ customers: ArraySlice<CustomerHistories.Customer>, of app: SweptApp, in histories: CustomerHistories
  ) async throws -> [String: ContinuousClock.Instant] {
    try await withThrowingTaskGroup(of: (String, Reading).self) { group in
      var left = customers
      var inProgress = 0
      var (silent, refused) = (0, 0)
      var unanswered: [String: ContinuousClock.Instant] = [:]
      while true {
        while inProgress < Self.customersAtATime, max(silent, refused) < Self.unansweredHistoryLimit,
          !isOver(for: app), let customer = left.popFirst()
        {
          inProgress += 1
          group.addTask { (customer.transactionId, try await read(customer, of: app, in: histories)) }
        }
        guard let (id, reading) = try await group.next() else { break }
        inProgress -= 1
        switch reading {
        case .answered: (silent, refused) = (0, 0)
        case .refused: refused += 1
        case .unanswered(let next):
          silent += 1
          unanswered[id] = next
        }
        if unanswered[id] == nil { progress.advance() }
      }
      if refused < Self.unansweredHistoryLimit {
        for customer in left { unanswered[customer.transactionId] = .now }
      } else if !left.isEmpty {
        noteShortfall()
      }
      return unanswered
    }
  }

  private enum Reading: Sendable {
    case answered
    /// Another request does not help.
    case refused
    case unanswered(next: ContinuousClock.Instant)
  }

  private func noteShortfall() { shared.values.withLock { $0.summary.isShortOfHistories = true } }

  private func read(
    _ customer: CustomerHistories.Customer, of app: SweptApp, in histories: CustomerHistories
  ) async throws -> Reading {
    var customer = customer
    var isDisbelieved = false
    for _ in 1...Self.pagesPerCustomer {
      guard let answer = await page(of: customer, app) else { break }
      let page = CustomerHistories.outcome(of: answer, after: customer.revision)
      // A page with an unverifiable purchase leaves the history incomplete, even if later pages are read.
      isDisbelieved = isDisbelieved || answer.refused > 0
      let outcome = page == .read && isDisbelieved ? .short(.notBelieved) : page
      let hasSkipped = answer.refused > 0 && answer.revision != customer.revision
      customer.revision = answer.revision
      try await store(
        answer.transactions, of: "history", "\(customer.bundleId)/\(customer.transactionId)",
        readUntil: outcome == .read ? asOf : nil
      ) { [customer] in try histories.save(customer, asOf: asOf, outcome, hasSkipped: hasSkipped, on: $0) }
      switch outcome {
      case .more: continue
      case .read:
        shared.values.withLock { $0.summary.histories += 1 }
        return .answered
      case .short(let shortfall):
        if case .unanswered(let silence) = answer.end {
          let pause = silence.retryAfter.map { max(0, ($0 - Instant.now).microseconds) } ?? 0
          return .unanswered(next: .now + .microseconds(pause))
        }
        noteShortfall()
        return shortfall == .notBelieved ? .answered : .refused
      }
    }
    noteShortfall()
    return .answered
  }

  private func page(of customer: CustomerHistories.Customer, _ app: SweptApp) async -> HistoryAnswer? {
    var attempt = 0
    while !isOver(for: app), let answer = try? await app.history(customer.transactionId, customer.revision) {
      attempt += 1
      note(answer.trail, of: app)
      guard case .unanswered(let silence) = answer.end, silence.retryAfter == nil, attempt < Self.tries else {
        return answer
      }
      // Backs off before the next attempt. A cancelled sleep means that the time is over.
      try? await Task.sleep(for: Self.requestBackoff.delay(attempt: attempt))
    }
    return nil
  }
}
