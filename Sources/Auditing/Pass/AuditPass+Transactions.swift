import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

struct TransactionsReading {
  var contests: ConflictGroups
  var tokens: TokenQuestions
}

extension AuditPass {
  /// Reads the transactions, merges them with `references` and finds the possible owners of each.
  /// - Parameter withoutReceipt: the account tokens of orders whose receipts contain no purchase.
  func readTransactions(
    _ references: SpillSorter, withoutReceipt: TokenFilter, into told: Exchange.RecordSink
  ) throws -> TransactionsReading {
    let hides = sales.hides
    var transactions = try OrderedStream(rows.read(.transactions)) { try TransactionTable.record($0, hiding: hides) }
    let reading = TransactionsReading(
      contests: try ConflictGroups(directory: temporaryDirectory),
      tokens: TokenQuestions(directory: temporaryDirectory))
    var ofOne = try ReferencesToTransaction(references)
    var writer = OrderTransactionWriter(told)
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
      let sharesPurchase = sharedPurchases.contains(record.purchaseKey)
      let candidates = Candidates(for: record, try ofOne.gathered(), rules: plan.rules)
      let contested = ContestedTransaction(record, candidates, sharesPurchase: sharesPurchase)
      if let link = candidates.awaitedLink(record, withoutReceipt: withoutReceipt) {
        try reading.tokens.deferUntilLinked(contested, until: link)
      } else {
        try hand(contested, to: &writer, reading.contests)
      }
      for witness in candidates.affectedOrders {
        try writer.write(.transaction(record, isClaimable: false, newestProof: candidates.newestProof), for: witness)
      }
      for waiting in candidates.withOtherToken { try reading.tokens.ask(waiting, about: record) }
    }
    return reading
  }

  private func hand(
    _ contested: ContestedTransaction, to writer: inout OrderTransactionWriter, _ contests: ConflictGroups
  ) throws {
    if contested.sharesPurchase || contested.claimants.count > 1 {
      try contests.add(contested)
    } else if let only = contested.claimants.first {
      try writer.write(
        .transaction(contested.record, isClaimable: true, newestProof: contested.newestProof), for: only)
    } else {
      try addUnowned(contested)
    }
  }

  /// Answers which orders without a receipt are linked to transactions, and which users have their account tokens.
  ///
  /// - Parameters:
  ///   - holders: orders by what could link them.
  ///   - told: gets the users, and transactions that one order alone could own.
  ///   - contests: gets all other transactions that orders could own.
  func answer(
    _ tokens: TokenQuestions, among holders: SpillSorter, into told: Exchange.RecordSink, _ contests: ConflictGroups
  ) throws {
    var transactions = OrderTransactionWriter(told)
    var users = OrderTransactionWriter(told)
    try tokens.answer(among: holders, rules: plan.rules) { contested in
      try hand(contested, to: &transactions, contests)
    } telling: { orderId, token, userId in
      try users.write(.tokenUser(token: token, userId: userId), for: orderId)
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

  private mutating func decode(_ content: UnsafeRawBufferPointer) throws {
    var reader = RecordReader(content)
    gathering.take(try TransactionReference(id ?? Identifier(), from: &reader))
  }
}

struct OrderTransactionWriter: ~Copyable {
  private let told: Exchange.RecordSink
  private var record = RecordBytes()

  init(_ told: Exchange.RecordSink) { self.told = told }

  /// Writes the transaction without decoding it. False, with nothing written, unless exactly this order could own it.
  fileprivate mutating func writePlain(
    _ row: borrowing CopyReader, _ references: borrowing ReferencesToTransaction, _ sharedPurchases: Set<PurchaseKey>,
    withoutReceipt: TokenFilter, rules: Rules
  ) throws -> Bool {
    guard let only = references.only, let reference = try BorrowedTransactionReference(only),
      let transaction = try TransactionTable.plain(row),
      sharedPurchases.isEmpty || !sharedPurchases.contains(transaction.payment.purchaseKey)
    else { return false }
    if !withoutReceipt.isEmpty, let token = transaction.payment.appAccountToken,
      withoutReceipt.mayContain(AccountToken.spelling(token.text))
    {
      return false
    }
    record.clear()
    guard transaction.write(told: reference, to: &record) else { return false }
    assert((try? Self.whole(row, references, rules)) == record.bytes, "it is no plain transaction")
    try told.add(reference.orderId, record)
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
    var record = RecordBytes()
    OrderTransaction.transaction(transaction, isClaimable: true, newestProof: candidates.newestProof).write(to: &record)
    return record.bytes
  }

  mutating func write(_ told: OrderTransaction, for orderId: Identifier) throws {
    record.clear()
    told.write(to: &record)
    try self.told.add(orderId, record)
  }
}

/// A link of an order to a transaction that none of its receipts contains.
enum UnprovenLink: Hashable {
  /// The account token, as `AccountToken.spelling` has it.
  case token(String)
  /// The original transaction ID of a subscription.
  case subscription(Identifier)

  /// The sort key of questions and of linkable orders.
  var key: [UInt8] {
    switch self {
    case .token(let token): [UInt8(ascii: "t")] + token.utf8
    case .subscription(let original): [UInt8(ascii: "s")] + original.bytes
    }
  }
}

/// An order with what could link it to a transaction that no receipt of it contains.
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

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    orderId = try record.id()
    userId = try record.id()
    productId = try record.id()
    createdAt = Instant(microseconds: try record.int())
    hasPurchases = try record.flag()
  }

  /// Hands on an order, from its group as it writes itself, once for each link that it could have.
  ///
  /// A row that breaks the contract has none, and a further row of an ID breaks it.
  static func forEach(inGroup record: inout RecordReader, _ body: (UnprovenLink, LinkableOrder) throws -> Void) throws {
    let row = try OrderRow(from: &record)
    if try record.flag() { return }
    let proofCount = try record.int()
    var hasPurchases = false
    for _ in 0..<proofCount where !hasPurchases { hasPurchases = try !Proof(from: &record).brought.isEmpty }
    try forEach(of: row, hasReceipts: proofCount > 0, hasPurchases: hasPurchases, body)
  }

  /// A stated ID links an order without a receipt to its subscription.
  static func forEach(
    of row: OrderRow, hasReceipts: Bool, hasPurchases: Bool, _ body: (UnprovenLink, LinkableOrder) throws -> Void
  ) rethrows {
    guard case .valid(let order) = row else { return }
    let linkable = LinkableOrder(order, hasPurchases: hasPurchases)
    if let token = order.appAccountToken { try body(.token(AccountToken.spelling(token)), linkable) }
    if let stated = order.transactionId, !hasReceipts { try body(.subscription(stated), linkable) }
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

extension ContestedTransaction {
  /// Takes orders that its account token or its subscription links to it, without a receipt.
  /// If an order with its token states it or sent a receipt of it, only those whose receipts contain no purchase.
  mutating func take(_ holders: [LinkableOrder], rules: Rules) {
    let linked = holders.filter { (!isWithToken || !$0.hasPurchases) && $0.isLinked(to: record, rules: rules) }
    claimants = Set(claimants).union(linked.map(\.orderId)).sorted()
    userId = userId ?? holders.lazy.map(\.userId).min()
  }
}

/// Transactions that no receipt of an order contains, until the orders with their token or subscription are known.
///
/// Shops that keep receipts, or the tokens they give to StoreKit, have few such transactions.
final class TokenQuestions {
  private let directory: String
  /// By link: deferred transactions, and orders that need the user with a transaction's account token.
  let questions: SpillSorter
  private var record = RecordBytes()

  /// - Parameter questions: what another one was asked.
  init(directory: String, questions: SpillSorter? = nil) {
    self.directory = directory
    self.questions = questions ?? SpillSorter(directory: directory, budget: 1 << 20)
  }

  func ask(_ order: (orderId: Identifier, userId: Identifier), about transaction: TransactionRecord) throws {
    record.clear()
    record.put(true)
    record.put(order.orderId)
    record.put(order.userId)
    guard case .says(.some(let token)) = transaction.appAccountToken else { return }
    try questions.add(key: UnprovenLink.token(AccountToken.spelling(token)).key, content: record.content)
  }

  /// Puts a transaction off until it is known which orders the link is of.
  func deferUntilLinked(_ contested: ContestedTransaction, until link: UnprovenLink) throws {
    record.clear()
    record.put(false)
    contested.write(to: &record)
    try questions.add(key: link.key, content: record.content)
  }

  /// Takes over the questions of another part.
  func join(_ other: TokenQuestions) throws { try questions.absorb(other.questions) }

  /// All orders by what could link them.
  ///
  /// - Parameter groups: all orders, in any order.
  func holders(in groups: [SpillFile]) throws -> SpillSorter {
    let holders = SpillSorter(directory: directory, budget: 4 << 20)
    if questions.count == 0 { return holders }
    for groups in groups {
      try groups.restart()
      while let content = try groups.next() {
        var reader = RecordReader(content)
        try LinkableOrder.forEach(inGroup: &reader) { link, holder in
          record.clear()
          holder.write(to: &record)
          try holders.add(key: link.key, content: record.content)
        }
      }
    }
    return holders
  }

  /// - Parameters:
  ///   - handing: gets each transaction that was put off, with the orders that are linked to it.
  ///   - telling: gets each order with a user who has the token: one of its own person, or else another.
  func answer(
    among holders: SpillSorter, rules: Rules, handing: (ContestedTransaction) throws -> Void,
    telling: (_ orderId: Identifier, _ token: String, _ userId: Identifier) throws -> Void
  ) throws {
    var waiting = try SpillCursor(holders) { $0 }
    var (link, known) = ([UInt8](), [LinkableOrder]())
    while let question = try questions.next() {
      if !question.key.elementsEqual(link) {
        (link, known) = ([UInt8](question.key), [])
        while let head = waiting.head, head.key.lexicographicallyPrecedes(link) { try waiting.advance() }
        while let head = waiting.head, head.key.elementsEqual(link) {
          var holder = RecordReader(head.content)
          known.append(try LinkableOrder(from: &holder))
          try waiting.advance()
        }
      }
      var reader = RecordReader(question.content)
      guard try reader.flag() else {
        var contested = try ContestedTransaction(from: &reader)
        contested.take(known, rules: rules)
        try handing(contested)
        continue
      }
      let (orderId, userId) = (try reader.id(), try reader.id())
      let users = known.map(\.userId)
      guard let holder = users.filter({ rules.people.isSame($0, userId) }).min() ?? users.min() else { continue }
      try telling(orderId, String(decoding: link.dropFirst(), as: UTF8.self), holder)
    }
  }
}
