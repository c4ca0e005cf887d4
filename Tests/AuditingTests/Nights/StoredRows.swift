import Foundation
import Postgres
import Reconciliation
import Streams

@testable import Auditing

struct StoredRows {
  private var rows: [AuditRelation: [(key: [UInt8], content: [UInt8])]] = [:]

  mutating func add(_ relation: AuditRelation, _ id: Identifier?, _ row: RowBytes) {
    rows[relation, default: []].append((id.sortingBytes, row.bytes))
  }

  func part(_ number: Int, of partition: AuditPartition) -> Reader {
    Reader(
      rows: AuditRelation.allCases.reduce(into: [:]) { parts, relation in
        let cuts = relation.cuts(of: partition)
        parts[relation] = (rows[relation] ?? []).filter {
          let id = $0.key == [1] ? nil : $0.key.dropFirst().withUnsafeBytes { Identifier(utf8: $0) }
          return cuts.part(of: id) == number
        }.sorted {
          $0.key == $1.key ? $0.content.lexicographicallyPrecedes($1.content) : $0.key.lexicographicallyPrecedes($1.key)
        }.map(\.content)
      })
  }

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

/// A row in the format of `record_send` (PostgreSQL's `rowtypes.c`): field count, then type, length and bytes by field.
struct RowBytes {
  private var count: Int32 = 0
  private var fields: [UInt8] = []

  var bytes: [UInt8] { Self.bigEndian(count) + fields }

  private static func bigEndian(_ number: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: number.bigEndian) { [UInt8]($0) }
  }

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

  /// - Parameter amount: decimal text below 10,000 with at most four decimals.
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
