import Foundation
import Glibc
import Publishing
import Run
import Settings

struct HostExamination {
  let settings: Settings
  /// Prefix of the paths of cron, systemd and the mailer; replaced in tests.
  var root = ""

  func examine() -> [Diagnosis] {
    let schedule = ScheduleExamination(root: root, isPinging: settings.pingURL != nil)
    return settings.sources.compactMap(source) + [schedule.examine(), disk(), metrics()].compactMap(\.self)
  }

  private func source(_ source: Settings.Source) -> Diagnosis? {
    let attributes = try? FileManager.default.attributesOfItem(atPath: source.path)
    guard let mode = (attributes?[.posixPermissions] as? NSNumber)?.intValue else { return nil }
    if mode & 0o002 != 0 {
      return .warning(
        source.path,
        "can be changed by every user, with the database and the commands it names; run: chmod o-rw \(source.path)")
    }
    guard source.holdsSecret, mode & 0o004 != 0 else { return nil }
    return .warning(source.path, "contains a password and can be read by every user; run: chmod o-r \(source.path)")
  }

  private func metrics() -> Diagnosis? {
    guard let path = settings.metricsTextfile else { return nil }
    let directory = URL(fileURLWithPath: path).deletingLastPathComponent().path
    var diagnosis = Diagnosis(subject: "metrics.textfile \(path)")
    if !path.hasPrefix("/") || !path.hasSuffix(".prom") {
      diagnosis.warning = """
        node_exporter reads files that end with .prom alone, and a relative path names another file under cron; give an \
        absolute path that ends with .prom
        """
    } else if MetricsFile.isOthers(path) {
      diagnosis.warning = "the file holds no metrics of night-audit and is not touched; name another file"
    } else if access(directory, W_OK | X_OK) != 0 {
      diagnosis.warning = """
        \(directory) does not exist, or this user may not write it; create it, writable by the user that runs \
        night-audit, and name it to node_exporter as --collector.textfile.directory
        """
    }
    return diagnosis
  }

  /// Checks the space for the next report, which is written before the last one is removed.
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
    // Twice the size, because sorting needs temporary files beside the report.
    let needed = max(2 * size, 64 << 20)
    var diagnosis = Diagnosis(subject: "disk of report.directory (\(free >> 20) MB free)")
    if free < needed {
      diagnosis.problem = "a night needs \(needed >> 20) MB; make room, or set report.retention"
      diagnosis.status = .cannotWrite
    }
    return diagnosis
  }
}
