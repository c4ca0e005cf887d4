import TestSupport
import Testing

@testable import Postgres

/// Rows as a server, or a lake in its place, sends them, broken in every way: read, or refused by an error that says so.
@Suite(.timeLimit(.minutes(30)))
struct HostileRecordsTests {
  /// Field by field: type, and what it holds.
  private static func record(_ fields: [(type: UInt32, bytes: [UInt8]?)]) -> [UInt8] {
    fields.reduce(into: big(Int32(fields.count))) { record, field in
      record += big(field.type) + big(field.bytes.map { Int32($0.count) } ?? -1) + (field.bytes ?? [])
    }
  }

  private static func big<Value: FixedWidthInteger>(_ value: Value) -> [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { Array($0) }
  }

  // Types by their object ids (PostgreSQL, pg_type.dat).
  private static let genuine: [[UInt8]] = [
    record([
      (25, Array("ord-1".utf8)), (23, big(Int32(7))), (20, big(Int64.min)), (21, big(Int16(-3))), (16, [1]),
      (1184, big(Int64(848_000_000_000_000))),
      (1700, big(Int16(2)) + big(Int16(0)) + [0, 0, 0, 2] + big(Int16(4)) + big(Int16(9_900))),
      (17, [0, 1, 255]),
    ]),
    record([
      (25, nil), (1184, big(Int64.max)), (1700, [0, 0, 0, 0, 0xC0, 0, 0, 0]), (1043, Array("ü🪙".utf8)),
      (
        1009,
        big(Int32(1)) + big(Int32(1)) + big(UInt32(25)) + big(Int32(2)) + big(Int32(1)) + big(Int32(1)) + [0x61]
          + big(Int32(-1))
      ),
      (114, Array("{}".utf8)), (2950, Array(repeating: 7, count: 16)), (1184, big(Int64.min)),
    ]),
    record([]),
  ]

  @Test func anyRecordIsReadOrRefused() throws {
    let inputs = MutatedInputs(Self.genuine)
    var (read, refused) = (0, 0)
    for number in MutatedInputs.numbers(20_000) {
      // The row before is one whose texts may be those of this one.
      var rows = [inputs.input(number), inputs.input(number + 1)]
      do throws(PostgresError) {
        var reader = CopyReader(records: { () throws(PostgresError) in rows.popLast() })
        while try reader.advance() {
          for column in reader.columns.indices { touch(reader, column) }
          read += 1
        }
      } catch {
        #expect(error.kind == .unexpectedData, "\(number): \(error)")
        refused += 1
      }
    }
    #expect(read > 1_000 && refused > 1_000)
  }

  /// Reads a field as everything that it could be; each either is that or is refused.
  private func touch(_ reader: borrowing CopyReader, _ column: Int) {
    let isText = (try? reader.isText(column)) ?? false
    if isText, let isNull = try? reader.isNull(column), !isNull { #expect((try? reader.text(column)) != nil) }
    _ = try? reader.escapedText(column)
    _ = try? reader.withText(column) { $0.count }
    _ = try? reader.int64(column)
    _ = try? reader.optionalInt32(column)
    _ = try? reader.bool(column)
    _ = try? reader.isInfinite(column)
    _ = try? reader.representableTimestamp(column)
    _ = try? reader.timestamp(column)
    if let numeric = try? reader.numeric(column) { #expect(!"\(numeric)".isEmpty) }
    _ = try? reader.textArray(column)
    _ = try? reader.compareBytes(column, to: "ord-1")
    _ = try? reader.withBytes(column) { $0.count }
  }
}
