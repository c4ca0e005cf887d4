import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

struct TransactionsReading {
  var contests: Contests
  var tokens: TokenQuestions
}

extension AuditPass {
  /// Reads the transactions, merges them with `mentions` and finds the possible owners of each.
  func readTransactions(_ mentions: SpillSorter, into told: Exchange.Outlet) throws -> TransactionsReading {
    let hides = sales.hides
    var transactions = try OrderedStream(rows.read(.transactions)) { try TransactionTable.record($0, hiding: hides) }
    let reading = TransactionsReading(
      contests: try Contests(directory: temporaryDirectory),
      tokens: TokenQuestions(directory: temporaryDirectory, people: plan.rules.people))
    var ofOne = try MentionsOfOne(mentions)
    var writer = OrderTransactionWriter(told)
    var count = 0
    while let id = transactions.nextKey {
      try ofOne.gather(id)
      count += 1
      if count % 4_096 == 0 { try endIfStopped() }
      if try writer.writePlain(transactions.front, ofOne, sharedSales, rules: plan.rules) {
        try transactions.skip()
        continue
      }
      guard let record = try transactions.next() else { break }
      let sharesSale = sharedSales.contains(record.saleKey)
      let candidates = Candidates(for: record, try ofOne.gathered(), rules: plan.rules)
      try hand(record, candidates, sharesSale: sharesSale, to: &writer, reading.contests)
      for waiting in candidates.withOtherToken { try reading.tokens.ask(waiting, about: record) }
    }
    return reading
  }

  private func hand(
    _ record: TransactionRecord, _ candidates: Candidates, sharesSale: Bool,
    to writer: inout OrderTransactionWriter, _ contests: Contests
  ) throws {
    if sharesSale || candidates.claimants.count > 1 {
      try contests.add(ContestedTransaction(record, candidates, sharesSale: sharesSale))
    } else if let only = candidates.claimants.first {
      try writer.write(.transaction(record, isClaimable: true, newestProof: candidates.newestProof), for: only)
    } else {
      if !candidates.awaitsDetails {
        try addUnclaimed(record, userId: candidates.userId, newestProof: candidates.newestProof)
        try collector.addRefund(of: record, order: nil, judgement: nil, plan: plan)
      }
    }
    for witness in candidates.witnesses {
      try writer.write(.transaction(record, isClaimable: false, newestProof: candidates.newestProof), for: witness)
    }
  }

  func addUnclaimed(_ record: TransactionRecord, userId: Identifier?, newestProof: CheckSubject?) throws {
    if let finding = Unowned.finding(on: record, userId: userId, receiptId: nil, rules: plan.rules) {
      try collector.add(finding, subjects: newestProof.map { [$0] } ?? [], plan: plan)
    }
  }
}

/// Reads the mentions of one transaction ID after the other. A single mention, the usual case, stays encoded.
private struct MentionsOfOne: ~Copyable {
  private let mentions: SpillSorter
  private var head: SpillSorter.Record?
  private var id: Identifier?
  private var first = RecordBytes()
  private var count = 0
  private var gathering = Candidates.Gathering()
  private var isGathered = false

  init(_ mentions: SpillSorter) throws {
    self.mentions = mentions
    head = try mentions.next()
  }

  var only: UnsafeRawBufferPointer? { count == 1 ? first.content : nil }

  /// Gathers the mentions of an ID. IDs come in ascending order and may repeat.
  mutating func gather(_ id: BorrowedText) throws {
    if let known = self.id, id.isSame(as: known) { return }
    // Skipped IDs have no transaction.
    while let head, BorrowedText(head.key) < id { self.head = try mentions.next() }
    self.id = id.id
    count = 0
    isGathered = false
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
      self.head = try mentions.next()
    }
  }

  mutating func gathered() throws -> Candidates.Gathering {
    if !isGathered {
      if count == 1 { try decode(first.content) }
      gathering.finish()
      isGathered = true
    }
    return gathering
  }

  private mutating func decode(_ content: UnsafeRawBufferPointer) throws {
    var reader = RecordReader(content)
    gathering.take(try Mention(id ?? Identifier(), from: &reader))
  }
}

struct OrderTransactionWriter: ~Copyable {
  private let told: Exchange.Outlet
  private var record = RecordBytes()

  init(_ told: Exchange.Outlet) { self.told = told }

