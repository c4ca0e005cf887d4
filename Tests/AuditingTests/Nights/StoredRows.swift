import Foundation
import Postgres
import Reconciliation
import Streams

@testable import Auditing

/// Rows of both stores in memory, as the queries of an audit would give them.
struct StoredRows {
  private var rows: [AuditRelation: [(key: [UInt8], content: [UInt8])]] = [:]

  mutating func add(_ relation: AuditRelation, _ id: Identifier?, _ row: RowBytes) {
    rows[relation, default: []].append((id.sortingBytes, row.bytes))
  }

  /// The rows of one part, in the order of the streams.
  func part(_ number: Int, of partition: AuditPartition) -> Reader {
    Reader(
      rows: AuditRelation.allCases.reduce(into: [:]) { parts, relation in
        let cuts = relation.cuts(of: partition)
        parts[relation] = (rows[relation] ?? []).filter {
          let id = $0.key == [1] ? nil : $0.key.dropFirst().withUnsafeBytes { Identifier(utf8: $0) }
          return cuts.part(of: id) == number
        }.sorted {
          $0.key == $1.key
            ? $0.content.lexicographicallyPrecedes($1.content) : $0.key.lexicographicallyPrecedes($1.key)
        }.map(\.content)
      })
  }

  /// What a reader of one part reads.
  final class Reader: AuditRows {
    private let rows: [AuditRelation: [[UInt8]]]

    init(rows: [AuditRelation: [[UInt8]]]) { self.rows = rows }

    func readDeliveries(of orderIds: some Collection<Identifier>) throws -> CopyReader { try read(.deliveries) }

    func read(_ relation: AuditRelation) throws -> CopyReader {
      var left = (rows[relation] ?? [])[...]
      return CopyReader { () throws(PostgresError) in left.popFirst() }
    }
  }
}

/// A row as `record_send` encodes it (PostgreSQL's `rowtypes.c`): how many fields, and of each its type, length and bytes.
struct RowBytes {
  private var count: Int32 = 0
  private var fields: [UInt8] = []

  var bytes: [UInt8] { Self.bigEndian(count) + fields }

  private static func bigEndian(_ number: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: number.bigEndian) { [UInt8]($0) }
  }

  /// - Parameter type: its number in `pg_type`.
  private mutating func put(_ type: Int32, _ value: [UInt8]?) {
    count += 1
    fields += Self.bigEndian(type)
    fields += Self.bigEndian(value.map { Int32($0.count) } ?? -1)
    fields += value ?? []
  }

  mutating func put(_ text: String?) { put(25, text.map { Array($0.utf8) }) }
  mutating func put(_ id: Identifier?) { put(25, id?.bytes) }
  mutating func put(_ number: Int64?) { put(20, number.map(Self.bigEndian)) }
  mutating func put(_ number: Int32?) { put(23, number.map(Self.bigEndian)) }
  mutating func put(_ truth: Bool?) { put(16, truth.map { [$0 ? 1 : 0] }) }

  /// Microseconds since 2000.
  mutating func put(_ instant: Instant?) {
    put(1184, instant.map { Self.bigEndian($0.microseconds - 946_684_800_000_000) })
  }

  /// - Parameter amount: as people write it, below 10,000 and with four decimals at most.
  mutating func put(amount: String) {
    let sign: Int16 = amount.hasPrefix("-") ? 0x4000 : 0
    let parts = amount.drop { $0 == "-" }.split(separator: ".")
    let decimals = parts.count > 1 ? String(parts[1]) : ""
    let padded = decimals.padding(toLength: 4, withPad: "0", startingAt: 0)
    let (whole, fraction) = (Int16(parts[0]) ?? 0, Int16(padded) ?? 0)
    var digits = [whole, fraction]
    var weight: Int16 = 0
    if fraction == 0 { digits.removeLast() }
    if whole == 0 {
      digits.removeFirst()
      weight = digits.isEmpty ? 0 : -1
    }
    put(
      1700, ([Int16(digits.count), weight, sign, Int16(decimals.utf8.count)] + digits).flatMap { Self.bigEndian($0) })
  }
}
