import AuditStore
import Foundation
import Glibc
import Logging
import Reconciliation
import Reporting
import Run

/// `report.retention`: selects the expired report folders, which ``ReportDirectory`` removes.
package enum ReportRetention {
  package struct Folder: Hashable {
    /// Relative to `report.directory`: `2026-11-19`, `held/20261120T030000Z-1`, `ad-hoc/2026-11-01-1`.
    package var path: String
    var asOf: Instant
    var isComplete: Bool

    var isNightly: Bool { !path.contains("/") }
  }

  /// Returns the oldest first. The last complete night never expires, nor do the `kept` folders: the target of
  /// `latest`, the new report, and owed reports.
  package static func expired(_ folders: [Folder], before cutoff: Instant, except kept: Set<String>) -> [Folder] {
    let lastComplete = folders.filter { $0.isNightly && $0.isComplete }.max { $0.path < $1.path }
    return folders.filter { $0.asOf < cutoff && !kept.contains($0.path) && $0 != lastComplete }
      .sorted { ($0.asOf, $0.path) < ($1.asOf, $1.path) }
  }
}

/// The report folders below `report.directory` that known runs made. Other files and links are ignored.
package struct ReportDirectory {
  static let places = ["held", "ad-hoc"]

  package let directory: String
  package let logger: Logger
  private let known: KnownRuns

  package init(directory: String, known: KnownRuns, logger: Logger) {
    (self.directory, self.known, self.logger) = (directory, known, logger)
  }

  package func folders() -> [ReportRetention.Folder] { Self.paths(in: directory).compactMap(folder) }

  /// The runs that `run.json` names in any folder, known or unknown.
  package var makers: Set<String> { Set(Self.strangers(in: directory, KnownRuns()).map(\.runId)) }

  static func strangers(in directory: String, _ known: KnownRuns) -> [(path: String, runId: String)] {
    var found: [(path: String, runId: String)] = []
    for path in paths(in: directory) {
      guard let run = ReportContents(directory: "\(directory)/\(path)")?.runId?.lowercased(), !known.contains(run)
      else { continue }
      found.append((path, run))
    }
    return found
  }

  private static func paths(in directory: String) -> [String] {
    var found = nights(in: directory + "/.")
    found += nights(in: "\(directory)/held").map { "held/\($0)" }
    for place in places { found += names(in: "\(directory)/\(place)").map { "\(place)/\($0)" }.filter(isNumbered) }
    return found
  }

  private static func isNumbered(_ path: String) -> Bool {
    path.wholeMatch(of: /held\/\d{8}T\d{6}Z-\d+|ad-hoc\/\d{4}-\d{2}-\d{2}(_\d{4}-\d{2}-\d{2})?-\d+/) != nil
  }

  /// Removes leftovers of killed runs, except of those in `waiting`, whose report may still be published.
  package func clearLeftovers(except waiting: Set<String>) {
    let places = Self.places.map { "\(directory)/\($0)" }.filter { FileKind(path: $0) == .directory }
    for place in [directory] + places { Leftovers(directory: place).clear(except: waiting) }
    unlink(nextLatest)
  }

  /// Temporary name of a link to an earlier night. Safe because one run at a time makes it.
  private var nextLatest: String { "\(directory)/.night-audit-latest" }

  /// Held reports that a report of the same or a later as-of has replaced.
  package func heldFoldersOfPublishedNights() -> [ReportRetention.Folder] {
    Self.nights(in: "\(directory)/held").compactMap { night in
      guard let held = folder("held/\(night)"), let published = folder(night) else { return nil }
      return held.asOf <= published.asOf ? held : nil
    }
  }

  /// Removes the folder of a forgotten night and points `latest` to the night before.
  ///
  /// The link moves even if the folder stays because of people's files. A later run's folder stays.
  package func forget(night: String, ofRun runId: String, madeAsOf asOf: Instant) throws(PublishingFailure) {
    if let maker = ReportContents(directory: "\(directory)/\(night)")?.runId, maker != runId { return }
    if let found = folder(night) {
      guard isOf(runId, asOf, found) else { return }
      try remove(found)
    }
    guard latest == night else { return }
    let before = Self.nights(in: directory + "/.").filter { $0 < night && folder($0) != nil }.max()
    try LatestLink(directory: directory).moveLinkBack(to: before, temporary: nextLatest)
  }

  /// Removes the report of a forgotten run in `held` or `ad-hoc`; ignores a path elsewhere.
  package func forget(apart whole: String, ofRun runId: String, madeAsOf asOf: Instant) throws(PublishingFailure) {
    let prefix = directory + "/"
    guard whole.hasPrefix(prefix) else { return }
    let path = String(whole.dropFirst(prefix.count))
    guard Self.isNumbered(path) || path.wholeMatch(of: /held\/\d{4}-\d{2}-\d{2}/) != nil,
      let found = folder(path), isOf(runId, asOf, found)
    else { return }
    try remove(found)
  }

  private func isOf(_ runId: String, _ asOf: Instant, _ found: ReportRetention.Folder) -> Bool {
    let maker = ReportContents(directory: "\(directory)/\(found.path)")?.runId
    return found.asOf == asOf.wholeSecond && maker == runId
  }

  package var latest: String? {
    (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(directory)/latest")).map {
      ($0 as NSString).lastPathComponent
    }
  }

  private func folder(_ path: String) -> ReportRetention.Folder? {
    let whole = "\(directory)/\(path)"
    let parent = (whole as NSString).deletingLastPathComponent
    let isBelowLink = path.contains("/") && FileKind(path: parent) != .directory
    guard !isBelowLink, FileKind(path: whole) == .directory, let contents = ReportContents(directory: whole),
      let summary = contents.summary, let asOf = contents.asOf, let run = contents.runId, known.contains(run)
    else { return nil }
    return ReportRetention.Folder(path: path, asOf: asOf, isComplete: summary.complete)
  }

  private static func nights(in path: String) -> [String] { names(in: path).filter(LatestLink.isNight) }

  private static func names(in path: String) -> [String] {
    guard FileKind(path: path) == .directory else { return [] }
    return ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }

  /// True if the folder has only unedited files of the report; logs a warning otherwise.
  package func mayRemove(_ folder: ReportRetention.Folder) -> Bool {
    let whole = "\(directory)/\(folder.path)"
    guard let contents = ReportContents(directory: whole), let opened = OpenDirectory(whole) else { return false }
    guard let all = try? opened.names() else { return false }
    let others = all.filter { !contents.owns($0, in: opened) }
    if others.isEmpty { return true }
    logger.warning(
      "an old report folder is kept, because it contains files that night-audit did not write or that were changed",
      metadata: ["directory": "\(whole)", "files": "\(others.prefix(3).map(\.text).joined(separator: ", "))"])
    return false
  }

  /// Removes a folder if `mayRemove`. Renames it first, so that readers never see half of it.
  package func remove(_ folder: ReportRetention.Folder) throws(PublishingFailure) {
    guard mayRemove(folder) else { return }
    let whole = "\(directory)/\(folder.path)"
    let names = StagingNames(
      directory: (whole as NSString).deletingLastPathComponent, token: UUID().uuidString.lowercased())
    let lease = try StagingLease(path: names.lease)
    defer { withExtendedLifetime(lease) { Leftovers(directory: names.directory).clear(names) } }
    // From here on files are removed by hash only, at whatever step the process ends.
    try names.writeMark(replacing: "")
    try PublishingFailure.check(rename(whole, names.old) == 0, whole)
    logger.info("removed an old report folder", metadata: ["directory": "\(whole)"])
  }
}
