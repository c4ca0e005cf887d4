import Crypto
import Foundation
import TestSupport
import Testing

/// Plants markers in every configured secret and searches for them in all output.
@Suite struct SecretsTests {
  private static let marker = "mArK-7f3c-seCrEt"

  @Test func noSecretAndNoPayloadLeavesTheProgram() async throws {
    let shop = try await Rehearsal.sampleShop(formats: "csv, xlsx", isSmall: true)
    let metrics = shop.directory.file("metrics.prom")
    let secret = try shop.directory.write("\(Self.marker)-shared\n", "marked-secret")
    let child = try Child(in: shop.directory)
    try shop.configure(child.configuration)
    let environment = [
      "NIGHT_AUDIT_DATABASE_URL": shop.conninfo + " password=\(Self.marker)-database",
      "NIGHT_AUDIT_NOTIFY_PING_URL": "http://127.0.0.1:1/\(Self.marker)-ping", "PGPASSWORD": "\(Self.marker)-libpq",
      "NIGHT_AUDIT_METRICS_TEXTFILE": metrics, "NIGHT_AUDIT_APP_GAME_SHARED_SECRET_FILE": secret,
    ]
    let order = try await shop.value("SELECT min(order_id) FROM sales.orders")
    var output = ""
    func run(_ arguments: [String], more: [String: String] = [:]) async throws {
      let result = try await shop.nightAudit(more: arguments, environment: environment.merging(more) { $1 })
      output += result.output + result.errors
    }
    try await run(["run", "--as-of", Rehearsal.asOf, "--verbose", "--log-format", "json"])
    for format in ["text", "logfmt"] {
      try await run(
        ["run", "--as-of", Rehearsal.asOf, "--offline", "--dry-run", "--verbose", "--log-format", format],
        more: ["NIGHT_AUDIT_REPORT_FORMATS": "csv"])
    }
    for arguments in [
      ["config", "show"], ["config", "show", "--json"], ["doctor"], ["doctor", "--json"], ["status", "--json"],
      ["verify"],
      ["explain", order], ["runs", "--json"],
    ] { try await run(arguments) }
    for url in [
      "host=/nowhere password=\(Self.marker)-a", "postgresql://u:\(Self.marker)-b@/nowhere?nonsense=1",
      "'\(Self.marker)",
    ] {
      try await run(["run", "--verbose"], more: ["NIGHT_AUDIT_DATABASE_URL": url])
      try await run(["doctor", "--json"], more: ["NIGHT_AUDIT_DATABASE_URL": url])
    }
    try await run(["run", "--json"], more: ["NIGHT_AUDIT_NOTIFY_PING_URL": "ftp://\(Self.marker)"])
    #expect(!output.contains(Self.marker), "\(output.split(separator: "\n").filter { $0.contains(Self.marker) })")

    let children = try child.saw()
    #expect(!children.contains(Self.marker), "\(children.split(separator: "\n").filter { $0.contains(Self.marker) })")
    let payloads = try await shop.value(
      "SELECT string_agg(left(payload, 60), ' ') FROM (SELECT payload FROM sales.receipts WHERE length(payload) > 60 LIMIT 20) p"
    )
    let words = payloads.split(separator: " ").map(String.init) + [Self.marker]
    #expect(words.count > 5)
    let left = try await left(by: shop, metrics)
    for (name, text) in left {
      for word in words where text.contains(word) { Issue.record("\(name) has \(word)") }
    }
    for word in words where output.contains(word) { Issue.record("a log or an error has \(word)") }
  }

