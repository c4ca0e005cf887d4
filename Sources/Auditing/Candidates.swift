import AuditStore
import Reconciliation

/// Which orders could own a transaction, from everything that mentions it: a pure function of the mentions, whatever their
/// order.
///
/// Leaving out whoever cannot claim keeps what has to be matched together small: an app receipt lists everything that its
/// user ever bought, for each of their orders.
struct Candidates {
  /// Orders that could own it, by id. One: nobody contests it. None: nobody can claim it.
  private(set) var claimants: [Identifier] = []
  /// Orders that cannot own it, though what a proof of theirs is about says something about them; by id.
  private(set) var witnesses: [Identifier] = []
  /// Orders among the claimants that have no account token, or another than the transaction's, with their users.
  private(set) var withOtherToken: [(orderId: Identifier, userId: Identifier)] = []
  /// Whose it seems to be where no order claims it: the user of the first of the orders, or else who sent a receipt.
  private(set) var userId: Identifier?
  /// The newest proof that brought it.
  private(set) var newestProof: CheckSubject?
  /// Whether only lists about which Apple has not answered brought it, and none of them could tell all of a refund.
  private(set) var awaitsDetails = false

  /// An order that names the id and of which no proof brought anything: nothing but who it is matters. There may be as many
  /// of them as a shop has orders.
  struct Namer {
    var orderId: Identifier
    var userId: Identifier
    var appAccountToken: String?
  }

  /// What mentions one id, as it comes.
  struct Gathering {
    fileprivate private(set) var namers: [Namer] = []
    fileprivate private(set) var mentions: [Mention] = []

    /// Begins with another id. One that everybody mentions must not take its memory for ever; what a user with thousands of
    /// purchases mentions is mentioned as often the next time.
    mutating func clear() {
      mentions.removeAll(keepingCapacity: mentions.count < 1 << 13)
      namers.removeAll(keepingCapacity: namers.count < 1 << 13)
    }

    /// Takes a mention, in any order.
    mutating func take(_ mention: consuming Mention) {
      if mention.bringer != nil { return mentions.append(mention) }
      guard let order = mention.order, !order.isBad else { return mentions.append(mention) }
      namers.append(
        Namer(orderId: order.orderId, userId: order.userId, appAccountToken: order.appAccountToken))
    }

    /// No mention follows.
    mutating func finish() { namers.sort { $0.orderId < $1.orderId } }
  }

  fileprivate struct Stake {
    var order: Mention.OrderSide
    var names = false
    /// Whether a genuine receipt of the order's own user, sent for the order, brought it. What a look-up brings supports
    /// nobody: anybody can name an id.
    var isSupported = false
    var isAboutOne = false

    init(order: Mention.OrderSide) { self.order = order }

    mutating func take(_ other: Stake) {
      names = names || other.names
      isBrought(aboutOne: other.isAboutOne, supporting: other.isSupported)
    }

    mutating func isBrought(aboutOne: Bool, supporting: Bool) {
      isAboutOne = isAboutOne || aboutOne
      isSupported = isSupported || supporting
    }
  }

  /// What orders have to do with one transaction. Mentions of one order nearly always follow each other, and there may be
  /// thousands of orders whose receipts list the same purchases.
  private struct Stakes {
    private var stakes: [Stake] = []
    private var isSorted = true

    mutating func note(_ order: Mention.OrderSide, _ change: (inout Stake) -> Void) {
      if let last = stakes.last?.order.orderId, last != order.orderId {
        isSorted = isSorted && last < order.orderId
        stakes.append(Stake(order: order))
      } else if stakes.isEmpty {
        stakes.append(Stake(order: order))
      }
      change(&stakes[stakes.count - 1])
    }

    /// By the ids of the orders, each once.
    consuming func byOrder() -> [Stake] {
      if isSorted { return stakes }
      stakes.sort { $0.order.orderId < $1.order.orderId }
      var merged: [Stake] = []
      for stake in stakes {
        if merged.last?.order.orderId == stake.order.orderId {
          merged[merged.count - 1].take(stake)
        } else {
          merged.append(stake)
        }
      }
      return merged
    }
  }

  /// - Parameter mentions: all that mention the transaction's id, in any order.
  init(for record: TransactionRecord, mentions: some Sequence<Mention>, rules: Rules) {
    self.init(for: record, mentions, namers: [], rules)
  }

  /// - Parameter gathering: all that mention the transaction's id.
  init(for record: TransactionRecord, _ gathering: Gathering, rules: Rules) {
    if gathering.namers.isEmpty, gathering.mentions.count == 1,
      let only = Candidates(for: record, theOnly: gathering.mentions[0])
    {
      self = only
    } else {
      self.init(for: record, gathering.mentions, namers: gathering.namers, rules)
    }
  }

  /// Nearly every transaction is mentioned once.
  ///
  /// - Returns: nil where it is no order that mentions it, or one that can claim nothing.
  private init?(for record: TransactionRecord, theOnly mention: borrowing Mention) {
    guard let order = mention.order, !order.isBad else { return nil }
    let isBrought = mention.bringer?.environment == record.environment
    if isBrought { newestProof = mention.bringer?.subject }
    // What was brought in another environment is another purchase under the same id.
    guard mention.isNamed || isBrought else { return }
    userId = order.userId
    claimants = [order.orderId]
    if record.hasOtherToken(than: order.appAccountToken) { withOtherToken = [(order.orderId, order.userId)] }
  }

