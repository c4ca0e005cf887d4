import Foundation
import Glibc
import Logging
import Reconciliation
import Reporting

/// `report.retention`: which report folders have had their time. Pure; ``ReportShelf`` does the removing.
package struct ReportRetention {
  /// A report folder, as its `summary.json` describes it.
  package struct Folder: Hashable {
    /// Relative to `report.directory`: `2026-11-19`, or `ad-hoc/20261120T030000Z-1`.
    var path: String
    /// As-of of the run that made it.
    var asOf: Instant
    var isComplete: Bool

    var isNightly: Bool { !path.hasPrefix("ad-hoc/") }
  }

  /// Folders whose as-of is before this have had their time.
  package var cutoff: Instant
  /// What must stay whatever its age: what `latest` points to, what was just written, what is still owed to somebody.
  package var kept: Set<String>

  package init(cutoff: Instant, kept: Set<String>) {
    self.cutoff = cutoff
    self.kept = kept
  }

  /// The folders to remove, oldest first. The last complete night always stays.
  package func expired(_ folders: [Folder]) -> [Folder] {
    let lastComplete = folders.filter { $0.isNightly && $0.isComplete }.max { $0.path < $1.path }
    return folders.filter { $0.asOf < cutoff && !kept.contains($0.path) && $0 != lastComplete }
      .sorted { ($0.asOf, $0.path) < ($1.asOf, $1.path) }
  }
}

/// The report folders below `report.directory`.
///
/// Only folders that this program has made are seen: named as it names them, real directories, with the `summary.json` and
/// the `SHA256SUMS` that it writes, and with no other files in them. Whatever else lies there, or a link that leads
/// elsewhere, is nobody's business here.
package struct ReportShelf {
  package let directory: String
  package let logger: Logger

  package init(directory: String, logger: Logger) {
    self.directory = directory
    self.logger = logger
  }

  /// All of them, in no order.
  package func folders() -> [ReportRetention.Folder] {
    names(in: directory).filter { $0.wholeMatch(of: /\d{4}-\d{2}-\d{2}/) != nil }.compactMap(folder)
      + (isRealDirectory("\(directory)/ad-hoc") ? names(in: "\(directory)/ad-hoc") : [])
      .filter { $0.wholeMatch(of: /\d{8}T\d{6}Z-\d+/) != nil }.compactMap { folder("ad-hoc/\($0)") }
  }

  /// Where `latest` points to; nil without one.
  package var latest: String? {
    (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(directory)/latest")).map {
      ($0 as NSString).lastPathComponent
    }
  }

  private func folder(_ path: String) -> ReportRetention.Folder? {
    let whole = "\(directory)/\(path)"
    guard isRealDirectory(whole), let contents = ReportContents(directory: whole),
      let summary = contents.content(of: "summary.json").flatMap(SummaryDocument.init(json:)),
      let asOf = try? Date(summary.instant, strategy: .iso8601)
    else { return nil }
    return ReportRetention.Folder(
      path: path, asOf: Instant(seconds: Int64(asOf.timeIntervalSince1970)), isComplete: summary.isComplete)
  }

  private func names(in path: String) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }

  private func isRealDirectory(_ path: String) -> Bool {
    // Of the thing itself: a link is of another type.
    (try? FileManager.default.attributesOfItem(atPath: path))?[.type] as? FileAttributeType == .typeDirectory
  }

  /// Removes a folder, unless there is something in it that this program does not write.
  ///
  /// It is given another name first, that of a staging directory: a reader finds it whole or not at all, and what a kill
  /// leaves of it is cleared away by the next run.
  package func remove(_ folder: ReportRetention.Folder) {
    let whole = "\(directory)/\(folder.path)"
    let parent = (whole as NSString).deletingLastPathComponent
    guard let contents = ReportContents(directory: whole) else { return }
    let ours = Set(contents.files.map(\.name))
    let others = names(in: whole).filter { !ours.contains($0) }
    guard others.isEmpty else {
      return logger.warning(
        "an old report folder is kept: there are files in it that night-audit has not written",
        metadata: ["directory": "\(whole)", "files": "\(others.prefix(3).joined(separator: ", "))"])
    }
    let doomed = "\(parent)/.partial-\(getpid())-\(UUID().uuidString.lowercased())"
    guard rename(whole, doomed) == 0 else { return report(whole, errno) }
    // Through a descriptor of the very directory: no name on the way can be exchanged for a link.
    let descriptor = open(doomed, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { return report(doomed, errno) }
    defer { close(descriptor) }
    for name in ours where unlinkat(descriptor, name, 0) != 0 && errno != ENOENT { report("\(doomed)/\(name)", errno) }
    guard rmdir(doomed) == 0 else { return report(doomed, errno) }
    logger.info("removed an old report folder", metadata: ["directory": "\(whole)"])
  }

  private func report(_ path: String, _ code: Int32) {
    logger.warning("cannot remove \(path): \(String(cString: strerror(code)))")
  }
}
