import Reconciliation
import TestSupport

@testable import AuditStore
@testable import Auditing
@testable import SampleWorlds

struct SimulatedStore {
  enum AppleAvailability: CaseIterable {
    case fair, brownOut, outage

    func answers(_ random: inout SeededGenerator) -> Bool {
      switch self {
      case .fair: true
      case .brownOut: random.oneIn(2)
      case .outage: false
      }
    }
  }

  struct Check {
    var history: CheckHistory
    var kind: ReceiptKind?
    var environment: AppleEnvironment?
    var bundleId: String?
    var signedTransactionId: Identifier?
    var containedCount: Int32 = 0
    var channel: EvidenceChannel?
  }

  private static let policy = Dueness.Policy(staleAfter: .days(7), refundWindow: .days(90), lookback: .days(90))

  private(set) var checks: [CheckSubject: Check] = [:]
  private(set) var evidence: [TransactionKey: [TransactionFact]] = [:]
  private(set) var links: [CheckSubject: Set<TransactionKey>] = [:]
  /// The night of the stored answer, by check. An answered check must not be asked about again.
  private(set) var answered: [CheckSubject: Instant] = [:]
  private var waiting: Set<Identifier> = []
  var openCriticals: Set<Identifier> = []

  // MARK: - The night

  mutating func enqueue(_ shop: SimulatedShop, at night: Instant) {
    let tables = shop.tables(at: night)
    for receipt in tables.receipts where receipt.defect == nil {
      let subject = CheckSubject(kind: .receipt, id: receipt.receiptId)
      if checks[subject] != nil { continue }
      checks[subject] = Check(history: CheckHistory(dated: receipt.receivedAt, knownSince: night))
    }
    for case .valid(let order) in tables.orders {
      guard let subject = shop.lookup(of: order), waiting.insert(order.orderId).inserted else { continue }
      var check = checks[subject] ?? Check(history: CheckHistory(dated: order.createdAt, knownSince: night))
      check.history.dated = max(check.history.dated, order.createdAt)
      // A later order may state an ID that Apple did not know when an earlier order stated it.
      if check.history.outcome == .notFound { check.history.renew(asOf: night) }
      checks[subject] = check
    }
  }

  mutating func sweep(_ shop: SimulatedShop, at night: Instant) {
    for record in shop.known.world.transactions { append(shop.facts(about: record.key, at: night), key: record.key) }
  }

  func due(at night: Instant) -> [CheckSubject] {
    checks.filter { Dueness(of: $0.value.history, policy: Self.policy)?.includes(night) ?? false }.keys
      .sorted { ($0.kind.rawValue, $0.id) < ($1.kind.rawValue, $1.id) }
  }

  /// Asks about one proof and stores the result. Returns true if its answer was stored already.
  mutating func ask(
    _ subject: CheckSubject, _ shop: SimulatedShop, at night: Instant, answers: Bool, _ random: inout SeededGenerator
  ) -> Bool {
    guard var check = checks[subject], let truth = shop.truth(of: subject, at: night) else { return false }
    let isRepeated = answered[subject] == night
    // Local checks succeed without an answer.
    let isOffline = truth.outcome == .rejected || truth.signedTransactionId != nil
    if isOffline || answers, truth.outcome != .notFound {
      check.kind = truth.kind ?? check.kind
      check.environment = truth.environment ?? check.environment
      check.bundleId = truth.bundleId ?? check.bundleId
      check.signedTransactionId = truth.signedTransactionId ?? check.signedTransactionId
      for key in shop.contained(in: subject) {
        let facts = shop.facts(about: key, at: night)
        if facts.isEmpty { continue }
        append(facts, key: key)
        links[subject, default: []].insert(key)
      }
      check.containedCount = max(check.containedCount, Int32(links[subject]?.count ?? 0))
    }
    let silence = random.pick(PaymentReason.unreachable, .rateLimited, .appleError)
    switch truth.outcome {
    case .rejected: check.history.note(.rejected, reason: truth.reason, isOffline: true, asOf: night)
    case .pending, .unanswered:
      check.history.note(.unanswered, reason: truth.reason ?? silence, isOffline: false, asOf: night)
    case .verified, .review, .notFound:
      let unknown: PaymentReason = shop.isYoung(subject, at: night) ? .notFoundYet : .notFound
      let reason = truth.reason ?? (truth.outcome == .notFound ? unknown : nil)
      if answers {
        check.history.note(truth.outcome, reason: reason, isOffline: false, asOf: night)
        answered[subject] = night
      } else {
        check.history.note(.unanswered, reason: silence, isOffline: false, asOf: night)
      }
    }
    check.channel = .serverApi
    checks[subject] = check
    return isRepeated
  }

  /// Makes the checks behind new critical findings due if Apple can be asked again. Returns true if any is due.
  mutating func renew(_ subjects: Set<CheckSubject>, at night: Instant) -> Bool {
    var isAny = false
    for subject in subjects {
      guard var check = checks[subject] else { continue }
      let history = check.history
      guard history.answeredAt.map({ $0 < night }) ?? true, !history.isOffline else { continue }
      if history.lastAttempt == night, history.unansweredSince != nil { continue }
      check.history.criticalSince = night
      checks[subject] = check
      isAny = true
    }
    return isAny
  }

