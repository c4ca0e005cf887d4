/// A data type by its `oid` in `pg_type`. Those of built-in types are fixed (PostgreSQL source, `pg_type.dat`).
public struct PostgresType: RawRepresentable, Hashable, Sendable {
  public let rawValue: UInt32

  public init(rawValue: UInt32) { self.rawValue = rawValue }

  static let unspecified = PostgresType(rawValue: 0)
  static let bool = PostgresType(rawValue: 16)
  static let bytea = PostgresType(rawValue: 17)
  static let name = PostgresType(rawValue: 19)
  static let int8 = PostgresType(rawValue: 20)
  static let int2 = PostgresType(rawValue: 21)
  static let int4 = PostgresType(rawValue: 23)
  static let text = PostgresType(rawValue: 25)
  static let json = PostgresType(rawValue: 114)
  static let unknown = PostgresType(rawValue: 705)
  static let boolArray = PostgresType(rawValue: 1000)
  static let byteaArray = PostgresType(rawValue: 1001)
  static let textArray = PostgresType(rawValue: 1009)
  static let varcharArray = PostgresType(rawValue: 1015)
  static let int8Array = PostgresType(rawValue: 1016)
  static let bpchar = PostgresType(rawValue: 1042)
  static let varchar = PostgresType(rawValue: 1043)
  static let timestamptz = PostgresType(rawValue: 1184)
  static let timestamptzArray = PostgresType(rawValue: 1185)
  static let numericArray = PostgresType(rawValue: 1231)
  static let numeric = PostgresType(rawValue: 1700)

  /// True if the binary form is the text. User-defined types count: enums and `citext` have it, others mostly are
  /// invalid UTF-8.
  var isText: Bool {
    switch self {
    case .text, .varchar, .bpchar, .name, .json, .unknown: true
    default: rawValue >= 16_384
    }
  }

  var isTextArray: Bool { self == .textArray || self == .varcharArray }
  var isInteger: Bool { self == .int2 || self == .int4 || self == .int8 }
}

public struct PostgresColumn: Hashable, Sendable {
  public let name: String
  /// The data type; for a domain its base type.
  public let type: PostgresType
}
