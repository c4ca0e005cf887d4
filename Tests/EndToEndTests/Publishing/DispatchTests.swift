import Foundation
import Testing
import TestSupport

@Suite struct DispatchTests {
  private static let secret = #"pa"ss\w0rd-8c1f"#

  private func write(_ text: String, to file: String, mode: Int = 0o600) throws {
    try text.write(toFile: file, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
  }

  private func configure(_ shop: Rehearsal, _ names: String, _ sections: String) throws {
    let yaml = try shop.configuration() + "\n  deliver: [\(names)]\ndeliver:\n\(sections)\n"
    try yaml.write(toFile: shop.directory.file("night-audit.yaml"), atomically: true, encoding: .utf8)
  }

  private func states(_ shop: Rehearsal) async throws -> String {
    try await shop.value(
      """
      SELECT string_agg(concat_ws(' ', right(directory, 10), target, state, attempts), ', ' ORDER BY dispatch_id)
      FROM night_audit.dispatches
      """)
  }

  @Test(.enabled(if: TestTools.areInstalled)) func everyTargetKindReceivesTheReportOnce() async throws {
    let shop = try await Rehearsal.sampleShop()
    let password = shop.directory.file("password")
    try write(Self.secret + "\n", to: password)
    let tls = try await Certificate(in: shop.directory)
    let mail = try await Receiver(ReceiverProgram.mail, [tls.certificate, tls.key, password])
    let storage = try await Receiver(ReceiverProgram.storage, [tls.certificate, tls.key, password])
    let sftp = try await Receiver(ReceiverProgram.sftp, [password])
    let fingerprint = try String(contentsOfFile: sftp.directory.file("fingerprint"), encoding: .utf8)
    let script = shop.directory.file("send")
    try write(
      """
      #!/bin/sh
      { echo "$@"; env | grep -c '^NIGHT_AUDIT_\\|^PG' || :; } > '\(shop.directory.file("sent"))'
      """, to: script, mode: 0o755)
    try configure(
      shop, "finance, bucket, partner, hook",
      """
        finance:
          url: smtps://localhost:\(mail.port)
          from: night-audit@example.com
          to: [finance@example.com, cfo@example.com]
          user: auditor
          passwordFile: \(password)
          caFile: \(tls.certificate)
        bucket:
          url: https://localhost:\(storage.port)/reports/night-audit
          region: eu-test-1
          user: AKID
          passwordFile: \(password)
          caFile: \(tls.certificate)
        partner:
          url: sftp://localhost:\(sftp.port)/incoming/
          user: auditor
          passwordFile: \(password)
          hostKey: \(fingerprint)
        hook:
          command: [\(script), --now]
      """)
    let doctor = try await shop.nightAudit("doctor")
    #expect(doctor.status == 0, "\(doctor.output)")
    let result = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, environment: ["NIGHT_AUDIT_X": "1"])
    #expect(result.status == 3, "\(result.errors)")
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
      let again = try await Program.nightAudit.run(
        ["run", "--as-of", Rehearsal.asOf, "--config", shop.directory.file("night-audit.yaml")] + arguments)
      #expect([0, 3].contains(again.status), "\(again.errors)")
      #expect(!again.output.contains("Sent to"), "\(arguments): \(again.output)")
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: mail.got).filter { $0.hasSuffix(".eml") } == ["0.eml"])
    #expect(try await shop.value("SELECT count(*) FROM night_audit.bi_dispatches WHERE state = 'withdrawn'") == "4")

    // `verify` rejects a state that no run recorded, whatever its reason.
    #expect(try await shop.nightAudit("verify").status == 0)
    try await shop.execute(
      """
      UPDATE night_audit.dispatches SET state = 'withdrawn', problem = 'its folder is gone', content = NULL
      WHERE state = 'delivered' AND target = 'finance'
      """)
    for command in ["verify", "rebuild", "doctor"] {
      let found = try await shop.nightAudit(command)
      #expect(found.output.contains(" for finance is withdrawn, and no run recorded that"), "\(command): \(found)")
    }
    #expect(try await shop.nightAudit("rebuild", more: ["--write"]).status == 0)
    #expect(try await states(shop).contains("2026-11-19 finance owed"))
    #expect(try await shop.nightAudit("verify").status == 0)
  }

  /// A held night and a failed night also send a mail.
  @Test(.enabled(if: TestTools.areInstalled)) func aNightWithoutAReportSendsMail() async throws {
    let shop = try await Rehearsal.sampleShop()
    let password = shop.directory.file("password")
    try write(Self.secret + "\n", to: password)
    let tls = try await Certificate(in: shop.directory)
    let mail = try await Receiver(ReceiverProgram.mail, [tls.certificate, tls.key, password])
    let uploads = shop.directory.file("uploads")
    let script = shop.directory.file("send")
    try write("#!/bin/sh\necho x >> '\(uploads)'\n", to: script, mode: 0o755)
    try configure(
      shop, "finance, hook",
      """
        finance:
          url: smtps://localhost:\(mail.port)
          from: night-audit@example.com
          to: [finance@example.com]
          user: auditor
          passwordFile: \(password)
          caFile: \(tls.certificate)
        hook:
          command: [\(script)]
      """)
    func told(_ number: Int) throws -> String {
      try String(contentsOfFile: "\(mail.got)/\(number).eml", encoding: .utf8).replacing("=\r\n", with: "")
        .replacing("=\n", with: "")
    }
    try await shop.execute("UPDATE sales.orders SET quantity = 0")
    let held = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    #expect(held.status == 4, "\(held.errors)")
    #expect(try told(0).contains("Subject: Night audit 2026-11-19: HELD, nothing is published"))
    #expect(try told(0).contains("orders have rows that break the contract"))
    #expect(try told(0).contains("/held/2026-11-19"))
    _ = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--order", "x")
    try await shop.execute("ALTER TABLE sales.orders RENAME COLUMN status TO state")
    let failed = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    #expect(failed.status == 78, "\(failed.errors)")
    #expect(try told(1).contains("Subject: Night audit 2026-11-19: FAILED"))
    #expect(try told(1).contains("status 78"))
    #expect(!(try told(1)).contains(Self.secret))
    // An unreachable mail server only adds a line of output.
    mail.stop()
    let untold = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    #expect(untold.status == 78, "\(untold.errors)")
    #expect(untold.errors.contains("the notice of the night's end was not sent"), "\(untold.errors)")
    // Other targets receive only reports.
    #expect(!FileManager.default.fileExists(atPath: uploads))
  }

  /// curl treats a redirection as success, although nothing is stored.
  @Test(.enabled(if: TestTools.areInstalled)) func aRedirectionIsNoDelivery() async throws {
    let shop = try await Rehearsal.sampleShop()
    let password = shop.directory.file("password")
    try write(Self.secret + "\n", to: password)
    let tls = try await Certificate(in: shop.directory)
    let storage = try await Receiver(ReceiverProgram.storage, [tls.certificate, tls.key, password])
    try configure(
      shop, "bucket",
      """
        bucket:
          url: https://localhost:\(storage.port)/moved/night-audit
          region: eu-test-1
          user: AKID
          passwordFile: \(password)
          caFile: \(tls.certificate)
      """)
    let result = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    #expect(!result.output.contains("Sent to"), "\(result.output)")
    #expect((result.output + result.errors).contains("answered HTTP 301"), "\(result)")
    #expect(try await states(shop) == "2026-11-19 bucket owed 1")
  }

  private func expectMail(_ path: String, workbook: Data) async throws {
    let program = #"""
      import email.policy, hashlib, io, json, sys
      from openpyxl import load_workbook
      with open(sys.argv[1], "rb") as file:
          mail = email.message_from_binary_file(file, policy=email.policy.default)
      attachment, = mail.iter_attachments()
      content = attachment.get_content()
      json.dump({
          "subject": mail["subject"], "to": mail["to"], "date": mail["date"].datetime.tzname(), "id": mail["message-id"],
          "types": [part.get_content_type() for part in mail.walk()],
          "text": mail.get_body(("plain",)).get_content(), "html": mail.get_body(("html",)).get_content(),
          "name": attachment.get_filename(), "sha256": hashlib.sha256(content).hexdigest(),
          "sheets": load_workbook(io.BytesIO(content)).sheetnames[:2]}, sys.stdout)
      """#
    let read = try await Program(path: try python()).run(["-c", program, path])
    #expect(read.status == 0, "\(read.errors)")
    let mail = try #require(try JSONSerialization.jsonObject(with: Data(read.output.utf8)) as? [String: Any], "\(read)")
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

  private func python() throws -> String {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    let candidates = ["/usr/bin/python3"] + path.split(separator: ":").map { "\($0)/python3" }
    return try #require(
      candidates.first { candidate in
        let process = Process()
        process.executableURL = URL(filePath: candidate)
        process.arguments = ["-c", "import openpyxl"]
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
      })
  }

  @Test func failedDeliveriesAreSentTheNextNight() async throws {
    let shop = try await Rehearsal.sampleShop()
    let gate = shop.directory.file("open")
    let log = shop.directory.file("sent")
    let script = shop.directory.file("send")
    try write(
      "#!/bin/sh\n[ -e '\(gate)' ] || { echo 'the archive is shut' >&2; exit 4; }\nbasename \"$1\" >> '\(log)'\n",
      to: script, mode: 0o755)
    // Nothing listens on port 1. `attempts: 1` prevents retries of the refused connection.
    try configure(
      shop, "archive, nowhere",
      """
        archive: {command: [\(script)], attempts: 2}
        nowhere: {url: "http://127.0.0.1:1/x", attempts: 1}
      """)
    let first = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--quiet")
    // The exit status is that of the incomplete night.
    #expect(first.status == 3)
    #expect(first.errors.contains("the archive is shut"), "\(first.errors)")
    #expect(first.errors.contains("curl: (7)"), "\(first.errors)")
    #expect(try shop.files(shop.reports + "/latest")["SHA256SUMS"] != nil)
    #expect(try await states(shop) == "2026-11-19 archive owed 2, 2026-11-19 nowhere owed 1")

    try write("", to: gate)
    try configure(shop, "archive", "  archive: {command: [\(script)], attempts: 2}")
    let second = try await shop.nightAudit("run", "--as-of", "2026-11-21T03:00:00Z", "--json")
    #expect(second.status == 3, "\(second.errors)")
    let summary = try #require(try JSONSerialization.jsonObject(with: Data(second.output.utf8)) as? [String: Any])
    let dispatches = try #require(summary["dispatches"] as? [[String: Any]])
    #expect(dispatches.map { $0["target"] as? String } == ["archive", "archive"])
    #expect(dispatches.allSatisfy { $0["problem"] == nil })
    // Tonight's report first; delivered ones are not repeated. Unanswered questions are findings by now.
    #expect(try await shop.nightAudit("run", "--as-of", "2026-11-22T03:00:00Z").status == 0)
    #expect(try String(contentsOfFile: log, encoding: .utf8) == "2026-11-20\n2026-11-19\n2026-11-21\n")
    #expect(
      try await states(shop) == """
        2026-11-19 archive delivered 3, 2026-11-19 nowhere withdrawn 1, 2026-11-20 archive delivered 1, \
        2026-11-21 archive delivered 1
        """)
  }

  /// A report that one target always rejects must not block others.
  @Test func aRejectedReportDoesNotBlockOtherDeliveries() async throws {
    let shop = try await Rehearsal.sampleShop()
    let (gate, script) = (shop.directory.file("open"), shop.directory.file("send"))
    try write(
      "#!/bin/sh\n[ -e '\(gate)' ] || exit 4\ncase \"$1\" in *2026-11-19) echo 'too large' >&2; exit 5;; esac\n",
      to: script, mode: 0o755)
    try configure(shop, "archive", "  archive: {command: [\(script)], attempts: 1}")
    for night in ["2026-11-20", "2026-11-21"] {
      #expect(try await shop.nightAudit("run", "--as-of", "\(night)T03:00:00Z", "--quiet").status == 3)
    }
    try await shop.execute("UPDATE night_audit.dispatches SET attempts = 9 WHERE directory LIKE '%2026-11-19'")
    try write("", to: gate)
    let result = try await shop.nightAudit("run", "--as-of", "2026-11-22T03:00:00Z")
    #expect(result.errors.contains("too large"), "\(result.errors)")
    #expect(
      try await states(shop) == """
        2026-11-19 archive owed 10, 2026-11-20 archive delivered 2, 2026-11-21 archive delivered 1
        """)
  }

  @Test func editedReportsAreSentOnlyAfterANewRun() async throws {
    let shop = try await Rehearsal.sampleShop()
    let gate = shop.directory.file("open")
    let log = shop.directory.file("sent")
    let script = shop.directory.file("send")
    try write("#!/bin/sh\n[ -e '\(gate)' ] || exit 4\nbasename \"$1\" >> '\(log)'\n", to: script, mode: 0o755)
    try configure(shop, "archive", "  archive: {command: [\(script)], attempts: 1}")
    #expect(try await shop.nightAudit("run", "--as-of", Rehearsal.asOf).status == 3)
    try write("edited", to: shop.reports + "/2026-11-19/night-audit-2026-11-19.xlsx")
    try write("", to: gate)
    let second = try await shop.nightAudit("run", "--as-of", "2026-11-21T03:00:00Z")
    #expect(second.output.contains("NOT SENT to archive: 2026-11-19: "), "\(second)")
    #expect(second.output.contains("edited since; make the report again"), "\(second)")
    #expect(try await states(shop) == "2026-11-19 archive owed 1, 2026-11-20 archive delivered 1")
    let again = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    #expect(again.output.contains("Sent to archive: 2026-11-19"), "\(again)")
    #expect(try String(contentsOfFile: log, encoding: .utf8) == "2026-11-20\n2026-11-19\n")
    #expect(
      try await states(shop) == """
        2026-11-19 archive withdrawn 1, 2026-11-20 archive delivered 1, 2026-11-19 archive delivered 1
        """)
  }

  @Test func aCompleteNightThatCannotBeSentEndsWith73() async throws {
    let shop = try await Rehearsal.sampleShop()
    try await shop.execute("TRUNCATE sales.orders, sales.receipts, sales.deliveries")
    try configure(shop, "nowhere", #"  nowhere: {url: "http://127.0.0.1:1/x", attempts: 1}"#)
    let night = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--quiet")
    #expect(night.status == 73, "\(night.errors)")
    #expect(try await shop.value("SELECT exit_status FROM night_audit.runs") == "73")
    #expect(try shop.files(shop.reports + "/latest")["SHA256SUMS"] != nil)
  }

  @Test func aChangedDispatchIsReported() async throws {
    let shop = try await Rehearsal.sampleShop()
    try configure(shop, "nowhere", #"  nowhere: {url: "http://127.0.0.1:1/x", attempts: 1}"#)
    _ = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--quiet")
    let sound = try await shop.nightAudit("verify")
    #expect(sound.status == 0, "\(sound)")
    for (change, undoing, said) in [
      ("target = 'x' || target", "target = substr(target, 2)", "dispatches of run"),
      ("directory = 'x' || directory", "directory = substr(directory, 2)", "dispatches of run"),
      ("state = 'delivered'", "state = 'owed'", "for nowhere is delivered, and no run recorded that"),
    ] {
      try await shop.execute("UPDATE night_audit.dispatches SET \(change)")
      let found = try await shop.nightAudit("verify")
      #expect(found.status == 70 && found.output.contains(said), "\(change): \(found)")
      try await shop.execute("UPDATE night_audit.dispatches SET \(undoing)")
    }
  }

  @Test func onlyExpiredFoldersAreRemoved() async throws {
    let shop = try await Rehearsal.sampleShop()
    try await shop.execute(
      "DELETE FROM night_audit.retention; INSERT INTO night_audit.retention (reports) VALUES ('2 days')")
    let yaml = try shop.configuration() + "\n  retention: 2d\n"
    try yaml.write(toFile: shop.directory.file("night-audit.yaml"), atomically: true, encoding: .utf8)
    for day in 10...12 {
      #expect(try await shop.nightAudit("run", "--as-of", "2020-01-\(day)T03:00:00Z", "--offline").status == 0)
    }
    #expect(
      try await shop.nightAudit("run", "--as-of", "2020-01-10T04:00:00Z", "--user", "x", "--offline").status != 73)
    try write("mine", to: shop.reports + "/2020-01-10/signed-off.txt")
    try FileManager.default.createDirectory(atPath: shop.reports + "/2019-01-01", withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: shop.reports + "/2019-01-02", withDestinationPath: "2020-01-10")
    let result = try await shop.nightAudit("run", "--as-of", "2020-01-20T03:00:00Z", "--offline")
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.errors.contains("signed-off.txt"), "\(result.errors)")
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: shop.reports).sorted() == [
        "2019-01-01", "2019-01-02", "2020-01-10", "2020-01-19", "ad-hoc", "latest",
      ])
    #expect(try FileManager.default.contentsOfDirectory(atPath: shop.reports + "/ad-hoc") == [])
    let kept = try shop.files(shop.reports + "/2020-01-10")
    #expect(kept["signed-off.txt"] == Data("mine".utf8) && kept["orders.csv"] != nil && kept["SHA256SUMS"] != nil)
  }
}
