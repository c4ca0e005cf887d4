import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

struct TransactionsReading {
  var contests: ConflictGroups
  var linkQuestions: LinkQuestions
}

extension AuditPass {
  /// Reads the transactions, merges them with `references` and finds the possible owners of each.
  /// - Parameter withoutReceipt: the account tokens of orders whose receipts contain no purchase.
  func readTransactions(
    _ references: SpillSorter, withoutReceipt: BloomFilter, into transactionsByOrder: Exchange.RecordSink
  ) throws -> TransactionsReading {
    let hides = sales.hides
    var transactions = try OrderedStream(rows.read(.transactions)) { try TransactionTable.record($0, hiding: hides) }
    let reading = TransactionsReading(
      contests: try ConflictGroups(directory: temporaryDirectory),
      linkQuestions: LinkQuestions(directory: temporaryDirectory))
    var ofOne = try ReferencesToTransaction(references)
    var writer = OrderTransactionWriter(transactionsByOrder)
    var count = 0
    while let id = transactions.nextKey {
      try ofOne.gather(id)
      count += 1
      if count % 4_096 == 0 { try endIfStopped() }
      if try writer.writePlain(
        transactions.front, ofOne, sharedPurchases, withoutReceipt: withoutReceipt, rules: plan.rules)
      {
        try transactions.skip()
        continue
      }
      guard let record = try transactions.next() else { break }
      let sharesPurchase = sharedPurchases.contains(record.purchaseKey.fingerprint)
      let candidates = Candidates(for: record, try ofOne.gathered(), rules: plan.rules)
      if transactions.nextKey.map({ !$0.isSame(as: record.transactionId) }) ?? true { ofOne.release() }
      let contested = ContestedTransaction(record, candidates, sharesPurchase: sharesPurchase)
      let links = candidates.awaitedLinks(record, withoutReceipt: withoutReceipt)
      if links.isEmpty {
        try hand(contested, to: &writer, reading.contests, reading.linkQuestions)
      } else {
        try reading.linkQuestions.postpone(contested, until: links)
      }
      try reading.linkQuestions.askForOrders(besidePeriod: record)
      for affectedOrder in candidates.affectedOrders {
        try writer.write(
          .transaction(record, isClaimable: false, newestProof: candidates.newestProof), for: affectedOrder)
      }
      for waiting in candidates.withOtherToken { try reading.linkQuestions.ask(waiting, about: record) }
    }
    return reading
  }

  private func hand(
    _ contested: ContestedTransaction, to writer: inout OrderTransactionWriter, _ contests: ConflictGroups,
    _ questions: LinkQuestions
  ) throws {
    try questions.noteClaimants(of: contested)
    if contested.sharesPurchase || !contested.linked.isEmpty || contested.claimants.count > 1 {
      try contests.add(contested)
    } else if let only = contested.claimants.first {
      try writer.write(
        .transaction(contested.record, isClaimable: true, newestProof: contested.newestProof), for: only)
    } else {
      try addUnowned(contested)
    }
  }

  /// Answers which orders are linked to transactions that they do not refer to, and which users have their account
  /// tokens.
  ///
  /// - Parameters:
  ///   - linkableOrders: orders by link.
  ///   - transactionsByOrder: gets the users, marks of shared subscriptions, and transactions that one order alone could
  ///     own.
  ///   - contests: gets all other transactions that orders could own.
  func answer(
    _ questions: LinkQuestions, among linkableOrders: SpillSorter, into transactionsByOrder: Exchange.RecordSink,
    _ contests: ConflictGroups
  ) throws {
    var transactions = OrderTransactionWriter(transactionsByOrder)
    var users = OrderTransactionWriter(transactionsByOrder)
    try questions.answer(among: linkableOrders, rules: plan.rules, contests) { contested in
      try hand(contested, to: &transactions, contests, questions)
    } reporting: { orderId, answer in
      try users.write(answer, for: orderId)
    }
  }

  func addUnclaimed(_ record: TransactionRecord, userId: Identifier?, newestProof: CheckSubject?) throws {
    if let finding = OrphanFindings.finding(on: record, userId: userId, receiptId: nil, rules: plan.rules) {
      if record.isReversed, let subscription = record.subscriptionKey {
        try collector.add(finding, ifServed: subscription.transactionId, plan: plan)
      } else {
        try collector.add(finding, subjects: newestProof.map { [$0] } ?? [], plan: plan)
      }
    }
  }
}

