import Foundation
import Glibc
import Run

struct ScheduleExamination {
  /// Prefix of the paths of cron, systemd and the mailer; replaced in tests.
  var root = ""
  var isPinging: Bool

  func examine() -> Diagnosis {
    let timers = files(in: ["/etc/systemd/system", "/run/systemd/system"].map { "\($0)/timers.target.wants" })
      .filter(isTimer)
    let crontabs = crontabs.filter { !nights(in: $0).isEmpty }
    if let crontab = crontabs.first {
      var diagnosis = Diagnosis(subject: "schedule (cron)")
      if let timer = timers.first {
        diagnosis.warning = "\(name(timer)) starts nights as well; keep one of the two"
      } else if isPinging {
        return diagnosis
      } else if lines(of: crontab).contains(where: { $0.wholeMatch(of: /\s*MAILTO\s*=\s*(""|'')?\s*/) != nil }) {
        diagnosis.warning = "\(crontab) has an empty MAILTO, so cron sends no mail about a night; set an address"
      } else if !hasMailer {
        diagnosis.warning = """
          cron has no program to send mail with, so no mail about a night is sent; install an MTA (Debian: apt-get \
          install msmtp-mta), or set notify.pingUrl
          """
      }
      return diagnosis
    }
    if let timer = timers.first { return .fine("schedule (\(name(timer)))") }
    return .warning("schedule", remedy)
  }

  private var remedy: String {
    for file in systemCrontabs where !nights(in: file).isEmpty {
      if let refusal = refusal(file) { return "cron ignores \(file) because \(refusal)" }
    }
    let units = files(in: ["/etc/systemd/system", "/lib/systemd/system", "/usr/lib/systemd/system"])
    if let timer = units.first(where: isTimer) {
      return "\(name(timer)) is installed and not enabled; run: systemctl enable --now \(name(timer))\(unseen)"
    }
    return """
      neither a cron entry nor a timer of this host starts night-audit; examples are in /usr/local/share/night-audit \
      (make install) or /usr/share/doc/night-audit/examples (Debian package). This is right where nights are started \
      from elsewhere\(unseen)
      """
  }

  private var unseen: String {
    let folder = root + ScheduleExamination.usersCrontabs
    let isHidden =
      FileManager.default.fileExists(atPath: folder)
      && (try? FileManager.default.contentsOfDirectory(atPath: folder)) == nil
    return isHidden ? "; the crontabs of users in \(folder) cannot be seen by this user: root sees them" : ""
  }

  private var hasMailer: Bool {
    ["/usr/sbin/sendmail", "/usr/lib/sendmail"].contains { FileManager.default.isExecutableFile(atPath: root + $0) }
  }

  // MARK: - cron

  private static let usersCrontabs = "/var/spool/cron/crontabs"

  private var systemCrontabs: [String] { [root + "/etc/crontab"] + files(in: ["/etc/cron.d"]) }

  private var crontabs: [String] {
    systemCrontabs.filter { refusal($0) == nil } + files(in: ["/etc/cron.daily"]).filter(isNamed)
      + files(in: [ScheduleExamination.usersCrontabs])
  }

  /// Debian's cron ignores files with other names (cron(8), run-parts(8)).
  private func isNamed(_ file: String) -> Bool { name(file).wholeMatch(of: /[A-Za-z0-9_-]+/) != nil }

  /// Why cron ignores a system crontab (cron(8)); nil if it does not. The owner of `root` counts as root.
  private func refusal(_ file: String) -> String? {
    var (folder, status) = (stat(), stat())
    guard isNamed(file) else { return "of its name; call it night-audit, without a dot" }
    guard stat(root + "/", &folder) == 0, stat(file, &status) == 0 else { return nil }
    if status.st_uid != folder.st_uid { return "it is not root's; run: chown root \(file)" }
    return status.st_mode & 0o022 == 0 ? nil : "others than root may write it; run: chmod go-w \(file)"
  }

  private func lines(of file: String) -> [Substring] {
    (RegularFile.text(file) ?? "").split(whereSeparator: \.isNewline)
  }

  /// Lines that start a night: no comments, no variables, no re-checks.
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
