import CLibPQ

/// The keywords and values that a connection is opened with.
///
/// The caller's string, the environment, the service file and `.pgpass` decide, as in every libpq program. We add
/// bounds, so that a dead network ends a connection in a minute or two instead of hours, and the encoding.
/// https://www.postgresql.org/docs/15/libpq-connect.html#LIBPQ-PARAMKEYWORDS
public struct ConnectionParameters: Sendable {
  /// libpq's names; where one is repeated the last counts.
  public private(set) var keywords: [String] = []
  /// One for each keyword.
  public private(set) var values: [String] = []
  /// What the connection is for.
  let applicationName: String
  private let string: ConnectionString

  /// Throws `.misconfigured` when the string does not parse; libpq's text, which can quote a password, is in `detail`.
  public init(conninfo: String, applicationName: String) throws(PostgresError) {
    if (conninfo + applicationName).utf8.contains(0) { throw .nul(in: "a connection parameter") }
    self.applicationName = applicationName
    string = try ConnectionString(conninfo)
    let chosen = try Self.options(of: conninfo).union(Self.environmentOptions())
    // A service file can hold any of the bounds and is only read when libpq connects.
    if !chosen.contains("service") {
      for (keyword, value) in Self.bounds where !chosen.contains(keyword) { append(keyword, value) }
    }
    append("fallback_application_name", applicationName)
    if !conninfo.isEmpty { append("dbname", conninfo) }
    // Last, because a later keyword wins over an earlier one.
    append("client_encoding", "UTF8")
  }

  /// `message` without anything of the string that could be a part of a password.
  func redacted(_ message: String) -> String { string.redacted(message) }

  private static let bounds = [
    ("connect_timeout", "15"), ("keepalives_idle", "30"), ("keepalives_interval", "10"), ("keepalives_count", "6"),
    ("tcp_user_timeout", "90000"),
  ]

  private mutating func append(_ keyword: String, _ value: String) {
    keywords.append(keyword)
    values.append(value)
  }

  /// A connection string as keywords and values, without passwords; nil when it cannot be understood.
  public static func summary(of conninfo: String) -> String? {
    guard (try? ConnectionString(conninfo)) != nil else { return nil }
    guard conninfo.contains("=") || conninfo.contains("://") else {
      return conninfo.isEmpty ? "" : "dbname=\(conninfo)"
    }
    guard let options = unsafe PQconninfoParse(conninfo, nil) else { return nil }
    defer { unsafe PQconninfoFree(options) }
    var parts: [String] = []
    var option = unsafe options
    while let keyword = unsafe option.pointee.keyword.map({ unsafe String(cString: $0) }) {
      if let value = unsafe option.pointee.val.map({ unsafe String(cString: $0) }) {
        parts.append("\(keyword)=\(keyword.contains("password") ? "…" : value)")
      }
      unsafe option += 1
    }
    return parts.joined(separator: " ")
  }

  /// The names of the options that a connection string sets.
  private static func options(of conninfo: String) throws(PostgresError) -> Set<String> {
    // libpq's own rule: anything else is the bare name of a database.
    guard conninfo.contains("=") || conninfo.hasPrefix("postgres://") || conninfo.hasPrefix("postgresql://") else {
      return []
    }
    var message: UnsafeMutablePointer<CChar>?
    let options = unsafe PQconninfoParse(conninfo, &message)
    defer { unsafe PQfreemem(message) }
    guard let options = unsafe options else {
      var error = PostgresError(.misconfigured, "the connection string cannot be understood")
      error.detail = unsafe message.map { unsafe trimmed(String(cString: $0)) }
      throw error
    }
    return unsafe names(settingsOf: options)
  }

  /// The names of the options that `PG*` variables, or the service that `PGSERVICE` names, set.
  private static func environmentOptions() -> Set<String> {
    guard let options = unsafe PQconndefaults() else { return [] }
    return unsafe names(settingsOf: options)
  }

  private static func names(settingsOf options: UnsafeMutablePointer<PQconninfoOption>) -> Set<String> {
    defer { unsafe PQconninfoFree(options) }
    var names: Set<String> = []
    var option = unsafe options
    while let keyword = unsafe option.pointee.keyword {
      if unsafe option.pointee.val != nil { names.insert(unsafe String(cString: keyword)) }
      unsafe option += 1
    }
    return names
  }
}

/// Lends `strings` to C as an array that ends with a null pointer. The strings hold no NUL.
func withCStrings<R>(
  _ strings: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> R
) -> R {
  var characters: [CChar] = []
  var offsets: [Int] = []
  for string in strings {
    offsets.append(characters.count)
    characters.append(contentsOf: string.utf8CString)
  }
  return unsafe characters.withUnsafeBufferPointer { characters in
    var pointers = unsafe offsets.map { offset in unsafe characters.baseAddress.map { unsafe $0 + offset } }
    unsafe pointers.append(nil)
    return unsafe pointers.withUnsafeBufferPointer { unsafe body($0.baseAddress) }
  }
}