/// Reads the references of one transaction ID after the other. A single reference, the usual case, stays encoded.
private struct ReferencesToTransaction: ~Copyable {
  private let references: SpillSorter
  private var head: SpillSorter.Record?
  private var id: Identifier?
  private var first = RecordBytes()
  private var count = 0
  private var gathering = Candidates.ReferenceCollector()
  private var hasCollected = false

  init(_ references: SpillSorter) throws {
    self.references = references
    head = try references.next()
  }

  var only: UnsafeRawBufferPointer? { count == 1 ? first.content : nil }

  /// Gathers the references of an ID. IDs come in ascending order and may repeat.
  mutating func gather(_ id: BorrowedText) throws {
    if let known = self.id, id.isSame(as: known) { return }
    // Skipped IDs have no transaction.
    while let head, BorrowedText(head.key) < id { self.head = try references.next() }
    self.id = id.id
    count = 0
    hasCollected = false
    gathering.clear()
    while let head, BorrowedText(head.key) == id {
      if count == 0 {
        first.clear()
        first.append(head.content)
      } else {
        if count == 1 { try decode(first.content) }
        try decode(head.content)
      }
      count += 1
      self.head = try references.next()
    }
  }

  mutating func gathered() throws -> Candidates.ReferenceCollector {
    if !hasCollected {
      if count == 1 { try decode(first.content) }
      gathering.finish()
      hasCollected = true
    }
    return gathering
  }

  /// Releases large buffers when no further transaction has the ID.
  mutating func release() { gathering.clear() }

  private mutating func decode(_ content: UnsafeRawBufferPointer) throws {
    var reader = RecordReader(content)
    gathering.take(try TransactionReference(id ?? Identifier(), from: &reader))
  }
}

struct OrderTransactionWriter: ~Copyable {
  private let sink: Exchange.RecordSink
  private var record = RecordBytes()

  init(_ sink: Exchange.RecordSink) { self.sink = sink }

  /// Writes the transaction without decoding it. False, with nothing written, unless exactly this order could own it.
  fileprivate mutating func writePlain(
    _ row: borrowing CopyReader, _ references: borrowing ReferencesToTransaction, _ sharedPurchases: Set<UInt64>,
    withoutReceipt: BloomFilter, rules: Rules
  ) throws -> Bool {
    guard let only = references.only, let reference = try BorrowedTransactionReference(only),
      let transaction = try TransactionTable.plain(row),
      sharedPurchases.isEmpty || !sharedPurchases.contains(transaction.payment.purchaseKey.fingerprint)
    else { return false }
    if !withoutReceipt.isEmpty, let token = transaction.payment.appAccountToken,
      withoutReceipt.mayContain(AccountToken.fingerprint(token))
    {
      return false
    }
    record.clear()
    guard transaction.writeOrderTransaction(of: reference, to: &record) else { return false }
    assert((try? Self.whole(row, references, rules)) == record.bytes, "it is no plain transaction")
    try sink.add(reference.orderId, record)
    return true
  }

  /// The record that `Candidates` would yield, for the assertion in `writePlain`.
  private static func whole(
    _ row: borrowing CopyReader, _ references: borrowing ReferencesToTransaction, _ rules: Rules
  ) throws -> [UInt8] {
    let transaction = try TransactionTable.record(row) { _ in false }
    var gathering = Candidates.ReferenceCollector()
    if let only = references.only {
      var reader = RecordReader(only)
      gathering.take(try TransactionReference(transaction.transactionId, from: &reader))
    }
    let candidates = Candidates(for: transaction, gathering, rules: rules)
    guard candidates.claimants.count == 1, candidates.withOtherToken.isEmpty, candidates.affectedOrders.isEmpty else {
      return []
    }
    return RecordBytes.bytes(
      OrderTransaction.transaction(transaction, isClaimable: true, newestProof: candidates.newestProof).write(to:))
  }

  mutating func write(_ transaction: OrderTransaction, for orderId: Identifier) throws {
    record.clear()
    transaction.write(to: &record)
    try sink.add(orderId, record)
  }
}

/// A link of an order to a transaction that it does not refer to.
enum UnprovenLink: Hashable {
  /// The account token, as `AccountToken.spelling` has it.
  case token(String)
  /// The original transaction ID of a subscription, or the `bundleTransactionID` of a period.
  case subscription(Identifier)

