import Foundation
import Postgres
import Reconciliation
import Reporting
import Run
import SalesStore
import Streams

/// A folder with the results of parts that were audited elsewhere.
struct AuditPieces {
  /// The table of contents of the folder, written last.
  private struct Manifest: Decodable {
    let pieces: [Piece]
    let context: String
    /// The source's totals: the rows of `SalesTotals.query`, in the format of `record_send`.
    let sums: [Data]
    let counts: Counts

    struct Piece: Decodable {
      let name: String
      /// Lower-case hexadecimal.
      let sha256: String
    }
  }

  let directory: String

  struct Counts: Decodable {
    let orders: Int
    let deliveries: Int
    /// Amounts of all orders that were read.
    var ordered = SalesTotals()
    /// False if the parts were read from a store, or several, that no snapshot spans.
    var hasOneSnapshot = true

    private enum CodingKeys: CodingKey { case orders, deliveries }
  }

  /// The folder does not fit the night. Exit status 64.
  struct UnusablePieces: RunEndingError, CustomStringConvertible {
    var exitStatus: ExitStatus { .usage }
    /// False because an unfinished Spark job leaves such a folder night after night.
    var isUsageMistake: Bool { false }
    var description: String
  }

  /// Passes all pieces to a collector and compares the rows read with the source's totals.
  func join(into collector: AuditCollector, of plan: AuditPlan) throws -> Counts {
    guard let content = RegularFile.content(directory + "/manifest.json"),
      let manifest = try? JSONDecoder().decode(Manifest.self, from: content)
    else { throw UnusablePieces(description: "there is no manifest.json in \(directory): not all parts were audited") }
    try prove("context", manifest.context)
    let context = try AuditContext(path: directory + "/context")
    var rules = plan.rules
    // The parts were read earlier, with the people and products of that time.
    rules.readAt = context.rules.readAt
    (rules.people, rules.catalogue) = (context.rules.people, context.rules.catalogue)
    guard context.rules == rules, context.period == plan.period else {
      throw UnusablePieces(
        description: """
          the parts in \(directory) were audited for another as-of, period or configuration, as of \
          \(context.rules.asOf.text) from \(context.period.since) to \(context.period.until); give the same, or audit the parts again
          """)
    }
    var read = SalesTotals()
    let counted = try totals(of: manifest.sums)
    for piece in manifest.pieces {
      let name = piece.name
      try prove(name, piece.sha256)
      let stream = try FrameStream(path: directory + "/" + name)
      while let frame = try stream.next() {
        switch AuditFrame(rawValue: frame.tag) {
        case .salesTotal: try read.take(frame)
        case .some(let piece) where piece.isPiece: try collector.take(piece, frame)
        case .some, .none:
          throw UnusablePieces(description: "\(name) in \(directory) holds a frame of tag \(frame.tag)")
        }
      }
    }
    collector.control = read.control(against: counted)
    var counts = manifest.counts
    (counts.ordered, counts.hasOneSnapshot) = (counted, context.hasOneSnapshot)
    return counts
  }

  private func totals(of rows: [Data]) throws -> SalesTotals {
    var sums = rows.makeIterator()
    var reader = CopyReader { () throws(PostgresError) in sums.next().map { [UInt8]($0) } }
    do throws(PostgresError) { return try SalesTotals(rows: &reader) } catch {
      throw UnusablePieces(description: "manifest.json in \(directory): \(error.message); audit the parts again")
    }
  }

  /// Throws `UnusablePieces` if a file is truncated, unreadable or of another audit.
  private func prove(_ name: String, _ sha256: String) throws {
    let file: Int32
    do throws(RegularFile.Failure) { file = try RegularFile.descriptor(directory + "/" + name) } catch {
      throw UnusablePieces(description: "\(name) in \(directory) \(error.problem); audit the parts again")
    }
    defer { close(file) }
    guard let found = Digest.sha256(descriptor: file) else {
      throw UnusablePieces(
        description: "\(name) in \(directory): \(String(cString: strerror(errno))); audit the parts again")
    }
    guard found == sha256 else {
      throw UnusablePieces(
        description:
          "\(name) in \(directory) differs from manifest.json: it was truncated or replaced; audit the parts again")
    }
  }
}
