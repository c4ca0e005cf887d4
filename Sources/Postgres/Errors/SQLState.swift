/// SQLSTATEs that the program handles or explains (PostgreSQL documentation, appendix A).
public enum SQLState {
  // Also sent when a standby's recovery cancels a snapshot.
  public static let serializationFailure = "40001"
  public static let deadlockDetected = "40P01"
  public static let lockNotAvailable = "55P03"
  public static let queryCanceled = "57014"
  // Also sent by PgBouncer.
  public static let protocolViolation = "08P01"
  public static let adminShutdown = "57P01"
  public static let featureNotSupported = "0A000"
  public static let readOnlyTransaction = "25006"
  public static let invalidAuthorization = "28000"
  public static let invalidPassword = "28P01"
  public static let unknownDatabase = "3D000"
  public static let insufficientPrivilege = "42501"
  public static let restrictViolation = "23001"
  public static let undefinedTable = "42P01"
  public static let undefinedColumn = "42703"
  public static let undefinedObject = "42704"
  public static let undefinedFunction = "42883"
  public static let undefinedSchema = "3F000"
  public static let indeterminateCollation = "42P22"
  public static let collationMismatch = "42P21"
  public static let invalidParameterValue = "22023"
  public static let untranslatableCharacter = "22P05"
  public static let tooManyConnections = "53300"
  public static let diskFull = "53100"
  public static let outOfMemory = "53200"
  public static let temporaryFileLimit = "53400"
}

extension PostgresError {
  /// The remedy. In doctor's own output it does not refer to doctor.
  func advice(inDoctor: Bool) -> String? {
    guard [.server, .connectionLost, .connectionFailed].contains(kind) else { return nil }
    func doctor(_ does: String) -> String { inDoctor ? "" : "; night-audit doctor \(does)" }
    return switch sqlState {
    // Statements that only read conflict with nothing but recovery.
    case SQLState.serializationFailure where isOfReader:
      """
      a standby replayed a change of rows that were being read; run it again, or set hot_standby_feedback = on or a \
      longer max_standby_streaming_delay on the standby
      """
    case SQLState.serializationFailure, SQLState.deadlockDetected: "other sessions changed the same rows; run it again"
    case SQLState.lockNotAvailable:
      "another session has taken a lock on the table; wait until pg_stat_activity shows no session on it, "
        + "then run it again"
    case SQLState.queryCanceled: "an administrator, or a limit of the server, ended the statement; run it again"
    case SQLState.protocolViolation where message.contains("query_wait_timeout"):
      "the pooler had no connection to the server left; raise its pool_size, or the role's limit, to 8 or more"
    case SQLState.adminShutdown: "the server was stopped, or an administrator ended the session; run it again"
    case SQLState.invalidAuthorization:
      "check the user in the connection string or PGUSER, that its role may log in, and pg_hba.conf"
    case SQLState.invalidPassword: "check the password in the connection string, PGPASSWORD or the pgpass file"
    case SQLState.unknownDatabase: "check dbname in the connection string or PGDATABASE, or create that database"
    case SQLState.readOnlyTransaction:
      """
      the server or the role only reads (a standby, or default_transaction_read_only); database.url must name one that \
      may write
      """
    case SQLState.insufficientPrivilege where kind == .connectionFailed:
      "run, as the database's owner: GRANT CONNECT ON DATABASE, with its name and TO the role that connects"
    // By the text, because the state is the same for every right. A server in another language gets the next advice.
    case SQLState.insufficientPrivilege where message.hasPrefix("permission denied to create temporary tables"):
      "run, as the database's owner: GRANT TEMPORARY ON DATABASE, with its name and TO the role that connects"
    case SQLState.insufficientPrivilege:
      "the role lacks a right, or row-level security would hide rows from it" + doctor("prints the grants")
    case SQLState.undefinedTable, SQLState.undefinedColumn, SQLState.undefinedSchema:
      inDoctor ? nil : "night-audit doctor prints what is missing"
    case SQLState.undefinedFunction where isOfReader:
      """
      names resolve in pg_catalog alone; where a function of a view calls another one, write its schema before its name, \
      or run ALTER FUNCTION with SET search_path
      """
    case SQLState.indeterminateCollation, SQLState.collationMismatch:
      "two collations meet in a view; give the column one, such as COLLATE \"C\""
    case SQLState.untranslatableCharacter where isOfReader:
      """
      a row has a byte that is no character in the encoding of the shop's database; the page Configuration has the \
      statement that finds such rows
      """
    case SQLState.untranslatableCharacter: "the database's encoding lacks a character"
    case SQLState.tooManyConnections: "the server has no connection left; raise max_connections or the role's limit"
    case SQLState.diskFull: "the server's disk is full"
    case SQLState.outOfMemory: "the server has no memory left"
    case SQLState.temporaryFileLimit: "a limit of the server's is reached; see temp_file_limit"
    // Cardinality violations and data exceptions.
    case let state? where isOfReader && (state.hasPrefix("21") || state.hasPrefix("22")):
      "a view that is read fails on one of its rows" + doctor("names the view")
    default: nil
    }
  }
}
