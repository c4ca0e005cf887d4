import Reconciliation
import Streams

/// The contract of the sales schema: relations, columns and their types. Every check of a column reads this table.
package enum SalesContract {
  /// The type of a column, with the server types that it accepts.
  package enum Kind: String, Sendable, CaseIterable {
    case text, integer, numeric, timestamptz

    /// Names in `pg_catalog`. Domains over them and, for text, enums are accepted too.
    private var typeNames: Set<String> {
      switch self {
      case .text: ["text", "varchar", "bpchar", "uuid"]
      case .integer: ["int2", "int4", "int8"]
      case .numeric: ["numeric", "int2", "int4", "int8"]
      case .timestamptz: ["timestamptz"]
      }
    }

    /// - Parameter typeName: the name of a base type in `pg_catalog`; nil for a type of another schema.
    func accepts(typeName: String?, isEnum: Bool) -> Bool {
      if isEnum { return self == .text }
      return typeName.map(typeNames.contains) ?? false
    }

    /// The expression for a column of the base type `typeName`; nil if Postgres has no cast, or none that is right.
    func cast(_ column: String, from typeName: String?) -> String? {
      switch (self, typeName) {
      case (.text, _): "\(column)::text"
      // No currency has more than four digits, and trailing zeros do not count as digits.
      case (.numeric, "float4"), (.numeric, "float8"): "round(\(column)::numeric, 4)"
      case (.numeric, "text"), (.numeric, "varchar"), (.numeric, "bpchar"): "nullif(\(column), '')::numeric"
      case (.numeric, "money"): "\(column)::numeric"
      case (.integer, "numeric"), (.integer, "float4"), (.integer, "float8"), (.integer, "text"), (.integer, "varchar"),
        (.integer, "bpchar"):
        "\(column)::integer"
      // These types have no time zone, and the server would use its own.
      case (.timestamptz, "date"), (.timestamptz, "text"), (.timestamptz, "varchar"), (.timestamptz, "bpchar"):
        "\(column)::timestamp AT TIME ZONE '<zone>'"
      case (.timestamptz, "timestamp"): "\(column) AT TIME ZONE '<zone>'"
      case (.timestamptz, "int2"), (.timestamptz, "int4"), (.timestamptz, "int8"), (.timestamptz, "numeric"),
        (.timestamptz, "float4"), (.timestamptz, "float8"):
        "to_timestamp(\(column))"
      case (.integer, _), (.numeric, _), (.timestamptz, _): nil
      }
    }

    /// The decision that `cast` leaves to the shop, as the end of a sentence; empty: none.
    func choice(_ column: String, from typeName: String?) -> String {
      if self == .timestamptz, let typeName, ["int8", "numeric", "float4", "float8"].contains(typeName) {
        return "; if the numbers are milliseconds since 1970, write to_timestamp(\(column) / 1000.0)"
      }
      guard cast(column, from: typeName)?.contains("<zone>") == true else { return "" }
      // A wrong guess would move the end of every day.
      let zone =
        "; for <zone> write the zone that the column's times are in, such as Europe/Berlin or UTC: ask the team that "
        + "writes them"
      return ["date", "timestamp"].contains(typeName)
        ? zone : zone + "; if each text ends with Z or an offset, write \(column)::timestamptz"
    }

    var expectation: String {
      switch self {
      case .text: "text, varchar, char, uuid or an enum"
      case .integer: "smallint, integer or bigint"
      case .numeric: "numeric or an integer type"
      case .timestamptz: "timestamp with time zone"
      }
    }
  }

  package struct Column: Sendable {
    package var name: String
    package var kind: Kind
    package var isRequired: Bool

    init(_ name: String, _ kind: Kind, _ isRequired: Bool) {
      self.name = name
      self.kind = kind
      self.isRequired = isRequired
    }
  }

  package struct Relation: Sendable {
    package var name: String
    package var columns: [Column]
    package var isOptional = false

    package var columnList: String { columns.map(\.name).joined(separator: ", ") }
  }

  package static let orders = Relation(
    name: "orders", columns: columns(order) + [Column("updated_at", .timestamptz, true)])

  package static let receipts = Relation(
    name: "receipts",
    columns: [
      Column("receipt_id", .text, true), Column("order_id", .text, false), Column("user_id", .text, false),
      Column("payload", .text, true), Column("environment", .text, false), Column("status", .text, true),
      Column("checked_at", .timestamptz, false), Column("received_at", .timestamptz, true),
    ])

  package static let deliveries = Relation(
    name: "deliveries",
    columns: [
      Column("delivery_id", .text, true), Column("order_id", .text, false), Column("user_id", .text, true),
      Column("product_id", .text, true), Column("quantity", .integer, true), Column("delivered_at", .timestamptz, true),
      Column("revoked_at", .timestamptz, false),
    ])

  package static let userAliases = Relation(
    name: "user_aliases", columns: [Column("user_id", .text, true), Column("same_as", .text, true)], isOptional: true)

  package static let products = Relation(
    name: "products",
    columns: [
      Column("product_id", .text, true), Column("type", .text, false), Column("name", .text, false),
      Column("sold_from", .timestamptz, false), Column("sold_until", .timestamptz, false),
    ], isOptional: true)

  package static let relations = [orders, receipts, deliveries, userAliases, products]

  // The length of an id that an index can hold.
  package static let longestId = 1_000

  /// - Parameter code: codes the columns of a value.
  static func columns(_ code: (inout ColumnContents) -> Void) -> [Column] {
    ColumnContents(code).columns.map { column in
      let kind: Kind =
        switch column.content {
        case .text, .flag: .text
        case .number: .integer
        case .amount: .numeric
        case .instant: .timestamptz
        }
      return Column(column.name, kind, !column.isOptional)
    }
  }

  static func order(_ columns: inout ColumnContents) {
    var order = Order.blank
    order.codeColumns(with: &columns)
  }

  static func delivery(_ columns: inout ColumnContents) {
    var delivery = Delivery.blank
    delivery.codeColumns(with: &columns)
  }
}
