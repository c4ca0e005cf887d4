import Postgres
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(10))) struct ConnectionSecretTests {
  @Test(
    "an ambiguous connection string is rejected, and the error shows no part of it",
    arguments: [
      "postgresql://x:s3cret@[::1/db", "host=/tmp password='s3cret", "host s3cret=", "postgresql://u:s3@cret@host/db",
      "postgresql://u:s3@cret@/db", "postgresql://u:s3/cret@host/db", "postgresql://u:s3?cret@host/db",
      "postgresql://u:s3:cret@host:x/db", "postgres://u:%s3cret@host/db",
      "u:s3cret@host/db", "postgresq://u:s3cret@host/db", "https://u:s3cret@host/db", "password=s3 cret host=h",
      "postgresql://u:pw@h/db?password=s3cret&x=1",
    ])
  func misconfigured(_ conninfo: String) async throws {
    let error = try await postgresError { _ = try await PostgresSession.connect(conninfo, applicationName: "x") }
    #expect(error.kind == .misconfigured, "\(error)")
    for part in ["s3", "cret"] { #expect(!"\(error)".contains(part)) }
    #expect(!error.message.contains("host/db"))
  }

  @Test(
    "the error of a failed connection shows no password, even if libpq read it as another parameter",
    arguments: [
      "host=/nonexistent user=x password=s3cret", "postgresql://u:s3cret@%2Fnonexistent/db",
      "postgresql://u:s3cret@%2Ftmp%2Fs3cret/db", "host=/nonexistent/s3cret password=s3cret dbname=s3cret",
      "postgresql://u:12/s3cret@x@127.0.0.1:1/db", "postgresql://127.0.0.1:1/s3cret?user=me@x&password=s3cret",
      "postgresql://u:s3cret#s3cret@127.0.0.1:1/db",
    ])
  func failed(_ conninfo: String) async throws {
    let error = try await postgresError { _ = try await PostgresSession.connect(conninfo, applicationName: "x") }
    #expect([.connectionFailed, .misconfigured].contains(error.kind))
    #expect(!"\(error)".contains("s3cret"))
  }

  @Test(
    "an unambiguous connection string is accepted",
    arguments: [
      "", "mydb", "postgresql://", "postgresql:///db", "postgresql://h1:1,h2:2/db", "postgresql://u@h/db",
      "postgresql://u:p%40w@h:5432/db?sslmode=disable", "postgresql://[::1]:5432/db", "postgresql://u:pw@[::1]/db",
      "postgresql://h/db?user=me@azure", "host=a user=me@azure password=p@w", "postgresql:///db?host=/tmp&user=x",
      "postgresql://%2Ftmp:1/db", "service=night",
    ])
  func clear(_ conninfo: String) throws {
    _ = try ConnectionParameters(conninfo: conninfo, applicationName: "x")
  }
}
