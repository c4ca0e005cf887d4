import Postgres
import Reconciliation
import Streams

/// A text of the shop's: what it is, or why it cannot be one.
enum SalesText {
  case missing
  case sound(Identifier)
  /// Longer than an id may be; its beginning.
  case tooLong(Identifier, bytes: Int)
  /// Not UTF-8, or with a zero byte; its bytes, those beyond ASCII and zero as `\xE9`.
  case unreadable(Identifier)

  /// What can be shown of it; empty when it is missing. It never sorts behind the text itself, so that rows in the order
  /// of their ids stay mergeable.
  var shown: Identifier {
    switch self {
    case .missing: Identifier()
    case .sound(let id), .tooLong(let id, _), .unreadable(let id): id
    }
  }

  /// What can be shown of it; nil when it is missing or empty.
  var present: Identifier? { shown.isEmpty ? nil : shown }

  /// Without the white space at its ends, which is no part of an id of Apple's or of a UUID.
  var trimmed: SalesText {
    switch self {
    case .sound(let id): .sound(id.withUTF8 { BorrowedText($0).trimmed.id })
    case .missing, .tooLong, .unreadable: self
    }
  }

  /// What is wrong with it.
  func defect(_ column: String, isRequired: Bool) -> String? {
    switch self {
    case .missing: isRequired ? "\(column) is missing" : nil
    case .sound(let id): isRequired && id.isEmpty ? "\(column) is empty" : nil
    case .tooLong(_, let bytes):
      "\(column) has \(bytes) bytes; an id has at most \(SalesContract.longestId) (its beginning is shown)"
    case .unreadable(let id):
      id.text.contains("\\x00") ? "\(column) has a zero byte" : "\(column) is no valid UTF-8"
    }
  }
}

extension CopyReader {
  /// A text of the shop's.
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
  /// The first whole characters within 200 bytes.
  fileprivate static func beginning(of text: String) -> Identifier {
    var beginning = ""
    for scalar in text.unicodeScalars {
      if beginning.utf8.count + UTF8.width(scalar) > 200 { break }
      beginning.unicodeScalars.append(scalar)
    }
    return Identifier(beginning)
  }
}