  /// Writes the transaction without decoding it. False, with nothing written, unless exactly this order could own it.
  fileprivate mutating func writePlain(
    _ row: borrowing CopyReader, _ mentions: borrowing MentionsOfOne, _ sharedSales: Set<TransactionKey>, rules: Rules
  ) throws -> Bool {
    guard let only = mentions.only, let mention = try PlainMention(only),
      let transaction = try TransactionTable.plain(row),
      sharedSales.isEmpty || !sharedSales.contains(transaction.payment.saleKey)
    else { return false }
    record.clear()
    guard transaction.write(told: mention, to: &record) else { return false }
    assert((try? Self.whole(row, mentions, rules)) == record.bytes, "it is no plain transaction")
    try told.add(mention.orderId, record)
    return true
  }

  /// The record that `Candidates` would yield, for the assertion in `writePlain`.
  private static func whole(
    _ row: borrowing CopyReader, _ mentions: borrowing MentionsOfOne, _ rules: Rules
  ) throws -> [UInt8] {
    let transaction = try TransactionTable.record(row) { _ in false }
    var gathering = Candidates.Gathering()
    if let only = mentions.only {
      var reader = RecordReader(only)
      gathering.take(try Mention(transaction.transactionId, from: &reader))
    }
    let candidates = Candidates(for: transaction, gathering, rules: rules)
    guard candidates.claimants.count == 1, candidates.withOtherToken.isEmpty, candidates.witnesses.isEmpty else {
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

extension OrderGroup {
  /// The user with an account token on file, from an encoded group. Invalid and repeated rows hold no token.
  static func tokenHolder(_ record: inout RecordReader) throws -> (token: String, userId: Identifier)? {
    let row = try OrderRow(from: &record)
    guard try !record.flag(), case .valid(let order) = row, let token = order.appAccountToken else { return nil }
    return (token: token, userId: order.userId)
  }
}

/// Finds users for account tokens that a transaction carries and its order lacks. Shops that store the tokens they pass
/// to StoreKit have no such orders, and nothing is read for them.
final class TokenQuestions {
  private let directory: String
  private let people: People
  let questions: SpillSorter

  init(directory: String, people: People, questions: SpillSorter? = nil) {
    self.directory = directory
    self.people = people
    self.questions = questions ?? SpillSorter(directory: directory, budget: 1 << 20)
  }

  func ask(_ order: (orderId: Identifier, userId: Identifier), about record: TransactionRecord) throws {
    guard case .says(.some(let token)) = record.appAccountToken else { return }
    var content = RecordBytes()
    content.put(order.orderId)
    content.put(order.userId)
    try questions.add(key: Array(AccountToken.spelling(token).utf8), content: content.content)
  }

  func join(_ other: TokenQuestions) throws { try questions.absorb(other.questions) }

  /// Answers from the tokens of all orders.
  func answer(from groups: [SpillFile], into told: Exchange.Outlet) throws {
    if questions.count == 0 { return }
    let holders = SpillSorter(directory: directory, budget: 4 << 20)
    for groups in groups {
      try groups.restart()
      while let content = try groups.next() {
        var reader = RecordReader(content)
        guard let holder = try OrderGroup.tokenHolder(&reader) else { continue }
        try holders.add(key: Array(AccountToken.spelling(holder.token).utf8), content: holder.userId.bytes)
      }
    }
    try answer(among: holders, into: told)
  }

  /// Writes for each question a user with that token on file, preferably of the order's own person.
  func answer(among holders: SpillSorter, into told: Exchange.Outlet) throws {
    var writer = OrderTransactionWriter(told)
    var holder = try SpillCursor(holders) { $0 }
    var (token, users) = ([UInt8](), Set<Identifier>())
    while let question = try questions.next() {
      if !question.key.elementsEqual(token) {
        (token, users) = ([UInt8](question.key), [])
        while let head = holder.head, head.key.lexicographicallyPrecedes(token) { try holder.advance() }
        while let head = holder.head, head.key.elementsEqual(token) {
          users.insert(Identifier(utf8: head.content))
          try holder.advance()
        }
      }
      var reader = RecordReader(question.content)
      let (orderId, userId) = (try reader.id(), try reader.id())
      guard let holder = users.filter({ people.isSame($0, userId) }).min() ?? users.min() else { continue }
      try writer.write(.tokenUser(token: String(decoding: token, as: UTF8.self), userId: holder), for: orderId)
    }
  }
}
