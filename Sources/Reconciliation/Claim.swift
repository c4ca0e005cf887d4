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
  /// IDs of transactions of which a verified proof of that one purchase was sent for the order.
  public var proofIds: Set<Identifier>
  public var worth: ProofWorth
  /// Whether a receipt sent for it is unanswered that could still bring it a payment: what it claims tonight may change.
  public var isOpen: Bool
  /// Whether Apple has said that it does not know the id that the order names.
  public var isNameUnknown: Bool
  /// Whether goods of the order were delivered and not taken back.
  public var hasGoods: Bool

  public init(
    order: Order, proven: ProvenTransactions, known: [TransactionRecord] = [], signedIds: [Identifier] = [],
    proofIds: Set<Identifier> = [], worth: ProofWorth = .notFalse, isOpen: Bool = false, isNameUnknown: Bool = false,
    hasGoods: Bool = false
  ) {
    self.order = order
    list = worth == .notFalse ? proven : .none
    self.known = known.isEmpty ? [] : ProvenTransactions(known).records
    self.signedIds = signedIds
    self.proofIds = proofIds
    self.worth = worth
    self.isOpen = isOpen
    self.isNameUnknown = isNameUnknown
    self.hasGoods = hasGoods
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
    let periods = (list.hasPeriods ? proven : []) + known
    for record in periods where record.expiresDate != nil {
      guard record.isOf(id) || record.originalTransactionId == id, let date = record.purchaseDate,
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
    return !proven.contains { $0.isOf(id) || $0.originalTransactionId == id }
  }

  /// How the order stands towards the transaction that it names.
  public func standing(named transaction: TransactionRecord, rules: Rules) -> ClaimStanding {
    let fitness = fitness(of: transaction, rules: rules)
    guard fitness == .eligible else { return fitness }
    return restoresTooEarly(transaction, rules: rules) ? .refused(.restored) : .eligible
  }

  /// Whether it restores a purchase that was made too long before the order to be what was ordered.
  public func restoresTooEarly(_ transaction: TransactionRecord, rules: Rules) -> Bool {
    guard transaction.isRestore, let date = transaction.originalPurchaseDate else { return false }
    return order.createdAt - date > rules.matchWindow
  }

  /// Why the order claims this transaction without naming it, or does not.
  public func reasonAboutUnnamed(_ transaction: TransactionRecord, rules: Rules) -> String {
    switch fitness(of: transaction, rules: rules) {
    case .contradictory: return "Apple's records about it contradict each other."
    case .refused(let reason): return "It could not pay this order: \(reason.explanation)."
    case .eligible: break
    }
    switch link(to: transaction, stated: nil, rules: rules) {
    case .proof: return "A verified proof of this purchase was sent for the order."
    case .token: return "The ordered product, bought within \(rules.matchWindow.words) with the order's account token."
    case .id, .subscription, .list: return "The ordered product, bought within \(rules.matchWindow.words) of the order."
    case nil:
      return isInWindow(transaction, rules: rules) && transaction.isLaterPeriod
        ? "It is a renewal. A receipt that lists it does not link the order to it."
        : "It was not bought within \(rules.matchWindow.words) of the order, so it may be another purchase."
    }
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

  /// Whose account token a transaction carries; the better one is the smaller one.
  public enum Relation: Int, Sendable { case same, unknown, other }

  /// How an order's token compares with that of a transaction.
  static func relation(of order: Order, to transaction: TransactionRecord) -> Relation {
    guard let own = order.appAccountToken, case .says(.some(let token)) = transaction.appAccountToken else {
      return .unknown
    }
    return switch isSame(own, token) {
    case .some(true): .same
    case .some(false): .other
    case .none: .unknown
    }
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
