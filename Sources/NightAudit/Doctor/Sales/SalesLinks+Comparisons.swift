import Reconciliation
import SalesStore
import Settings

/// A comparison of rows, as SQL over a join.
struct RowComparison {
  var column: String
  /// Conditions of the differing rows, and of the compared rows.
  var odd: String
  var all: String
  var example: String
  var words: String
  /// The finding on each differing row.
  var kind: FindingKind?
  var remedy: String
  /// The share of differing rows that is reported.
  var percent = 5
  /// True if a night is wrong when many rows differ, although it has no finding on them.
  var misleads = false
  var counting = Counting.rows

  /// The counts that a night's share is of.
  enum Counting {
    /// Differing rows of all rows, differing rows of all orders, orders with a differing row.
    case rows, amongOrders, orders
    /// The rows are only a sign that orders must be compared with all their deliveries.
    case units, lastingOrders
  }

  func isNoticeable(_ tally: Tally) -> Bool { tally.isMore(thanPercent: percent) }

  /// Two columns: the counts of differing and of compared rows.
  var columns: String { "count(*) FILTER (WHERE \(odd)), count(*) FILTER (WHERE \(all))" }
}

extension SalesLinks {
  static let revocation = "set revoked_at only where goods were taken back, and not where they were spent"

  var skew: String { "interval '\(settings.clockSkew.wholeSeconds) seconds'" }

  static let zone =
    "if one of the two columns is read in a wrong time zone, write its own zone into the view: AT TIME ZONE '<zone>'"

  /// The part of an example that names users, as SQL; empty with `report.pseudonymise`, because nights print and mail
  /// examples.
  func users(_ text: String) -> String { settings.pseudonyms == nil ? " || \(text)" : "" }

  /// Comparisons of an order `o` with a delivery `d`; the first counts verified orders, and orders, without a delivery.
  var deliveryLinks: [RowComparison] {
    let pair = "o.present AND d.present"
    let grace = "make_interval(secs => \(settings.deliveryGrace.wholeSeconds))"
    return [
      RowComparison(
        column: "deliveries", odd: "o.status = 'verified' AND d.present IS NULL AND o.created_at < now() - \(grace)",
        all: "o.present AND d.present IS NULL", example: "'order ' || o.id", words: "", kind: .paidNotDelivered,
        remedy: ""),
      RowComparison(
        column: "deliveries.order_id", odd: "d.present AND o.present IS NULL", all: "d.present",
        example: "'delivery ' || d.id || coalesce(' of order ' || d.order_id, ' without order_id')",
        words: "deliveries have no order here", kind: .orphanDelivery,
        remedy: "leave deliveries of other stores out of the view, or show their orders"),
      RowComparison(
        column: "deliveries.user_id", odd: "\(pair) AND d.revoked_at IS NULL AND NOT person.is_same",
        all: "\(pair) AND d.revoked_at IS NULL",
        example: "'order ' || o.id\(users("': user ' || o.user_id || ', delivered to ' || d.user_id"))",
        words: "deliveries have another user than their order", kind: .wrongUser,
        remedy: "select the same kind of user id in both views, or name the pairs in user_aliases", counting: .orders),
      // Access to a subscription ends with it, and is then no delivery that was taken back.
      RowComparison(
        column: "deliveries.revoked_at",
        odd: "\(pair) AND o.status = 'verified' AND d.revoked_at < d.delivered_at + interval '1 day'",
        all: "\(pair) AND o.status = 'verified'",
        example: "'order ' || o.id || ' delivered ' || d.delivered_at || ', taken back ' || d.revoked_at",
        words: "deliveries of verified orders were taken back within a day", kind: .paidNotDelivered,
        remedy: Self.revocation, counting: .amongOrders),
      RowComparison(
        column: "deliveries.revoked_at",
        odd: "\(pair) AND o.status = 'verified' AND d.revoked_at >= d.delivered_at + interval '1 day'",
        all: "\(pair) AND o.status = 'verified'", example: "", words: "", kind: .paidNotDelivered, remedy: "",
        counting: .lastingOrders),
      RowComparison(
        column: "deliveries.product_id", odd: "\(pair) AND d.product_id <> o.product_id", all: pair,
        example: "'order ' || o.id || ': ' || o.product_id || ', delivered ' || d.product_id",
        words: "deliveries have another product than their order",
        remedy: "select Apple's product identifier in both views", misleads: true),
      RowComparison(
        column: "deliveries.quantity", odd: "\(pair) AND d.revoked_at IS NULL AND d.quantity <> o.quantity",
        all: pair, example: "", words: "", kind: .deliveredTwice, remedy: "", counting: .units),
    ]
      + times(
        "deliveries.delivered_at", "d.delivered_at", from: "o.created_at", of: "o.id",
        early: "deliveries are earlier than their order",
        late: "deliveries are at least half an hour later than their order")
      + times(
        "orders.verified_at", "o.verified_at", from: "o.created_at", of: "o.id",
        early: "orders were verified before they were created",
        late: "orders were verified at least half an hour after they were created")
      + times(
        "orders.updated_at", "o.updated_at", from: "o.created_at", of: "o.id",
        early: "orders were changed before they were created")
      + times(
        "deliveries.revoked_at", "d.revoked_at", from: "d.delivered_at", of: "d.id",
        early: "deliveries were taken back before they were made")
  }

