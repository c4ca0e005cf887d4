/// The document properties under File > Information. At most 255 characters each, no control characters.
package struct DocumentProperties: Sendable {
  package var title: String?
  package var subject: String?
  package var author: String?
  package var comments: String?
  /// Seconds since 1970, more than 0. The library takes 0 for "now", and the file would differ every time.
  package var created: Int64
  /// The names and texts that Excel lists under "Custom"; names must be unique.
  package var custom: [(name: String, value: String)]

  package init(
    title: String? = nil, subject: String? = nil, author: String? = nil, comments: String? = nil, created: Int64,
    custom: [(name: String, value: String)] = []
  ) {
    (self.title, self.subject, self.author, self.comments, self.created) = (title, subject, author, comments, created)
    self.custom = custom
  }

  private static let maximumLength = 255

  func check() throws(SpreadsheetError) {
    guard created > 0 else { throw SpreadsheetError(.parameterNotAllowed, "set creation time") }
    for text in [title, subject, author, comments] {
      try OwnText.check(text ?? "", limit: Self.maximumLength, "set document properties")
    }
    var names: Set<String> = []
    for (name, value) in custom {
      try OwnText.check(name, limit: Self.maximumLength, "set custom properties")
      try OwnText.check(value, limit: Self.maximumLength, "set custom properties")
      guard !name.isEmpty, names.insert(name.lowercased()).inserted else {
        throw SpreadsheetError(.nameNotAllowed, "set custom properties")
      }
    }
  }
}
