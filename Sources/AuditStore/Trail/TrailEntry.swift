import Crypto
import Foundation
import Postgres
import Run

package struct TrailEntry: Sendable {
  /// Rows of a table with consecutive IDs, recorded in one month.
  package struct Segment: Sendable, Decodable, Hashable {
    package var table: String
    /// For example `2026-11`, UTC.
    package var month: String
    package var first: Int64
    package var last: Int64
    package var rows: Int64
    package var digest: String
  }

  package struct Content: Sendable, Decodable {
    package var entry: Int64
    package var kind: Trail.Kind
    package var run: String?
    package var at: String
    /// Digest of the run's row, over `columns["runs"]`.
    package var row: String?
    /// SHA-256 of the report's `SHA256SUMS`.
    package var report: String?
    package var appended: [Segment]
    /// By table, the columns of its digests as SQL.
    package var columns: [String: String]
    /// By table, the last covered ID.
    package var marks: [String: Int64]
    /// Of `released`: the table. Then the first day after the month, the rows left of all earlier months, and their
    /// columns.
    package var table: String?
    package var before: String?
    package var kept: Segment?
    package var keyColumns: String?
    /// Of `removed`: folders below the report directory.
    package var folders: [String]?
    /// Of `completed`: by table, digests of the rows for later nights.
    package var nights: [String: String]?
    /// Of `completed`: the first day of the stored orders.
    package var nightsFrom: String?
    /// Of `completed` and `tied_out`: digests of whole tables.
    package var tables: [String: String]?

    private enum CodingKeys: String, CodingKey {
      case entry, kind, run, at, row, report, appended, columns, marks, table, before, kept, folders, nights, tables
      case keyColumns = "key_columns"
      case nightsFrom = "nights_from"
    }
  }

  package var id: Int64
  package var previous: String
  package var hash: String
  package var content: Content

  /// The entry was changed.
  struct Broken: Error { var problem: String }

  /// Decodes an entry and checks it against the previous one. Throws `Broken`, `PostgresError`.
  init(_ row: PostgresRow, after last: TrailEntry?) throws {
    (id, previous) = (try row.int64(0), try row.text(1))
    let text = try row.text(2)
    hash = try row.text(3)
    let number = (last?.id ?? 0) + 1
    guard id == number else { throw Broken(problem: "entry \(number) is missing: entry \(id) follows") }
    guard previous == last?.hash ?? "" else {
      throw Broken(problem: "entry \(id) does not follow from entry \(id - 1)")
    }
    guard hash == Digest.hexadecimal(SHA256.hash(data: Data("\(previous)\n\(text)".utf8))) else {
      throw Broken(problem: "entry \(id) is not as it was written")
    }
    guard let content = try? JSONDecoder().decode(Content.self, from: Data(text.utf8)), content.entry == id else {
      throw Broken(problem: "entry \(id) cannot be read; it was written by another program")
    }
    self.content = content
  }
}
