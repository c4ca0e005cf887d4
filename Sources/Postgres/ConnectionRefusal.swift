/// What libpq says, verbosely, of a connection that could not be made: the server's state apart from the words, because
/// libpq hands the state over in no other way.
struct ConnectionRefusal {
  /// Of the server that was asked last; nil where none spoke.
  let sqlState: String?
  /// As libpq says it when it is not verbose.
  let message: String

  init(_ verbose: String) {
    var sqlState: String?
    var lines: [String] = []
    for line in verbose.split(separator: "\n") where !line.hasPrefix("LOCATION:  ") {
      if let told = line.firstMatch(of: /:  ([0-9A-Z]{5}):/) {
        sqlState = String(told.1)
        lines.append("\(line[..<told.range.lowerBound]): \(line[told.range.upperBound...])")
      } else {
        lines.append(String(line))
      }
    }
    self.sqlState = sqlState
    message = lines.joined(separator: "\n")
  }
}
