import Postgres
import Reconciliation
import Run
import SalesStore
import Settings

/// Compares orders with their deliveries and receipts. A mistake in a view breaks many rows at once.
struct SalesLinks {
  let settings: Settings
  let schema: String
  /// Consumables and products that are bought once.
  let lastingProducts: Set<String>
  /// True if amounts are compared with Apple's prices.
  let hasPrices: Bool
  /// One in this many orders is compared, because joins of all rows of a large shop take longer than everything else.
  let step: Int

  /// More orders are sampled evenly.
  private static let comparedOrders = 100_000

  init(settings: Settings, schema: String, lastingProducts: Set<String>, hasPrices: Bool, orders: Int) {
    (self.settings, self.schema) = (settings, schema)
    (self.lastingProducts, self.hasPrices) = (lastingProducts, hasPrices)
    step = max(1, (orders + Self.comparedOrders - 1) / Self.comparedOrders)
  }

  /// The condition that a row belongs to a compared order.
  private func isCompared(_ orderId: String) -> String {
    step == 1 ? "TRUE" : #"hashtext(\#(orderId)::text COLLATE "C") % \#(step) = 0"#
  }

  private var sampled: String { step == 1 ? "" : "in a sample of one in \(step) orders, " }

  func examine(_ connection: borrowing BlockingConnection) throws -> [Diagnosis] {
    let counts = try orderCounts(connection)
    let orders = counts.values.reduce(0) { $0 + $1.all }
    let rows = try deliveryRows(connection)
    let deliveries = try deliveries(rows, connection)
    var found = try oneUser(connection) + oneToken(connection)
    found += try undelivered(deliveries, counts, orders, rows, connection)
    for (position, link) in deliveryLinks.enumerated() where position > 0 {
      let products = link.counting == .lastingOrders ? deliveries.filter { isLasting($0.product) } : deliveries
      var tally = products.reduce(into: Tally()) { $0.add($1.tallies[position]) }
      // Orders with several deliveries may have too many units, although each delivery agrees with its order.
      if link.counting == .units { tally.odd += tally.all - orders + deliveries.reduce(0) { $0 + $1.tallies[0].all } }
      guard link.isNoticeable(tally) else { continue }
      // The rows as a night counts them.
      let counted: Tally
      switch link.counting {
      // A delivery of fewer units may be one of several, so the units of each order are added up first.
      case .units:
        found += try units(connection, orders)
        continue
      // Goods may be delivered again after they were taken back, so all deliveries of each order are read first.
      case .lastingOrders:
        found += try takenBack(connection, orders)
        continue
      case .orders:
        // A night counts orders, and an order may have several deliveries.
        counted = Tally(odd: try orderCount(among: rows, where: link.odd, connection), all: orders)
      case .amongOrders: counted = Tally(odd: tally.odd, all: orders)
      case .rows: counted = tally
      }
      tally.examples = try examples(link, among: rows, connection)
      found.append(diagnosis(link, tally, isHeld: counted.holdsNight(settings.holdShare)))
    }
    let receipts = try receiptRows(connection)
    let tallies = try tallies(receiptLinks, among: receipts, connection)
    return try found + diagnoses(receiptLinks, tallies, among: receipts, orders, connection)
  }

  /// The diagnoses of noticeable comparisons. A night would hold if the differing rows exceed its share of all orders.
  private func diagnoses(
    _ links: [RowComparison], _ tallies: [Tally], among rows: String, _ orders: Int,
    _ connection: borrowing BlockingConnection,
    _ parameters: [PostgresValue] = []
  ) throws -> [Diagnosis] {
    var found: [Diagnosis] = []
    for (link, counted) in zip(links, tallies) where link.isNoticeable(counted) {
      var tally = counted
      tally.examples = try examples(link, among: rows, connection, parameters)
      let isHeld = Tally(odd: tally.odd, all: orders).holdsNight(settings.holdShare)
      found.append(diagnosis(link, tally, isHeld: isHeld))
    }
    return found
  }

  private func diagnosis(_ link: RowComparison, _ tally: Tally, isHeld: Bool) -> Diagnosis {
    Diagnosis(
      subject: "\(settings.salesSchema).\(link.column)", held: (link.kind != nil || link.misleads) && isHeld,
      because: "\(sampled)\(tally.odd) of \(tally.all) \(link.words)", kind: link.kind, remedy: link.remedy,
      examples: tally.examples)
  }

  /// Three differing rows. They are read for a noticeable comparison alone, because their texts cost more than all counts.
  private func examples(
    _ link: RowComparison, among rows: String, _ connection: borrowing BlockingConnection,
    _ parameters: [PostgresValue] = [], where condition: String = "TRUE"
  ) throws -> [String] {
    try texts("SELECT \(link.example) FROM \(rows) AND \(condition) AND \(link.odd) LIMIT 3", connection, parameters)
  }

