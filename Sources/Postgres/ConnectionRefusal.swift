/// libpq's verbose error message of a failed connection, split into SQLSTATE and text. libpq offers no other access to
/// the state.
struct ConnectionRefusal {
  /// The SQLSTATE of the last server asked; nil if none answered.
  let sqlState: String?
  /// The message in libpq's default verbosity.
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