  /// - Parameter namers: by id; further orders, that only name it.
  private init(
    for record: TransactionRecord, _ mentions: some Sequence<Mention>, namers: [Namer], _ rules: Rules
  ) {
    var stakes = Stakes()
    var senders: Set<Identifier> = []
    var newest: (receivedAt: Instant, subject: CheckSubject)?
    var isAnswered = record.tellsRefund
    for mention in mentions {
      if mention.isNamed, let order = mention.order { stakes.note(order) { $0.names = true } }
      guard let bringer = mention.bringer, bringer.environment == record.environment else { continue }
      isAnswered = isAnswered || !bringer.awaitsDetails
      if newest.map({ ($0.receivedAt, $0.subject.id) < (bringer.receivedAt, bringer.subject.id) }) ?? true {
        newest = (bringer.receivedAt, bringer.subject)
      }
      guard let order = mention.order else {
        if let sender = bringer.userId { senders.insert(sender) }
        continue
      }
      let isSupporting =
        bringer.isGenuine && bringer.subject.kind == .receipt
        && bringer.userId.map { rules.people.isSame($0, order.userId) } ?? true
      stakes.note(order) { $0.isBrought(aboutOne: bringer.isAboutOne, supporting: isSupporting) }
    }
    newestProof = newest?.subject
    awaitsDetails = newest != nil && !isAnswered
    let sorted = stakes.byOrder()
    userId = Self.firstUser(sorted, namers) ?? senders.min()
    let (count, namer) = Self.whoStandsOut(among: sorted, of: record)
    let isAlone = count + namers.count == 1
    var further = namers[...]
    func takeNamers(before orderId: Identifier?) {
      while let next = further.first, orderId.map({ next.orderId < $0 }) ?? true {
        claimants.append(next.orderId)
        if record.hasOtherToken(than: next.appAccountToken) { withOtherToken.append((next.orderId, next.userId)) }
        further.removeFirst()
      }
    }
    for stake in sorted where !stake.order.isBad {
      let orderId = stake.order.orderId
      takeNamers(before: orderId)
      let isNamedElsewhere =
        switch namer {
        case .none: false
        case .one(let only): only != orderId
        case .several: true
        }
      // With one order alone there is nothing to be left out for.
      if isAlone || stake.couldClaim(record, isNamedElsewhere: isNamedElsewhere, rules: rules) {
        claimants.append(orderId)
        if record.hasOtherToken(than: stake.order.appAccountToken) {
          withOtherToken.append((orderId, stake.order.userId))
        }
      } else if stake.isAboutOne || stake.mayMissIt(record) {
        witnesses.append(orderId)
      }
    }
    takeNamers(before: nil)
  }

  /// The user of the first order.
  private static func firstUser(_ stakes: [Stake], _ namers: [Namer]) -> Identifier? {
    guard let stake = stakes.first?.order else { return namers.first?.userId }
    return namers.first.flatMap { $0.orderId < stake.orderId ? $0.userId : nil } ?? stake.userId
  }

  /// Orders that name the transaction, to which a proof of their own user brought it, and that it can pay: nobody who names
  /// another one comes before them.
  private enum Namers {
    case none
    case one(Identifier)
    case several
  }

  private static func whoStandsOut(
    among stakes: [Stake], of record: TransactionRecord
  ) -> (count: Int, namers: Namers) {
    var (count, namers) = (0, Namers.none)
    for stake in stakes where !stake.order.isBad {
      count += 1
      guard stake.names, stake.isSupported, stake.order.productId == record.productId, record.isOfWhoNamesIt else {
        continue
      }
      namers = if case .none = namers { .one(stake.order.orderId) } else { .several }
    }
    return (count, namers)
  }
}

extension TransactionRecord {
  /// Whether nobody who names another id comes before an order of the product that names this one and whose own proof brings
  /// it. Whoever names the first period of a subscription may claim a later one instead, and a restore or what is shared may be
  /// refused; a renewal is claimed by nobody who does not name it.
  fileprivate var isOfWhoNamesIt: Bool {
    isLaterPeriod || self.expiresDate == nil && !isRestore && !self.isContradictory && !isFamilyShared
  }

  /// Whether the transaction carries an account token that an order with this one, or with none, does not have.
  fileprivate func hasOtherToken(than own: String?) -> Bool {
    guard case .says(.some(let token)) = self.appAccountToken else { return false }
    return own.map { AccountToken.isSame($0, token) != true } ?? true
  }
}

extension Candidates.Stake {
  /// Whether the order, which names none, would be judged otherwise without knowing of it: it is the ordered product, or nobody
  /// knows what it is.
  fileprivate func mayMissIt(_ record: TransactionRecord) -> Bool {
    order.named == nil && (order.productId == record.productId || record.isContradictory)
  }

  /// Whether matching could give the order this transaction. Says yes too often rather than too seldom.
  ///
  /// - Parameter isNamedElsewhere: whether another order names it that it can pay, and a proof of its own user brought it
  ///   there: then it is no unnamed payment that an order with a name of its own might claim besides.
  func couldClaim(_ record: TransactionRecord, isNamedElsewhere: Bool, rules: Rules) -> Bool {
    if names || (order.named != nil && order.named == record.originalTransactionId) { return true }
    if order.named != nil, !isAboutOne, isNamedElsewhere { return false }
    guard order.productId == record.productId else { return false }
    // A proof of this one purchase links the order to it at any time.
    guard !isAboutOne, let sold = record.saleDate else { return true }
    return (sold - order.createdAt).magnitude <= rules.matchWindow
  }
}
