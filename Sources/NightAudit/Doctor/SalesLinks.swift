import Postgres
import Reconciliation
import Run
import SalesStore

/// Compares orders with their deliveries. A mistake in a view breaks many rows at once.
struct SalesLinks {
  let settings: Settings
  let schema: String

  func examine(_ connection: borrowing BlockingConnection) throws -> [Diagnosis] {
    let products = try products(connection)
    var found = try oneUser(connection) + undelivered(products)
    for (position, link) in Link.allCases.enumerated() {
      let tally = products.reduce(into: Tally()) { $0.add($1.tallies[position]) }
      guard link.isNoticeable(tally) else { continue }
      if link == .units {
        // A delivery of fewer units may be one of several, so the units of each order are added up first.
        found += try units(connection)
      } else {
        found.append(diagnosis(link, tally, link.kind, "\(tally.odd) of \(tally.all) \(link.words)"))
      }
    }
    return found
  }

  private func diagnosis(_ link: Link, _ tally: Tally, _ kind: FindingKind?, _ words: String) -> Diagnosis {
    Diagnosis(
      subject: "\(settings.salesSchema).\(link.column)", held: kind != nil && tally.holdsNight(settings.holdShare),
      because: words, kind: kind, remedy: link.remedy, examples: tally.examples)
  }

  // MARK: - Orders of one user, orders without deliveries

  private func oneUser(_ connection: borrowing BlockingConnection) throws -> [Diagnosis] {
    let row = try connection.execute(
      """
      SELECT (SELECT count(*) FROM (SELECT FROM \(schema).orders LIMIT \(Tally.fewest)) AS few),
        EXISTS (SELECT FROM \(schema).orders o
          WHERE o.user_id::text IS DISTINCT FROM (SELECT f.user_id::text FROM \(schema).orders f LIMIT 1))
      """
    ).single()
    guard try row.int64(0) >= Tally.fewest, try !row.bool(1) else { return [] }
    return [
      Diagnosis(
        subject: "\(settings.salesSchema).orders.user_id",
        warning: """
          is the same in all orders; select the column of the buyer in the view: purchases and deliveries are matched by user
          """)
    ]
  }

  private func undelivered(_ products: [ProductRows]) -> [Diagnosis] {
    let all = products.reduce(into: Tally()) { $0.add($1.undelivered) }
    let subject = "\(settings.salesSchema).deliveries"
    let kind = FindingKind.paidNotDelivered
    if all.holdsNight(settings.holdShare) {
      return [
        Diagnosis(
          subject: subject, held: true, because: "\(all.odd) of \(all.all) verified orders have no delivery",
          kind: kind,
          remedy: "show all deliveries in the view, with the IDs of their orders", examples: all.examples)
      ]
    }
    return products.compactMap { rows in
      guard let product = rows.product, rows.undelivered.exceeds95Percent else { return nil }
      return Diagnosis(
        subject: "\(subject) of \(product)", held: false,
        because: "\(rows.undelivered.odd) of \(rows.undelivered.all) verified orders of this product have no delivery",
        kind: kind,
        remedy:
          "show what gives the user access to it as a delivery of the order; see Views, deliveries of subscriptions",
        examples: rows.undelivered.examples)
    }
  }

  // MARK: - Counts

  private struct ProductRows {
    /// nil for deliveries without an order.
    var product: String?
    var undelivered: Tally
    var tallies: [Tally]
  }

  private var since: String { "now() - make_interval(secs => \(settings.lookback.wholeSeconds))" }

  private func products(_ connection: borrowing BlockingConnection) throws -> [ProductRows] {
    var verified: [String?: Int] = [:]
    for row in try connection.execute(
      """
      SELECT product_id::text COLLATE "C", count(*) FROM \(schema).orders
      WHERE status::text COLLATE "C" = 'verified' AND created_at >= \(since) GROUP BY 1
      """)
    {
      verified[try row.optionalText(0)] = Int(try row.int64(1))
    }
    let undelivered = "o.status = 'verified' AND d.present IS NULL AND o.created_at < now() - interval '1 hour'"
    let skew = "interval '\(settings.clockSkew.wholeSeconds) seconds'"
    let columns =
      [Self.columns(odd: undelivered, all: "FALSE", example: "'order ' || o.id", id: "o.id")]
      + Link.allCases.map { link in
        Self.columns(odd: link.odd(skew: skew), all: link.all, example: link.example, id: link.id)
      }
    let (aliasColumns, aliases) = try aliases(connection)
    // One join serves all comparisons, because each query of its own would read both relations again.
    return try connection.execute(
      """
      SELECT o.product_id, \(columns.joined(separator: ", "))
      FROM (
        SELECT TRUE AS present, order_id::text COLLATE "C" AS id, user_id::text COLLATE "C" AS user_id,
          product_id::text COLLATE "C" AS product_id, quantity, status::text COLLATE "C" AS status, created_at, verified_at
        FROM \(schema).orders) o
      FULL JOIN (
        SELECT TRUE AS present, delivery_id::text COLLATE "C" AS id, order_id::text COLLATE "C" AS order_id,
          user_id::text COLLATE "C" AS user_id, product_id::text COLLATE "C" AS product_id, quantity, delivered_at,
          revoked_at
        FROM \(schema).deliveries) d ON d.order_id = o.id
      \(aliases)
      CROSS JOIN LATERAL (SELECT \(aliasColumns)) person
      WHERE o.created_at >= \(since) OR o.present IS NULL AND d.delivered_at >= \(since)
      GROUP BY 1 ORDER BY 1
      """
    ).map { row in
      let product = try row.optionalText(0)
      func tally(_ position: Int) throws -> Tally {
        let first = 1 + 3 * position
        return Tally(
          odd: Int(try row.int64(first)), all: Int(try row.int64(first + 1)),
          examples: try row.textArray(first + 2).compactMap(\.self))
      }
      var missing = try tally(0)
      missing.all = verified[product] ?? 0
      return ProductRows(
        product: product, undelivered: missing, tallies: try Link.allCases.indices.map { try tally($0 + 1) })
    }
  }

