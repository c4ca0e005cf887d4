/// An error of Postgres, libpq or this module. `description` is safe to log: it contains names of objects and the SQL
/// text with masked literals, but no parameters and no rows. Those may be in `detail`, which is never printed.
public struct PostgresError: Error, Hashable, Sendable {
  /// The category, which shows who has to act.
  public enum Kind: String, Hashable, Sendable {
    case connectionFailed = "cannot connect to Postgres"
    /// The connection string is unclear, or a pooler takes sessions away.
    case misconfigured = "the connection to Postgres is configured wrongly"
    /// An established connection is lost. The result of a running statement is unknown.
    case connectionLost = "connection to Postgres lost"
    case server = "Postgres error"
    case cancelled = "cancelled"
    case unexpectedData = "unexpected data from Postgres"
    /// The caller broke a rule of this module: a defect of the program.
    case usage = "wrong use of the Postgres module"
  }

  public var kind: Kind
  /// Five characters (PostgreSQL documentation, appendix A); nil without an answer of the server.
  public var sqlState: String?
  public var message: String
  /// The server's or libpq's detail. Never log it: it may contain values of rows and parts of a connection string.
  public var detail: String?
  public var constraint: String?
  public var schema: String?
  public var table: String?
  public var column: String?
  public var statement: String?
  /// The configuration key of the database.
  public var place: String?
  /// True for a statement of a connection that only reads (`SessionProfile.isReader`).
  public var isOfReader = false

  public init(_ kind: Kind, _ message: String, column: String? = nil, statement: String? = nil) {
    (self.kind, self.message, self.column) = (kind, message, column)
    self.statement = statement.map(maskedStatement)
  }

  public func at(_ place: String) -> PostgresError {
    var error = self
    error.place = place
    return error
  }

  public var isConnectionLost: Bool { kind == .connectionLost }

  static func nul(in what: String) -> PostgresError {
    PostgresError(.usage, "\(what) contains a NUL character, which Postgres cannot hold")
  }
}

extension PostgresError: CustomStringConvertible {
  // A migration would fill a screen and hide the message before it.
  private static let longestStatement = 400

  public var description: String { description(inDoctor: false) }

  /// - Parameter inDoctor: true for the output of `night-audit doctor`, which does not advise to run doctor.
  public func description(inDoctor: Bool) -> String {
    var text = kind.rawValue
    if let place { text += " (\(place))" }
    if let sqlState { text += " \(sqlState)" }
    text += ": \(message)"
    let place = [
      table.map { "table " + (schema.map { "\($0)." } ?? "") + $0 }, column.map { "column \($0)" },
      constraint.map { "constraint \($0)" },
    ].compactMap(\.self)
    if !place.isEmpty { text += " (\(place.joined(separator: ", ")))" }
    if let statement {
      text += " in: \(statement.prefix(PostgresError.longestStatement))"
      if statement.count > PostgresError.longestStatement { text += "…" }
    }
    // Last, because words after a statement read as part of it.
    if let advice = self.advice(inDoctor: inDoctor) { text += "; \(advice)" }
    return text
  }
}

// `PostgresLiteral` escapes quotes only by doubling, so every quote toggles.
private func maskedStatement(_ sql: String) -> String {
  var masked = ""
  var isInsideLiteral = false
  var pendingSpace = false
  for character in sql.unicodeScalars {
    if character == "'" {
      if !isInsideLiteral {
        if pendingSpace, !masked.isEmpty { masked += " " }
        if !masked.hasSuffix("'…'") { masked += "'…'" }
      }
      pendingSpace = false
      isInsideLiteral.toggle()
    } else if isInsideLiteral {
      continue
    } else if character.properties.isWhitespace {
      pendingSpace = true
    } else {
      if pendingSpace, !masked.isEmpty { masked += " " }
      pendingSpace = false
      masked.unicodeScalars.append(character)
    }
  }
  return masked
}