  private mutating func append(_ facts: [TransactionFact], key: TransactionKey) {
    for fact in facts where !(evidence[key] ?? []).contains(fact) { evidence[key, default: []].append(fact) }
  }

  // MARK: - Reading

  func state(of subject: CheckSubject) -> ProofState {
    guard let check = checks[subject] else { return .neverChecked }
    var state = ProofState()
    state.outcome = check.history.outcome
    state.reason = check.history.reason
    state.kind = check.kind
    state.channel = check.channel
    state.environment = check.environment
    state.bundleId = check.bundleId
    state.attempts = check.history.attempts
    state.lastAttempt = check.history.lastAttempt
    state.due = Dueness(of: check.history, policy: Self.policy)
    state.unansweredSince = check.history.unansweredSince
    state.answeredAt = check.history.answeredAt
    state.signedTransactionId = check.signedTransactionId
    state.containedCount = check.containedCount
    return state
  }

  /// The fold of all evidence, with the newest subscription status in every period.
  func records(_ random: inout SeededGenerator) -> [TransactionRecord] {
    var records: [TransactionRecord] = []
    for facts in evidence.values {
      if let record = TransactionRecord.folding(facts.shuffled(using: &random)) { records.append(record) }
    }
    func subscription(_ record: TransactionRecord) -> TransactionKey {
      TransactionKey(
        environment: record.environment, transactionId: record.originalTransactionId ?? record.transactionId)
    }
    let periods = Dictionary(grouping: records.filter { $0.expiresDate != nil }, by: subscription)
    return records.map { record in
      guard record.expiresDate != nil, let all = periods[subscription(record)] else { return record }
      var record = record
      record.subscriptionExpiresDate = all.compactMap(\.subscriptionExpiresDate).max()
      let told = all.filter { $0.subscriptionStatus != nil }
      let newest = told.compactMap(\.subscriptionStatusDate).max()
      let words = told.filter { $0.subscriptionStatusDate == newest }.compactMap(\.subscriptionStatus)
      record.subscriptionStatus = words.min { $0.rawValue < $1.rawValue }
      record.subscriptionStatusDate = newest
      return record
    }
  }

  func world(_ shop: SimulatedShop, at night: Instant, _ random: inout SeededGenerator) -> World {
    var world = shop.tables(at: night)
    for place in world.receipts.indices {
      let subject = CheckSubject(kind: .receipt, id: world.receipts[place].receiptId)
      if world.receipts[place].defect == nil { world.receipts[place].state = state(of: subject) }
      world.contained[world.receipts[place].receiptId] = links[subject] ?? []
    }
    for case .valid(let order) in world.orders {
      guard let subject = shop.lookup(of: order) else { continue }
      world.lookups[order.orderId] = state(of: subject)
    }
    world.transactions = records(&random)
    return world
  }
}

extension SimulatedShop {
  func lookup(of order: Order) -> CheckSubject? {
    guard known.world.lookups[order.orderId] != nil, let named = order.transactionId else { return nil }
    return CheckSubject.lookup(named.text, of: ShopFixture.bundle)
  }

  private func orders(waitingFor subject: CheckSubject) -> [Order] {
    known.world.orders.compactMap { row in
      guard case .valid(let order) = row, lookup(of: order) == subject else { return nil }
      return order
    }
  }

  /// True if Apple may not know the ID yet.
  func isYoung(_ subject: CheckSubject, at night: Instant) -> Bool {
    night - (born(subject) ?? night) <= known.world.rules.notFoundGrace
  }

  private func born(_ subject: CheckSubject) -> Instant? {
    switch subject.kind {
    case .lookup: return orders(waitingFor: subject).map(\.createdAt).max()
    case .receipt:
      let receipt = known.world.receipts.first { $0.receiptId == subject.id }
      return known.world.orders.first { $0.orderId == receipt?.orderId }?.createdAt ?? receipt?.receivedAt
    }
  }

  func truth(of subject: CheckSubject, at night: Instant) -> ProofState? {
    switch subject.kind {
    case .receipt: return known.world.receipts.first { $0.receiptId == subject.id }?.state
    case .lookup:
      guard let state = orders(waitingFor: subject).first.flatMap({ known.world.lookups[$0.orderId] })
      else { return nil }
      let isKnown = contained(in: subject).contains { !facts(about: $0, at: night).isEmpty }
      return state.outcome == .verified && !isKnown ? .notFound(at: night) : state
    }
  }

  func contained(in subject: CheckSubject) -> Set<TransactionKey> {
    switch subject.kind {
    case .receipt: return known.world.contained[subject.id] ?? []
    case .lookup:
      let named = Identifier(subject.lookedUp.transactionId)
      return Set(known.world.transactions.filter { $0.transactionId == named }.map(\.key))
    }
  }
}
