import Postgres
import Reconciliation
import Streams

enum SalesText {
  case missing
  case sound(Identifier)
  case tooLong(Identifier, bytes: Int)
  /// Not UTF-8, or with a zero byte; bytes other than ASCII and zero as `\xE9`.
  case unreadable(Identifier)

  /// Empty if missing. It never sorts after the original text, so that rows in id order can be merged.
  var shown: Identifier {
    switch self {
    case .missing: Identifier()
    case .sound(let id), .tooLong(let id, _), .unreadable(let id): id
    }
  }

  var present: Identifier? { shown.isEmpty ? nil : shown }

  /// Without white space at both ends, which is no part of an Apple ID or a UUID.
  var trimmed: SalesText {
    switch self {
    case .sound(let id): .sound(id.withUTF8 { BorrowedText($0).trimmed.id })
    case .missing, .tooLong, .unreadable: self
    }
  }

  func defect(_ column: String, isRequired: Bool) -> String? {
    switch self {
    case .missing: isRequired ? "\(column) is missing" : nil
    case .sound(let id): isRequired && id.isEmpty ? "\(column) is empty" : nil
    case .tooLong(_, let bytes):
      "\(column) has \(bytes) bytes; an id has at most \(SalesContract.longestId) (its beginning is shown)"
    case .unreadable(let id):
      id.text.contains("\\x00") ? "\(column) has a zero byte" : "\(column) is not valid UTF-8"
    }
  }
}

extension CopyReader {
  func salesText(_ column: Int) throws(PostgresError) -> SalesText {
    if try isNull(column) { return .missing }
    guard try isText(column) else {
      return .unreadable(SalesText.beginning(of: try escapedText(column)))
    }
    guard let id = try optionalKey(column).id else { return .missing }
    if id.count <= SalesContract.longestId { return .sound(id) }
    return .tooLong(SalesText.beginning(of: id.text), bytes: id.count)
  }
}

extension SalesText {
  // Whole characters within 200 bytes.
  fileprivate static func beginning(of text: String) -> Identifier {
    var beginning = ""
    for scalar in text.unicodeScalars {
      if beginning.utf8.count + UTF8.width(scalar) > 200 { break }
      beginning.unicodeScalars.append(scalar)
    }
    return Identifier(beginning)
  }
}
