import AppStore
import Crypto
import Foundation
import Reconciliation
import TestSupport
import Testing

@testable import NightAudit
@testable import Run
@testable import Settings

private let night = "0 3 * * * root night-audit run\n"

/// Breaks each part of configuration and machine in turn. No database is needed.
@Suite struct DoctorHostTests {
  fileprivate final class Machine {
    private let directory: TemporaryDirectory
    var root: String { directory.path }
    var settings = Settings()
    var lookup = HostLookup.found

    init() throws {
      directory = try TemporaryDirectory()
      settings.databaseURL = "host=/nonexistent"
      settings.apps = [
        Settings.App(
          name: "game", bundleId: "com.example.game", issuerId: "57246542-96fe-1a63-e053-0824d011072a",
          keyId: "2X9R4HXF34", privateKeyFile: root + "/game.p8", sharedSecretFile: root + "/secret")
      ]
      settings.rootCertificates = root + "/roots"
      settings.pinRoots = false
      settings.reportDirectory = root + "/reports"
      settings.metricsTextfile = root + "/metrics/night_audit.prom"
      settings.tieOut.folder = root + "/apple"
      settings.appStoreConnect.issuerId = "57246542-96fe-1a63-e053-0824d011072a"
      settings.appStoreConnect.keyId = "CONNECT"
      settings.appStoreConnect.privateKeyFile = root + "/AuthKey_CONNECT.p8"
      settings.appStoreConnect.vendorNumbers = ["80012345"]
      settings.deliver = [DispatchTarget(name: "archive", means: .command(["/bin/true"]))]
      for folder in [
        "etc/cron.d", "usr/sbin", "roots", "reports/2026-11-19", "metrics", "apple",
        "lib/systemd/system", "etc/systemd/system/timers.target.wants",
      ] {
        try FileManager.default.createDirectory(atPath: "\(root)/\(folder)", withIntermediateDirectories: true)
      }
      try write(night, "etc/cron.d/night-audit", 0o644)
      try write("", "usr/sbin/sendmail", 0o755)
      let key = P256.Signing.PrivateKey().pemRepresentation
      for file in ["game.p8", "AuthKey_CONNECT.p8"] { try write(key, file, 0o600) }
      try write("0123456789abcdef", "secret", 0o600)
      try certificate("roots/root.pem", days: 3_000)
      try link("2026-11-19", "reports/latest")
    }

    func write(_ text: String, _ file: String, _ mode: Int) throws { try directory.write(text, file, mode: mode) }

    /// The crontab of the night; nil removes it.
    func crontab(_ text: String?, _ mode: Int = 0o644) throws {
      try remove("etc/cron.d/night-audit")
      if let text { try write(text, "etc/cron.d/night-audit", mode) }
    }

    func enable(timer name: String) throws { try write("", "etc/systemd/system/timers.target.wants/\(name)", 0o644) }

    func link(_ target: String, _ file: String) throws {
      try FileManager.default.createSymbolicLink(atPath: "\(root)/\(file)", withDestinationPath: target)
    }

    func remove(_ file: String) throws { try FileManager.default.removeItem(atPath: "\(root)/\(file)") }

    func certificate(_ file: String, days: Int) throws {
      try Command.run([
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384", "-nodes", "-keyout",
        "/dev/null", "-subj", "/CN=Test Root", "-days", String(days), "-out", "\(root)/\(file)",
      ])
    }

    func examine() async -> [Diagnosis] {
      var doctor = Doctor(settings: settings)
      doctor.resolve = { [lookup] _ in lookup }
      return await doctor.files() + [doctor.reportDirectory()] + doctor.dispatches()
        + HostExamination(settings: settings, root: root).examine()
    }
  }

  @Test("a correctly installed machine has no problem and no warning")
  func sound() async throws {
    let found = try await Machine().examine()
    #expect(found.filter { !$0.isFine }.map { "\($0)" } == [])
    let subjects = found.map(\.subject)
    #expect(Set(subjects).count == subjects.count)
    #expect(subjects.contains { $0.hasPrefix("root certificate Test Root (SHA-256 ") }, "\(subjects)")
  }

