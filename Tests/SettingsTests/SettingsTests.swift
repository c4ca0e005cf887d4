import Foundation
import Reconciliation
import Reporting
import Run
import Testing

@testable import Settings

@Suite struct SettingsTests {
  @Test func nestedMapsAndDottedKeysMeanTheSame() throws {
    let nested = try load(app + "audit:\n  lookback: 30d\n")
    let dotted = try load(app + "audit.lookback: 30d\n")
    #expect(nested.lookback == .days(30))
    #expect(dotted.lookback == .days(30))
    #expect(nested.digest == dotted.digest)
    #expect(throws: ConfigurationError.self) { try load(app + "audit: {lookback: 30d}\naudit.lookback: 31d\n") }
  }

  /// YAML 1.1 ignores underscores in numbers: 1_3 would be 13.
  @Test func aReportVersionIsReadAsTextWithAndWithoutQuotes() throws {
    for version in ["1_3", "'1_3'", "\"1_3\""] {
      let settings = try load(app + "appStoreConnect: {salesVersion: \(version)}\n")
      #expect(settings.appStoreConnect.salesVersion == "1_3")
    }
    #expect(throws: ConfigurationError.self) { try load(app + "appStoreConnect: {salesVersion: 13}\n") }
  }

  @Test func theEnvironmentOverridesTheFile() throws {
    let settings = try load(
      app + "database: {salesSchema: shop}\nrecheck: {staleAfter: 2d}\n",
      ["NIGHT_AUDIT_DATABASE_SALES_SCHEMA": "ventes", "NIGHT_AUDIT_APP_GAME_SHARED_SECRET_FILE": "/run/secret"])
    #expect(settings.salesSchema == "ventes" && settings.staleAfter == .days(2))
    #expect(settings.apps.first?.sharedSecretFile == "/run/secret")
  }

  @Test(arguments: [
    (["issuerId"], "keyId"), (["keyId"], "issuerId"), (["privateKeyFile"], "issuerId"),
    (["issuerId", "keyId"], "privateKeyFile"), (["issuerId", "privateKeyFile"], "keyId"),
    (["keyId", "privateKeyFile"], "issuerId"),
  ])
  func aPartialCredentialNamesItsMissingSetting(_ given: [String], _ missing: String) throws {
    let error = #expect(throws: ConfigurationError.self) {
      try load(app + given.map { "app.game.\($0): x\n" }.joined())
    }
    #expect(error?.key == "app.game.\(missing)")
    for key in given { #expect(error?.problem.contains(key) == true) }
  }

  @Test func anAppMayBeConfiguredByTheEnvironmentAlone() throws {
    let settings = try load("", ["NIGHT_AUDIT_APP_APP_BUNDLE_ID": "com.example.game"])
    #expect(settings.apps.map(\.bundleId) == ["com.example.game"])
  }

