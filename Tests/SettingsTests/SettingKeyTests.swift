import Foundation
import Postgres
import Reconciliation
import Run
import TestSupport
import Testing

@testable import Settings

@Suite struct SettingKeyTests {
  @Test("an explicit default changes nothing", arguments: SettingKey.all.filter { !$0.standard.isEmpty })
  func defaults(_ key: SettingKey) throws {
    let written = try load(app + "\(key.name): \(key.standard.contains(",") ? "[\(key.standard)]" : key.standard)\n")
    // Sets print their elements in any order.
    #expect(String(describing: written).sorted() == String(describing: try load(app)).sorted())
  }

  @Test("values other than the defaults are read with their types")
  func further() throws {
    let settings = try load(
      """
      app: {game: {bundleId: com.example.game, sku: G1}}
      audit:
        systemicShare: 1
        holdShare: 0.5
        reviewWindows:
          - {since: 2026-11-01, until: 2026-11-03}
          - since: 2026-12-01
            until: 2026-12-01
      evidence.retention: 90d
      report.retention: for ever
      notify: {pingUrl: "https://hc-ping.com/abc", on: always}
      metrics.textfile: /var/lib/node_exporter/night_audit.prom
      database: {salesUrl: "host=replica"}
      tieOut: {folder: /srv/apple, timeZone: Europe/Berlin, trailingDays: 7, keepRaw: forever, alertUnits: 3, alertShare: 0.01}
      appStoreConnect: {issuerId: i, keyId: k, privateKeyFile: /k.p8, vendorNumbers: [85012345, 85012346], salesVersion: 1_1}
      """)
    #expect(settings.apps.first?.sku == "G1" && settings.systemicShare == .whole)
    #expect(settings.holdShare == Share(millionths: 500_000))
    #expect(settings.reviewWindows.map(\.until) == ["2026-11-03", "2026-12-01"])
    #expect(settings.evidenceRetention == .days(90) && settings.pingURL == "https://hc-ping.com/abc")
    #expect(settings.notifyOn == .always && settings.retention == nil)
    #expect(settings.metricsTextfile == "/var/lib/node_exporter/night_audit.prom")
    #expect(settings.salesURL == "host=replica" && settings.tieOut.folder == "/srv/apple")
    #expect(settings.tieOut.timeZoneName == "Europe/Berlin" && settings.tieOut.trailingDays == 7)
    #expect(settings.tieOut.keepRaw == nil)
    #expect(settings.tieOut.alertUnits == 3 && settings.tieOut.alertShare == Share(millionths: 10_000))
    #expect(settings.appStoreConnect.vendorNumbers == ["85012345", "85012346"])
    #expect(settings.appStoreConnect.salesVersion == "1_1")
    #expect(settings.digest != (try load(app)).digest)
    let byEnvironment = try load(
      app, ["NIGHT_AUDIT_AUDIT_REVIEW_WINDOWS": "2026-11-01/2026-11-03,2026-12-01/2026-12-01"])
    #expect(byEnvironment.reviewWindows == settings.reviewWindows)
  }

  private static let secrets: [(String, String)] = [
    ("database.url: host=h password=s3cret sslmod=x", "database.url"),
    ("database.salesUrl: 'postgresql://u:s3cret@h/db?sslmod=x'", "database.salesUrl"),
    ("audit.systemicShare: 25", "audit.systemicShare"), ("audit.holdShare: -1", "audit.holdShare"),
    ("audit.holdShare: 0.0000001", "audit.holdShare"), ("audit.holdShare: .", "audit.holdShare"),
    ("audit.reviewWindows: [2026-11-03/2026-11-01]", "audit.reviewWindows"),
    ("audit.reviewWindows: [{since: 2026-11-03}]", "audit.reviewWindows"),
    ("evidence.retention: 0d", "evidence.retention"), ("notify.on: never", "notify.on"),
    ("notify.pingUrl: ftp://s3cret", "notify.pingUrl"),
    ("appstore.productionUrl: 'https://u:s3cret@h/x?sig=s3cret'", "appstore.productionUrl"),
    ("appStoreConnect.url: 'http://h/x?sig=s3cret'", "appStoreConnect.url"),
    ("report.deliver: [a]\ndeliver.a.url: 'https://u:s3cret@h/x'", "deliver.a.url"),
    ("report.deliver: [a]\ndeliver.a.url: 'https://h/x?sig=s3cret'", "deliver.a.url"),
    ("notify.pingUrl: https://hc.example/s3 cret", "notify.pingUrl"),
    ("notify.pingUrl: 'https://u:s3cret@hc.example/x'", "notify.pingUrl"),
    ("report.deliver: [a]\ndeliver.a.url: 'https://h/s3 cret'", "deliver.a.url"),
    ("notify.pingUrl: 'https://hc.example/s3cret#x'", "notify.pingUrl"),
    ("tieOut.timeZone: Mars", "tieOut.timeZone"), ("tieOut.trailingDays: 0", "tieOut.trailingDays"),
    ("appStoreConnect.vendorNumbers: [abc]", "appStoreConnect.vendorNumbers"),
    ("appStoreConnect.privateKeyFile: /k.p8", "appStoreConnect.keyId"),
    ("appStoreConnect.issuerId: i", "appStoreConnect.privateKeyFile"),
    ("appStoreConnect: {keyId: k, vendorNumbers: [85012345]}", "appStoreConnect.privateKeyFile"),
    ("appStoreConnect: {privateKeyFile: /k.p8, keyId: k}", "appStoreConnect.vendorNumbers"),
    ("appStoreConnect.salesVersion: new", "appStoreConnect.salesVersion"),
    ("findings.owners.nobody: anna", "findings.owners.nobody"), ("app.game.unknown: 1", "app.game.unknown"),
  ]

