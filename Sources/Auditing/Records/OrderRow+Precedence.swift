import Reconciliation
import Streams

extension OrderRow {
  static func sorted(_ rows: [OrderRow]) -> [OrderRow] {
    rows.map { (bytes: RecordBytes.bytes($0.write(to:)), row: $0) }.sorted { precedes($0.bytes, $1.bytes) }.map(\.row)
  }

  /// Compares encoded rows with the same ID. A valid row precedes an invalid one because it begins with the greater
  /// byte.
  static func precedes(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.first == right.first ? left.lexicographicallyPrecedes(right) : (left.first ?? 0) > (right.first ?? 0)
  }
}
