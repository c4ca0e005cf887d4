/// A transaction's key: ids are unique within an environment only.
public struct TransactionKey: Hashable, Comparable, Sendable {
  public var environment: AppleEnvironment
  public var transactionId: Identifier

  public init(environment: AppleEnvironment, transactionId: Identifier) {
    self.environment = environment
    self.transactionId = transactionId
  }

  /// The environment is left out: the same id in two of them is rare.
  public func hash(into hasher: inout Hasher) { hasher.combine(transactionId) }

  public static func < (left: TransactionKey, right: TransactionKey) -> Bool {
    let order = left.transactionId.compareBytes(right.transactionId)
    return order == 0 ? left.environment < right.environment : order < 0
  }
}

extension TransactionRecord {
  public var key: TransactionKey { TransactionKey(environment: self.environment, transactionId: self.transactionId) }

  /// The same for copies of one record.
  var instance: ObjectIdentifier { ObjectIdentifier(box) }

  /// Whether it is about the same transaction, which is seen at a glance where lists hold the same records.
  public func isSame(as other: TransactionRecord) -> Bool { instance == other.instance || key == other.key }
}

/// How one order stands towards one transaction that it names or that its receipts bring.
public enum ClaimStanding: Hashable, Sendable {
  /// It could pay this order.
  case eligible
  /// It cannot, and the reason proves it for an order that names it.
  case refused(PaymentReason)
  /// The records about it cannot both be true; nobody can say.
  case contradictory
}

/// What the proofs that were sent for an order are worth when it names a transaction.
public enum ProofWorth: Hashable, Sendable {
  /// There is none, or one at least is genuine or not answered yet.
  case notFalse
  /// All of them are false: naming a transaction claims nothing.
  case allFalse
  /// The same, and nobody knows of the id that the order names: Apple has not answered about it, or nobody can ask and none of
  /// the proofs can be read. It claims nothing, and is no reason to call what it names nobody's.
  case allFalseButNameOpen
  /// All of them are false, but Apple, asked about the id that the order names, knows it.
  case allFalseButNameKnown
  /// The same, and nothing worse is known of them than that nobody can read them.
  case unreadableButNameKnown

  /// Whether what stands in the way of naming a transaction is told about the order: a forged proof says enough by itself.
  var tellsObstacles: Bool { self == .notFalse || self == .unreadableButNameKnown }
}

/// What an order has to say for itself when claims are matched.
public struct Claimant: Sendable {
  public var order: Order
  /// Transactions that genuine proofs sent for this order bring, by key. A proof that is false brings nothing.
  public var proven: [TransactionRecord] { list.records }
  let list: ProvenTransactions
  /// What is known under the id that the order names, whoever brought it, by key.
  public private(set) var known: [TransactionRecord]
  /// The ids inside the signed payloads of its receipts, when each of them holds exactly one.
  public var signedIds: [Identifier]
  public var worth: ProofWorth
  /// Whether a receipt sent for it is unanswered that could still bring it a payment: what it claims tonight may change.
  public var isOpen: Bool
  /// Whether any receipt of the same person, sent for whatever order or for none, is unanswered that could still support
  /// what this order names.
  public var isUserOpen: Bool
  /// Whether Apple has said that it does not know the id that the order names.
  public var isNameUnknown: Bool

  public init(
    order: Order, proven: ProvenTransactions, known: [TransactionRecord] = [], signedIds: [Identifier] = [],
    worth: ProofWorth = .notFalse, isOpen: Bool = false, isUserOpen: Bool = false, isNameUnknown: Bool = false
  ) {
    self.order = order
    list = worth == .notFalse ? proven : .none
    self.known = known.isEmpty ? [] : ProvenTransactions(known).records
    self.signedIds = signedIds
    self.worth = worth
    self.isOpen = isOpen
    self.isUserOpen = isUserOpen
    self.isNameUnknown = isNameUnknown
  }

  /// Whether what it claims tonight may change: a receipt is open, or nothing is known yet of the id that it names.
  func isUnsettled(rules: Rules) -> Bool {
    isOpen || order.transactionId != nil && !isNameUnknown && named(rules: rules) == nil
  }