  @Test func aMissingConfigurationNamesTheSearchedFiles() throws {
    let none = #expect(throws: ConfigurationError.self) {
      try SettingsLoader(file: nil, name: "configuration", environment: [:]).load()
    }
    #expect(none?.key == "app.<name>.bundleId")
    #expect(SettingsLoader.searchedFiles.allSatisfy { none?.problem.contains($0) == true })
    let empty = #expect(throws: ConfigurationError.self) { try load("") }
    #expect(empty?.problem.contains("night-audit.yaml") == false)
  }

  @Test func defaultsAreThoseOfTheContract() throws {
    let settings = try load(app)
    #expect(settings.requestsPerSecond == 25 && settings.concurrency == 256 && settings.timeout == .seconds(30))
    #expect(settings.staleAfter == .days(7) && settings.refundWindow == .days(120))
    #expect(settings.maxDuration == .hours(2) && settings.batchSize == 1_000)
    #expect(settings.subscriptionGrace == .days(16) && settings.workbookOrders == 100_000)
    #expect(settings.formats == [.csv, .xlsx] && settings.retention == nil)
    #expect(settings.timeZoneName == "UTC")
  }

  @Test(arguments: [
    ("audit: {lookback: [30d]}", "audit.lookback"), ("report: {timeZone: [Europe/Berlin]}", "report.timeZone"),
    ("report.directory: []", "report.directory"), ("app.game.sharedSecretFile: [/a, /b]", "app.game.sharedSecretFile"),
    ("report: {deliver: [a]}\ndeliver: {a: {url: ['https://h/x']}}", "deliver.a.url"),
    ("findings.owners.critical: [anna, bob]", "findings.owners.critical"),
    ("notify.on: [{since: 2026-11-01, until: 2026-11-03}]", "notify.on"),
  ])
  func aListInPlaceOfAValueIsNamed(_ yaml: String, _ key: String) throws {
    let error = #expect(throws: ConfigurationError.self) { try load(app + yaml) }
    #expect(error?.key == key && error?.problem.hasPrefix("takes one value, not a list") == true)
  }

  @Test func aDottedAppNameIsNamedInTheError() throws {
    let error = #expect(throws: ConfigurationError.self) { try load("app: {my.game: {bundleId: com.example.game}}") }
    #expect(error?.key == "app.my.game.bundleId" && error?.problem.contains("without dots") == true)
  }

  @Test func targetsKeepTheirOrder() throws {
    let settings = try load(
      app + """
        report: {deliver: [post, archive]}
        deliver:
          archive: {command: [/usr/local/bin/archive, --now], attempts: 1}
          post: {url: 'smtps://mail.example.com', from: audit@example.com, to: [a@example.com, b@example.com], user: u}
        """, ["NIGHT_AUDIT_DELIVER_POST_PASSWORD_FILE": "/run/secret"])
    #expect(settings.deliver.map(\.name) == ["post", "archive"])
    #expect(settings.deliver[0].secretFiles.map(\.path) == ["/run/secret"])
    #expect(settings.deliver[1].means == .command(["/usr/local/bin/archive", "--now"]))
    #expect(settings.deliver[1].attempts == 1 && settings.warnings.isEmpty)
    #expect(settings.digest == (try load(app).digest))
  }

  @Test func aMapInOneVariableIsRefused() throws {
    let error = #expect(throws: ConfigurationError.self) {
      try load(app, ["NIGHT_AUDIT_FINDINGS_OWNERS": "critical=zoe"])
    }
    #expect(error?.key == "findings.owners")
    #expect(error?.problem.contains("NIGHT_AUDIT_FINDINGS_OWNERS_CRITICAL") == true)
    let settings = try load(app, ["NIGHT_AUDIT_FINDINGS_OWNERS_CRITICAL": "zoe"])
    #expect(settings.owners.bySeverity[.critical] == "zoe" && settings.warnings.isEmpty)
  }

  @Test func journalAccountsMayComeFromTheEnvironmentAlone() throws {
    let roles = JournalRole.allCases.map(\.rawValue)
    let variables = roles.map { ("NIGHT_AUDIT_JOURNAL_ACCOUNTS_\($0.uppercased())", "account of \($0)") }
    let settings = try load(app, Dictionary(uniqueKeysWithValues: variables))
    #expect(settings.journalAccounts.count == roles.count && settings.warnings == [])
  }

  @Test(arguments: [
    ("audit2: {}", "audit2"), ("audit2:", "audit2"), ("audit: {lookbak: }", "audit.lookbak"),
    ("app: {game: {colour: {}}}", "app.game.colour"), ("findings.owner: {}", "findings.owner"),
    ("app.extra: {}\nappstore.apps: [game]", "app.extra"), ("app.extra:", "appstore.apps"),
    ("deliver: {mail: {}}", "deliver.mail"),
  ])
  func anUnknownKeyWithoutAValueIsRefused(_ yaml: String, _ key: String) {
    let file = yaml.hasPrefix("app:") ? yaml : app + yaml
    let error = #expect(throws: ConfigurationError.self) { try load(file + "\n") }
    #expect(error?.key == key)
  }

  @Test func knownSectionsAndKeysMayBeEmpty() throws {
    let empty = "audit: {}\nreport:\nnotify: {on: }\nfindings: {owners: {}}\njournal.accounts:\ndeliver: {}\n"
    #expect(try load(app + empty).digest == load(app).digest)
  }

  @Test(arguments: [
    ("audit.lookbak: 30d", "did you mean audit.lookback?"), ("app.game.bundelId: x", "did you mean app.game.bundleId?"),
    ("journal.accounts.sales: 1", "did you mean journal.accounts.sale?"),
    ("foo: 1", "night-audit config show lists all settings"),
  ])
  func anUnknownKeySuggestsSimilarKeysOnly(_ yaml: String, _ words: String) {
    let error = #expect(throws: ConfigurationError.self) { try load(app + yaml + "\n") }
    #expect(error?.problem.hasSuffix(words) == true, "\(String(describing: error))")
  }

  @Test(arguments: [
    ("REPORT_TIME_ZON", "did you mean NIGHT_AUDIT_REPORT_TIME_ZONE?"),
    ("FOO", "night-audit config show lists all settings"),
  ])
  func anUnknownVariableSuggestsSimilarVariablesOnly(_ name: String, _ words: String) throws {
    #expect(try load(app, ["NIGHT_AUDIT_\(name)": "x"]).warnings.first?.hasSuffix(words) == true)
  }

  @Test(
    "an unknown environment variable is reported, also inside a section",
    arguments: [
      ("NIGHT_AUDIT_REPORT_TIMEZONE", true), ("NIGHT_AUDIT_APP_GAME_SHARED_SECRET", true),
      ("NIGHT_AUDIT_APP_GAEM_KEY_ID", true), ("NIGHT_AUDIT_DELIVER_POST_URL", true),
      ("NIGHT_AUDIT_APP_GAME_SHARED_SECRET_FILE", false), ("NIGHT_AUDIT_APP_GAME_SKU", false),
    ])
  func misspelt(_ variable: String, isTold: Bool) throws {
    let warnings = try load(app, [variable: "x"]).warnings
    #expect(warnings.contains { $0.contains(variable) } == isTold, "\(warnings)")
  }

  /// Apple's reports identify an app by its SKU only, and its notifications by bundle ID and Apple ID.
  @Test(
    arguments: [
      ("{bundleId: y, sku: A1}", "app.b.sku"), ("{bundleId: x, sku: B1}", "app.b.bundleId"),
      ("{bundleId: y, appAppleId: 7}", "app.b.appAppleId"),
    ])
  func bundleIDsAppleIDsAndSKUsAreUniqueAmongApps(_ other: String, _ key: String) throws {
    let error = #expect(throws: ConfigurationError.self) {
      try load("app: {a: {bundleId: x, appAppleId: 7, sku: A1}, b: \(other)}\nappstore: {apps: [a, b]}")
    }
    #expect(error?.key == key)
  }

  @Test func twoAppsNeedTheirNamesListed() throws {
    let both = "app: {a: {bundleId: x}, b: {bundleId: y}}\n"
    let error = #expect(throws: ConfigurationError.self) { try load(both) }
    #expect(error?.key == "appstore.apps")
    let settings = try load(both + "appstore: {apps: [a, b]}")
    #expect(settings.apps.map(\.bundleId) == ["x", "y"])
  }

  @Test func theSettingsDigestCoversReportContentOnly() throws {
    let digest = try load(app).digest
    #expect(try load(app + "database: {url: 'host=elsewhere'}\nreport: {directory: /srv/reports}").digest == digest)
    #expect(try load(app + "appstore: {verifyReceiptUrl: 'http://127.0.0.1:1/x', concurrency: 3}").digest == digest)
    #expect(try load(app + "audit: {lookback: 120d}").digest == digest)
    #expect(try load(app + "audit: {lookback: 119d}").digest != digest)
    #expect(try load(app + "audit: {testUsers: [a]}").digest != digest)
    #expect(try load(app + "audit: {systemicShare: 0.25}").digest == digest)
    #expect(try load(app + "audit: {systemicShare: 1}").digest != digest)
  }

  /// The SHA-256 of the lines, calculated by another program. Another digest would report a change of the
  /// configuration after each upgrade.
  @Test func theDigestOfAConfigurationNeverChanges() throws {
    #expect(try load(app).digest == "9894cb04b1d419dc2b888405236e3ba02818e3266587e05a904c524dededefbd")
    #expect(
      try load(app + "audit: {systemicShare: 0.5}").digest
        == "ce6215885ba7a0075ca9fea3f1ab1fe1a5b56d7392364e2cc0332c77d96a17d3")
  }

  @Test func amountsAreExact() throws {
    #expect(try load(app + "audit: {amountTolerance: 0.01}").amountToleranceMillionths == 10_000)
    #expect(try load(app + "audit: {amountTolerance: 2}").amountToleranceMillionths == 2_000_000)
  }

  @Test(arguments: [
    ("90s", Reconciliation.Span.seconds(90)), ("15m", .minutes(15)), ("1h", .hours(1)), ("7d", .days(7)),
    ("0s", .seconds(0)), ("365000d", .days(365_000)),
  ])
  func durationsAreNumbersWithUnits(_ text: String, _ span: Reconciliation.Span) {
    #expect(DurationText.parse(text) == span)
  }

  @Test(arguments: ["", "s", "7", "-1d", "-0d", "+1d", "1w", "1.5h", "7 d", "d7", "365001d", "999999999999999d"])
  func otherTextsAreNoDurations(_ text: String) { #expect(DurationText.parse(text) == nil) }
}