  /// Keys and tokens are sent to Apple only.
  @Test func noKeyAndNoTokenLeavesTheProgram() async throws {
    let shop = try await SignedShop(transactions: [SignedShop.gems("1")], formats: "csv, xlsx")
    try await shop.order("one", transaction: "1")
    try await shop.order("another", transaction: "2")
    let connect = P256.Signing.PrivateKey().pemRepresentation
    let keyFile = try shop.directory.write(connect, "AuthKey_ABC1234567.p8")
    let pseudonyms = try shop.directory.write(String(repeating: Self.marker, count: 3), "pseudonyms")
    let metrics = shop.directory.file("metrics.prom")
    let child = try Child(in: shop.directory)
    try shop.configure { configuration in
      """
      \(configuration.replacing("    bundleId:", with: "    sku: GAME01\n    bundleId:"))
        pseudonymise: \(pseudonyms)
      \(child.configuration)
      metrics:
        textfile: \(metrics)
      appStoreConnect:
        issuerId: 57246542-96fe-1a63-e053-0824d011072a
        keyId: ABC1234567
        privateKeyFile: \(keyFile)
        vendorNumbers: ["80012345"]
        url: http://127.0.0.1:\(shop.port)
      """
    }
    var output = ""
    for arguments in [
      ["run", "--as-of", SignedShop.asOf, "--verbose", "--log-format", "json"],
      ["tie-out", "--as-of", SignedShop.asOf],
      ["run", "--as-of", "2026-11-21T03:00:00Z", "--verbose"], ["config", "show", "--json"], ["doctor", "--json"],
      ["explain", "another"], ["runs", "--json"],
    ] {
      let result = try await shop.nightAudit(more: arguments)
      output += result.output + result.errors
    }
    let requests = try String(contentsOfFile: shop.directory.file("requests"), encoding: .utf8)
    #expect(requests.contains("/v1/salesReports") && requests.contains("/inApps/"), "\(requests)")
    let key = try #require(shop.apps.first).key.pemRepresentation
    // Without the first line, which is the same in all keys.
    let secrets = [key, connect].map { String($0.split(separator: "\n")[2].prefix(40)) } + [Self.marker]
    let token = /eyJ[A-Za-z0-9_-]{10,}\.eyJ/
    var left = try await left(by: shop, metrics)
    left["a log or an error"] = output
    left["what a child saw"] = try child.saw()
    for (name, text) in left {
      for secret in secrets where text.contains(secret) { Issue.record("\(name) has \(secret)") }
      if let found = text.firstMatch(of: token) { Issue.record("\(name) has \(found.output)") }
    }
  }

  private struct Child {
    private let seen: String
    let configuration: String

    init(in directory: TemporaryDirectory) throws {
      let script = directory.file("send")
      seen = directory.file("seen")
      // Continues the section `report`.
      configuration = """
          deliver: [hook]
        deliver:
          hook:
            command: [\(script)]
        """
      try directory.write(
        """
        #!/bin/sh
        { env; echo "$@"; for file in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < "$file"; echo; done; } >> '\(seen)' 2>&1
        """, "send", mode: 0o755)
    }

    /// Its arguments, environment, and the list of processes.
    func saw() throws -> String {
      let text = try String(contentsOfFile: seen, encoding: .utf8)
      #expect(text.contains("night-audit run --as-of") && text.contains("PATH="), "\(text.prefix(500))")
      return text
    }
  }

  /// Everything readable after a night: folder, workbook parts, metrics, database.
  private func left(by shop: some TestShop, _ metrics: String) async throws -> [String: String] {
    let read = try await Program.runScript("report_texts", shop.reports + "/2026-11-19", metrics)
    var left: [String: String] = try read.document()
    #expect(left.keys.contains { $0.contains("worksheet") } && left.count > 15, "\(left.keys)")
    for table in ["runs", "dispatches"] {
      left["the table \(table)"] = try await shop.value("SELECT string_agg(t::text, ' ') FROM night_audit.\(table) t")
    }
    return left
  }

  /// Root could read the process in any case.
  private static let asOther = getuid() == 0 ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : []

  private static var runsForOthers: Bool {
    get async throws {
      let version = asOther + [Program.nightAudit.executable.path, "--version"]
      return try await Program(path: "/usr/bin/env").run(version).status == 0
    }
  }

  /// Processes that are not dumpable belong to root (proc(5)).
  @Test(.enabled { try await SecretsTests.runsForOthers }) func otherUsersCannotReadTheProcessOfARun() async throws {
    let directory = try TemporaryDirectory()
    let script = """
      import os, socket, sys
      server = socket.create_server(("127.0.0.1", 0))
      with open(sys.argv[1] + ".new", "w") as file:
          file.write(str(server.getsockname()[1]))
      os.rename(sys.argv[1] + ".new", sys.argv[1])
      client = server.accept()
      open(sys.argv[2], "w").close()
      server.accept()
      """
    let (port, met) = (directory.file("port"), directory.file("met"))
    let server = try Program(path: "/usr/bin/env").start(["python3", "-c", script, port, met])
    defer { server.kill() }
    let program = Program.nightAudit.executable.path
    let run = try Program(path: "/usr/bin/env").start(
      Self.asOther + [program, "runs"],
      environment: [
        "NIGHT_AUDIT_DATABASE_URL":
          "host=127.0.0.1 port=\(try await server.port(in: port)) user=x dbname=x",
        "NIGHT_AUDIT_APP_APP_BUNDLE_ID": "com.example.game",
      ])
    defer { run.kill() }
    while !FileManager.default.fileExists(atPath: met), run.process.isRunning { await pause() }
    let name = try String(contentsOfFile: "/proc/\(run.process.processIdentifier)/comm", encoding: .utf8)
    #expect(name == "night-audit\n")
    let memory = try FileManager.default.attributesOfItem(atPath: "/proc/\(run.process.processIdentifier)/mem")
    #expect(memory[FileAttributeKey.ownerAccountID] as? Int == 0, "\(memory)")
  }
}