  private static let values: [(String, String)] = [
    ("unknown: 1", "unknown"), ("audit: {lookback: 3}", "audit.lookback"), ("audit: {lookback: -3d}", "audit.lookback"),
    ("audit: {lookback: 0d}", "audit.lookback"),
    ("audit: {amountTolerance: '-1'}", "audit.amountTolerance"),
    ("audit: {amountTolerance: 1.2345678}", "audit.amountTolerance"),
    ("audit: {amountTolerance: 1.+5}", "audit.amountTolerance"),
    ("audit: {amountTolerance: '-0.5'}", "audit.amountTolerance"),
    ("appstore: {concurrency: '+3'}", "appstore.concurrency"), ("app.game.appAppleId: '-7'", "app.game.appAppleId"),
    ("appstore: {apps: [game, a]}\napp.a.bundleId: ' '", "app.a.bundleId"),
    ("report: {formats: [pdf]}", "report.formats"), ("report: {timeZone: Nowhere}", "report.timeZone"),
    ("appstore: {concurrency: 0}", "appstore.concurrency"), ("appstore: {pinRoots: perhaps}", "appstore.pinRoots"),
    ("appstore: {timeout: 0s}", "appstore.timeout"),
    ("appstore: {channel: pigeon}", "appstore.channel"), ("app.game.colour: blue", "app.game.colour"),
    ("appstore: {apps: [a, a]}", "appstore.apps"), ("appstore: {apps: [game, other]}", "app.other.bundleId"),
    ("report: {retention: always}", "report.retention"), ("database: [a]", "database"),
    ("report: {directory: ''}", "report.directory"), ("database: {salesSchema: ' '}", "database.salesSchema"),
    ("metrics: {textfile: ''}", "metrics.textfile"), ("findings: {owners: anna}", "findings.owners"),
    ("journal: {accounts: ledger}", "journal.accounts"), ("journal: {accounts: {sale: '4000'}}", "journal.accounts"),
    ("appstore: {requestsPerSecond: 1e-15}", "appstore.requestsPerSecond"),
  ]

