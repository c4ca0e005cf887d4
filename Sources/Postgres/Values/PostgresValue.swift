/// The value of a bound parameter. Nil in a case is a NULL of that type.
public enum PostgresValue: Hashable, Sendable {
  /// A NULL whose type the server infers.
  case null
  /// `text`. Other types in text form (`uuid`, `jsonb`, `date`) need a cast: `$1::jsonb`.
  case text(String?)
  case int(Int64?)
  case bool(Bool?)
  case bytes([UInt8]?)
  /// `timestamptz` in microseconds since 1970-01-01T00:00:00Z.
  case timestamp(Int64?)
  case numeric(PostgresNumeric?)
  case textArray([String?])
  case intArray([Int64?])
  case boolArray([Bool?])
  case bytesArray([[UInt8]?])
  /// `timestamptz[]` in microseconds since 1970-01-01T00:00:00Z.
  case timestampArray([Int64?])
  case numericArray([PostgresNumeric?])
}

extension PostgresValue {
  var type: PostgresType {
    switch self {
    case .null: .unspecified
    case .text: .text
    case .int: .int8
    case .bool: .bool
    case .bytes: .bytea
    case .timestamp: .timestamptz
    case .numeric: .numeric
    case .textArray: .textArray
    case .intArray: .int8Array
    case .boolArray: .boolArray
    case .bytesArray: .byteaArray
    case .timestampArray: .timestamptzArray
    case .numericArray: .numericArray
    }
  }

  /// Returns false for NULL; throws `.usage` for a value that Postgres cannot hold.
  func encode(into bytes: inout [UInt8]) throws(PostgresError) -> Bool {
    switch self {
    case .null: return false
    case .text(let value): return try BinaryFormat.append(value, to: &bytes, BinaryFormat.append(text:to:))
    case .int(let value): return try BinaryFormat.append(value, to: &bytes, BinaryFormat.append(integer:to:))
    case .bool(let value): return try BinaryFormat.append(value, to: &bytes, BinaryFormat.append(bool:to:))
    case .bytes(let value): return try BinaryFormat.append(value, to: &bytes, BinaryFormat.append(bytes:to:))
    case .timestamp(let value): return try BinaryFormat.append(value, to: &bytes, BinaryFormat.append(timestamp:to:))
    case .numeric(let value): return try BinaryFormat.append(value, to: &bytes, BinaryFormat.append(numeric:to:))
    case .textArray(let values):
      try BinaryFormat.append(array: values, of: .text, to: &bytes, BinaryFormat.append(text:to:))
    case .intArray(let values):
      try BinaryFormat.append(array: values, of: .int8, to: &bytes, BinaryFormat.append(integer:to:))
    case .boolArray(let values):
      try BinaryFormat.append(array: values, of: .bool, to: &bytes, BinaryFormat.append(bool:to:))
    case .bytesArray(let values):
      try BinaryFormat.append(array: values, of: .bytea, to: &bytes, BinaryFormat.append(bytes:to:))
    case .timestampArray(let values):
      try BinaryFormat.append(array: values, of: .timestamptz, to: &bytes, BinaryFormat.append(timestamp:to:))
    case .numericArray(let values):
      try BinaryFormat.append(array: values, of: .numeric, to: &bytes, BinaryFormat.append(numeric:to:))
    }
    return true
  }
}
