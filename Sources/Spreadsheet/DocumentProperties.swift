/// What the file says about itself under File > Information. At most 255 characters each, no control characters.
package struct DocumentProperties: Sendable {
  /// nil: none, as for the following.
  package var title: String?
  /// What the file is about.
  package var subject: String?
  /// Who wrote it; a program may.
  package var author: String?
  /// For whom.
  package var company: String?
  /// Anything else.
  package var comments: String?
  /// Seconds since 1970, after 1970: the library takes 0 for "now", and the file would differ every time.
  package var created: Int64
  /// Names that Excel lists under "Custom", each once, with their text.
  package var custom: [(name: String, value: String)]

  /// Properties of which only the time of creation must be there.
  package init(
    title: String? = nil, subject: String? = nil, author: String? = nil, company: String? = nil,
    comments: String? = nil, created: Int64, custom: [(name: String, value: String)] = []
  ) {
    self.title = title
    self.subject = subject
    self.author = author
    self.company = company
    self.comments = comments
    self.created = created
    self.custom = custom
  }

  /// Excel's limit for each of them.
  private static let maximumLength = 255

  func check() throws(SpreadsheetError) {
    guard created > 0 else { throw SpreadsheetError(.parameterNotAllowed, "set creation time") }
    for text in [title, subject, author, company, comments] {
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
