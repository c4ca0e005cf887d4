import Reconciliation
import Streams

/// Transactions that wait until the orders with their account token, or that state their subscription, are known.
///
/// Shops that keep receipts, or the tokens they give to StoreKit, have few such transactions.
final class LinkQuestions {
  private let directory: String
  /// By link: transactions, and orders that need the user with a transaction's account token. A record without content
  /// announces a transaction that waits for another link first, or asks for the orders of a subscription.
  let questions: SpillSorter
  /// Orders that could own periods of subscriptions, by the question about the periods.
  let periodClaimants: SpillSorter
  /// Whether several orders could own periods of one subscription. Known after all links are answered.
  private(set) var hasSharedSubscriptions = false
  private var asked = BloomFilter()
  private var record = RecordBytes()

  /// - Parameter questions: the questions of earlier parts; nil: none.
  init(directory: String, questions: SpillSorter? = nil) {
    self.directory = directory
    self.questions = questions ?? SpillSorter(directory: directory, budget: 1 << 20)
    periodClaimants = SpillSorter(directory: directory, budget: 1 << 20)
  }

  func ask(_ order: (orderId: Identifier, userId: Identifier), about transaction: TransactionRecord) throws {
    guard let token = transaction.statedToken else { return }
    record.clear()
    record.put(true)
    record.put(order.orderId)
    record.put(order.userId)
    try add(.token(token))
  }

  /// Asks for the orders of a later period's subscription. Those of the first period alone have no neighbors.
  func askForOrders(besidePeriod period: TransactionRecord) throws {
    guard let subscription = period.productionSubscription, subscription != period.transactionId else { return }
    try questions.add(key: Self.periodsKey(subscription), content: [])
  }

  /// Keeps the orders that could own a subscription's period. One empty ID stands for contested orders, which are known
  /// from the matching.
  func noteClaimants(of contested: ContestedTransaction) throws {
    guard let subscription = contested.record.productionSubscription else { return }
    var claimants = contested.claimants + contested.accountOrders
    if !contested.sharesPurchase, claimants.count > 1 || !contested.linked.isEmpty { claimants = [Identifier()] }
    for claimant in claimants {
      record.clear()
      record.put(claimant)
      try periodClaimants.add(key: Self.periodsKey(subscription), content: record.content)
    }
  }

  /// Sorts after the keys of links, because the claimants of a period are known after all links.
  private static func periodsKey(_ subscription: Identifier) -> [UInt8] { [periodsMark] + subscription.bytes }

  private static let periodsMark = UInt8(ascii: "u")

  /// Keeps a transaction until it is known which orders the links are of.
  func postpone(_ contested: ContestedTransaction, until links: [UnprovenLink]) throws {
    record.clear()
    record.put(false)
    contested.write(to: &record)
    for link in links {
      try add(link)
      record.clear()
    }
  }

  private func add(_ link: UnprovenLink) throws {
    asked.insert(link.fingerprint)
    try questions.add(key: link.key, content: record.content)
  }

  /// Takes over the questions of another part.
  func join(_ other: LinkQuestions) throws {
    asked.formUnion(other.asked)
    try questions.absorb(other.questions)
    try periodClaimants.absorb(other.periodClaimants)
  }

  /// The orders that an asked link could be of, by link.
  ///
  /// - Parameter groups: all orders, in any order.
  func linkableOrders(in groups: [SpillFile]) throws -> SpillSorter {
    let linkableOrders = SpillSorter(directory: directory, budget: 4 << 20)
    if questions.count == 0 { return linkableOrders }
    try linkableOrders.absorb(periodClaimants)
    for groups in groups {
      try groups.restart()
      while let content = try groups.next() {
        var reader = RecordReader(content)
        try LinkableOrder.forEach(inGroup: &reader, asked: asked) { link, order in
          record.clear()
          order.write(to: &record)
          try linkableOrders.add(key: link.key, content: record.content)
        }
      }
    }
    return linkableOrders
  }

