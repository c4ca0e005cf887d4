import Foundation
import Postgres
import Reconciliation
import Reporting
import Run
import SalesStore
import Streams

/// A folder with what parts that were audited elsewhere have left.
struct AuditPieces {
  /// What lies in the folder, written last.
  private struct Manifest: Decodable {
    /// Files, in the order in which they are joined.
    let pieces: [Piece]
    /// SHA-256 of `context`.
    let context: String
    /// What the source adds up to: the rows of `SalesTotals.query`, as `record_send` writes them.
    let sums: [Data]
    /// The same before anything was read, where no snapshot spans the source.
    let sumsBefore: [Data]?
    let counts: Counts

    struct Piece: Decodable {
      let name: String
      /// Lower-case hexadecimal.
      let sha256: String
    }
  }

  let directory: String

  /// How many rows of the lookback the source has.
  struct Counts: Decodable {
    let orders: Int
    let deliveries: Int
    /// Amounts of all orders that were read.
    var ordered = SalesTotals()

    private enum CodingKeys: CodingKey { case orders, deliveries }
  }

  /// A folder that is not what the night needs. Exit status 64.
  struct Unfit: EndsRun, CustomStringConvertible {
    var exitStatus: ExitStatus { .usage }
    /// A job that came to no end leaves such a folder every night.
    var isSlip: Bool { false }
    var description: String
  }

  /// Hands all pieces to a collector, and compares what was read with what the source adds up to.
  ///
  /// - Parameter plan: what the parts must have been audited for.
  func join(into collector: AuditCollector, of plan: AuditPlan) throws -> Counts {
    guard let content = RegularFile.content(directory + "/manifest.json"),
      let manifest = try? JSONDecoder().decode(Manifest.self, from: content)
    else { throw Unfit(description: "there is no manifest.json in \(directory): not all parts were audited") }
    try prove("context", manifest.context)
    let context = try AuditContext(path: directory + "/context")
    var rules = plan.rules
    // The parts were read earlier than now, and with them what the shop says of people and products.
    (rules.readAt, rules.isOfThePast) = (context.rules.readAt, context.rules.isOfThePast)
    (rules.people, rules.catalogue) = (context.rules.people, context.rules.catalogue)
    guard context.rules == rules, context.period == plan.period else {
      throw Unfit(
        description: """
          the parts in \(directory) were audited for another as-of, period or configuration, as of \
          \(context.rules.asOf.text) from \(context.period.since) to \(context.period.until); give the same, or audit anew
          """)
    }
    var read = SalesTotals()
    let counted = try totals(of: manifest.sums)
    let before = try manifest.sumsBefore.map(totals)
    for piece in manifest.pieces {
      let name = piece.name
      try prove(name, piece.sha256)
      let stream = try FrameStream(path: directory + "/" + name)
      while let frame = try stream.next() {
        switch AuditFrame(rawValue: frame.tag) {
        case .salesTotal: try read.take(frame)
        case .some(let piece) where piece.isPiece: try collector.take(piece, frame)
        case .some, .none: throw Unfit(description: "\(name) in \(directory) holds a frame of tag \(frame.tag)")
        }
      }
    }
    // What was counted and what was read are two instants there, and orders come meanwhile.
    let control = read.control(against: before ?? counted)
    collector.control = control.allSatisfy(\.isBalanced) ? control : read.control(against: counted)
    var counts = manifest.counts
    counts.ordered = counted
    return counts
  }

  /// What the source adds up to.
  private func totals(of rows: [Data]) throws -> SalesTotals {
    var sums = rows.makeIterator()
    var reader = CopyReader { () throws(PostgresError) in sums.next().map { [UInt8]($0) } }
    do throws(PostgresError) { return try SalesTotals(rows: &reader) } catch {
      throw Unfit(description: "manifest.json in \(directory): \(error.message); audit anew")
    }
  }

  /// Throws `Unfit` where a file is not the one that was written: cut off, of another audit, or unreadable.
  private func prove(_ name: String, _ sha256: String) throws {
    let file: Int32
    do throws(RegularFile.Failure) { file = try RegularFile.descriptor(directory + "/" + name) } catch {
      throw Unfit(description: "\(name) in \(directory) \(error.problem); audit anew")
    }
    defer { close(file) }
    guard let found = Digest.sha256(descriptor: file) else {
      throw Unfit(description: "\(name) in \(directory): \(String(cString: strerror(errno))); audit anew")
    }
    guard found == sha256 else {
      throw Unfit(
        description:
          "\(name) in \(directory) is not what manifest.json tells of: it was cut off or replaced; audit anew")
    }
  }
}
