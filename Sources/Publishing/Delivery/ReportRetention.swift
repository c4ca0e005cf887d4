import AuditStore
import Foundation
import Glibc
import Logging
import Reconciliation
import Reporting
import Run

/// `report.retention`: which report folders have had their time. Pure; ``ReportDirectory`` does the removing.
package struct ReportRetention {
  /// A report folder, as its `summary.json` describes it.
  package struct Folder: Hashable {
    /// Relative to `report.directory`: `2026-11-19`, `held/2026-11-19`, `held/20261120T030000Z-1`, or `ad-hoc/2026-11-01_2026-11-30-1`.
    package var path: String
    /// As-of of the run that made it.
    var asOf: Instant
    var isComplete: Bool

    var isNightly: Bool { !path.contains("/") }
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
/// the `SHA256SUMS` that it writes, and of a known run. Whatever else lies there, or a link that leads elsewhere, is nobody's
/// business here.
package struct ReportDirectory {
  package let directory: String
  package let logger: Logger
  private let known: KnownRuns

  /// - Parameter known: the runs whose folders may be removed.
  package init(directory: String, known: KnownRuns, logger: Logger) {
    self.directory = directory
    self.known = known
    self.logger = logger
  }

  /// All of them, in no order.
  package func folders() -> [ReportRetention.Folder] { paths.compactMap(folder) }

  /// The runs that the folders' `run.json` name, whoever has made them.
  package var makers: Set<String> {
    Set(paths.compactMap { ReportContents(directory: "\(directory)/\($0)")?.runId?.lowercased() })
  }

  /// What is named as report folders are, relative to the directory.
  private var paths: [String] {
    var found = nights(in: directory + "/.")
    found += nights(in: "\(directory)/held").map { "held/\($0)" }
    for place in ["held", "ad-hoc"] {
      found += names(in: "\(directory)/\(place)").map { "\(place)/\($0)" }.filter(isNumbered)
    }
    return found
  }

  /// Whether a path below the directory is that of a report apart from the nights, by its number.
  private func isNumbered(_ path: String) -> Bool {
    path.wholeMatch(of: /held\/\d{8}T\d{6}Z-\d+|ad-hoc\/\d{4}-\d{2}-\d{2}(_\d{4}-\d{2}-\d{2})?-\d+/) != nil
  }

  /// Clears away what runs that died here have left, once it is settled which of them have published.
  ///
  /// - Parameter waiting: as `PublicationSettlement` tells them.
  package func clearLeftovers(except waiting: Set<String>) {
    for place in [directory, "\(directory)/held", "\(directory)/ad-hoc"] {
      Leftovers(directory: place).clear(except: waiting)
    }
    unlink(nextLatest)
  }

  /// Where `latest` is made that points to an earlier night. One run at a time may.
  private var nextLatest: String { "\(directory)/.night-audit-latest" }

  /// What is held of nights that were published for the same instant or a later one.
  package func heldOfPublished() -> [ReportRetention.Folder] {
    nights(in: "\(directory)/held").compactMap { night in
      guard let held = folder("held/\(night)"), let published = folder(night) else { return nil }
      return held.asOf <= published.asOf ? held : nil
    }
  }

  /// Removes the folder of a night that a run has made, and points `latest` to the night before it: also where the
  /// folder stays because somebody has put something into it. What another run has made there since is that one's.
  package func forget(night: String, ofRun runId: String, madeAsOf asOf: Instant) throws(PublishingFailure) {
    if let maker = ReportContents(directory: "\(directory)/\(night)")?.runId, maker != runId { return }
    if let found = folder(night) {
      guard isOf(runId, asOf, found) else { return }
      try remove(found)
    }
    guard latest == night else { return }
    let before = nights(in: directory + "/.").filter { $0 < night && folder($0) != nil }.max()
    try LatestLink(directory: directory).pointBack(to: before, temporary: nextLatest)
  }

  /// Removes the folder of a run whose report lies apart from the nights, in `held` or `ad-hoc`, by the same rule.
  ///
  /// - Parameter whole: the folder's absolute path, as the run has recorded it. What lies elsewhere is not touched.
  package func forget(apart whole: String, ofRun runId: String, madeAsOf asOf: Instant) throws(PublishingFailure) {
    let prefix = directory + "/"
    guard whole.hasPrefix(prefix) else { return }
    let path = String(whole.dropFirst(prefix.count))
    guard isNumbered(path) || path.wholeMatch(of: /held\/\d{4}-\d{2}-\d{2}/) != nil,
      let found = folder(path), isOf(runId, asOf, found)
    else { return }
    try remove(found)
  }

  /// Whether a folder is as a run has left it: made for its instant, and by no other run.
  private func isOf(_ runId: String, _ asOf: Instant, _ found: ReportRetention.Folder) -> Bool {
    let maker = ReportContents(directory: "\(directory)/\(found.path)")?.runId
    return found.asOf == asOf.wholeSecond && maker == runId
  }

  /// Where `latest` points to; nil without one.
  package var latest: String? {
    (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(directory)/latest")).map {
      ($0 as NSString).lastPathComponent
    }
  }

  private func folder(_ path: String) -> ReportRetention.Folder? {
    let whole = "\(directory)/\(path)"
    guard isRealDirectory(whole), let contents = ReportContents(directory: whole), let summary = contents.summary,
      let asOf = contents.asOf, let run = contents.runId, known.contains(run)
    else { return nil }
    return ReportRetention.Folder(path: path, asOf: asOf, isComplete: summary.isComplete)
  }

  private func nights(in path: String) -> [String] { names(in: path).filter(LatestLink.isNight) }

  private func names(in path: String) -> [String] {
    guard isRealDirectory(path) else { return [] }
    return ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }

  private func isRealDirectory(_ path: String) -> Bool {
    // Of the thing itself: a link is of another type.
    (try? FileManager.default.attributesOfItem(atPath: path))?[.type] as? FileAttributeType == .typeDirectory
  }

  /// Whether a folder may be removed: nothing is in it that this program has not written, or not so. Says so otherwise.
  package func mayRemove(_ folder: ReportRetention.Folder) -> Bool {
    let whole = "\(directory)/\(folder.path)"
    guard let contents = ReportContents(directory: whole), let opened = OpenDirectory(whole) else { return false }
    guard let all = try? opened.names() else { return false }
    let others = all.filter { !contents.owns($0, in: opened) }
    if others.isEmpty { return true }
    logger.warning(
      "an old report folder is kept: there are files in it that night-audit has not written, or not so",
      metadata: ["directory": "\(whole)", "files": "\(others.prefix(3).map(\.text).joined(separator: ", "))"])
    return false
  }

  /// Removes a folder that may be removed; any other stays.
  ///
  /// It is given another name first: a reader finds it whole or not at all, and what a kill leaves of it is cleared away
  /// by the next run.
  package func remove(_ folder: ReportRetention.Folder) throws(PublishingFailure) {
    guard mayRemove(folder) else { return }
    let whole = "\(directory)/\(folder.path)"
    let names = StagingNames(
      directory: (whole as NSString).deletingLastPathComponent, token: UUID().uuidString.lowercased())
    let lease = try StagingLease(path: names.lease, content: .here)
    defer { withExtendedLifetime(lease) { Leftovers(directory: names.directory).clear(names) } }
    // From the mark on nothing is removed but by its hash, in whatever instant this ends.
    try names.putMark(replacing: "")
    guard rename(whole, names.old) == 0 else { throw PublishingFailure(path: whole, code: errno) }
    logger.info("removed an old report folder", metadata: ["directory": "\(whole)"])
  }
}