  /// A test root that ended in 2020, because openssl creates no past certificates.
  private static let ended = """
    -----BEGIN CERTIFICATE-----
    MIIBSDCB76ADAgECAgEBMAoGCCqGSM49BAMCMBQxEjAQBgNVBAMMCVRlc3QgUm9v
    dDAeFw0wMDAxMDEwMDAwMDBaFw0yMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMMCVRl
    c3QgUm9vdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABBHenIlX9A0y0KybLFsY
    BYYeb4O7vcd/nG8XyfHJrkKTlkX8bDkizwUtCVUlG7mhqkAW4TOYONeNaoJf/RHq
    xXmjMjAwMA8GA1UdEwEB/wQFMAMBAf8wHQYDVR0OBBYEFNwyzb7tvTfYQ/B2Zkzd
    83aSDWR8MAoGCCqGSM49BAMCA0gAMEUCIQDc9Q43mjpTcG+qO3ZxaGgt1gYa3izO
    oE+BiJ2nASy5jAIgbITXZeiginmcyqyfaUuhlxjQHR8noZaPV//RWpCFv6I=
    -----END CERTIFICATE-----
    """

  struct Breakage: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let subject: String
    let remedy: String
    let isProblem: Bool
    fileprivate let change: @Sendable (Machine) throws -> Void

    fileprivate static func problem(
      _ what: String, _ subject: String, _ remedy: String, _ change: @escaping @Sendable (Machine) throws -> Void
    ) -> Breakage { Breakage(testDescription: what, subject: subject, remedy: remedy, isProblem: true, change: change) }