  /// The transaction that the order claims by the id that it names; nil where nothing is known of it, or where only false
  /// proofs speak for it.
  ///
  /// The id may be the original one of a subscription: then the period that a proof of this order brings near the order's
  /// time is meant, or else the first purchase.
  public func named(rules: Rules) -> TransactionRecord? {
    switch worth {
    case .allFalse, .allFalseButNameOpen: return nil
    case .notFalse, .allFalseButNameKnown, .unreadableButNameKnown: break
    }
    guard let id = order.transactionId else { return nil }
    var nearest: (record: TransactionRecord, distance: Span)?
    for record in list.hasPeriods ? proven : [] where record.expiresDate != nil {
      guard record.transactionId == id || record.originalTransactionId == id, let date = record.purchaseDate,
        fitness(of: record, rules: rules) == .eligible
      else { continue }
      let distance = (date - order.createdAt).magnitude
      // They come by id, so a tie stays with the smaller one.
      guard distance <= rules.matchWindow, nearest.map({ distance < $0.distance }) ?? true else { continue }
      nearest = (record, distance)
    }
    if let nearest { return nearest.record }
    // Ids are Apple's within an environment: what its own proof brings is what it means, and not a stranger's in the other.
    return list.named(id).first ?? known.first { $0.transactionId == id }
  }

  /// What is known under the id that the order names where it claims nothing by it, and still may: nil otherwise.
  var openName: TransactionKey? {
    guard worth == .allFalseButNameOpen, let id = order.transactionId else { return nil }
    return known.filter { $0.transactionId == id }.map(\.key).min()
  }

  /// Whether the id that the order names is not the one in its own signed payload, nor the first purchase behind it.
  public var contradictsOwnPayload: Bool {
    guard let id = order.transactionId, !signedIds.isEmpty, !signedIds.contains(id) else { return false }
    return !proven.contains { $0.transactionId == id || $0.originalTransactionId == id }
  }

  /// How the order stands towards the transaction that it names.
  public func standing(named transaction: TransactionRecord, rules: Rules) -> ClaimStanding {
    let fitness = fitness(of: transaction, rules: rules)
    switch fitness {
    case .refused(.familyShared), .contradictory, .eligible:
      // Its own proof refutes the name whatever else is known, or not known yet, of what it names.
      if contradictsOwnPayload { return .refused(.idMismatch) }
    case .refused: return fitness
    }
    guard fitness == .eligible else { return fitness }
    return restoresTooEarly(transaction, rules: rules) ? .refused(.restored) : .eligible
  }

  /// Whether it restores a purchase that was made too long before the order to be what was ordered.
  public func restoresTooEarly(_ transaction: TransactionRecord, rules: Rules) -> Bool {
    guard transaction.isRestore, let date = transaction.originalPurchaseDate else { return false }
    return order.createdAt - date > rules.matchWindow
  }

  /// Whether the order claims this transaction without naming it: the ordered product, sold near the order's time, and no
  /// renewal, which is claimed only when named.
  public func claimsUnnamed(_ transaction: TransactionRecord, rules: Rules) -> Bool {
    var because = Because(isWanted: false)
    return claimsUnnamed(transaction, rules, &because)
  }

  /// Why the order claims this transaction without naming it, or does not.
  public func reasonAboutUnnamed(_ transaction: TransactionRecord, rules: Rules) -> String {
    var because = Because(isWanted: true)
    _ = claimsUnnamed(transaction, rules, &because)
    return because.text
  }

  private func claimsUnnamed(_ transaction: TransactionRecord, _ rules: Rules, _ because: inout Because) -> Bool {
    switch fitness(of: transaction, rules: rules) {
    case .contradictory: return because.noting(false, "Apple's records about it contradict each other.")
    case .refused(let reason): return because.noting(false, "It could not pay this order: \(reason.explanation).")
    case .eligible: break
    }
    if transaction.isLaterPeriod {
      return because.noting(false, "It is a renewal, claimed only by who names it.")
    }
    guard isInWindow(transaction, rules: rules) else {
      return because.noting(
        false, "It was not bought within \(rules.matchWindow.words) of the order, so it may be another purchase.")
    }
    return because.noting(true, "The ordered product, bought within \(rules.matchWindow.words) of the order.")
  }

  /// The place in `proven` of the transaction in an environment that the order claims without naming it and that nobody
  /// else wants: one with a stranger's account token last, then the nearest in time, then the smallest id.
  func nearestPlace(in environment: AppleEnvironment, rules: Rules) -> Int? {
    var nearest: (place: Int, isStrangers: Bool, distance: Span)?
    for place in proven.indices where proven[place].environment == environment {
      guard claimsUnnamed(proven[place], rules: rules), let date = proven[place].saleDate else { continue }
      let isStrangers = ClaimRank.token(of: order, on: proven[place]) == .other
      let distance = (date - order.createdAt).magnitude
      // They come by id, so a tie stays with the smaller one.
      if let known = nearest {
        guard isStrangers == known.isStrangers ? distance < known.distance : known.isStrangers else { continue }
      }
      nearest = (place, isStrangers, distance)
    }
    return nearest?.place
  }