  private func texts(
    _ query: String, _ connection: borrowing BlockingConnection, _ parameters: [PostgresValue] = []
  ) throws -> [String] {
    try connection.execute(query, parameters).compactMap { row in try row.shownText(0) }
  }

  // MARK: - Orders of one user, orders without deliveries

  private func oneUser(_ connection: borrowing BlockingConnection) throws -> [Diagnosis] {
    let recent = "\(schema).orders o WHERE o.created_at >= \(since)"
    let row = try connection.execute(
      """
      SELECT (SELECT count(*) FROM (SELECT FROM \(recent) LIMIT \(Tally.fewest)) AS few),
        EXISTS (SELECT FROM \(recent)
          AND o.user_id::text IS DISTINCT FROM (SELECT o.user_id::text FROM \(recent) LIMIT 1))
      """
    ).single()
    guard try row.int64(0) >= Tally.fewest, try !row.bool(1) else { return [] }
    return [
      Diagnosis(
        subject: "\(settings.salesSchema).orders.user_id", held: true, because: "is the same in all orders",
        remedy: "select the column of the buyer in the view: purchases and deliveries are matched by user",
        examples: try texts(
          "SELECT 'order ' || o.order_id::text\(users("': user ' || o.user_id::text")) FROM \(recent) LIMIT 3",
          connection))
    ]
  }

  /// An account token belongs to one user. As a constant it would link each purchase to the orders of all users.
  private func oneToken(_ connection: borrowing BlockingConnection) throws -> [Diagnosis] {
    let tokens = """
      (SELECT order_id::text AS order_id, user_id::text COLLATE "C" AS user_id,
          app_account_token::text COLLATE "C" AS token
        FROM \(schema).orders WHERE app_account_token::text COLLATE "C" <> '' AND created_at >= \(since))
      """
    // Without any token there is no row, and one scan.
    let rows = try connection.execute(
      """
      WITH first AS MATERIALIZED (SELECT * FROM \(tokens) f LIMIT 1)
      SELECT (SELECT count(*) FROM (SELECT FROM \(tokens) o LIMIT \(Tally.fewest)) AS few),
        EXISTS (SELECT FROM \(tokens) o WHERE o.token <> first.token),
        EXISTS (SELECT FROM \(tokens) o WHERE o.user_id <> first.user_id)
      FROM first
      """)
    guard let row = rows.first, try row.int64(0) >= Tally.fewest, try !row.bool(1), try row.bool(2) else { return [] }
    return [
      Diagnosis(
        subject: "\(settings.salesSchema).orders.app_account_token", held: true,
        because: "is the same in the orders of different users",
        remedy: "select the UUID that the app gives to StoreKit for this user, or NULL",
        examples: try texts(
          "SELECT 'order ' || order_id\(users("' of user ' || user_id")) || ': ' || token FROM \(tokens) o LIMIT 3",
          connection))
    ]
  }

  private func undelivered(
    _ products: [ProductRows], _ counts: [String: OrderCounts], _ orders: Int, _ rows: String,
    _ connection: borrowing BlockingConnection
  ) throws -> [Diagnosis] {
    let link = deliveryLinks[0]
    let all = products.reduce(into: Tally()) { $0.add($1.tallies[0]) }
    let subject = "\(settings.salesSchema).deliveries"
    let kind = FindingKind.paidNotDelivered
    if Tally(odd: all.odd, all: orders).holdsNight(settings.holdShare) {
      return [
        Diagnosis(
          subject: subject, held: true,
          because: "\(sampled)\(all.odd) of \(orders) orders are verified and have no delivery",
          kind: kind, remedy: "show all deliveries in the view, with the IDs of their orders",
          examples: try examples(link, among: rows, connection))
      ]
    }
    var found: [Diagnosis] = []
    for sold in products {
      guard let product = sold.product, let verified = counts[product]?.verified else { continue }
      let tally = Tally(odd: sold.tallies[0].odd, all: verified)
      guard tally.isMore(thanPercent: 95) else { continue }
      let ofProduct = try examples(link, among: rows, connection, [.text(product)], where: "o.product_id = $1")
      found.append(
        Diagnosis(
          subject: "\(subject) of \(product)", held: false,
          because: "\(sampled)\(tally.odd) of \(tally.all) verified orders of this product have no delivery",
          kind: kind,
          remedy:
            "show what gives the user access to it as a delivery of the order; see Views, deliveries of subscriptions",
          examples: ofProduct))
    }
    return found
  }

  // MARK: - Counts

  private struct OrderCounts {
    var all: Int
    var verified: Int
  }

  private struct ProductRows {
    /// nil for deliveries without an order.
    var product: String?
    /// One for each of the delivery links.
    var tallies: [Tally]
  }

