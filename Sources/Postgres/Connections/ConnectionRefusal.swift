/// libpq's verbose error of a failed connection, the only source of its SQLSTATE.
struct ConnectionRefusal {
  /// The SQLSTATE of the last server asked; nil if none answered.
  let sqlState: String?
  let message: String

  init(_ verbose: String) {
    var sqlState: String?
    var lines: [String] = []
    for line in verbose.split(separator: "\n") where !line.hasPrefix("LOCATION:  ") {
      if let stated = line.firstMatch(of: /:  ([0-9A-Z]{5}):/) {
        sqlState = String(stated.1)
        lines.append("\(line[..<stated.range.lowerBound]): \(line[stated.range.upperBound...])")
      } else {
        lines.append(String(line))
      }
    }
    self.sqlState = sqlState
    message = lines.joined(separator: "\n")
  }
}
