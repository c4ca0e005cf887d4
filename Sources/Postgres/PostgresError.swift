/// What went wrong between us and Postgres.
///
/// `description` is safe to log: it holds the server's primary message, names of objects and the SQL text with its
/// string literals masked, but no parameters and no rows. Those can be in `detail`, which nothing prints by itself.
public struct PostgresError: Error, Hashable, Sendable {
  /// Who has to act on the error.
  public enum Kind: Hashable, Sendable {
    /// No connection could be made: wrong address, wrong password, server down.
    case connectionFailed
    /// What a connection is made with, or what it goes through, cannot be used: an unclear connection string, a pooler
    /// that takes sessions away.
    case misconfigured
    /// An established connection is gone. Nothing is known about a statement that was running.
    case connectionLost
    /// The server refused a statement; `sqlState` says why.
    case server
    /// The task that wanted the statement was cancelled. The connection is usable.
    case cancelled
    /// The server sent something other than the caller declared: a NULL, another type, a value out of range.
    case unexpectedData
    /// The caller broke a rule of this module. A defect of the program, not of the data or the server.
    case usage
  }

  /// Who has to act on the error.
  public var kind: Kind
  /// Five characters, PostgreSQL documentation, appendix A; nil where the server did not speak. Of `connectionFailed` it is
  /// what the server that was asked last refused the connection with.
  public var sqlState: String?
  /// The server's primary message, or ours.
  public var message: String
  /// The server's or libpq's explanation. May hold values of rows and parts of a connection string: never log it.
  public var detail: String?
  /// The constraint that a row broke.
  public var constraint: String?
  /// Schema of `table`.
  public var schema: String?
  /// The table that the server blames.
  public var table: String?
  /// The column that the server, or a typed accessor, blames.
  public var column: String?
  /// The SQL text, on one line, its string literals masked.
  public var statement: String?
  /// Which of several databases it was, as people know it: the key that names it.
  public var place: String?

  /// An error with nothing but a message; the other fields are set where they are known.
  public init(_ kind: Kind, _ message: String, statement: String? = nil) {
    self.kind = kind
    self.message = message
    self.statement = statement.map(maskedStatement)
  }

  /// The same error, with the key that names its database.
  public func at(_ place: String) -> PostgresError {
    var error = self
    error.place = place
    return error
  }

  /// Whether the connection that threw this must be replaced by a new one.
  public var isConnectionLost: Bool { kind == .connectionLost }

  static func nul(in what: String) -> PostgresError {
    PostgresError(.usage, "\(what) contains a NUL character, which Postgres cannot hold")
  }
}

extension PostgresError: CustomStringConvertible {
  /// A migration would fill a screen, and hide what is said before it.
  private static let longestStatement = 400

  public var description: String {
    var text = kind.label
    if let place { text += " (\(place))" }
    if let sqlState { text += " \(sqlState)" }
    text += ": \(message)"
    if let advice { text += "; \(advice)" }
    let place = [
      table.map { "table " + (schema.map { "\($0)." } ?? "") + $0 }, column.map { "column \($0)" },
      constraint.map { "constraint \($0)" },
    ].compactMap(\.self)
    if !place.isEmpty { text += " (\(place.joined(separator: ", ")))" }
    if let statement {
      text += " in: \(statement.prefix(PostgresError.longestStatement))"
      if statement.count > PostgresError.longestStatement { text += "…" }
    }
    return text
  }
}

extension PostgresError.Kind {
  fileprivate var label: String {
    switch self {
    case .connectionFailed: "cannot connect to Postgres"
    case .misconfigured: "the connection to Postgres is configured wrongly"
    case .connectionLost: "connection to Postgres lost"
    case .server: "Postgres error"
    case .cancelled: "cancelled"
    case .unexpectedData: "unexpected data from Postgres"
    case .usage: "wrong use of the Postgres module"
    }
  }
}

/// COPY takes no parameters, so statements can hold quoted values. Doubled quotes are the only escape that
/// `PostgresLiteral` writes, hence a quote always toggles.
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