  private var since: String { settings.lookbackStart }

  private func orderCounts(_ connection: borrowing BlockingConnection) throws -> [String: OrderCounts] {
    try connection.execute(
      """
      SELECT coalesce(product_id::text COLLATE "C", ''), count(*),
        count(*) FILTER (WHERE status::text COLLATE "C" = 'verified')
      FROM \(schema).orders WHERE created_at >= \(since) AND \(isCompared("order_id")) GROUP BY 1
      """
    ).reduce(into: [:]) { counts, row in
      counts[try row.shownText(0) ?? ""] = OrderCounts(all: Int(try row.int64(1)), verified: Int(try row.int64(2)))
    }
  }

  /// Orders `o` with their deliveries `d`, and the name `person.is_same` for deliveries to the buyer.
  private func deliveryRows(_ connection: borrowing BlockingConnection) throws -> String {
    let (isSame, aliases) = try aliases(of: "d", connection)
    return """
      (
        SELECT TRUE AS present, order_id::text COLLATE "C" AS id, user_id::text COLLATE "C" AS user_id,
          product_id::text COLLATE "C" AS product_id, quantity, status::text COLLATE "C" AS status, created_at, verified_at,
          updated_at
        FROM \(schema).orders WHERE \(isCompared("order_id"))) o
      FULL JOIN (
        SELECT TRUE AS present, delivery_id::text COLLATE "C" AS id, order_id::text COLLATE "C" AS order_id,
          user_id::text COLLATE "C" AS user_id, product_id::text COLLATE "C" AS product_id, quantity, delivered_at,
          revoked_at
        FROM \(schema).deliveries
        WHERE \(isCompared(#"coalesce(nullif(order_id::text COLLATE "C", ''), delivery_id::text)"#))) d ON d.order_id = o.id
      \(aliases)
      CROSS JOIN LATERAL (SELECT \(isSame)) person
      WHERE (o.created_at >= \(since) OR o.present IS NULL AND d.delivered_at >= \(since))
      """
  }

  private func deliveries(_ rows: String, _ connection: borrowing BlockingConnection) throws -> [ProductRows] {
    let links = deliveryLinks
    // One join serves all comparisons, because each query of its own would read both relations again.
    return try connection.execute(
      """
      SELECT o.product_id, \(links.map(\.columns).joined(separator: ", "))
      FROM \(rows) GROUP BY 1 ORDER BY 1
      """
    ).map { row in
      let tallies = try links.indices.map { try Tally(row, at: 1 + 2 * $0) }
      return ProductRows(product: try row.shownText(0), tallies: tallies)
    }
  }

  private func orderCount(
    among rows: String, where odd: String, _ connection: borrowing BlockingConnection
  ) throws -> Int {
    Int(try connection.execute("SELECT count(DISTINCT o.id) FROM \(rows) AND \(odd)").single().int64(0))
  }

  /// Orders `o` with the first of their receipts `r`, and the name `person.is_same` for receipts of the buyer.
  private func receiptRows(_ connection: borrowing BlockingConnection) throws -> String {
    let (isSame, aliases) = try aliases(of: "r", connection)
    return """
      (
        SELECT TRUE AS present, o.order_id::text COLLATE "C" AS id, o.user_id::text COLLATE "C" AS user_id, o.amount,
          o.status::text COLLATE "C" AS status, o.transaction_id,
          nullif(o.app_account_token::text COLLATE "C", '') AS token, o.created_at
        FROM \(schema).orders o WHERE \(isCompared("o.order_id"))) o
      FULL JOIN (
        SELECT TRUE AS present, order_id::text COLLATE "C" AS order_id,
          min(nullif(user_id::text COLLATE "C", '')) AS user_id, min(received_at) AS received_at,
          bool_and(checked_at < received_at - \(skew)) AS is_checked_early
        FROM \(schema).receipts
        WHERE nullif(order_id::text COLLATE "C", '') IS NOT NULL AND \(isCompared("order_id")) GROUP BY 2
      ) r ON r.order_id = o.id
      \(aliases)
      CROSS JOIN LATERAL (SELECT \(isSame)) person
      WHERE (o.created_at >= \(since) OR o.present IS NULL AND r.received_at >= \(since))
      """
  }

  private func tallies(
    _ links: [RowComparison], among rows: String, _ connection: borrowing BlockingConnection,
    _ parameters: [PostgresValue] = []
  ) throws -> [Tally] {
    let row = try connection.execute(
      "SELECT \(links.map(\.columns).joined(separator: ", ")) FROM \(rows)", parameters
    ).single()
    return try links.indices.map { try Tally(row, at: 2 * $0) }
  }