  private static let targets: [(String, String)] = [
    ("report: {deliver: [a]}", "deliver.a"), ("deliver: {a: {url: 'smtps://h'}}", "deliver.a"),
    ("report: {deliver: [a, a]}\ndeliver.a.command: /bin/true", "report.deliver"),
    ("report: {deliver: ['1']}", "report.deliver"),
    ("report: {deliver: [a]}\ndeliver: {a: {command: [/bin/true], url: 'https://h/x'}}", "deliver.a"),
    ("report: {deliver: [a]}\ndeliver: {a: {command: [send]}}", "deliver.a.command"),
    ("report: {deliver: [a]}\ndeliver: {a: {url: 'ftp://h/x'}}", "deliver.a.url"),
    ("report: {deliver: [a]}\ndeliver: {a: {url: 'http://example.com/x'}}", "deliver.a.url"),
    ("report: {deliver: [a]}\ndeliver: {a: {url: 'https://u:p@h/x'}}", "deliver.a.url"),
    ("report: {deliver: [a]}\ndeliver: {a: {url: 'https://h:99999/x'}}", "deliver.a.url"),
    ("report: {deliver: [a]}\ndeliver: {a: {url: 'https://h/x?y=1'}}", "deliver.a.url"),
    ("report: {deliver: [a]}\ndeliver: {a: {url: 'https://h/x', user: u}}", "deliver.a.passwordFile"),
    ("report: {deliver: [a]}\ndeliver: {a: {url: 'https://h/x', to: [a@b.c]}}", "deliver.a.to"),
    ("report: {deliver: [a]}\ndeliver: {a: {url: 'https://h/x', region: eu-1}}", "deliver.a.user"),
    ("report: {deliver: [a]}\ndeliver: {a: {url: 'smtps://h', to: [a@b.c]}}", "deliver.a.from"),
    ("report: {deliver: [a]}\ndeliver: {a: {url: 'smtps://h', from: a@b.c}}", "deliver.a.to"),
    ("report: {deliver: [a]}\ndeliver: {a: {url: 'smtps://h', from: a@b.c, to: ['A <a@b.c>']}}", "deliver.a.to"),
    (
      "report: {deliver: [a]}\ndeliver: {a: {url: 'smtps://h', from: \"a@b.c\\nBcc: x@y.z\", to: [a@b.c]}}",
      "deliver.a.from"
    ),
    ("report: {deliver: [a]}\ndeliver: {a: {url: 'sftp://h/x', user: u, passwordFile: /p}}", "deliver.a.hostKey"),
    ("report: {deliver: [a]}\ndeliver: {a: {command: [/bin/true], attempts: 0}}", "deliver.a.attempts"),
    ("report: {deliver: [a]}\ndeliver: {a: {command: [/bin/true], attempts: '+3'}}", "deliver.a.attempts"),
    ("report: {deliver: [a]}\ndeliver: {a: {command: [/bin/true], colour: blue}}", "deliver.a.colour"),
  ]

  @Test("an invalid value is rejected with its key, without showing secrets", arguments: secrets + values + targets)
  func refused(_ yaml: String, key: String) throws {
    let error = #expect(throws: ConfigurationError.self) { try load(app + yaml + "\n") }
    #expect(error?.key == key && error.map { !"\($0)".contains("s3cret") } == true)
  }

  @Test("an invalid retention is rejected with the shortest and the longest one")
  func retentions() {
    let error = #expect(throws: ConfigurationError.self) { try load(app + "tieOut: {keepRaw: 0d}\n") }
    #expect(error.map { "\($0)".contains("0d is no retention; write forever, or at least 1s") } == true)
  }