  /// Whether the sale was made within the match window of the order.
  public func isInWindow(_ transaction: TransactionRecord, rules: Rules) -> Bool {
    guard let sold = transaction.saleDate else { return false }
    return (sold - order.createdAt).magnitude <= rules.matchWindow
  }

  /// Whether the transaction could pay this order at all, whatever ids are claimed.
  public func fitness(of transaction: TransactionRecord, rules: Rules) -> ClaimStanding {
    if transaction.isContradictory { return .contradictory }
    if transaction.bundleId != rules.bundleId(of: order) { return .refused(.wrongBundle) }
    if transaction.productId != order.productId { return .refused(.productMismatch) }
    switch transaction.environment {
    case .xcode, .localTesting: return .refused(.xcode)
    case .production, .sandbox: break
    }
    return transaction.isFamilyShared ? .refused(.familyShared) : .eligible
  }
}

/// Account tokens are UUIDs: letter case, hyphens, braces and `urn:uuid:` are spelling.
public enum AccountToken {
  /// Whether two are one; nil where only one of them is a UUID. Nobody has given the other to StoreKit, so that it says
  /// neither yes nor no.
  public static func isSame(_ left: String, _ right: String) -> Bool? {
    // Most are spelt alike, and every pair of an order and a payment of one user is compared.
    if left == right { return true }
    let (left, right) = (spelling(left), spelling(right))
    if left == right { return true }
    return isUUID(left[...]) == isUUID(right[...]) ? false : nil
  }

  /// The one spelling that all spellings of a token share: of a UUID its digits in lower case.
  public static func spelling(_ token: String) -> String {
    let plain = token.lowercased().filter { $0 != "-" }
    var digits = plain[...]
    if digits.hasPrefix("urn:uuid:") { digits = digits.dropFirst("urn:uuid:".count) }
    if digits.hasPrefix("{"), digits.hasSuffix("}") { digits = digits.dropFirst().dropLast() }
    return isUUID(digits) ? String(digits) : plain
  }

  private static func isUUID(_ spelling: Substring) -> Bool {
    spelling.utf8.count == 32
      && spelling.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): true
        default: false
        }
      }
  }
}

/// How good a claim on a transaction is; the smaller one comes first.
struct ClaimRank: Comparable {
  /// Whose account token the transaction carries.
  enum Token: Int { case same, unknown, other }

  /// Whom only false proofs speak for comes after everybody else.
  var isFalse: Bool
  /// Beside a name that Apple knows, a payload that nobody can read is damage, and says no more than none would; but what
  /// others have proven it does not lend, whatever the token.
  var token: Token
  /// Whether a genuine proof of the same person brings the transaction.
  var isProven: Bool
  var isNamed: Bool
  var createdAt: Instant
  var orderId: Identifier

  init(_ claimant: Claimant, on transaction: TransactionRecord, isProven: Bool, isNamed: Bool) {
    let token = ClaimRank.token(of: claimant.order, on: transaction)
    switch claimant.worth {
    case .notFalse: (isFalse, self.token) = (false, token)
    case .unreadableButNameKnown: (isFalse, self.token) = (false, token == .same && !isProven ? .unknown : token)
    case .allFalse, .allFalseButNameOpen, .allFalseButNameKnown: (isFalse, self.token) = (true, token)
    }
    self.isProven = isProven
    self.isNamed = isNamed
    createdAt = claimant.order.createdAt
    orderId = claimant.order.orderId
  }

  static func token(of order: Order, on transaction: TransactionRecord) -> Token {
    guard let own = order.appAccountToken, case .says(.some(let token)) = transaction.appAccountToken else {
      return .unknown
    }
    return switch AccountToken.isSame(own, token) {
    case .some(true): .same
    case .some(false): .other
    case .none: .unknown
    }
  }

  static func < (left: ClaimRank, right: ClaimRank) -> Bool {
    let (mine, others) = (left.quality, right.quality)
    return mine == others ? (left.createdAt, left.orderId) < (right.createdAt, right.orderId) : mine < others
  }

  /// What of the rank does not depend on the order's age.
  private var quality: (Int, Int, Int, Int) { (isFalse ? 1 : 0, token.rawValue, isProven ? 0 : 1, isNamed ? 0 : 1) }
}
