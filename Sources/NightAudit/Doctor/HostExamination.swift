import Foundation
import Glibc
import Run

/// What the doctor asks of the machine that nights run on.
struct HostExamination {
  let settings: Settings
  /// Where cron and systemd look, and what cron mails with; other places in tests.
  var root = ""

  func examine() -> [Diagnosis] { [schedule(), disk(), metrics()].compactMap(\.self) }

  /// Whether something starts nights.
  private func schedule() -> Diagnosis {
    let starts = crontabs.contains { path in
      guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return false }
      return text.split(whereSeparator: \.isNewline).contains {
        !$0.drop { $0 == " " || $0 == "\t" }.hasPrefix("#") && $0.contains("night-audit")
      }
    }
    if starts {
      let hasMailer = ["/usr/sbin/sendmail", "/usr/lib/sendmail"].contains {
        FileManager.default.isExecutableFile(atPath: root + $0)
      }
      return Diagnosis(
        subject: "schedule (cron)",
        warning: hasMailer
          ? nil
          : "cron has no program to send mail with, so that nobody hears of a night; install an MTA, or set MAILTO")
    }
    let units = ["/etc/systemd/system", "/lib/systemd/system", "/usr/lib/systemd/system"]
    let timers = units.flatMap { list(root + $0) }.filter {
      $0.hasSuffix(".timer") && ($0 as NSString).lastPathComponent.contains("night-audit")
    }
    if !timers.isEmpty { return Diagnosis(subject: "schedule (\((timers[0] as NSString).lastPathComponent))") }
    return Diagnosis(
      subject: "schedule",
      warning: """
        neither a cron entry nor a timer of this host starts night-audit; see cron/ in the sources for both (this is \
        right where nights are started from elsewhere)
        """)
  }

  private var crontabs: [String] {
    [root + "/etc/crontab"] + list(root + "/etc/cron.d") + list(root + "/etc/cron.daily")
      + list(root + "/var/spool/cron/crontabs")
  }

  private func list(_ directory: String) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []).sorted().map { "\(directory)/\($0)" }
  }

  /// Whether metrics can be written where node_exporter reads them.
  private func metrics() -> Diagnosis? {
    guard let path = settings.metricsTextfile else { return nil }
    let directory = (path as NSString).deletingLastPathComponent
    var diagnosis = Diagnosis(subject: "metrics.textfile \(path)")
    if access(directory, W_OK | X_OK) != 0 {
      diagnosis.warning = """
        \(directory) is not there, or may not be written by this user; create it, writable by the user that runs \
        night-audit, and name it to node_exporter as --collector.textfile.directory
        """
    }
    return diagnosis
  }

  /// Whether the next report has room: it is written beside the last one before it appears.
  private func disk() -> Diagnosis? {
    let directory = settings.reportDirectory
    let last = URL(fileURLWithPath: directory).appendingPathComponent("latest").resolvingSymlinksInPath().path
    let files = (try? FileManager.default.contentsOfDirectory(atPath: last)) ?? []
    let size = files.reduce(0) { total, name in
      let attributes = try? FileManager.default.attributesOfItem(atPath: "\(last)/\(name)")
      return total + ((attributes?[.size] as? NSNumber)?.intValue ?? 0)
    }
    var facts = statvfs()
    guard statvfs(directory, &facts) == 0 else { return nil }
    let free = Int(clamping: UInt64(facts.f_bavail) * UInt64(facts.f_frsize))
    // Twice, because what is sorted waits beside what is written.
    let needed = max(2 * size, 64 << 20)
    var diagnosis = Diagnosis(subject: "disk of report.directory (\(free >> 20) MB free)")
    if free < needed {
      diagnosis.problem = "a night needs \(needed >> 20) MB; make room, or set report.retention"
      diagnosis.status = .cannotWrite
    }
    return diagnosis
  }
}