  @Test("a systemd credential is the value of its key, or the file for a key that expects a path")
  func credentials() throws {
    let folder = try TemporaryDirectory()
    for (name, text) in [
      ("app.game.privateKeyFile", "key"), ("database.url", "host=h password=s3cret\n"),
      ("notify.pingUrl", "https://h/x"),
      ("somebody.elses", "x"),
    ] { try folder.write(text, name) }
    let environment = ["CREDENTIALS_DIRECTORY": folder.path]
    let yaml = app + "app.game.issuerId: i\napp.game.keyId: k\ndatabase.url: host=other\n"
    let settings = try load(yaml, environment)
    #expect(settings.apps.first?.privateKeyFile == folder.path + "/app.game.privateKeyFile")
    #expect(settings.databaseURL == "host=h password=s3cret" && settings.pingURL == "https://h/x")
    #expect(
      try load(yaml, environment.merging(["NIGHT_AUDIT_DATABASE_URL": "host=mine"]) { $1 }).databaseURL == "host=mine")
    let file = try folder.write(yaml, "night-audit.yaml")
    let table = SettingsListing(try SettingsLoader(path: file, environment: environment)).table(width: nil)
    #expect(table.contains("credential database.url") && !table.contains("s3cret"), "\(table)")
    let odd = folder.url.appendingPathComponent("metrics.textfile")
    try Data([0x73, 0xFF]).write(to: odd)
    #expect(throws: ConfigurationError.self) { try load(yaml, environment) }
    try FileManager.default.removeItem(at: odd)
    try FileManager.default.createDirectory(at: odd, withIntermediateDirectories: false)
    let unread = #expect(throws: ConfigurationError.self) { try load(yaml, environment) }
    #expect(unread?.key == "metrics.textfile")
    let nowhere = #expect(throws: ConfigurationError.self) {
      try load(yaml, ["CREDENTIALS_DIRECTORY": folder.path + "/none"])
    }
    #expect(nowhere?.key == "CREDENTIALS_DIRECTORY")
  }

  @Test(
    "an error in the configuration file shows no line of the file",
    arguments: [
      "database:\n  url: postgresql://u:s3cret@h/db\n bad: [", "database: {url: 's3cret}", "url: *s3cret",
      "a: b: s3cret", "\tdatabase: s3cret", "postgresql://u:s3cret@h/db: 1", "? [s3cret]\n: x", "s3cret s3cret: 1",
      "database.url: {s3cret x: 1}", "database.url: [[s3cret]]", "s3cret", "database: s3cret\ndatabase: s3cret",
      "\"s3cret\\q\": 1",
    ])
  func brokenFile(_ yaml: String) {
    let error = #expect(throws: ConfigurationError.self) { try load(yaml) }
    for part in ["s3cret"] {
      #expect(error.map { !"\($0)".contains(part) } == true, "\(String(describing: error))")
    }
  }

  @Test("a section that occurs twice is reported with its line")
  func twice() {
    let error = #expect(throws: ConfigurationError.self) {
      try load(app + "audit:\n  lookback: 30d\nreport:\n  timeZone: UTC\naudit:\n  holdShare: 1\n")
    }
    #expect(error?.problem.hasPrefix("`audit` occurs twice, first at line ") == true, "\(String(describing: error))")
  }

  @Test(
    "a review window without both days is rejected with the keys that it needs",
    arguments: ["{since: 2026-11-01}", "{until: 2026-11-01}", "{since: 2026-11-01, until: 2026-11-03, by: x}"])
  func halfAWindow(_ window: String) {
    let error = #expect(throws: ConfigurationError.self) { try load(app + "audit.reviewWindows: [\(window)]\n") }
    #expect(error?.problem.contains("since and until") == true)
  }

  @Test(
    "a secret in place of a file name is not shown",
    arguments: [
      "s3cret", "-----BEGIN PRIVATE KEY-----\ns3cret", "s3/cret+s3cret==", String(repeating: "s3cret", count: 99),
    ])
  func secretForAPath(_ value: String) {
    let error = #expect(throws: ConfigurationError.self) { try SecretFile.read(value, key: "app.game.privateKeyFile") }
    #expect(error.map { !"\($0)".contains("s3") && !"\($0)".contains("cret+") } == true)
    #expect(SecretFile.shown("/etc/night-audit/key.p8") == "/etc/night-audit/key.p8")
  }

  @Test("the listing shows every key once, with its origin, and no secret")
  func listing() throws {
    let directory = try TemporaryDirectory()
    let file = try directory.write(
      """
      app: {game: {bundleId: com.example.game, sharedSecretFile: s3cret, issuerId: i, keyId: k}}
      database: {salesUrl: "postgresql://reader:s3cret@replica:5433/shop"}
      notify: {pingUrl: "https://hc-ping.com/s3cret"}
      audit: {lookback: 30d}
      report: {retention: 90d, deliver: [archive]}
      deliver: {archive: {command: [/bin/true]}}
      """, "night-audit.yaml")
    let secrets = try TemporaryDirectory()
    let credentials = secrets.path
    try secrets.write("postgresql://u:s3cret@h/db\n", "database.url")
    try secrets.write("key", "app.game.privateKeyFile")
    var environmentFile = EnvironmentFile.Outcome()
    environmentFile.adopted = ["NIGHT_AUDIT_REPORT_RETENTION"]
    let environment = [
      "CREDENTIALS_DIRECTORY": credentials, "NIGHT_AUDIT_AUDIT_LOOKBACK": "60d", "NIGHT_AUDIT_REPORT_RETENTION": "80d",
    ]
    let loader = try SettingsLoader(path: file, environment: environment, environmentFile: environmentFile)
    let settings = try loader.load()
    #expect(settings.databaseURL == "postgresql://u:s3cret@h/db")
    #expect(settings.apps.first?.privateKeyFile == credentials + "/app.game.privateKeyFile")
    #expect(settings.retention == .days(80))
    let listing = SettingsListing(loader)
    let lines = Dictionary(uniqueKeysWithValues: listing.settings.map { ($0.key, $0) })
    #expect(SettingKey.all.allSatisfy { lines[$0.name] != nil })
    func line(_ key: String) -> String { "\(lines[key]?.value ?? "-") (\(lines[key]?.origin ?? ""))" }
    #expect(line("audit.lookback") == "60d (environment NIGHT_AUDIT_AUDIT_LOOKBACK)")
    #expect(line("report.retention") == "80d (/etc/night-audit/environment NIGHT_AUDIT_REPORT_RETENTION)")
    #expect(line("database.url") == "user=u password=… dbname=db host=h (credential database.url)")
    #expect(line("database.salesUrl") == "user=reader password=… dbname=shop host=replica port=5433 (\(file))")
    #expect(line("notify.pingUrl") == "https://hc-ping.com/… (\(file))")
    #expect(line("audit.matchWindow") == "72h (default)" && line("tieOut.folder") == "- (default)")
    #expect(line("deliver.archive.attempts") == "3 (default)")
    #expect(line("app.game.bundleId") == "com.example.game (\(file))")
    #expect(!listing.table(width: nil).contains("s3cret"))
    #expect(!(try MachineText.json(listing)).contains("s3cret"))
  }

  @Test(
    "a shown URL has no part that may be a secret",
    arguments: [
      ("https://api.example.com/a/b", "https://api.example.com/a/b"),
      ("https://user:s3cret@example.com/x", "https://…@example.com/x"),
      ("https://s3cret@example.com:8443", "https://…@example.com:8443"),
      ("https://example.com/x?sig=s3cret", "https://example.com/x?…"),
      ("https://u:s3cret@example.com/x?sig=s3cret#s3cret", "https://…@example.com/x?…"),
      ("https://user:12/s3cret@example.com/x", "(hidden: it is not a URL with a host)"),
      ("user:s3cret@example.com", "(hidden: it is not a URL with a host)"),
      ("s3cret", "(hidden: it is not a URL with a host)"),
    ])
  func shownURL(_ url: String, shown: String) throws {
    #expect(ShownURL.text(url) == shown)
    let urls = SettingKey.all.map(\.name).filter { $0.lowercased().hasSuffix("url") && !$0.hasPrefix("database.") }
    for key in urls + ["deliver.archive.url"] {
      let variable = try #require(SettingKey.named(key)).variable
      let loader = try SettingsLoader(path: nil, environment: [variable: url, "NIGHT_AUDIT_REPORT_DELIVER": "archive"])
      let listing = SettingsListing(loader)
      #expect(listing.settings.contains { $0.key == key && $0.origin != "default" })
      #expect(!listing.table(width: nil).contains("s3cret"), "\(key)")
      #expect(!(try MachineText.json(listing)).contains("s3cret"), "\(key)")
    }
  }

  @Test("the arguments of a delivery command and the path of an HTTP target are not shown")
  func shownDelivery() throws {
    let loader = try SettingsLoader(
      path: nil,
      environment: [
        "NIGHT_AUDIT_REPORT_DELIVER": "chat,text,share",
        "NIGHT_AUDIT_DELIVER_CHAT_COMMAND": "/usr/bin/send,--token,s3cret",
        "NIGHT_AUDIT_DELIVER_TEXT_COMMAND": "/usr/bin/text --token=s3cret a",
        "NIGHT_AUDIT_DELIVER_SHARE_URL": "https://files.example.com/share/s3cret",
      ])
    let table = SettingsListing(loader).table(width: nil)
    #expect(!table.contains("s3cret"), "\(table)")
    #expect(table.contains("/usr/bin/send,…,…") && table.contains("https://files.example.com/…"), "\(table)")
    #expect(table.contains("/usr/bin/text …"), "\(table)")
  }

  @Test("a section without a name is listed, and refused when it is loaded")
  func namelessSection() throws {
    let loader = try SettingsLoader(
      file: try ConfigurationFile(yaml: "app.: 1", name: "test.yaml"), name: "test.yaml", environment: [:])
    #expect(SettingsListing(loader).settings.contains { $0.key == "app.app.bundleId" })
    #expect(throws: ConfigurationError.self) { try loader.load() }
  }

  @Test(
    "a configuration file in the working directory is read only if no other user can write it",
    arguments: [(0o600, true), (0o644, true), (0o664, false), (0o646, false)])
  func trustOfTheConfiguration(_ mode: Int, isRead: Bool) throws {
    let folder = try TemporaryDirectory()
    let path = try folder.write("report.timeZone: UTC\n", "night-audit.yaml", mode: mode)
    #expect(throws: Never.self) { try ConfigurationFile(path: path) }
    if isRead {
      #expect(throws: Never.self) { try ConfigurationFile(path: path, isFound: true) }
    } else {
      let error = #expect(throws: ConfigurationError.self) { try ConfigurationFile(path: path, isFound: true) }
      #expect(error?.problem.contains("chmod go-w") == true && error?.problem.contains("--config") == true)
    }
  }

  @Test("a configuration file of another user is not read", .enabled(if: getuid() == 0))
  func configurationOfAnotherUser() throws {
    let folder = try TemporaryDirectory()
    let path = try folder.write("report.timeZone: UTC\n", "night-audit.yaml")
    #expect(chown(path, 12_345, 12_345) == 0)
    let error = #expect(throws: ConfigurationError.self) { try ConfigurationFile(path: path, isFound: true) }
    #expect(error?.problem.contains("another user") == true)
  }

  @Test("a pipe in place of the configuration file is rejected without waiting")
  func configurationIsAPipe() throws {
    let folder = try TemporaryDirectory()
    let path = folder.file("night-audit.yaml")
    #expect(mkfifo(path, 0o600) == 0)
    let error = #expect(throws: ConfigurationError.self) { try ConfigurationFile(path: path) }
    #expect(error?.problem.contains("is a pipe") == true)
  }

  @Test(
    "the variable shown for a key sets this key",
    arguments: [
      ("deliver.finance-mail.command", "NIGHT_AUDIT_DELIVER_FINANCE_MAIL_COMMAND"),
      ("app.My-Game.bundleId", "NIGHT_AUDIT_APP_MY_GAME_BUNDLE_ID"),
      ("app.the2ndGAME.keyId", "NIGHT_AUDIT_APP_THE2ND_GAME_KEY_ID"),
      ("findings.owners.paid_not_delivered", "NIGHT_AUDIT_FINDINGS_OWNERS_PAID_NOT_DELIVERED"),
    ])
  func variable(_ name: String, _ variable: String) throws {
    let key = try #require(SettingKey.named(name))
    #expect(key.variable == variable)
    let loader = try SettingsLoader(path: nil, environment: [variable: "/bin/true"])
    #expect(loader.text(name) == "/bin/true" && loader.origin(of: key) == "environment \(variable)")
  }

  @Test("an environment file is read as a shell and systemd read it")
  func environmentFile() throws {
    let found = try EnvironmentFile.assignments(
      in: """
        # a comment
        ; another

        PGHOST=db.internal
          NIGHT_AUDIT_REPORT_TIME_ZONE="Europe/Berlin"\r
        QUOTED='it costs $5'
        ESCAPED="a \\"b\\""
        EMPTY=
        PGHOST=later
        """, path: "environment")
    #expect(
      found == [
        "PGHOST": "later", "NIGHT_AUDIT_REPORT_TIME_ZONE": "Europe/Berlin", "QUOTED": "it costs $5",
        "ESCAPED": #"a "b""#, "EMPTY": "",
      ])
    for line in ["PGPASSWORD = s3cret", "export PGPASSWORD=s3cret", "s3cret", "A='s3cret", "1A=s3cret"] {
      let error = #expect(throws: ConfigurationError.self) {
        try EnvironmentFile.assignments(in: "A=1\n\(line)\n", path: "environment")
      }
      #expect(error.map { "\($0)".contains("line 2") && !"\($0)".contains("s3cret") } == true)
    }
    #expect(try EnvironmentFile.adopt("/nonexistent/environment").adopted.isEmpty)
  }

  @Test(
    "characters that control a terminal, and invisible ones, are escaped",
    arguments: [
      ("plain ünïcödé 日本 👩‍👩‍👧", "plain ünïcödé 日本 👩‍👩‍👧"), ("a\tb\nc", "a\tb\nc"),
      ("\u{1B}[2Jgone", "\\u001B[2Jgone"), ("a\u{202E}b", "a\\u202Eb"), ("a\u{2066}b\u{200F}", "a\\u2066b\\u200F"),
      ("a\rb\u{7}", "a\\u000Db\\u0007"), ("\u{9B}31m", "\\u009B31m"), ("\u{FEFF}\u{2028}", "\\uFEFF\\u2028"),
      ("a\u{200B}b\u{2060}\u{AD}", "a\\u200Bb\\u2060\\u00AD"), ("a\u{200C}b", "a\u{200C}b"),
    ])
  func terminal(_ text: String, plain: String) {
    #expect(text.escapedForDisplay == plain)
    #expect(text.inOneLine == plain.replacing("\t", with: " ").replacing("\n", with: " "))
    #expect("a\r\nb".escapedForDisplay == "a\r\nb" && "a\r\nb".inOneLine == "a\\u000D b")
  }
}
