import AuditStore
import CSystemCalls
import Foundation
import Glibc
import Reconciliation
import Reporting

/// The state of the path at which a report is to appear.
enum TargetState: Hashable {
  case free
  case report

  /// Throws `PublishingFailure` for any other state. `known` is nil if the database cannot be read.
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
      throw PublishingFailure(path: path, problem: "is not a directory; name another one, or move the file away")
    }
    if directory_is_mount_point(path) == 1 {
      throw PublishingFailure(
        path: path,
        problem: "is a mount point, and a report appears by renaming its whole folder; name a directory in it")
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
      throw PublishingFailure(path: path, foreignRunID: contents.runId)
    }
    if destination.isPublished, made > asOf {
      throw PublishingFailure(
        path: path,
        problem: "holds the audit as of \(made.text), which an audit as of \(asOf.text) never replaces; give "
          + "--out another directory, or a later --as-of, or move it away if its run was forgotten")
    }
    self = .report
  }
}

extension ReportFolder.Destination {
  /// True for a report of a known run, and with `--out` for one of `reconcile`, which has no recorded run.
  fileprivate func mayReplace(_ contents: ReportContents, _ known: KnownRuns) -> Bool {
    if let run = contents.runId, known.contains(run) { return true }
    switch self {
    case .exact: return contents.command == "reconcile" && contents.trail == nil
    case .nightly, .held, .heldSeparately, .adHoc: return false
    }
  }
}

/// The link `latest` to the newest night. It never moves to an earlier night by itself.
struct LatestLink {
  let directory: String

  private var path: String { directory + "/latest" }

  static func isNight(_ name: String) -> Bool { name.wholeMatch(of: /\d{4}-\d{2}-\d{2}/) != nil }

  /// The night that it points to; nil without the link. Throws for a foreign file.
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

  func point(to night: String, temporary: String) throws(PublishingFailure) {
    if let current = try current(), current >= night { return }
    try set(night, temporary)
  }

  /// Points to an earlier night when the newest one, of a wrong as-of, is forgotten; nil removes the link.
  func moveLinkBack(to night: String?, temporary: String) throws(PublishingFailure) {
    guard try current() != nil else { return }
    if let night { return try set(night, temporary) }
    try PublishingFailure.check(unlink(path) == 0, path)
  }

  private func set(_ night: String, _ temporary: String) throws(PublishingFailure) {
    unlink(temporary)
    try PublishingFailure.check(symlink(night, temporary) == 0 && rename(temporary, path) == 0, path)
    try PublishingFailure.check(directory_synchronize(directory) == 0, directory)
  }
}