  /// Three columns: the count of differing rows, the count of compared rows, and up to three examples.
  private static func columns(odd: String, all: String, example: String, id: String) -> String {
    // Three minima in place of an array of all IDs, which would take memory for each row.
    let examples = (0..<3).map { "min(\(example)) FILTER (WHERE \(odd) AND ascii(right(\(id), 1)) % 3 = \($0))" }
    return """
      count(*) FILTER (WHERE \(odd)), count(*) FILTER (WHERE \(all)),
      array_remove(ARRAY[\(examples.joined(separator: ", "))], NULL)
      """
  }

  private func aliases(_ connection: borrowing BlockingConnection) throws -> (column: String, joins: String) {
    let isSame = "o.user_id = d.user_id"
    let name = "\(schema).user_aliases"
    guard try connection.execute("SELECT to_regclass($1) IS NOT NULL", [.text(name)]).single().bool(0) else {
      return ("\(isSame) AS is_same", "")
    }
    let pairs = """
      (SELECT user_id::text COLLATE "C" AS id, min(same_as::text COLLATE "C") AS same_as FROM \(name) GROUP BY 1)
      """
    return (
      """
      \(isSame) OR coalesce(a.same_as, o.user_id) = coalesce(b.same_as, d.user_id) OR a.same_as = d.user_id
        OR b.same_as = o.user_id AS is_same
      """, "LEFT JOIN \(pairs) a ON a.id = o.user_id LEFT JOIN \(pairs) b ON b.id = d.user_id"
    )
  }

  private func units(_ connection: borrowing BlockingConnection) throws -> [Diagnosis] {
    let columns = Self.columns(
      odd: "d.units <> o.quantity", all: "TRUE",
      example: "'order ' || d.id || ': ' || o.quantity || ' ordered, ' || d.units || ' delivered'", id: "d.id")
    let row = try connection.execute(
      """
      SELECT \(columns), coalesce(sum(o.quantity), 0)::bigint, coalesce(sum(d.units), 0)::bigint
      FROM \(schema).orders o JOIN (
        SELECT order_id::text COLLATE "C" AS id, sum(quantity)::bigint AS units FROM \(schema).deliveries
        WHERE revoked_at IS NULL GROUP BY 1) d ON d.id = o.order_id::text COLLATE "C"
      WHERE o.created_at >= \(since)
      """
    ).single()
    let tally = Tally(
      odd: Int(try row.int64(0)), all: Int(try row.int64(1)), examples: try row.textArray(2).compactMap(\.self))
    guard Link.units.isNoticeable(tally) else { return [] }
    let (ordered, delivered) = (try row.int64(3), try row.int64(4))
    let words = """
      \(tally.odd) of \(tally.all) delivered orders have another number of units in deliveries than in orders: \
      \(ordered) ordered, \(delivered) delivered
      """
    return [diagnosis(.units, tally, delivered > ordered ? .deliveredTwice : .partlyDelivered, words)]
  }
}

struct Tally {
  static let fewest = 20

  var odd = 0
  var all = 0
  var examples: [String] = []

  mutating func add(_ other: Tally) {
    odd += other.odd
    all += other.all
    examples = Array((examples + other.examples).prefix(3))
  }

  func isMore(thanPercent percent: Int) -> Bool { odd >= Self.fewest && odd * 100 > all * percent }

  var exceeds95Percent: Bool { isMore(thanPercent: 95) }

  /// True if a night would be held, with a critical or major finding on each differing row.
  func holdsNight(_ share: Share) -> Bool {
    share != .whole && odd >= Self.fewest && share.isExceeded(by: odd, of: all)
  }
}

