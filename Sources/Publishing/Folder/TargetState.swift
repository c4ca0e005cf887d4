import AuditStore
import Foundation
import Glibc
import Reconciliation
import Reporting

/// What lies where a report is to appear.
enum TargetState: Hashable {
  /// Nothing, or an empty directory.
  case free
  /// A report that night-audit has made, and that may be replaced.
  case report

  /// - Parameters:
  ///   - asOf: of the report that is to appear.
  ///   - known: the runs whose folders it may replace; nil where the database cannot be read.
  /// - Throws: `PublishingFailure` for anything else.
  init(of destination: ReportFolder.Destination, asOf: Instant, known: KnownRuns?) throws(PublishingFailure) {
    let path = destination.target
    switch FileKind(path: path) {
    case nil where errno == ENOENT || errno == ENOTDIR:
      self = .free
      return
    case nil: throw PublishingFailure(path: path, code: errno)
    case .directory?: break
    case .link?: throw PublishingFailure(path: path, problem: "is a link; name the directory itself")
    case .regular?, .other?:
      throw PublishingFailure(path: path, problem: "is no directory; name another one, or move the file away")
    }
    guard let folder = OpenDirectory(path) else { throw PublishingFailure(path: path, code: errno) }
    if try folder.names().isEmpty {
      self = .free
      return
    }
    guard let contents = ReportContents(directory: path), let made = contents.asOf else {
      throw PublishingFailure(
        path: path,
        problem: "holds files that are not a report of night-audit, and nothing there was touched; name a new or empty "
          + "directory, or move them away")
    }
    if let known, !destination.mayReplace(contents, known) {
      throw PublishingFailure(path: path, strangeRun: contents.runId)
    }
    if destination.isPublished, made > asOf {
      throw PublishingFailure(
        path: path,
        problem: "holds the audit as of \(made.text), which one as of \(asOf.text) never replaces; give --out another "
          + "directory, or a later --as-of, or move it away where its run was forgotten")
    }
    self = .report
  }
}

extension ReportFolder.Destination {
  /// Whether a report takes the place of another: that of a known run, and with `--out` that of a `reconcile`, which is
  /// recorded nowhere.
  fileprivate func mayReplace(_ contents: ReportContents, _ known: KnownRuns) -> Bool {
    if let run = contents.runId, known.contains(run) { return true }
    switch self {
    case .exact: return contents.command == "reconcile" && contents.trail == nil
    case .nightly, .held, .heldApart, .adHoc: return false
    }
  }
}

/// The link to the newest night. It never points back.
struct LatestLink {
  let directory: String

  private var path: String { directory + "/latest" }

  /// Whether a name is that of a night's folder, such as `2026-11-19`.
  static func isNight(_ name: String) -> Bool { name.wholeMatch(of: /\d{4}-\d{2}-\d{2}/) != nil }

  /// The night that it points to; nil without one.
  ///
  /// - Throws: `PublishingFailure` when it is something that night-audit has not made.
  func current() throws(PublishingFailure) -> String? {
    guard let kind = FileKind(path: path) else {
      if errno == ENOENT || errno == ENOTDIR { return nil }
      throw PublishingFailure(path: path, code: errno)
    }
    guard kind == .link, let name = try? FileManager.default.destinationOfSymbolicLink(atPath: path),
      LatestLink.isNight(name)
    else {
      throw PublishingFailure(
        path: path, problem: "is not the link to a night that night-audit puts there; move it away or rename it")
    }
    return name
  }

  /// - Parameter temporary: the name under which the link is made.
  func point(to night: String, temporary: String) throws(PublishingFailure) {
    if let current = try current(), current >= night { return }
    try set(night, temporary)
  }

  /// The one exception: the newest night was made for an instant that has not come, and a person has said so.
  ///
  /// - Parameter night: nil for no link any more.
  func pointBack(to night: String?, temporary: String) throws(PublishingFailure) {
    guard try current() != nil else { return }
    if let night { return try set(night, temporary) }
    guard unlink(path) == 0 else { throw PublishingFailure(path: path, code: errno) }
  }

  private func set(_ night: String, _ temporary: String) throws(PublishingFailure) {
    unlink(temporary)
    guard symlink(night, temporary) == 0, rename(temporary, path) == 0 else {
      throw PublishingFailure(path: path, code: errno)
    }
    let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    defer { if descriptor >= 0 { close(descriptor) } }
    guard descriptor >= 0, fsync(descriptor) == 0 else { throw PublishingFailure(path: directory, code: errno) }
  }
}
