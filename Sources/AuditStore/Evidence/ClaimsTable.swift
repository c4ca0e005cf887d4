import Postgres
import Reconciliation
import Streams

/// The table `claims`: the owner of each transaction, for people and BI tools. No audit reads it.
package enum ClaimsTable {
  package struct Claim: Hashable {
    package var key: TransactionKey
    /// nil: the transaction has no owner any more.
    package var orderId: Identifier?

    package init(key: TransactionKey, orderId: Identifier?) { (self.key, self.orderId) = (key, orderId) }

    package func write(to record: inout RecordBytes) {
      record.put(key.environment.rawValue)
      record.put(key.transactionId)
      record.put(orderId)
    }

    package init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
      guard let environment = AppleEnvironment(rawValue: try record.text()) else { throw RecordReader.Mismatch() }
      key = TransactionKey(environment: environment, transactionId: try record.id())
      orderId = try record.optionalId()
    }
  }

  private static let batchSize = 20_000

  /// Differences between tonight's claims, sorted by transaction ID, and the stored ones.
  package static func differences(
    _ claims: SpillSorter, directory: String, on connection: borrowing BlockingConnection
  ) throws -> SpillFile {
    let changes = try SpillFile(directory: directory)
    var record = RecordBytes()
    var stored = try OrderedStream(
      connection.copyOut(
        "SELECT transaction_id, environment, order_id FROM night_audit.claims ORDER BY transaction_id, environment")
    ) { row in
      Claim(
        key: TransactionKey(
          environment: try row.word(1, of: Vocabularies.environment) ?? .localTesting, transactionId: try row.id(0)),
        orderId: try row.id(2))
    }
    var tonight = try SpillCursor(claims) { spilled in
      var reader = RecordReader(spilled.content)
      return try Claim(from: &reader)
    }
    while let id = [tonight.head?.key.transactionId, stored.nextKey.id].compactMap({ $0 }).min() {
      var before: [TransactionKey: Identifier] = [:]
      var after: [TransactionKey: Identifier] = [:]
      while stored.nextKey.id == id, let claim = try stored.next() { before[claim.key] = claim.orderId }
      while let claim = tonight.head, claim.key.transactionId == id {
        after[claim.key] = claim.orderId
        try tonight.advance()
      }
      for key in Set(before.keys).union(after.keys).sorted() where before[key] != after[key] {
        record.clear()
        Claim(key: key, orderId: after[key]).write(to: &record)
        try changes.add(record.content)
      }
    }
    return changes
  }

  /// Writes the differences. The entry of the run in the trail then covers the table.
  package static func apply(_ changes: SpillFile, on connection: borrowing BlockingConnection) throws {
    try connection.execute("SELECT set_config('night_audit.claims', 'written', true)")
    try changes.restart()
    var batch: [Claim] = []
    while let content = try changes.next() {
      var reader = RecordReader(content)
      batch.append(try Claim(from: &reader))
      if batch.count >= batchSize {
        try write(batch, on: connection)
        batch.removeAll(keepingCapacity: true)
      }
    }
    if !batch.isEmpty { try write(batch, on: connection) }
  }

  private static func write(_ claims: [Claim], on connection: borrowing BlockingConnection) throws(PostgresError) {
    let gone = claims.filter { $0.orderId == nil }
    let owned = claims.filter { $0.orderId != nil }
    func keys(_ claims: [Claim]) -> [PostgresValue] {
      [.textArray(claims.map(\.key.transactionId.text)), .textArray(claims.map(\.key.environment.rawValue))]
    }
    if !gone.isEmpty {
      try connection.execute(
        """
        DELETE FROM night_audit.claims c USING unnest($1::text[], $2::text[]) AS gone (transaction_id, environment)
        WHERE c.transaction_id = gone.transaction_id AND c.environment = gone.environment
        """, keys(gone))
    }
    if !owned.isEmpty {
      try connection.execute(
        """
        INSERT INTO night_audit.claims (transaction_id, environment, order_id)
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[])
        ON CONFLICT (transaction_id, environment) DO UPDATE SET order_id = excluded.order_id
        """, keys(owned) + [.textArray(owned.map { $0.orderId?.text })])
    }
  }
}
