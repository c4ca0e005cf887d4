import CLibPQ

/// The owner of one `PGresult`.
@safe
struct ServerResult: ~Copyable {
  let pointer: OpaquePointer

  init?(_ pointer: OpaquePointer?) {
    guard let pointer = unsafe pointer else { return nil }
    unsafe self.pointer = unsafe pointer
  }

  deinit { unsafe PQclear(pointer) }

  var status: ExecStatusType { unsafe PQresultStatus(pointer) }

  var isSuccess: Bool {
    switch status {
    case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY: true
    default: false
    }
  }

  var isSkipped: Bool { status == PGRES_PIPELINE_ABORTED }

  /// True for the synchronization point of a pipeline, which is no statement's result.
  var isSynchronized: Bool { status == PGRES_PIPELINE_SYNC }
  var isCopy: Bool { status == PGRES_COPY_OUT || status == PGRES_COPY_IN || status == PGRES_COPY_BOTH }

  /// The command tag, such as `INSERT 0 5` or `ROLLBACK`.
  var commandTag: String { unsafe String(cString: PQcmdStatus(pointer)) }
  var affectedRows: Int { unsafe Int(String(cString: PQcmdTuples(pointer))) ?? 0 }

  var columns: [PostgresColumn] {
    let count = unsafe PQnfields(pointer)
    return (0..<count).map { index in
      PostgresColumn(
        name: unsafe PQfname(pointer, index).map { unsafe String(cString: $0) } ?? "",
        type: PostgresType(rawValue: unsafe PQftype(pointer, index)))
    }
  }
}

extension PostgresError {
  init(_ result: borrowing ServerResult, isConnectionLost: Bool, wasInterrupted: Bool, statement: String) {
    let pointer = unsafe result.pointer
    let state = unsafe errorField(pointer, NA_DIAG_SQLSTATE)
    let severity = unsafe errorField(pointer, NA_DIAG_SEVERITY)
    let kind: Kind =
      if isConnectionLost || severity == "FATAL" || severity == "PANIC" {
        .connectionLost
      } else if state == SQLState.queryCanceled, wasInterrupted {
        .cancelled
      } else {
        state == nil ? .unexpectedData : .server
      }
    self.init(
      kind, unsafe errorField(pointer, NA_DIAG_MESSAGE) ?? trimmed(String(cString: PQresultErrorMessage(pointer))),
      statement: statement)
    sqlState = state
    detail = unsafe errorField(pointer, NA_DIAG_DETAIL)
    constraint = unsafe errorField(pointer, NA_DIAG_CONSTRAINT)
    schema = unsafe errorField(pointer, NA_DIAG_SCHEMA)
    table = unsafe errorField(pointer, NA_DIAG_TABLE)
    column = unsafe errorField(pointer, NA_DIAG_COLUMN)
  }
}

func trimmed(_ message: String) -> String { String(message.reversed().drop(while: \.isWhitespace).reversed()) }