    fileprivate static func warning(
      _ what: String, _ subject: String, _ remedy: String, _ change: @escaping @Sendable (Machine) throws -> Void
    ) -> Breakage {
      Breakage(testDescription: what, subject: subject, remedy: remedy, isProblem: false, change: change)
    }
  }

  private static func deliver(_ machine: Machine, _ name: String, _ means: DispatchTarget.DeliveryMethod) {
    machine.settings.deliver = [DispatchTarget(name: name, means: means)]
  }

  private static func mail(
    _ machine: Machine, _ account: DispatchTarget.Account = .init(url: "smtps://mial.example.com")
  ) { deliver(machine, "finance", .mail(DispatchTarget.Mail(account: account, from: "a@example.com", to: ["b@c.de"]))) }

  static let breakages: [Breakage] = [
    .problem("a mail host without an IP address", "deliver.finance", "the host mial.example.com has no address") {
      mail($0)
      $0.lookup = .unknown
    },
    .warning("an unresponsive name server", "deliver.finance", "gave no answer for mial.example.com") {
      mail($0)
      $0.lookup = .unanswered
    },
    .warning(
      "a monitor's host without an IP address", "notify.pingUrl https://mistyped.example.com/…",
      "the host mistyped.example.com has no address"
    ) {
      $0.settings.pingURL = "https://mistyped.example.com/5b3a"
      $0.lookup = .unknown
    },
    .problem("an issuer that is no UUID", "app.game.issuerId", "Issuer ID") {
      $0.settings.apps[0].issuerId = "our company"
    },
    .problem("an invalid key ID", "app.game.keyId", "10 capital letters") { $0.settings.apps[0].keyId = "my key" },
    .warning("an invalid key ID for another server", "app.game.keyId", "10 capital letters") {
      $0.settings.productionURL = "https://apple.example.com"
      $0.settings.apps[0].keyId = "my key"
    },
    .warning("a rate above Apple's limit", "appstore.requestsPerSecond", "set it to 25") {
      $0.settings.requestsPerSecond = 80
    },
    .problem("a pipe in place of a key", "app.game.privateKeyFile", "is a pipe") {
      try $0.remove("game.p8")
      mkfifo($0.root + "/game.p8", 0o600)
    },
    .problem("no key", "app.game.privateKeyFile", "create it") { try $0.remove("game.p8") },
    .problem("an empty key", "app.game.privateKeyFile", "put the key into it") { try $0.write("", "game.p8", 0o600) },
    .problem("a secret that consists of a line break", "app.game.sharedSecretFile", "put the key into it") {
      try $0.write("\n", "secret", 0o600)
    },
    .problem("a secret that is a folder", "app.game.sharedSecretFile", "create it") {
      $0.settings.apps[0].sharedSecretFile = $0.root + "/roots"
    },
    .problem("a secret that is not text", "app.game.sharedSecretFile", "is not text") {
      try Data([0xFF, 0xFE, 0x00]).write(to: URL(fileURLWithPath: $0.root + "/secret"))
    },
    .problem("a foreign folder in place of the next report", "report.directory", "move them away") {
      let folder = "reports/" + Period.dayBefore(.now, in: $0.settings.timeZone).until
      try FileManager.default.createDirectory(atPath: "\($0.root)/\(folder)", withIntermediateDirectories: true)
      try $0.write("mine", folder + "/notes.txt", 0o644)
    },
    .warning("a world-readable key", "app.game.privateKeyFile", "chmod 600") {
      try $0.write(P256.Signing.PrivateKey().pemRepresentation, "game.p8", 0o644)
    },
    .problem("an invalid key", "app.game.privateKeyFile", "P-256") { try $0.write("key", "game.p8", 0o600) },
    .problem("a key without its id", "app.game.keyId", "App Store Connect") { $0.settings.apps[0].keyId = nil },
    .problem("a key without its issuer", "app.game.issuerId", "App Store Connect") {
      $0.settings.apps[0].issuerId = nil
    },
    .warning("no credential at all", "app.game.sharedSecretFile", "set it, or issuerId") {
      $0.settings.apps = [Settings.App(name: "game", bundleId: "com.example.game")]
    },
    .problem("a missing secret", "app.game.sharedSecretFile", "create it") { try $0.remove("secret") },
    .problem("a URL with unencrypted secrets", "appstore.productionUrl", "use https") {
      $0.settings.productionURL = "http://api.storekit.apple.com"
    },
    .problem("no root certificates", "appstore.rootCertificates", "night-audit trust") {
      try $0.remove("roots/root.pem")
    },
    .problem("a foreign root certificate", "appstore.rootCertificates", "its SHA-256 is") {
      $0.settings.pinRoots = true
    },
    .problem("a file that is no certificate", "appstore.rootCertificates", "run `night-audit trust`") {
      try $0.write("hello", "roots/x.pem", 0o644)
    },
    .problem("an expired root", "root certificate Test Root", "has expired") {
      try $0.write(ended, "roots/root.pem", 0o644)
    },
    .warning("a root that expires soon", "root certificate Test Root", "expires soon") {
      try $0.certificate("roots/root.pem", days: 30)
    },
    .problem("a file in place of the report directory", "report.directory", "check the path") {
      try $0.remove("reports")
      try $0.write("x", "reports", 0o644)
    },
    .problem("a disk too small for the next report", "disk of report.directory", "make room") {
      try $0.write("", "reports/2026-11-19/orders.csv", 0o644)
      let file = URL(fileURLWithPath: $0.root + "/reports/2026-11-19/orders.csv")
      try FileHandle(forWritingTo: file).truncate(atOffset: 1 << 42)
    },
    .warning("no schedule", "schedule", "examples are in /usr/local/share/night-audit") { try $0.crontab("#" + night) },
    .warning("a crontab that cron ignores", "schedule", "because of its name") {
      try $0.crontab(nil)
      try $0.write(night, "etc/cron.d/night-audit.crontab", 0o644)
    },
    .warning("a crontab that other users may write", "schedule", "chmod go-w") { try $0.crontab(night, 0o666) },
    .warning("unreadable crontabs of users", "schedule", "cannot be seen by this user") {
      try $0.crontab(nil)
      try FileManager.default.createDirectory(atPath: $0.root + "/var/spool/cron", withIntermediateDirectories: true)
      // A file in place of the folder, because root can list any folder.
      try $0.write("", "var/spool/cron/crontabs", 0o600)
    },
    .warning("a disabled timer", "schedule", "systemctl enable --now night-audit.timer") {
      try $0.crontab(nil)
      try $0.write("", "lib/systemd/system/night-audit.timer", 0o644)
    },
    .warning("a day without a night", "schedule", "examples are in /usr/local/share/night-audit") {
      try $0.crontab("MAILTO=night-audit@example.com\n0,30 * * * * root night-audit recheck --quiet\n")
      try $0.enable(timer: "night-audit-recheck.timer")
    },
    .warning("cron and a timer", "schedule (cron)", "keep one of the two") {
      try $0.enable(timer: "night-audit.timer")
    },
    .warning("no recipient of cron's mail", "schedule (cron)", "set an address") {
      try $0.crontab("MAILTO=\"\"\n" + night)
    },
    .warning("no program to send cron's mail", "schedule (cron)", "install an MTA") {
      try $0.remove("usr/sbin/sendmail")
    },
    .problem("a missing program of report.deliver", "deliver.archive", "cannot be run") {
      deliver($0, "archive", .command(["/nonexistent/send"]))
    },
    .problem("a command written as one text", "deliver.archive", "/nonexistent/send … cannot be run") {
      deliver($0, "archive", .command(["/nonexistent/send --token=s3cret now"]))
    },
    .problem("a protocol that curl does not support", "deliver.finance", "install one that does") {
      let upload = DispatchTarget.Upload(account: .init(url: "pigeon://example.com"), kind: .https)
      deliver($0, "finance", .upload(upload))
    },
    .problem("a missing password of report.deliver", "deliver.finance.passwordFile", "create it") {
      mail($0, .init(url: "smtps://example.com", user: "x", passwordFile: $0.root + "/nothing"))
    },
    .warning("no metrics folder", "metrics.textfile", "create it") { try $0.remove("metrics") },
    .warning("a metrics file without the suffix .prom", "metrics.textfile", ".prom") {
      $0.settings.metricsTextfile = $0.root + "/metrics/night_audit.txt"
    },
    .warning("no folder of the tie-out", "tieOut.folder", "create it") { try $0.remove("apple") },
    .problem("no App Store Connect key", "appStoreConnect.privateKeyFile", "create it") {
      try $0.remove("AuthKey_CONNECT.p8")
    },
    .problem("an individual key instead of a team key", "appStoreConnect.privateKeyFile", "make a team key") {
      try $0.write(P256.Signing.PrivateKey().pemRepresentation, "SubscriptionKey_X.p8", 0o600)
      $0.settings.appStoreConnect.privateKeyFile = $0.root + "/SubscriptionKey_X.p8"
    },
    .problem("a team key without its issuer", "appStoreConnect.issuerId", "above the list of team keys") {
      $0.settings.appStoreConnect.issuerId = nil
    },
  ]

  @Test("each fault is reported once, with its remedy", arguments: breakages)
  func broken(_ breakage: Breakage) async throws {
    let machine = try Machine()
    try breakage.change(machine)
    let odd = await machine.examine().filter { !$0.isFine }
    let texts = odd.map { "\($0.subject): \($0.problem ?? $0.warning ?? "")" }
    #expect(
      odd.contains { diagnosis in
        diagnosis.subject.hasPrefix(breakage.subject)
          && (breakage.isProblem ? diagnosis.problem : diagnosis.warning)?.contains(breakage.remedy) == true
      }, "\(texts)")
    // The consequences of a fault are not reported beside it.
    #expect(odd.count == 1, "\(texts)")
  }

  @Test(
    "a configuration file that other users can change, or that has a password they can read, is a warning",
    arguments: [
      (0o666, false, "chmod o-rw"), (0o644, true, "chmod o-r "), (0o644, false, nil), (0o640, true, nil),
    ] as [(Int, Bool, String?)])
  func rightsOfTheConfiguration(_ mode: Int, holdsSecret: Bool, remedy: String?) async throws {
    let machine = try Machine()
    try machine.write("", "night-audit.yaml", mode)
    machine.settings.sources = [.init(path: machine.root + "/night-audit.yaml", holdsSecret: holdsSecret)]
    let odd = await machine.examine().filter { !$0.isFine }
    #expect(odd.count == (remedy == nil ? 0 : 1), "\(odd)")
    if let remedy { #expect(odd.first?.warning?.contains(remedy) == true, "\(odd)") }
  }

  @Test("a secret in place of its file name is not shown")
  func secretForAPath() async throws {
    let machine = try Machine()
    machine.settings.apps[0].sharedSecretFile = "s3cret"
    machine.settings.apps[0].privateKeyFile = "s3cret"
    machine.settings.appStoreConnect.privateKeyFile = "s3cret"
    Self.mail(machine, .init(url: "smtps://example.com", user: "x", passwordFile: "s3cret", caFile: "s3cret"))
    let texts = await machine.examine().map { "\($0)" }
    #expect(!texts.contains { $0.contains("s3cret") }, "\(texts)")
    #expect(texts.filter { $0.contains("(a value that is not a path") }.count == 5, "\(texts)")
  }

  @Test("a crontab that root does not own is a warning, because cron ignores it", .enabled(if: getuid() == 0))
  func crontabOfAnother() async throws {
    let machine = try Machine()
    #expect(chown(machine.root + "/etc/cron.d/night-audit", 1, 1) == 0)
    let odd = await machine.examine().filter { !$0.isFine }
    #expect(odd.map(\.subject) == ["schedule"] && odd.first?.warning?.contains("chown root") == true, "\(odd)")
  }

  @Test("missing cron mail is no warning if a monitor is pinged", arguments: ["", "MAILTO=\"\"\n"])
  func pings(_ mailTo: String) async throws {
    let machine = try Machine()
    machine.settings.pingURL = "https://hc.example/x"
    try machine.remove("usr/sbin/sendmail")
    try machine.crontab(mailTo + night)
    let odd = await machine.examine().filter { !$0.isFine }
    #expect(odd.map { "\($0)" } == [])
  }

  @Test("a systemd timer is accepted in place of a cron entry")
  func timer() throws {
    let machine = try Machine()
    try machine.crontab(nil)
    try machine.enable(timer: "night-audit.timer")
    let found = HostExamination(settings: machine.settings, root: machine.root).examine()
    #expect(found.first?.subject == "schedule (night-audit.timer)")
  }
}
