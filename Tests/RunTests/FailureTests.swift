import Postgres
import Reconciliation
import Run
import Testing

@Suite struct FailureTests {
  private static func refusal(_ sqlState: String) -> PostgresError {
    var error = PostgresError(.server, "refused")
    error.sqlState = sqlState
    return error
  }

  @Test(
    arguments: [
      ("40001", .again, .databaseUnreachable), ("55P03", .again, .databaseUnreachable),
      // A statement cancelled by another session, or ended by a limit of the server.
      ("57014", .again, .databaseUnreachable), ("57P01", .reopen, .databaseUnreachable),
      ("25P03", .reopen, .databaseUnreachable),
      ("53100", .endNight, .databaseUnreachable), ("58030", .endNight, .databaseUnreachable),
      ("42501", .endNight, .configuration), ("25006", .endNight, .configuration), ("22003", .park, .internalError),
      ("XX000", .endNight, .internalError),
    ] as [(String, FailureRemedy, Run.ExitStatus)])
  func retryAndExitStatusAgreeAboutEverySQLState(_ sqlState: String, _ remedy: FailureRemedy, _ status: Run.ExitStatus)
  {
    let error = Self.refusal(sqlState)
    #expect(Failure(error).remedy == remedy && error.exitStatus == status && Run.ExitStatus(for: error) == status)
  }

  @Test(arguments: ["21000", "22012"]) func aValueThatFailsInAViewOfTheShopIsAConfigurationError(_ sqlState: String) {
    var error = Self.refusal(sqlState)
    #expect(error.exitStatus == .internalError && !error.description.contains("night-audit doctor"))
    error.isOfReader = true
    #expect(Failure(error) == .unreadable && error.exitStatus == .configuration)
    #expect(error.description.contains("night-audit doctor names the view"))
  }

  @Test(
    arguments: [
      (.connectionFailed, nil, .reopen, .databaseUnreachable),
      (.connectionFailed, "53300", .reopen, .databaseUnreachable),
      (.connectionFailed, "57P03", .reopen, .databaseUnreachable),
      (.connectionFailed, "28P01", .endNight, .configuration), (.connectionFailed, "3D000", .endNight, .configuration),
      (.connectionLost, nil, .reopen, .databaseUnreachable), (.misconfigured, nil, .endNight, .configuration),
      (.unexpectedData, nil, .park, .configuration), (.cancelled, nil, .endNight, .interrupted),
      (.usage, nil, .endNight, .internalError),
    ] as [(PostgresError.Kind, String?, FailureRemedy, Run.ExitStatus)])
  func connectionsAreRetriedUnlessMisconfigured(
    _ kind: PostgresError.Kind, _ sqlState: String?, _ remedy: FailureRemedy, _ status: Run.ExitStatus
  ) {
    var error = PostgresError(kind, "x")
    error.sqlState = sqlState
    #expect(Failure(error).remedy == remedy && error.exitStatus == status)
  }
}