  /// Comparisons of an order `o` with its receipts `r`.
  var receiptLinks: [RowComparison] {
    let grace = "make_interval(secs => \(settings.evidenceGrace.wholeSeconds))"
    let isPurchase = "o.present AND (r.present OR \(SalesRows.statedTransaction) IS NOT NULL)"
    // Where Apple states prices, 0 may be one.
    let free = RowComparison(
      column: "orders.amount", odd: "\(isPurchase) AND o.amount = 0", all: isPurchase, example: "'order ' || o.id",
      words: "orders with a transaction ID or a receipt have the amount 0",
      remedy: "select the total that the customer paid in the view", percent: 95, misleads: true)
    var links = [
      RowComparison(
        column: "receipts.order_id",
        odd: """
          o.present AND r.present IS NULL AND \(SalesRows.statedTransaction) IS NULL AND o.token IS NULL AND o.amount > 0
            AND o.status = 'verified' AND o.created_at < now() - \(grace)
          """, all: "o.status = 'verified'", example: "'order ' || o.id",
        words: "verified orders have no receipt, no transaction ID and no account token", kind: .deliveredNotPaid,
        remedy: "show all receipts in the view, with the IDs of their orders"),
      RowComparison(
        column: "receipts.order_id", odd: "r.present AND o.present IS NULL", all: "r.present",
        example: "'order ' || r.order_id", words: "orders of receipts are not in orders",
        remedy: "select the same kind of order id in both views"),
      RowComparison(
        column: "receipts.user_id", odd: "o.present AND r.user_id IS NOT NULL AND NOT person.is_same",
        all: "o.present AND r.user_id IS NOT NULL",
        example: "'order ' || o.id\(users("': user ' || o.user_id || ', receipt of ' || r.user_id"))",
        words: "orders have receipts of another user",
        remedy: "select the same kind of user id in both views, or name the pairs in user_aliases", percent: 50),
      RowComparison(
        column: "receipts.checked_at", odd: "r.is_checked_early", all: "r.is_checked_early IS NOT NULL",
        example: "'a receipt of order ' || r.order_id",
        words: "orders have receipts that were checked before they were received", remedy: Self.zone, percent: 50),
    ]
    links += times(
      "receipts.received_at", "r.received_at", from: "o.created_at", of: "o.id",
      early: "orders have a receipt that is earlier than the order", late: "orders have no receipt within half an hour")
    if !hasPrices { links.append(free) }
    return links
  }

  /// Wrong time zones differ by 30 minutes or more, in one direction.
  private func times(
    _ column: String, _ time: String, from start: String, of id: String, early: String, late: String? = nil
  ) -> [RowComparison] {
    let example = """
      '\(id == "d.id" ? "delivery" : "order") ' || \(id) || ' \(start.dropFirst(2)) ' || \(start) || ', \
      \(time.dropFirst(2)) ' || \(time)
      """
    func link(_ odd: String, _ words: String, _ percent: Int) -> RowComparison {
      RowComparison(
        column: column, odd: odd, all: "\(time) IS NOT NULL AND \(start) IS NOT NULL", example: example,
        words: words, remedy: Self.zone, percent: percent)
    }
    return [link("\(time) < \(start) - \(skew)", early, 50)]
      + (late.map { [link("\(time) > \(start) + interval '29 minutes'", $0, 95)] } ?? [])
  }
}