  static let subscriptionMark = UInt8(ascii: "s")
  private static let tokenMark = UInt8(ascii: "t")

  /// The sort key of questions and of linkable orders.
  var key: [UInt8] {
    switch self {
    case .token(let token): [Self.tokenMark] + token.utf8
    case .subscription(let original): [Self.subscriptionMark] + original.bytes
    }
  }

  /// The member of a Bloom filter.
  var fingerprint: UInt64 {
    switch self {
    case .token(let token): AccountToken.fingerprint(token)
    case .subscription(let original): original.withUTF8 { BorrowedText($0).fingerprint }
    }
  }

  init(key: [UInt8]) throws(RecordReader.Mismatch) {
    let text = String(decoding: key.dropFirst(), as: UTF8.self)
    switch key.first {
    case Self.tokenMark: self = .token(text)
    case Self.subscriptionMark: self = .subscription(Identifier(text))
    default: throw RecordReader.Mismatch()
    }
  }
}

/// An order that a token or a stated ID could link to a transaction that its receipts do not contain.
struct LinkableOrder {
  var orderId: Identifier
  var userId: Identifier
  var productId: Identifier
  var createdAt: Instant
  /// True if a receipt that was sent for it contains a purchase.
  var hasPurchases: Bool

  init(_ order: Order, hasPurchases: Bool) {
    (orderId, userId) = (order.orderId, order.userId)
    (productId, createdAt, self.hasPurchases) = (order.productId, order.createdAt, hasPurchases)
  }

  private init(_ order: BorrowedOrder, hasPurchases: Bool) {
    (orderId, userId) = (order.orderId.id, order.userId.id)
    (productId, createdAt, self.hasPurchases) = (order.productId.id, order.createdAt, hasPurchases)
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    orderId = try record.id()
    userId = try record.id()
    productId = try record.id()
    createdAt = Instant(microseconds: try record.int())
    hasPurchases = try record.flag()
  }

  /// Hands on an order, from its encoded group, once for each asked link that it could have.
  ///
  /// A row that breaks the contract has none, and a further row of an ID breaks it.
  static func forEach(
    inGroup record: inout RecordReader, asked: BloomFilter = .all, _ body: (UnprovenLink, LinkableOrder) throws -> Void
  ) throws {
    guard let order = try BorrowedOrder(&record), try !record.flag() else { return }
    let token = order.appAccountToken.flatMap { asked.mayContain(AccountToken.fingerprint($0)) ? $0 : nil }
    let stated = order.transactionId.flatMap { asked.mayContain($0.fingerprint) ? $0 : nil }
    if token == nil, stated == nil { return }
    var hasPurchases = false
    for _ in 0..<(try record.int()) where !hasPurchases {
      try WaitingProof(&record).forEachContained { _, _ in hasPurchases = true }
    }
    let linkable = LinkableOrder(order, hasPurchases: hasPurchases)
    if let token { try body(.token(AccountToken.spelling(token.text)), linkable) }
    if let stated { try body(.subscription(stated.id), linkable) }
  }

  /// A stated ID links an order to the periods of its subscription.
  static func forEach(
    of row: OrderRow, hasPurchases: Bool, _ body: (UnprovenLink, LinkableOrder) throws -> Void
  ) rethrows {
    guard case .valid(let order) = row else { return }
    let linkable = LinkableOrder(order, hasPurchases: hasPurchases)
    if let token = order.appAccountToken { try body(.token(AccountToken.spelling(token)), linkable) }
    if let stated = order.transactionId { try body(.subscription(stated), linkable) }
  }

  func write(to record: inout RecordBytes) {
    record.put(orderId)
    record.put(userId)
    record.put(productId)
    record.put(createdAt.microseconds)
    record.put(hasPurchases)
  }

  /// Whether the order is of the transaction's product, and near it in time.
  func isLinked(to transaction: TransactionRecord, rules: Rules) -> Bool {
    guard let sold = transaction.saleDate, transaction.isPurchase(of: productId) else { return false }
    return (sold - createdAt).magnitude <= rules.matchWindow
  }
}

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
    guard case .stated(.some(let token)) = transaction.appAccountToken else { return }
    record.clear()
    record.put(true)
    record.put(order.orderId)
    record.put(order.userId)
    try add(.token(AccountToken.spelling(token)))
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
      let users = known.map(\.userId)
      guard let user = users.filter({ rules.people.isSame($0, userId) }).min() ?? users.min() else { return }
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
