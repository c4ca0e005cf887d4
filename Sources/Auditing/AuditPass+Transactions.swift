import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

/// What reading the transactions has found out, beside what it told their orders.
struct TransactionsReading {
  /// What several orders could own.
  var contests: Contests
  /// Orders that do not have the account token that their transaction carries.
  var tokens: TokenQuestions
}

extension AuditPass {
  /// Reads the transactions and finds out who could own each.
  ///
  /// - Parameters:
  ///   - mentions: by transaction id.
  ///   - told: gets what one order alone could own, and what else is to be told about its proofs.
  func readTransactions(_ mentions: SpillSorter, into told: Exchange.Outlet) throws -> TransactionsReading {
    var transactions = try OrderedStream(rows.read(.transactions)) { try TransactionTable.record($0) }
    let reading = TransactionsReading(
      contests: try Contests(directory: temporaryDirectory),
      tokens: TokenQuestions(directory: temporaryDirectory, people: plan.rules.people))
    var waiting = try SpillCursor(mentions) { (id: Identifier(utf8: $0.key), content: $0.content) }
    var ofOne = Candidates.Gathering()
    var last: Identifier?
    var writer = OrderTransactionWriter(told)
    var count = 0
    while let record = try transactions.next() {
      let id = record.transactionId
      if id != last {
        // Ids that nothing is known of are nobody's.
        while let head = waiting.head, head.id < id { try waiting.advance() }
        ofOne.clear()
        while let head = waiting.head, head.id == id {
          var reader = RecordReader(head.content)
          ofOne.take(try Mention(id, from: &reader))
          try waiting.advance()
        }
        ofOne.finish()
        last = id
      }
      let candidates = Candidates(for: record, ofOne, rules: plan.rules)
      try hand(record, candidates, to: &writer, reading.contests)
      for waiting in candidates.withOtherToken { try reading.tokens.ask(waiting, about: record) }
      count += 1
      if count % 4_096 == 0 { try endIfStopped() }
    }
    return reading
  }

  private func hand(
    _ record: TransactionRecord, _ candidates: Candidates, to writer: inout OrderTransactionWriter, _ contests: Contests
  ) throws {
    switch candidates.claimants.count {
    case 0:
      try addUnclaimed(record, userId: candidates.userId, newestProof: candidates.newestProof)
      try collector.addRefund(of: record, order: nil, judgement: nil, plan: plan)
    case 1:
      try writer.write(
        .transaction(record, isClaimable: true, newestProof: candidates.newestProof), for: candidates.claimants[0])
    default:
      try contests.add(
        ContestedTransaction(
          record: record, claimants: candidates.claimants, supporters: candidates.supporters,
          userId: candidates.userId, newestProof: candidates.newestProof))
    }
    for witness in candidates.witnesses {
      try writer.write(.transaction(record, isClaimable: false, newestProof: candidates.newestProof), for: witness)
    }
  }

  /// A transaction that no order claims, names or owns. The order of a later one may not be known yet.
  func addUnclaimed(_ record: TransactionRecord, userId: Identifier?, newestProof: CheckSubject?) throws {
    if let sold = record.saleDate, sales.horizon?.hides(sold) ?? false { return }
    if let finding = Unowned.finding(on: record, userId: userId, receiptId: nil, rules: plan.rules) {
      try collector.add(finding, subjects: newestProof.map { [$0] } ?? [], plan: plan)
    }
  }
}

/// Puts aside what orders are told.
struct OrderTransactionWriter: ~Copyable {
  private let told: Exchange.Outlet
  private var record = RecordBytes()

  init(_ told: Exchange.Outlet) { self.told = told }

  mutating func write(_ told: OrderTransaction, for orderId: Identifier) throws {
    record.clear()
    told.write(to: &record)
    try self.told.add(orderId, record)
  }
}

/// Orders that do not have the account token that their transaction carries: does the shop have it on file for somebody?
///
/// Shops that keep the tokens they give to StoreKit have no such orders, and nothing is read for them.
final class TokenQuestions {
  private let directory: String
  private let people: People
  let questions: SpillSorter

  /// - Parameter questions: what another one was asked.
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

  /// Takes over the questions of another part.
  func join(_ other: TokenQuestions) throws { try questions.absorb(other.questions) }

  /// As `answer(among:into:)`, among all orders.
  ///
  /// - Parameter groups: all orders, in any order.
  func answer(from groups: [SpillFile], into told: Exchange.Outlet) throws {
    if questions.count == 0 { return }
    let holders = SpillSorter(directory: directory, budget: 4 << 20)
    for groups in groups {
      try groups.restart()
      while let content = try groups.next() {
        var reader = RecordReader(content)
        guard case .valid(let order) = try OrderRow(from: &reader), let token = order.appAccountToken else { continue }
        try holders.add(key: Array(AccountToken.spelling(token).utf8), content: order.userId.bytes)
      }
    }
    try answer(among: holders, into: told)
  }

  /// Tells each of them a user who has the token on file: one of its own person, or else another.
  ///
  /// - Parameter holders: users by the tokens that they have on file.
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
