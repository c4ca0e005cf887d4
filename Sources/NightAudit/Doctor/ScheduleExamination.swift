import Foundation

/// Whether something starts nights, and whether somebody hears of them.
struct ScheduleExamination {
  /// Where cron and systemd look, and what cron mails with; other places in tests.
  var root = ""

  func examine() -> Diagnosis {
    let timers = files(in: ["/etc/systemd/system", "/run/systemd/system"].map { "\($0)/timers.target.wants" })
      .filter(isTimer)
    let crontabs = crontabs.filter { !nights(in: $0).isEmpty }
    if let crontab = crontabs.first {
      var diagnosis = Diagnosis(subject: "schedule (cron)")
      if let timer = timers.first {
        diagnosis.warning = "\(name(timer)) starts nights as well; keep one of the two"
      } else if lines(of: crontab).contains(where: { $0.wholeMatch(of: /\s*MAILTO\s*=\s*(""|'')?\s*/) != nil }) {
        diagnosis.warning = "\(crontab) has an empty MAILTO, so that nobody hears of a night; name somebody in it"
      } else if !hasMailer {
        diagnosis.warning = """
          cron has no program to send mail with, so that nobody hears of a night; install an MTA (Debian: apt-get \
          install msmtp-mta), or set notify.pingUrl
          """
      }
      return diagnosis
    }
    if let timer = timers.first { return Diagnosis(subject: "schedule (\(name(timer)))") }
    return Diagnosis(subject: "schedule", warning: remedy)
  }

  /// Why nothing starts nights, as far as that can be seen.
  private var remedy: String {
    if let passedOver = files(in: ["/etc/cron.d"]).first(where: { !isRead($0) && !nights(in: $0).isEmpty }) {
      return "cron passes \(passedOver) over because of its name; call it night-audit, without a dot"
    }
    let units = files(in: ["/etc/systemd/system", "/lib/systemd/system", "/usr/lib/systemd/system"])
    if let timer = units.first(where: isTimer) {
      return "\(name(timer)) is installed and not enabled; run: systemctl enable --now \(name(timer))"
    }
    return """
      neither a cron entry nor a timer of this host starts night-audit; see cron/ in the sources for both (this is right \
      where nights are started from elsewhere)
      """
  }

  private var hasMailer: Bool {
    ["/usr/sbin/sendmail", "/usr/lib/sendmail"].contains { FileManager.default.isExecutableFile(atPath: root + $0) }
  }

  // MARK: - cron

  private var crontabs: [String] {
    [root + "/etc/crontab"] + files(in: ["/etc/cron.d", "/etc/cron.daily"]).filter(isRead)
      + files(in: ["/var/spool/cron/crontabs"])
  }

  /// Debian's cron reads files of such names alone (cron(8), run-parts(8)).
  private func isRead(_ file: String) -> Bool { name(file).wholeMatch(of: /[A-Za-z0-9_-]+/) != nil }

  private func lines(of file: String) -> [Substring] {
    ((try? String(contentsOfFile: file, encoding: .utf8)) ?? "").split(whereSeparator: \.isNewline)
  }

  /// The lines that start a night: no remarks, no variables, and not what only asks Apple during the day.
  private func nights(in file: String) -> [Substring] {
    lines(of: file).filter {
      $0.contains("night-audit") && !$0.contains("night-audit recheck")
        && $0.prefixMatch(of: /\s*(#|[A-Za-z_]+\s*=)/) == nil
    }
  }

  // MARK: - systemd

  private func isTimer(_ file: String) -> Bool {
    name(file).hasSuffix(".timer") && name(file).contains("night-audit") && !name(file).contains("recheck")
  }

  // MARK: - Files

  private func name(_ file: String) -> String { (file as NSString).lastPathComponent }

  private func files(in directories: [String]) -> [String] {
    directories.flatMap { directory in
      ((try? FileManager.default.contentsOfDirectory(atPath: root + directory)) ?? []).sorted()
        .map { "\(root)\(directory)/\($0)" }
    }
  }
}
