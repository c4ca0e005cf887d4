import Foundation
import Testing

/// Markers are planted wherever a secret is configured, and looked for in everything that leaves the program.
@Suite struct SecretsTests {
  private static let marker = "mArK-7f3c-seCrEt"

  @Test func noSecretAndNoPayloadLeavesTheProgram() async throws {
    let shop = try await Rehearsal.sampleShop()
    let (seen, metrics, script) = (
      shop.directory.file("seen"), shop.directory.file("metrics.prom"), shop.directory.file("send")
    )
    // What a child is given, and what everybody sees of all processes.
    try """
    #!/bin/sh
    { env; echo "$@"; for file in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < "$file"; echo; done; } >> '\(seen)' 2>&1
    """.write(toFile: script, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: script)
    let secret = shop.directory.file("marked-secret")
    try "\(Self.marker)-shared\n".write(toFile: secret, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: secret)
    let yaml =
      try shop.configuration() + """

          deliver: [hook]
        deliver:
          hook:
            command: [\(script)]
        """
    try yaml.write(toFile: shop.directory.file("night-audit.yaml"), atomically: true, encoding: .utf8)
    let environment = [
      "NIGHT_AUDIT_DATABASE_URL": shop.conninfo + " password=\(Self.marker)-database",
      "NIGHT_AUDIT_NOTIFY_PING_URL": "http://127.0.0.1:1/\(Self.marker)-ping", "PGPASSWORD": "\(Self.marker)-libpq",
      "NIGHT_AUDIT_METRICS_TEXTFILE": metrics, "NIGHT_AUDIT_APP_GAME_SHARED_SECRET_FILE": secret,
    ]
    let order = try await shop.value("SELECT min(order_id) FROM sales.orders")
    var output = ""
    func run(_ arguments: [String], more: [String: String] = [:]) async throws {
      let result = try await shop.nightAudit(
        arguments[0], more: Array(arguments.dropFirst()), environment: environment.merging(more) { $1 })
      output += result.output + result.errors
    }
    try await run(["run", "--as-of", Rehearsal.asOf, "--verbose", "--log-format", "json"])
    for format in ["text", "logfmt"] {
      try await run(["run", "--as-of", Rehearsal.asOf, "--offline", "--dry-run", "--verbose", "--log-format", format])
    }
    for arguments in [
      ["config", "show"], ["config", "show", "--json"], ["doctor"], ["doctor", "--json"], ["status", "--json"],
      ["verify"],
      ["explain", order], ["runs", "--json"],
    ] { try await run(arguments) }
    // What fails, and quotes what it could not do.
    for url in [
      "host=/nowhere password=\(Self.marker)-a", "postgresql://u:\(Self.marker)-b@/nowhere?nonsense=1",
      "'\(Self.marker)",
    ] {
      try await run(["run", "--verbose"], more: ["NIGHT_AUDIT_DATABASE_URL": url])
      try await run(["doctor", "--json"], more: ["NIGHT_AUDIT_DATABASE_URL": url])
    }
    try await run(["run", "--json"], more: ["NIGHT_AUDIT_NOTIFY_PING_URL": "ftp://\(Self.marker)"])
    #expect(!output.contains(Self.marker), "\(output.split(separator: "\n").filter { $0.contains(Self.marker) })")

    let children = try String(contentsOfFile: seen, encoding: .utf8)
    #expect(children.contains("night-audit run --as-of") && children.contains("PATH="), "\(children.prefix(500))")
    #expect(!children.contains(Self.marker), "\(children.split(separator: "\n").filter { $0.contains(Self.marker) })")
    let payloads = try await shop.value(
      "SELECT string_agg(left(payload, 60), ' ') FROM (SELECT payload FROM sales.receipts WHERE length(payload) > 60 LIMIT 20) p"
    )
    let words = payloads.split(separator: " ").map(String.init) + [Self.marker]
    #expect(words.count > 5)
    var files = try shop.files(shop.reports + "/2026-11-19")
    files["metrics"] = try Data(contentsOf: URL(fileURLWithPath: metrics))
    files["what the database keeps of runs"] = Data(
      try await shop.value("SELECT string_agg(r::text, ' ') FROM night_audit.runs r").utf8)
    files["what it keeps of reports to send"] = Data(
      try await shop.value("SELECT string_agg(d::text, ' ') FROM night_audit.dispatches d").utf8)
    let workbook = try await Program(path: "/usr/bin/env").run([
      "python3", "-c",
      "import sys, zipfile; file = zipfile.ZipFile(sys.argv[1]); [print(file.read(name)) for name in file.namelist()]",
      shop.reports + "/2026-11-19/night-audit-2026-11-19.xlsx",
    ])
    #expect(workbook.output.contains("worksheet"), "\(workbook.errors)")
    files["the workbook's parts"] = Data(workbook.output.utf8)
    for (name, content) in files {
      let text = String(decoding: content, as: UTF8.self)
      for word in words where text.contains(word) { Issue.record("\(name) has \(word)") }
    }
    for word in words where output.contains(word) { Issue.record("a log or an error has \(word)") }
  }

  /// Signals that ask for a core file come from outside as well: none is written, whatever the caller's limits allow.
  @Test func noCoreFileIsWritten() async throws {
    let shop = try await SignedShop(transactions: [])
    let passage = try await Passage(to: shop.conninfo, .stall, at: 1)
    let night = try Program(path: "/bin/sh").start(
      [
        "-c", "ulimit -c unlimited; exec \"$0\" \"$@\"", Program.nightAudit.executable.path, "run", "--as-of",
        SignedShop.asOf, "--config", shop.directory.file("night-audit.yaml"),
      ], environment: ["NIGHT_AUDIT_DATABASE_URL": passage.conninfo])
    defer { kill(night.process.processIdentifier, SIGKILL) }
    // It has begun when it has sent something.
    while passage.count == 0, night.process.isRunning { await Task.yield() }
    let limits = try String(contentsOfFile: "/proc/\(night.process.processIdentifier)/limits", encoding: .utf8)
    let line = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") })
    #expect(line.split(separator: " ").map(String.init).contains("0"), "\(line)")
    #expect(!line.contains("unlimited"), "\(line)")
  }
}
