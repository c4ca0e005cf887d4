import Foundation
import Testing
import TestSupport

@Suite struct DispatchTests {
  private static let secret = #"pa"ss\w0rd-8c1f"#

  private func configure(_ shop: Rehearsal, _ names: String, _ sections: String) throws {
    try shop.configure("  deliver: [\(names)]\ndeliver:\n\(sections)\n")
  }

  /// A certificate for localhost and a password, in files of the shop.
  private func credentials(
    _ shop: Rehearsal
  ) async throws -> (password: String, certificate: String, arguments: [String]) {
    let (certificate, key) = (shop.directory.file("certificate.pem"), shop.directory.file("key.pem"))
    let made = try await Program(path: "/usr/bin/env").run([
      "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
      "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate,
    ])
    try #require(made.status == 0, "\(made.errors)")
    let password = try shop.directory.write(Self.secret + "\n", "password")
    return (password, certificate, [certificate, key, password])
  }

  private func states(_ shop: Rehearsal) async throws -> String {
    try await shop.value(
      """
      SELECT string_agg(concat_ws(' ', right(directory, 10), target, state, attempts), ', ' ORDER BY dispatch_id)
      FROM night_audit.dispatches
      """)
  }

  @Test(.enabled(if: TestTools.areInstalled)) func everyTargetKindReceivesTheReportOnce() async throws {
    let shop = try await Rehearsal.sampleShop(formats: "csv, xlsx")
    let (password, certificate, tls) = try await credentials(shop)
    let mail = try await Receiver("mail_receiver", tls)
    let storage = try await Receiver("storage_receiver", tls)
    let sftp = try await Receiver("sftp_receiver", [password])
    let fingerprint = try String(contentsOfFile: sftp.directory.file("fingerprint"), encoding: .utf8)
    let script = try shop.directory.write(
      """
      #!/bin/sh
      { echo "$@"; env | grep -c '^NIGHT_AUDIT_\\|^PG' || :; } > '\(shop.directory.file("sent"))'
      """, "send", mode: 0o755)
    try configure(
      shop, "finance, bucket, partner, hook",
      """
        finance:
          url: smtps://localhost:\(mail.port)
          from: night-audit@example.com
          to: [finance@example.com, cfo@example.com]
          user: auditor
          passwordFile: \(password)
          caFile: \(certificate)
        bucket:
          url: https://localhost:\(storage.port)/reports/night-audit
          region: eu-test-1
          user: AKID
          passwordFile: \(password)
          caFile: \(certificate)
        partner:
          url: sftp://localhost:\(sftp.port)/incoming/
          user: auditor
          passwordFile: \(password)
          hostKey: \(fingerprint)
        hook:
          command: [\(script), --now]
      """)
    try await shop.nightAudit("doctor", exits: [0])
    let result = try await shop.nightAudit(
      "run", "--as-of", Rehearsal.asOf, environment: ["NIGHT_AUDIT_X": "1"], exits: [3])
    for name in ["finance", "bucket", "partner", "hook"] {
      #expect(result.output.contains("Sent to \(name): 2026-11-19"), "\(result.output)\(result.errors)")
    }
    #expect(!(result.output + result.errors).contains("pa\"ss"))
    let folder = shop.reports + "/2026-11-19"
    let files = try shop.files(folder)

    #expect(
      try await states(shop) == """
        2026-11-19 finance delivered 2, 2026-11-19 bucket delivered 1, 2026-11-19 partner delivered 1, \
        2026-11-19 hook delivered 1
        """)
    let envelope = try #require(
      try JSONSerialization.jsonObject(with: Data(contentsOf: URL(filePath: mail.got + "/0.json"))) as? [String: Any])
    #expect(envelope["from"] as? String == "night-audit@example.com")
    #expect(envelope["to"] as? [String] == ["finance@example.com", "cfo@example.com"])
    #expect(envelope["exposed"] as? [String] == [])
    try await expectMail(mail.got + "/0.eml", workbook: files["night-audit-2026-11-19.xlsx"] ?? Data())

    for place in [storage.got + "/reports/night-audit/2026-11-19", sftp.got + "/incoming/2026-11-19"] {
      #expect(try shop.files(place) == files)
    }
    let order = try String(contentsOfFile: storage.got + "/order", encoding: .utf8).split(separator: "\n")
    #expect(order.last == "/reports/night-audit/2026-11-19/SHA256SUMS")
    #expect(try String(contentsOfFile: shop.directory.file("sent"), encoding: .utf8) == "--now \(folder)\n0\n")

    // The same content is not delivered twice, and narrowed or private runs are not delivered at all.
    for arguments in [[], ["--user", "x"], ["--out", shop.directory.file("out")], ["--dry-run"]] {
      let again = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, more: arguments, exits: [0, 3])
      #expect(!again.output.contains("Sent to"), "\(arguments): \(again.output)")
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: mail.got).filter { $0.hasSuffix(".eml") } == ["0.eml"])
    #expect(try await shop.value("SELECT count(*) FROM night_audit.bi_dispatches WHERE state = 'withdrawn'") == "4")

    // `verify` rejects a state that no run recorded, whatever its reason.
    try await shop.nightAudit("verify", exits: [0])
    try await shop.execute(
      """
      UPDATE night_audit.dispatches SET state = 'withdrawn', problem = 'has arrived before', content = NULL
      WHERE state = 'delivered' AND target = 'finance'
      """)
    for command in ["verify", "rebuild", "doctor"] {
      try await shop.nightAudit(command, says: " for finance is withdrawn, and no run recorded that")
    }
    try await shop.nightAudit("rebuild", more: ["--write"], exits: [0])
    #expect(try await states(shop).contains("2026-11-19 finance owed"))
    try await shop.nightAudit("verify", exits: [0])
  }

  /// A held night and a failed night also send a mail.
  @Test(.enabled(if: TestTools.areInstalled)) func aNightWithoutAReportSendsMail() async throws {
    let shop = try await Rehearsal.sampleShop()
    let (password, certificate, tls) = try await credentials(shop)
    let mail = try await Receiver("mail_receiver", tls)
    let uploads = shop.directory.file("uploads")
    let script = try shop.directory.write("#!/bin/sh\necho x >> '\(uploads)'\n", "send", mode: 0o755)
    try configure(
      shop, "finance, hook",
      """
        finance:
          url: smtps://localhost:\(mail.port)
          from: night-audit@example.com
          to: [finance@example.com]
          user: auditor
          passwordFile: \(password)
          caFile: \(certificate)
        hook:
          command: [\(script)]
      """)
    func told(_ number: Int) throws -> String {
      try String(contentsOfFile: "\(mail.got)/\(number).eml", encoding: .utf8).replacing("=\r\n", with: "")
        .replacing("=\n", with: "")
    }
    try await shop.execute("UPDATE sales.orders SET quantity = 0")
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [4])
    #expect(try told(0).contains("Subject: Night audit 2026-11-19: HELD, nothing is published"))
    #expect(try told(0).contains("orders have rows that break the contract"))
    #expect(try told(0).contains("/held/2026-11-19"))
    #expect(try told(0).contains("night-audit run --date 2026-11-19 --accept"))
    _ = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--order", "x")
    try await shop.execute("ALTER TABLE sales.orders RENAME COLUMN status TO state")
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [78])
    #expect(try told(1).contains("Subject: Night audit 2026-11-19: FAILED"))
    #expect(try told(1).contains("status 78"))
    #expect(!(try told(1)).contains(Self.secret))
    // An unreachable mail server only adds a line of output.
    mail.stop()
    let untold = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [78])
    #expect(untold.errors.contains("the notice of the night's end was not sent"), "\(untold.errors)")
    // Other targets receive only reports.
    #expect(!FileManager.default.fileExists(atPath: uploads))
  }

  /// curl treats a redirection as success, although nothing is stored.
  @Test(.enabled(if: TestTools.areInstalled)) func aRedirectionIsNoDelivery() async throws {
    let shop = try await Rehearsal.sampleShop(isSmall: true)
    let (password, certificate, tls) = try await credentials(shop)
    let storage = try await Receiver("storage_receiver", tls)
    try configure(
      shop, "bucket",
      """
        bucket:
          url: https://localhost:\(storage.port)/moved/night-audit
          region: eu-test-1
          user: AKID
          passwordFile: \(password)
          caFile: \(certificate)
      """)
    let result = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    #expect(!result.output.contains("Sent to"), "\(result.output)")
    #expect((result.output + result.errors).contains("answered HTTP 301"), "\(result)")
    #expect(try await states(shop) == "2026-11-19 bucket owed 1")
  }

  private func expectMail(_ path: String, workbook: Data) async throws {
    let mail = try await Program.runScript("read_mail", path).json()
    #expect((mail["subject"] as? String)?.hasPrefix("Night audit 2026-11-19: INCOMPLETE, ") == true)
    #expect(mail["to"] as? String == "finance@example.com, cfo@example.com")
    #expect(mail["date"] as? String == "UTC")
    #expect((mail["id"] as? String)?.hasSuffix(".finance@example.com>") == true)
    #expect(
      mail["types"] as? [String] == [
        "multipart/mixed", "multipart/alternative", "text/plain", "text/html",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
      ])
    for body in ["text", "html"] {
      let text = mail[body] as? String ?? ""
      #expect(text.contains("App Store night audit 2026-11-19 (UTC)"))
      #expect(text.contains("Apple has given no usable answer"))
      #expect(text.contains("not for revenue recognition"))
    }
    #expect(mail["name"] as? String == "night-audit-2026-11-19.xlsx")
    #expect(mail["sheets"] as? [String] == ["Summary", "Findings"])
    let file = try TemporaryDirectory()
    try workbook.write(to: URL(filePath: file.file("book")))
    let sum = try await Program(path: "/usr/bin/env").run(["sha256sum", file.file("book")])
    #expect(sum.output.prefix(64) == (mail["sha256"] as? String ?? ""))
  }

  /// An executable in the shop's folder.
  private func script(_ text: String, in shop: Rehearsal) throws -> String {
    try shop.directory.write("#!/bin/sh\n" + text + "\n", "send", mode: 0o755)
  }

  @Test func failedDeliveriesAreSentTheNextNight() async throws {
    let shop = try await Rehearsal.sampleShop(isSmall: true)
    let log = shop.directory.file("sent")
    let script = try script(
      """
      [ -e '\(shop.directory.file("open"))' ] || { echo 'the archive is shut' >&2; exit 4; }
      basename "$1" >> '\(log)'
      """, in: shop)
    // Nothing listens on port 1. `attempts: 1` prevents retries of the refused connection.
    try configure(
      shop, "archive, nowhere",
      """
        archive: {command: [\(script)], attempts: 2}
        nowhere: {url: "http://127.0.0.1:1/x", attempts: 1}
      """)
    // The exit status is that of the incomplete night.
    let first = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--quiet", exits: [3])
    #expect(first.errors.contains("the archive is shut"), "\(first.errors)")
    #expect(first.errors.contains("curl: (7)"), "\(first.errors)")
    #expect(try shop.files("latest")["SHA256SUMS"] != nil)
    #expect(try await states(shop) == "2026-11-19 archive owed 2, 2026-11-19 nowhere owed 1")

    try shop.directory.write("", "open")
    try configure(shop, "archive", "  archive: {command: [\(script)], attempts: 2}")
    let summary = try await shop.nightAudit("run", "--as-of", "2026-11-21T03:00:00Z", "--json", exits: [3]).json()
    let dispatches = try #require(summary["dispatches"] as? [[String: Any]])
    #expect(dispatches.map { $0["target"] as? String } == ["archive", "archive"])
    #expect(dispatches.allSatisfy { $0["problem"] == nil })
    // Tonight's report first; delivered ones are not repeated. Unanswered questions are findings by now.
    try await shop.nightAudit("run", "--as-of", "2026-11-22T03:00:00Z", exits: [0])
    #expect(try String(contentsOfFile: log, encoding: .utf8) == "2026-11-20\n2026-11-19\n2026-11-21\n")
    #expect(
      try await states(shop) == """
        2026-11-19 archive delivered 3, 2026-11-19 nowhere withdrawn 1, 2026-11-20 archive delivered 1, \
        2026-11-21 archive delivered 1
        """)
  }

  /// The server restarts, or ends an idle session, during a slow upload.
  @Test func deliveriesAreRecordedInANewSessionAfterTheLossOfTheNights() async throws {
    let shop = try await Rehearsal.emptyShop()
    let (begun, open) = (shop.directory.file("begun"), shop.directory.file("open"))
    let script = try script(": > '\(begun)'; while ! [ -e '\(open)' ]; do sleep 0.05; done", in: shop)
    try configure(shop, "slow, quick", "  slow: {command: [\(script)]}\n  quick: {command: [/bin/true]}")
    let running = try shop.start("run", "--as-of", Rehearsal.asOf, "--accept")
    while running.process.isRunning, !FileManager.default.fileExists(atPath: begun) { await pause() }
    _ = try await shop.value(
      """
      SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'night-audit' AND pid <> pg_backend_pid()
      """)
    try shop.directory.write("", "open")
    let night = await running.finish()
    #expect(night.status == 0, "\(night)")
    #expect(try await states(shop) == "2026-11-19 slow delivered 1, 2026-11-19 quick delivered 1")
    try await shop.nightAudit("verify", exits: [0])
  }

  /// A report that one target always rejects must not block others.
  @Test func aRejectedReportDoesNotBlockOtherDeliveries() async throws {
    let shop = try await Rehearsal.emptyShop()
    let script = try script(
      """
      [ -e '\(shop.directory.file("open"))' ] || exit 4
      case "$1" in *2026-11-19) echo 'too large' >&2; exit 5;; esac
      """, in: shop)
    try configure(shop, "archive", "  archive: {command: [\(script)], attempts: 1}")
    for night in ["2026-11-20", "2026-11-21"] {
      try await shop.nightAudit("run", "--as-of", "\(night)T03:00:00Z", "--quiet", "--accept", exits: [73])
    }
    try await shop.execute("UPDATE night_audit.dispatches SET attempts = 9 WHERE directory LIKE '%2026-11-19'")
    try shop.directory.write("", "open")
    try await shop.nightAudit("run", "--as-of", "2026-11-22T03:00:00Z", "--accept", says: "too large")
    #expect(
      try await states(shop) == """
        2026-11-19 archive owed 10, 2026-11-20 archive delivered 2, 2026-11-21 archive delivered 1
        """)
  }

  @Test func missingReportsStayOwedAndEditedReportsAreSentOnlyAfterANewRun() async throws {
    let shop = try await Rehearsal.emptyShop()
    let log = shop.directory.file("sent")
    let script = try script(
      "[ -e '\(shop.directory.file("open"))' ] || exit 4\nbasename \"$1\" >> '\(log)'", in: shop)
    try configure(shop, "archive", "  archive: {command: [\(script)], attempts: 1}")
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--accept", exits: [73])
    try shop.directory.write("", "open")
    let (folder, away) = (shop.reports + "/2026-11-19", shop.directory.file("away"))
    try FileManager.default.moveItem(atPath: folder, toPath: away)
    let first = try await shop.nightAudit(
      "run", "--as-of", "2026-11-21T03:00:00Z", "--accept", exits: [73], says: "NOT SENT to archive: 2026-11-19: ")
    #expect(first.output.contains("2026-11-19 is missing or cannot be read"), "\(first)")
    try FileManager.default.moveItem(atPath: away, toPath: folder)
    try shop.directory.write("edited", "reports/2026-11-19/orders.csv")
    let second = try await shop.nightAudit(
      "run", "--as-of", "2026-11-22T03:00:00Z", "--accept", says: "NOT SENT to archive: 2026-11-19: ")
    #expect(second.output.contains("edited since; make the report again"), "\(second)")
    #expect(
      try await states(shop) == """
        2026-11-19 archive owed 1, 2026-11-20 archive delivered 1, 2026-11-21 archive delivered 1
        """)
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--accept", says: "Sent to archive: 2026-11-19")
    #expect(try String(contentsOfFile: log, encoding: .utf8) == "2026-11-20\n2026-11-21\n2026-11-19\n")
    #expect(
      try await states(shop) == """
        2026-11-19 archive withdrawn 1, 2026-11-20 archive delivered 1, 2026-11-21 archive delivered 1, \
        2026-11-19 archive delivered 1
        """)
  }

  @Test func aCompleteNightThatCannotBeSentEndsWith73AndItsDispatchIsVerified() async throws {
    let shop = try await Rehearsal.emptyShop()
    try configure(shop, "nowhere", #"  nowhere: {url: "http://127.0.0.1:1/x", attempts: 1}"#)
    try await shop.execute(
      """
      INSERT INTO sales.orders
        (order_id, user_id, product_id, quantity, amount, currency, status, created_at, updated_at)
        VALUES ('o', 'u', 'gems', 1, 7.77, 'USD', 'verified', '2026-11-19T10:00:00Z', '2026-11-19T10:00:00Z');
      INSERT INTO sales.deliveries VALUES ('d', 'o', 'u', 'gems', 1, '2026-11-19T10:00:10Z', NULL);
      """)
    // A critical finding is open, and people learn of it only if the report arrives.
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--quiet", "--fail-on-findings", exits: [73])
    #expect(try await shop.value("SELECT exit_status FROM night_audit.runs") == "73")
    #expect(try shop.files("latest")["SHA256SUMS"] != nil)

    // A changed delivery is reported.
    try await shop.nightAudit("verify", exits: [0])
    for (change, undoing, said) in [
      ("target = 'x' || target", "target = substr(target, 2)", "dispatches of run"),
      ("directory = 'x' || directory", "directory = substr(directory, 2)", "dispatches of run"),
      ("state = 'delivered'", "state = 'owed'", "for nowhere is delivered, and no run recorded that"),
    ] {
      try await shop.execute("UPDATE night_audit.dispatches SET \(change)")
      try await shop.nightAudit("verify", exits: [70], says: said)
      try await shop.execute("UPDATE night_audit.dispatches SET \(undoing)")
    }
  }

  @Test func onlyExpiredFoldersAreRemoved() async throws {
    let shop = try await Rehearsal.sampleShop()
    try await shop.execute(
      "DELETE FROM night_audit.retention; INSERT INTO night_audit.retention (reports) VALUES ('2 days')")
    try shop.configure("  retention: 2d\n")
    for day in 10...12 {
      try await shop.nightAudit("run", "--as-of", "2020-01-\(day)T03:00:00Z", "--offline", exits: [0])
    }
    #expect(
      try await shop.nightAudit("run", "--as-of", "2020-01-10T04:00:00Z", "--user", "x", "--offline").status != 73)
    try shop.directory.write("mine", "reports/2020-01-10/signed-off.txt")
    try FileManager.default.createDirectory(atPath: shop.reports + "/2019-01-01", withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: shop.reports + "/2019-01-02", withDestinationPath: "2020-01-10")
    let result = try await shop.nightAudit("run", "--as-of", "2020-01-20T03:00:00Z", "--offline", exits: [0])
    #expect(result.errors.contains("signed-off.txt"), "\(result.errors)")
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: shop.reports).sorted() == [
        "2019-01-01", "2019-01-02", "2020-01-10", "2020-01-19", "ad-hoc", "latest",
      ])
    #expect(try FileManager.default.contentsOfDirectory(atPath: shop.reports + "/ad-hoc") == [])
    let kept = try shop.files("2020-01-10")
    #expect(kept["signed-off.txt"] == Data("mine".utf8) && kept["orders.csv"] != nil && kept["SHA256SUMS"] != nil)
  }
}
