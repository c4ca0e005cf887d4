import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Settings
import Streams

/// A connection to each store. Used by one thread at a time; not `Sendable`.
class StoreConnections {
  final let sales: BlockingConnection
  final let own: BlockingConnection

  init(sales: consuming BlockingConnection, own: consuming BlockingConnection) {
    self.sales = sales
    self.own = own
  }
}

/// Rows read from the two stores.
final class StoreRows: StoreConnections, AuditRows {
  /// A second connection to our schema, in the snapshot of `own`.
  private let secondaryOwnConnection: BlockingConnection
  var query: (AuditRelation) throws -> String = { _ in "" }
  /// The query for the deliveries of ``StoredIds/contested``; nil: all deliveries of the part are read.
  var contestedDeliveries: (() throws -> String)?

  init(
    sales: consuming BlockingConnection, own: consuming BlockingConnection,
    secondaryOwnConnection: consuming BlockingConnection
  ) {
    self.secondaryOwnConnection = secondaryOwnConnection
    super.init(sales: sales, own: own)
  }

  /// Stores the IDs of a narrowed report where queries of our schema can read them.
  func narrow(to reading: NarrowedReading) throws(PostgresError) {
    try reading.store(on: own)
    try reading.store(on: secondaryOwnConnection)
  }

  func readDeliveries(of orderIds: some Collection<Identifier>) throws -> CopyReader {
    // Beyond this length, looking IDs up costs more than reading all deliveries.
    guard let contestedDeliveries, orderIds.count <= 100_000 else { return try read(.deliveries) }
    try sales.store(orderIds, as: .contested)
    return try sales.copyOut(contestedDeliveries())
  }

  func read(_ relation: AuditRelation) throws -> CopyReader {
    let query = try query(relation)
    switch relation {
    case .receipts, .orders, .deliveries: return try sales.copyOut(query)
    case .checks, .lookups, .transactions: return try own.copyOut(query)
    case .receiptLinks, .lookupLinks: return try secondaryOwnConnection.copyOut(query)
    }
  }
}

/// Opens the readers' connections. Each store has its own snapshot: they may be two servers, one of them a standby.
struct AuditStores {
  private let settings: Settings
  private let scope: BlockingScope
  private let ownSnapshot: String
  /// nil if a snapshot of the shop's store cannot be shared.
  private let salesSnapshot: String?
  let rows: StoreRows

  init(_ settings: Settings, _ scope: BlockingScope) throws {
    let own = try Self.connect(settings, scope)
    try Migrator.requireCurrent(own)
    try own.begin(.snapshot)
    ownSnapshot = try Self.export(own)
    let beside = try Self.connect(settings, scope)
    do throws(PostgresError) { try beside.begin(.importedSnapshot(ownSnapshot)) } catch {
      // The exporting session has ended. PostgreSQL 16 and later report this with the second SQLSTATE.
      guard [SQLState.invalidParameterValue, SQLState.undefinedObject].contains(error.sqlState) else { throw error }
      throw PostgresError(.connectionLost, "the session that shared its snapshot has ended: \(error.message)")
    }
    let sales = try SalesStore.connect(settings, scope, applicationName: "night-audit")
    try Self.tune(sales)
    try sales.begin(.snapshot)
    var shared: String?
    switch try SnapshotScope(of: settings.salesSchema, on: sales) {
    case .oneConnection: break
    case .everyConnection, .noConnection:
      do { shared = try Self.export(sales) } catch {
        if scope.isCancelled { throw error }
        sales.rollback()
        try sales.begin(.snapshot)
      }
    }
    salesSnapshot = shared
    (self.settings, self.scope) = (settings, scope)
    rows = StoreRows(sales: sales, own: own, secondaryOwnConnection: beside)
  }

  /// By store, the ID of its exported snapshot; stores that export none are left out.
  var snapshots: [String: String] {
    var snapshots = ["own": ownSnapshot]
    snapshots["sales"] = salesSnapshot
    return snapshots
  }

  /// Two of our schema, because a stream of links is merged with a stream of checks or look-ups, and one of the shop's.
  static let connectionsOfReader = 3
  /// Connections that a night opens besides those of its readers.
  private static let otherConnections = 3

  /// How many readers the server of our schema has connections for, including the open one.
  func affordableReaders() throws(PostgresError) -> Int {
    let free = try rows.own.execute(
      """
      SELECT least(
        current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
          - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
        (SELECT d.datconnlimit - (SELECT count(*) FROM pg_stat_activity a WHERE a.datname = d.datname)
          FROM pg_database d WHERE d.datname = current_database() AND d.datconnlimit >= 0),
        (SELECT r.rolconnlimit - (SELECT count(*) FROM pg_stat_activity a WHERE a.usename = r.rolname)
          FROM pg_roles r WHERE r.rolname = current_user AND r.rolconnlimit >= 0))
      """
    ).single().int64(0)
    return 1 + max(0, Int(free) - Self.otherConnections) / Self.connectionsOfReader
  }

  /// Opens further readers in the same snapshots. Fewer if connections run out, none without a shared snapshot.
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
        further.append(StoreRows(sales: sales, own: own, secondaryOwnConnection: beside))
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

  /// JIT compilation does not pay here, and parallel workers would take processors from the shop.
  private static func tune(_ connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.executeScript("SET jit = off; SET max_parallel_workers_per_gather = 0")
  }
}
