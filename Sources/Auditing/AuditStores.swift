import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

/// The connections of a reader: each store is read in one snapshot.
struct AuditConnections: ~Copyable {
  /// To the shop's relations, which are only ever read.
  let sales: BlockingConnection
  /// To our own schema.
  let own: BlockingConnection
  /// A second one, in the snapshot of the first.
  let ownBeside: BlockingConnection
}

/// Rows of the stores themselves. Used by one thread at a time; not `Sendable`.
final class StoreRows: AuditRows {
  private let connections: AuditConnections
  /// What is asked for the rows of the part.
  var query: (AuditRelation) throws -> String = { _ in "" }
  /// What is asked for the deliveries of ``StoredIds/contested``; nil: for all deliveries of the part.
  var contestedDeliveries: (() throws -> String)?

  init(_ connections: consuming AuditConnections) { self.connections = connections }

  var sales: BlockingConnection { _read { yield connections.sales } }
  var own: BlockingConnection { _read { yield connections.own } }

  /// Lets the connections to our own schema read the rows of a narrowed report.
  func narrow(to reading: NarrowedReading) throws(PostgresError) {
    try reading.store(on: connections.own)
    try reading.store(on: connections.ownBeside)
  }

  func readDeliveries(of orderIds: some Collection<Identifier>) throws -> CopyReader {
    // A list that long costs more than all deliveries.
    guard let contestedDeliveries, orderIds.count <= 100_000 else { return try read(.deliveries) }
    try connections.sales.store(orderIds, as: .contested)
    return try connections.sales.copyOut(contestedDeliveries())
  }

  func read(_ relation: AuditRelation) throws -> CopyReader {
    let query = try query(relation)
    switch relation {
    case .receipts, .orders, .deliveries: return try connections.sales.copyOut(query)
    case .checks, .lookups, .transactions: return try connections.own.copyOut(query)
    case .receiptLinks, .lookupLinks: return try connections.ownBeside.copyOut(query)
    }
  }
}

/// Opens the readers' connections. Each store is in a snapshot of its own: they may be two servers, and one of them a standby.
struct AuditStores {
  private let settings: Settings
  private let scope: BlockingScope
  private let ownSnapshot: String
  /// nil where a snapshot of the shop's store cannot be shared.
  private let salesSnapshot: String?
  /// How far a snapshot of the shop's store reaches.
  let reach: SnapshotReach
  /// Of the first reader.
  let rows: StoreRows

  init(_ settings: Settings, _ scope: BlockingScope) throws {
    let own = try Self.connect(settings, scope)
    try Migrator.requireCurrent(own)
    try own.begin(.snapshot)
    ownSnapshot = try Self.export(own)
    let beside = try Self.connect(settings, scope)
    do throws(PostgresError) { try beside.begin(.importedSnapshot(ownSnapshot)) } catch {
      // What was shared a moment ago is gone with its session; from PostgreSQL 16 on the server says it by the second.
      guard [SQLState.invalidParameterValue, SQLState.undefinedObject].contains(error.sqlState) else { throw error }
      throw PostgresError(.connectionLost, "the session that shared its snapshot has ended: \(error.message)")
    }
    let sales = try SalesStore.connect(settings, scope, applicationName: "night-audit")
    try Self.tune(sales)
    try sales.begin(.snapshot)
    var reach = try SnapshotReach(of: settings.salesSchema, on: sales)
    var shared: String?
    switch reach {
    case .oneConnection: break
    case .everyConnection, .oneStatement:
      do { shared = try Self.export(sales) } catch {
        if scope.isCancelled { throw error }
        sales.rollback()
        try sales.begin(.snapshot)
        if reach == .everyConnection { reach = .oneConnection }
      }
    }
    (self.reach, salesSnapshot) = (reach, shared)
    (self.settings, self.scope) = (settings, scope)
    rows = StoreRows(AuditConnections(sales: sales, own: own, ownBeside: beside))
  }

  /// By store, the names that its snapshot can be imported by; a store that shares none is left out.
  var snapshots: [String: String] {
    var snapshots = ["own": ownSnapshot]
    snapshots["sales"] = salesSnapshot
    return snapshots
  }

  /// So many readers beside the first, in its snapshots; fewer where a server has no more connections, and none where a
  /// snapshot cannot be shared.
  func further(_ count: Int) throws -> [StoreRows] {
    guard let salesSnapshot, count > 0 else { return [] }
    var further: [StoreRows] = []
    do throws(PostgresError) {
      for _ in 0..<count {
        let own = try Self.connect(settings, scope)
        try own.begin(.importedSnapshot(ownSnapshot))
        let beside = try Self.connect(settings, scope)
        try beside.begin(.importedSnapshot(ownSnapshot))
        let sales = try SalesStore.open(settings, scope, applicationName: "night-audit")
        try Self.tune(sales)
        try sales.begin(.importedSnapshot(salesSnapshot))
        further.append(StoreRows(AuditConnections(sales: sales, own: own, ownBeside: beside)))
      }
    } catch {
      if scope.isCancelled { throw error }
    }
    return further
  }

  private static func export(_ connection: borrowing BlockingConnection) throws(PostgresError) -> String {
    try connection.execute("SELECT pg_export_snapshot()").single().text(0)
  }

  static func connect(_ settings: Settings, _ scope: BlockingScope) throws(PostgresError) -> BlockingConnection {
    let connection = try scope.connect(settings.databaseURL, applicationName: "night-audit")
    try tune(connection)
    return connection
  }

  /// No expression is worth compiling, and other processors are the shop's.
  private static func tune(_ connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.executeScript("SET jit = off; SET max_parallel_workers_per_gather = 0")
  }
}