  private func aliases(
    of other: String, _ connection: borrowing BlockingConnection
  ) throws -> (column: String, joins: String) {
    let isSame = "o.user_id = \(other).user_id"
    let name = "\(schema).user_aliases"
    guard try connection.execute("SELECT to_regclass($1) IS NOT NULL", [.text(name)]).single().bool(0) else {
      return ("\(isSame) AS is_same", "")
    }
    let pairs = """
      (SELECT user_id::text COLLATE "C" AS id, min(same_as::text COLLATE "C") AS same_as FROM \(name) GROUP BY 1)
      """
    return (
      """
      \(isSame) OR coalesce(a.same_as, o.user_id) = coalesce(b.same_as, \(other).user_id)
        OR a.same_as = \(other).user_id OR b.same_as = o.user_id AS is_same
      """, "LEFT JOIN \(pairs) a ON a.id = o.user_id LEFT JOIN \(pairs) b ON b.id = \(other).user_id"
    )
  }

  /// Compares the units of each order with the sum of its deliveries: more units, then fewer.
  private func units(_ connection: borrowing BlockingConnection, _ orders: Int) throws -> [Diagnosis] {
    let kinds = [(">", FindingKind.deliveredTwice, "more"), ("<", .partlyDelivered, "fewer")]
    let links = kinds.map { comparison, kind, word in
      RowComparison(
        column: "deliveries.quantity", odd: "d.units \(comparison) o.quantity", all: "TRUE",
        example: "'order ' || d.id || ': ' || o.quantity || ' ordered, ' || d.units || ' delivered'",
        words: "delivered orders have \(word) units in deliveries than in orders", kind: kind,
        remedy: "count the same units in both views: one order of a pack of 80 gems is quantity 1 in both")
    }
    let rows = """
      \(schema).orders o JOIN (
        SELECT order_id::text COLLATE "C" AS id, sum(quantity)::bigint AS units FROM \(schema).deliveries
        WHERE revoked_at IS NULL AND \(isCompared("order_id")) GROUP BY 1) d ON d.id = o.order_id::text COLLATE "C"
      WHERE o.created_at >= \(since)
      """
    return try diagnoses(links, try tallies(links, among: rows, connection), among: rows, orders, connection)
  }

  private func isLasting(_ product: String?) -> Bool { product.map(lastingProducts.contains) ?? false }

  /// Counts the verified orders of lasting products without a delivery that was not taken back.
  private func takenBack(_ connection: borrowing BlockingConnection, _ orders: Int) throws -> [Diagnosis] {
    let link = RowComparison(
      column: "deliveries.revoked_at", odd: "d.is_taken_back", all: "TRUE",
      example: "'order ' || d.id || ' delivered ' || d.delivered_at || ', taken back ' || d.revoked_at",
      words: "verified orders, of products that are no subscriptions, have only deliveries that were taken back",
      kind: .paidNotDelivered, remedy: Self.revocation)
    let rows = """
      \(schema).orders o JOIN (
        SELECT order_id::text COLLATE "C" AS id, min(delivered_at) AS delivered_at, min(revoked_at) AS revoked_at,
          bool_and(coalesce(revoked_at >= delivered_at + interval '1 day', FALSE)) AS is_taken_back
        FROM \(schema).deliveries WHERE \(isCompared("order_id")) GROUP BY 1) d ON d.id = o.order_id::text COLLATE "C"
      WHERE o.created_at >= \(since) AND o.status::text COLLATE "C" = 'verified'
        AND o.product_id::text COLLATE "C" = ANY ($1)
      """
    let products = [PostgresValue.textArray(lastingProducts.sorted())]
    let tallies = try tallies([link], among: rows, connection, products)
    return try diagnoses([link], tallies, among: rows, orders, connection, products)
  }
}

extension Settings {
  /// The first instant of the lookback, as SQL.
  var lookbackStart: String { "now() - make_interval(secs => \(lookback.wholeSeconds))" }
}

struct Tally {
  static let fewest = 20

  var odd = 0
  var all = 0
  var examples: [String] = []

  mutating func add(_ other: Tally) {
    odd += other.odd
    all += other.all
  }

  mutating func count(_ isOdd: Bool, _ example: @autoclosure () -> String) {
    all += 1
    guard isOdd else { return }
    odd += 1
    if examples.count < 3 { examples.append(example()) }
  }

  func isMore(thanPercent percent: Int) -> Bool { odd >= Self.fewest && odd * 100 > all * percent }

  /// True if a night would be held, with a critical or major finding on each differing row.
  func holdsNight(_ share: Share) -> Bool {
    share != .whole && odd >= Self.fewest && share.isExceeded(by: odd, of: all)
  }
}

extension Tally {
  fileprivate init(_ row: PostgresRow, at column: Int) throws {
    self.init(odd: Int(try row.int64(column)), all: Int(try row.int64(column + 1)))
  }
}