  /// - Parameters:
  ///   - contests: gets the timelines of orders that are linked to transactions.
  ///   - handing: gets each transaction that was put off, with the orders that are linked to it.
  ///   - reporting: gets each order with a user who has the token, one of its own person or else another; and marks of
  ///     orders that could own a period of a shared subscription, contested ones apart.
  func answer(
    among linkableOrders: SpillSorter, rules: Rules, _ contests: ConflictGroups,
    handing: (ContestedTransaction) throws -> Void,
    reporting: (_ orderId: Identifier, OrderTransaction) throws -> Void
  ) throws {
    var waiting = try SpillCursor(linkableOrders) { $0 }
    var (key, known, linkable) = ([UInt8](), [LinkableOrder](), LinkableOrders([]))
    let ofBundles = SpillSorter(directory: directory, budget: 1 << 20)
    let forToken = SpillSorter(directory: directory, budget: 1 << 20)
    func answer(_ question: SpillSorter.Record) throws {
      if question.content.isEmpty { return }
      let link = try UnprovenLink(key: [UInt8](question.key))
      if !question.key.elementsEqual(key) {
        (key, known) = ([UInt8](question.key), [])
        while let head = waiting.head, head.key.lexicographicallyPrecedes(key) { try waiting.advance() }
        while let head = waiting.head, head.key.elementsEqual(key) {
          var reader = RecordReader(head.content)
          known.append(try LinkableOrder(from: &reader))
          try waiting.advance()
        }
        switch link {
        case .token: linkable = LinkableOrders(known, contests: contests)
        case .subscription: linkable = LinkableOrders(known)
        }
      }
      var reader = RecordReader(question.content)
      guard try reader.flag() else {
        var contested = try ContestedTransaction(from: &reader)
        linkable.link(&contested, by: link, rules: rules)
        guard case .subscription(let id) = link else { return try handing(contested) }
        record.clear()
        record.put(false)
        contested.write(to: &record)
        if let original = contested.record.originalTransactionId, id != original {
          return try ofBundles.add(key: UnprovenLink.subscription(original).key, content: record.content)
        }
        guard let token = contested.record.linkingToken else { return try handing(contested) }
        return try forToken.add(key: UnprovenLink.token(AccountToken.spelling(token)).key, content: record.content)
      }
      guard case .token(let token) = link else { throw RecordReader.Mismatch() }
      let (orderId, userId) = (try reader.id(), try reader.id())
      guard let user = rules.people.tokenUser(among: known.map(\.userId), for: userId) else { return }
      try reporting(orderId, .tokenUser(token: token, userId: user))
    }
    var asked = try SpillCursor(questions) { $0 }
    // Keys of subscriptions precede keys of tokens.
    while let question = asked.head, question.key.first.map({ $0 <= UnprovenLink.subscriptionMark }) ?? false {
      try answer(question)
      try asked.advance()
    }
    if ofBundles.count > 0 {
      // From the start, because the ID of a subscription may precede that of the bundle.
      try linkableOrders.restart()
      waiting = try SpillCursor(linkableOrders) { $0 }
      key = []
      var bundles = try SpillCursor(ofBundles) { $0 }
      while let question = bundles.head {
        try answer(question)
        try bundles.advance()
      }
    }
    var further = try SpillCursor(forToken) { $0 }
    while true {
      if let question = further.head, asked.head.map({ !$0.key.lexicographicallyPrecedes(question.key) }) ?? true {
        try answer(question)
        try further.advance()
      } else if let question = asked.head {
        try answer(question)
        try asked.advance()
      } else {
        break
      }
    }
    while let head = waiting.head {
      if head.key.first == Self.periodsMark {
        try periodClaimants.add(key: [UInt8](head.key), content: head.content)
      }
      try waiting.advance()
    }
    if questions.count > 0 { try markSharedSubscriptions(reporting) }
  }

  private func markSharedSubscriptions(
    _ reporting: (_ orderId: Identifier, OrderTransaction) throws -> Void
  ) throws {
    func mark(_ claimant: Identifier) throws {
      hasSharedSubscriptions = true
      if !claimant.isEmpty { try reporting(claimant, .sharedSubscription) }
    }
    var (key, last, isShared) = ([UInt8](), Identifier(), false)
    while let next = try periodClaimants.next() {
      var reader = RecordReader(next.content)
      let claimant = try reader.id()
      if !next.key.elementsEqual(key) {
        (key, last, isShared) = ([UInt8](next.key), claimant, false)
        if claimant.isEmpty { try mark(claimant) }
      } else if claimant != last {
        if !isShared { try mark(last) }
        try mark(claimant)
        (last, isShared) = (claimant, true)
      }
    }
  }
}

extension People {
  /// The user with an account token: one of the person of `userId` if possible, then the smallest ID.
  func tokenUser(among users: [Identifier], for userId: Identifier) -> Identifier? {
    users.filter { isSame($0, userId) }.min() ?? users.min()
  }
}