extension Diagnosis {
  /// A problem if a night would be held, else a warning. `kind` is the finding on each differing row.
  init(
    subject: String, held: Bool, because: String, kind: FindingKind?, remedy: String, examples: [String]
  ) {
    let findings = kind.map {
      held ? "a night would be held, each would be \($0.rawValue)" : "each would be \($0.rawValue)"
    }
    let text =
      [because + (findings.map { " (\($0))" } ?? ""), remedy].joined(separator: "; ")
      + (examples.isEmpty ? "" : ". Examples: \(examples.joined(separator: "; "))")
    self.init(subject: subject, problem: held ? text : nil, warning: held ? nil : text)
  }
}

/// A comparison of an order `o` with a delivery `d`, as SQL over a full join.
private enum Link: CaseIterable {
  case order, user, product, units, deliveredEarly, deliveredLate, verifiedEarly, verifiedLate

  private static let pair = "o.present AND d.present"
  /// Tolerance of time differences. Wrong time zones differ by 30 minutes or more.
  private static let late = "interval '29 minutes'"

  func odd(skew: String) -> String {
    switch self {
    case .order: "d.present AND o.present IS NULL"
    case .user: "\(Self.pair) AND NOT person.is_same"
    case .product: "\(Self.pair) AND d.product_id <> o.product_id"
    case .units: "\(Self.pair) AND d.revoked_at IS NULL AND d.quantity <> o.quantity"
    case .deliveredEarly: "\(Self.pair) AND d.delivered_at < o.created_at - \(skew)"
    case .deliveredLate: "\(Self.pair) AND d.delivered_at > o.created_at + \(Self.late)"
    case .verifiedEarly: "o.present AND o.verified_at < o.created_at - \(skew)"
    case .verifiedLate: "o.present AND o.verified_at > o.created_at + \(Self.late)"
    }
  }

  var all: String {
    switch self {
    case .order: "d.present"
    case .user, .product, .deliveredEarly, .deliveredLate: Self.pair
    case .units: "\(Self.pair) AND d.revoked_at IS NULL"
    case .verifiedEarly, .verifiedLate: "o.present AND o.verified_at IS NOT NULL"
    }
  }

  func isNoticeable(_ tally: Tally) -> Bool {
    switch self {
    case .order, .user, .product, .units: tally.isMore(thanPercent: 5)
    case .deliveredEarly, .verifiedEarly: tally.isMore(thanPercent: 50)
    case .deliveredLate, .verifiedLate: tally.exceeds95Percent
    }
  }

  var column: String {
    switch self {
    case .order: "deliveries.order_id"
    case .user: "deliveries.user_id"
    case .product: "deliveries.product_id"
    case .units: "deliveries.quantity"
    case .deliveredEarly, .deliveredLate: "deliveries.delivered_at"
    case .verifiedEarly, .verifiedLate: "orders.verified_at"
    }
  }

  var kind: FindingKind? {
    switch self {
    case .order: .orphanDelivery
    case .user: .wrongUser
    case .units: .deliveredTwice
    case .product, .deliveredEarly, .deliveredLate, .verifiedEarly, .verifiedLate: nil
    }
  }

  var words: String {
    switch self {
    case .order: "deliveries have no order here"
    case .user: "deliveries have another user than their order"
    case .product: "deliveries have another product than their order"
    case .units: "deliveries have another quantity than their order"
    case .deliveredEarly: "deliveries are earlier than their order"
    case .deliveredLate: "deliveries are at least half an hour later than their order"
    case .verifiedEarly: "orders were verified before they were created"
    case .verifiedLate: "orders were verified at least half an hour after they were created"
    }
  }

  var remedy: String {
    switch self {
    case .order: "leave deliveries of other stores out of the view, or show their orders"
    case .user: "select the same kind of user id in both views, or name the pairs in user_aliases"
    case .product: "select Apple's product identifier in both views"
    case .units: "count the same units in both views: one order of a pack of 80 gems is quantity 1 in both"
    case .deliveredEarly, .deliveredLate, .verifiedEarly, .verifiedLate:
      "if one of the two columns is read in a wrong time zone, write its own zone into the view: AT TIME ZONE '<zone>'"
    }
  }

  var example: String {
    switch self {
    case .order: "'delivery ' || d.id || coalesce(' of order ' || d.order_id, ' without order_id')"
    case .user: "'order ' || o.id || ': user ' || o.user_id || ', delivered to ' || d.user_id"
    case .product: "'order ' || o.id || ': ' || o.product_id || ', delivered ' || d.product_id"
    case .units: "'order ' || o.id"
    case .deliveredEarly, .deliveredLate:
      "'order ' || o.id || ' created ' || o.created_at || ', delivered ' || d.delivered_at"
    case .verifiedEarly, .verifiedLate:
      "'order ' || o.id || ' created ' || o.created_at || ', verified ' || o.verified_at"
    }
  }

  var id: String { self == .order ? "d.id" : "o.id" }
}
