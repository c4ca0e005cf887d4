import Reconciliation
import Streams

/// The totals of users, moved out of memory when there are many. Lines of one user add up.
final class UserTotals {
  private static let most = 1 << 14

  private let lines: SpillSorter
  private var record = RecordBytes()
  private var sortingKey = RecordBytes()

  init(directory: String) { lines = SpillSorter(directory: directory) }

  /// Moves the users of `totals` here if there are many.
  func takeIfMany(from totals: inout Totals) throws { if totals.users.count >= Self.most { try take(from: &totals) } }

  private func take(from totals: inout Totals) throws {
    try totals.takeUsers { key, line in
      record.clear()
      record.put(key.userId)
      record.put(key.currency.code)
      record.put(line)
      // Text from Postgres never contains a zero byte, so these keys sort as the users do.
      sortingKey.clear()
      key.userId.withUTF8 { sortingKey.append($0) }
      sortingKey.put(UInt8(0))
      withUnsafeBytes(of: key.currency.letters) { sortingKey.append($0) }
      try lines.add(key: sortingKey.content, content: record.content)
    }
  }

  /// Takes over the users of another part.
  func join(_ other: UserTotals) throws { try lines.absorb(other.lines) }

  /// Moves the users of `totals` here, and passes all users to `body` in the order of the report.
  func passAll(with totals: inout Totals, _ body: (Totals.UserKey, Totals.Line) throws -> Void) throws {
    try take(from: &totals)
    var last: (key: Totals.UserKey, line: Totals.Line)?
    while let next = try lines.next() {
      var reader = RecordReader(next.content)
      let key = Totals.UserKey(userId: try reader.id(), currency: try reader.currency())
      var line = try reader.totalsLine()
      if let last {
        if last.key == key { line.add(last.line) } else { try body(last.key, last.line) }
      }
      last = (key, line)
    }
    if let last { try body(last.key, last.line) }
  }
}
