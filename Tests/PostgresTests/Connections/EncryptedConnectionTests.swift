import Postgres
import TestSupport
import Testing

/// TLS to a server with a certificate made for this test.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct EncryptedConnectionTests {
  @Test("verify-full accepts only the server with the trusted certificate and the right name")
  func verified() async throws {
    let (folder, another) = (try TemporaryDirectory(), try TemporaryDirectory())
    let certificate = try ServerCertificate(in: folder.path)
    let server = try await PrivatePostgres.start(certificate: certificate)
    func connect(_ host: String, root: String, mode: String = "verify-full") async throws -> Bool {
      let session = try await PostgresSession.connect(
        "host=\(host) hostaddr=127.0.0.1 port=\(server.port) user=postgres dbname=postgres sslmode=\(mode) sslrootcert=\(root)",
        applicationName: "x")
      let isEncrypted = try await session.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").single()
        .bool(0)
      await session.close()
      return isEncrypted
    }
    #expect(try await connect("localhost", root: certificate.path))
    // The same server under a name that its certificate lacks.
    for host in ["db.example.com", "127.0.0.1"] {
      let error = try await postgresError { _ = try await connect(host, root: certificate.path) }
      #expect(error.kind == .connectionFailed)
      #expect(error.message.contains("server certificate for \"localhost\""), "\(error)")
    }
    // Another server with the right name.
    let stranger = try await postgresError {
      _ = try await connect("localhost", root: try ServerCertificate(in: another.path).path)
    }
    #expect(stranger.message.contains("certificate verify failed"), "\(stranger)")
    let rootless = try await postgresError { _ = try await connect("localhost", root: folder.file("none.pem")) }
    #expect(rootless.message.contains("none.pem"), "\(rootless)")
    // Modes without verification, which an operator may choose.
    #expect(try await connect("db.example.com", root: folder.file("none.pem"), mode: "require"))
    #expect(try await !connect("db.example.com", root: folder.file("none.pem"), mode: "disable"))
  }
}
