import CLibPQ

/// The keywords and values of a connection. libpq's usual sources apply; timeouts are added, so that a dead network
/// ends it in a minute or two instead of hours.
/// https://www.postgresql.org/docs/15/libpq-connect.html#LIBPQ-PARAMKEYWORDS
public struct ConnectionParameters: Sendable {
  /// libpq's keywords; the last of repeated ones counts.
  public private(set) var keywords: [String] = []
  public private(set) var values: [String] = []
  let applicationName: String
  private let string: ConnectionString

  /// Throws `.misconfigured` if the string is invalid. libpq's message, which may quote a password, is in `detail`.
  public init(conninfo: String, applicationName: String) throws(PostgresError) {
    if (conninfo + applicationName).utf8.contains(0) { throw .nul(in: "a connection parameter") }
    self.applicationName = applicationName
    string = try ConnectionString(conninfo)
    let chosen = try Self.options(of: conninfo).union(Self.environmentOptions())
    // A service file may set any of these timeouts, and is read only when libpq connects.
    if !chosen.contains("service") {
      for (keyword, value) in Self.bounds where !chosen.contains(keyword) { append(keyword, value) }
    }
    append("fallback_application_name", applicationName)
    if !conninfo.isEmpty { append("dbname", conninfo) }
    // Last, because a later keyword wins over an earlier one.
    append("client_encoding", "UTF8")
  }

  func redacted(_ message: String) -> String { string.redacted(message) }

  private static let bounds = [
    ("connect_timeout", "15"), ("keepalives_idle", "30"), ("keepalives_interval", "10"), ("keepalives_count", "6"),
    ("tcp_user_timeout", "90000"),
  ]

  private mutating func append(_ keyword: String, _ value: String) {
    keywords.append(keyword)
    values.append(value)
  }

  /// The connection string as keywords and values, without passwords; nil if it is invalid.
  public static func summary(of conninfo: String) -> String? {
    guard (try? ConnectionString(conninfo)) != nil else { return nil }
    guard conninfo.contains("=") || conninfo.contains("://") else {
      return conninfo.isEmpty ? "" : "dbname=\(conninfo)"
    }
    guard let options = unsafe PQconninfoParse(conninfo, nil) else { return nil }
    let settings = unsafe settings(of: options)
    return settings.map { "\($0.keyword)=\($0.keyword.contains("password") ? "…" : $0.value)" }.joined(separator: " ")
  }

  private static func options(of conninfo: String) throws(PostgresError) -> Set<String> {
    // libpq's rule: any other text is the name of a database.
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
    let settings = unsafe settings(of: options)
    return Set(settings.map { $0.keyword })
  }

  // Includes the options of the service in `PGSERVICE`.
  private static func environmentOptions() -> Set<String> {
    guard let options = unsafe PQconndefaults() else { return [] }
    let settings = unsafe settings(of: options)
    return Set(settings.map { $0.keyword })
  }

  /// The options that have a value. Frees the list.
  static func settings(of options: UnsafeMutablePointer<PQconninfoOption>) -> [(keyword: String, value: String)] {
    defer { unsafe PQconninfoFree(options) }
    var settings: [(keyword: String, value: String)] = []
    var option = unsafe options
    while let keyword = unsafe option.pointee.keyword.map({ unsafe String(cString: $0) }) {
      if let value = unsafe option.pointee.val.map({ unsafe String(cString: $0) }) { settings.append((keyword, value)) }
      unsafe option += 1
    }
    return settings
  }
}

/// Passes strings to C as a null-terminated array. They must not contain NUL.
func withCStrings<R>(_ strings: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> R) -> R {
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
