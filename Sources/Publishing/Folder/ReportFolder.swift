import AuditStore
import CSystemCalls
import Foundation
import Glibc
import Reconciliation
import Run

/// A report folder from staging to its publication by one atomic rename.
///
/// Nothing is replaced or removed unless it is night-audit's by its hash. Files that people added or edited stay.
package struct ReportFolder: Sendable {
  package enum Destination: Hashable, Sendable {
    /// `<directory>/<date>/`: replaces the report of the same night and moves `latest`.
    case nightly(directory: String, date: String)
    /// `<directory>/held/<date>/`: an implausible night, not published.
    case held(directory: String, date: String)
    /// `<directory>/held/<as-of>-<n>/`: another implausible run.
    case heldSeparately(directory: String, asOf: String)
    /// `<directory>/ad-hoc/<period>-<n>/`, such as `2026-11-01_2026-11-30-1`.
    case adHoc(directory: String, period: String)
    /// A directory named by the caller, which becomes the folder itself.
    case exact(String)
  }

  package struct Published: Hashable, Sendable {
    package var path: String
    package var kept: [KeptFile] = []
  }

  package var staging: String { names.staging }
  private let destination: Destination
  private let asOf: Instant
  private let known: KnownRuns
  private let names: StagingNames
  private let lease: StagingLease
  private let volume: VolumeCalls
}

extension ReportFolder {
  /// Creates the staging directory on the destination's file system. A run's ID is its `token`.
  ///
  /// - Throws: `PublishingFailure`, without any change, if the report could not be published.
  package init(
    _ destination: Destination, token: String, asOf: Instant, known: KnownRuns, volume: VolumeCalls = VolumeCalls()
  ) throws {
    try ReportFolder.check(destination, asOf: asOf, known: known)
    let names = StagingNames(directory: destination.parent, token: token)
    try ReportFolder.makeDirectories(names.directory)
    Leftovers(directory: names.directory, volume: volume).clearUnfinished()
    self.init(
      destination: destination, asOf: asOf, known: known, names: names, lease: try StagingLease(path: names.lease),
      volume: volume)
    try PublishingFailure.check(ReportFolder.makeDirectory(staging), staging)
  }

  /// Finishes the publication of a killed run, known by ID and digest; nil if its report is not here.
  package static func resume(
    _ destination: Destination, token: String, asOf: Instant, digest: String, known: KnownRuns,
    volume: VolumeCalls = VolumeCalls()
  ) throws -> Published? {
    try destination.requireNoLink()
    // The digest does not identify the run, because repeating an audit gives the same bytes.
    func isOfRun(_ directory: String) -> Bool {
      guard FileKind(path: directory) == .directory, let contents = ReportContents(directory: directory) else {
        return false
      }
      return contents.digest == digest && contents.runId == token
    }
    if let found = destination.candidates.first(where: isOfRun) {
      // The run may have died before it moved the link. A foreign file in the link's place is ignored.
      if case .nightly(let directory, let date) = destination {
        let link = StagingNames(directory: destination.parent, token: token).link
        try? LatestLink(directory: directory).point(to: date, temporary: link)
      }
      return Published(path: found)
    }
    let leftovers = Leftovers(directory: destination.parent, volume: volume)
    guard let names = leftovers.abandoned().first(where: { $0.token == token }), isOfRun(names.staging),
      ReportContents(directory: names.staging)?.isOurs == true
    else { return nil }
    let lease = try StagingLease(succeeding: names)
    return try ReportFolder(
      destination: destination, asOf: asOf, known: known, names: names, lease: lease, volume: volume
    ).publish()
  }

  /// Removes leftovers beside a destination, except of runs in `waiting`.
  package static func clearLeftovers(beside destination: Destination, except waiting: Set<String>) {
    // `check` reports the link.
    guard (try? destination.requireNoLink()) != nil else { return }
    Leftovers(directory: destination.parent).clear(except: waiting)
  }

  /// The runs of the folders beside or at a destination.
  package static func makers(at destination: Destination, in reports: ReportDirectory) -> Set<String> {
    switch destination {
    case .nightly, .held, .heldSeparately, .adHoc: return reports.makers
    case .exact: return Set([ReportContents(directory: destination.target)?.runId?.lowercased()].compactMap(\.self))
    }
  }

  /// True if this host sees the lease of the run's report.
  package static func wasMade(_ destination: Destination, token: String) -> Bool {
    FileManager.default.fileExists(atPath: StagingNames(directory: destination.parent, token: token).lease)
  }

  /// Moves the finished report into the staging directory of another destination.
  package func redirected(to other: Destination) throws -> ReportFolder {
    let next = try ReportFolder(other, token: names.token, asOf: asOf, known: known, volume: volume)
    guard let folder = OpenDirectory(staging) else { throw PublishingFailure(path: staging, code: errno) }
    for name in try folder.names() {
      let (from, to) = ("\(staging)/\(name.text)", "\(next.staging)/\(name.text)")
      if rename(from, to) == 0 { continue }
      // `--out` may be on another volume.
      do { try FileManager.default.copyItem(atPath: from, toPath: to) } catch {
        throw PublishingFailure(path: to, code: errno == 0 ? EIO : errno)
      }
    }
    discard()
    return next
  }

  /// The absolute path without `.`, `..` and empty components. Links are not resolved.
  package static func absolute(_ path: String) -> String {
    let whole = path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
    // NSString.standardizingPath would follow relative links from the wrong directory.
    var parts: [Substring] = []
    for part in whole.split(separator: "/") where part != "." {
      if part == ".." { _ = parts.popLast() } else { parts.append(part) }
    }
    return "/" + parts.joined(separator: "/")
  }

  package var finalPath: String { destination.target }

  package func discard() { Leftovers(directory: names.directory, volume: volume).clear(names) }

  // MARK: - Before

  /// Checks that a report may be published at a destination. Changes nothing.
  ///
  /// - Throws: `PublishingFailure` for a foreign file, a report of another installation, or one of a later as-of.
  package static func check(_ destination: Destination, asOf: Instant, known: KnownRuns?) throws(PublishingFailure) {
    try destination.requireNoLink()
    switch destination {
    case .nightly(let directory, _), .held(let directory, _):
      try requireOwn(directory, known)
      _ = try TargetState(of: destination, asOf: asOf, known: known)
    case .exact: _ = try TargetState(of: destination, asOf: asOf, known: known)
    case .adHoc(let directory, _), .heldSeparately(let directory, _): try requireOwn(directory, known)
    }
    try requireWritable(destination.parent)
  }

  /// Refuses a directory in which no folder can be created. A missing directory is created in an existing one above it.
  private static func requireWritable(_ directory: String) throws(PublishingFailure) {
    var existing = absolute(directory)
    // A trailing dot refuses a file in the place of a directory.
    while existing != "/", access(existing + "/.", F_OK) != 0, errno == ENOENT {
      existing = (existing as NSString).deletingLastPathComponent
    }
    try PublishingFailure.check(access(existing + "/.", W_OK | X_OK) == 0, existing)
  }

  /// Refuses a report directory with a foreign `latest`, or with a report of another installation.
  private static func requireOwn(_ directory: String, _ known: KnownRuns?) throws(PublishingFailure) {
    _ = try LatestLink(directory: directory).current()
    guard let known, let stranger = ReportDirectory.strangers(in: directory, known).first else { return }
    throw PublishingFailure(path: "\(directory)/\(stranger.path)", foreignRunID: stranger.runId)
  }

  /// Refuses a path for `--out` that night-audit uses itself.
  package static func requireUnreserved(_ out: String, reports: String) throws(PublishingFailure) {
    let parts = resolved(out).split(separator: "/")
    let reportsPath = resolved(reports).split(separator: "/")
    let below = parts.starts(with: reportsPath) ? parts.dropFirst(reportsPath.count).first.map(String.init) ?? "" : nil
    let isReserved = below.map { ["", "held", "ad-hoc", "latest"].contains($0) || LatestLink.isNight($0) } ?? false
    guard isReserved || parts.contains(where: { $0.hasPrefix(StagingNames.prefix) }) else { return }
    throw PublishingFailure(
      path: out,
      problem: "is a name that night-audit uses itself, and nothing there was touched; name another directory for --out"
    )
  }

  private static func resolved(_ path: String) -> String {
    var existing = absolute(path)
    var rest: [String] = []
    while existing != "/", !FileManager.default.fileExists(atPath: existing) {
      rest.insert((existing as NSString).lastPathComponent, at: 0)
      existing = (existing as NSString).deletingLastPathComponent
    }
    guard let found = realpath(existing, nil) else { return absolute(path) }
    defer { free(found) }
    return ([String(cString: found)] + rest).joined(separator: "/")
  }

  /// New directories are readable by owner and group whatever the umask; existing ones keep their mode.
  private static func makeDirectories(_ path: String) throws(PublishingFailure) {
    if path.isEmpty || makeDirectory(path) { return }
    if errno == ENOENT {
      try makeDirectories((path as NSString).deletingLastPathComponent)
      if makeDirectory(path) { return }
    }
    guard errno == EEXIST else { throw PublishingFailure(path: path, code: errno) }
    // A trailing dot follows links, which operators may use.
    guard FileKind(path: path + "/.") == .directory else { throw PublishingFailure(path: path, code: ENOTDIR) }
  }

  /// Keeps an inherited set-group-ID bit, by which files get the group of the report directory. False with `errno`.
  private static func makeDirectory(_ path: String) -> Bool {
    guard mkdir(path, 0o750) == 0 else { return false }
    let mode = file_mode_at(AT_FDCWD, path)
    guard mode >= 0 else { return false }
    // chmod(2) clears the bit if the process is not in the group.
    return mode_t(mode) & 0o777 == 0o750 || chmod(path, mode_t(mode) & 0o2000 | 0o750) == 0
  }

  // MARK: - Writing

  package func write(_ content: Data, as name: String) throws(PublishingFailure) {
    try ReportFolder.write(content, to: staging + "/" + name)
  }

  /// Replaces `run.json` in a published folder; its hash is not part of the report's digest.
  package static func rewriteRun(_ content: Data, in directory: String) throws(PublishingFailure) {
    let names = StagingNames(
      directory: (absolute(directory) as NSString).deletingLastPathComponent, token: UUID().uuidString.lowercased())
    let lease = try StagingLease(path: names.lease)
    defer { withExtendedLifetime(lease) { Leftovers(directory: names.directory).clear(names) } }
    try PublishingFailure.check(mkdir(names.staging, 0o750) == 0, names.staging)
    try write(content, to: names.staging + "/run.json")
    try PublishingFailure.check(
      rename(names.staging + "/run.json", directory + "/run.json") == 0, directory + "/run.json")
  }

  private static func write(_ content: Data, to path: String) throws(PublishingFailure) {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o640)
    guard descriptor >= 0 else { throw PublishingFailure(path: path, code: errno) }
    defer { close(descriptor) }
    let result = content.withUnsafeBytes { file_write_durably(descriptor, $0.baseAddress, $0.count, 0o640) }
    try PublishingFailure.check(result == 0, path)
  }

  package var digest: String? { ReportContents(directory: staging)?.digest }

  // MARK: - Publishing

  /// Makes the report visible. Throws `PublishingFailure`; then nothing was replaced.
  package func publish() throws -> Published {
    try seal()
    let published: Published
    switch destination {
    case .nightly(let directory, let date):
      published = try replace(destination.target)
      try volume.step("point latest")
      try LatestLink(directory: directory).point(to: date, temporary: names.link)
    case .held, .exact: published = try replace(destination.target)
    case .adHoc, .heldSeparately: published = try take()
    }
    try volume.step("give up the lease")
    // Files that people put into the old folder meanwhile are moved by a later run, which needs mark and lease.
    if (try? FileKind.isThere(names.staging)) == false, (try? FileKind.isThere(names.old)) == false {
      unlink(names.mark(replacing: destination.name))
      unlink(names.lease)
    }
    return published
  }

  /// Sets file modes whatever the umask, and syncs. Removes files that are not the report's, such as temporary ones.
  private func seal() throws(PublishingFailure) {
    guard let folder = OpenDirectory(staging) else { throw PublishingFailure(path: staging, code: errno) }
    let report = ReportContents(directory: staging).map { Set($0.files.map(\.name)) }
    for name in try folder.names() {
      if let report, !report.contains(name.text) {
        try folder.unlink(name)
        continue
      }
      let file = openat(folder.descriptor, name.bytes, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
      guard file >= 0 else { throw PublishingFailure(path: "\(staging)/\(name.text)", code: errno) }
      defer { close(file) }
      try PublishingFailure.check(fchmod(file, 0o640) == 0 && fsync(file) == 0, "\(staging)/\(name.text)")
    }
    try folder.synchronize()
  }

  /// In one step if the volume can exchange directories, otherwise with a moment without a report.
  private func replace(_ target: String) throws -> Published {
    switch try TargetState(of: destination, asOf: asOf, known: known) {
    case .free:
      try volume.step("rename")
      try PublishingFailure.check(rename(staging, target) == 0, target)
      try synchronizeParent()
      // Moved aside by a run that was killed between two renames.
      return Published(path: target, kept: try FolderMerge(volume: volume).dissolve(names.old, into: target))
    case .report:
      try names.writeMark(replacing: destination.name)
      try synchronizeParent()
      try volume.step("exchange")
      let code = volume.exchange(staging, target)
      let old: String
      if code == 0 {
        old = staging
      } else {
        guard VolumeCalls.isUnsupported(code) else { throw PublishingFailure(path: target, code: code) }
        old = names.old
        try moveAside(target)
      }
      try synchronizeParent()
      return Published(path: target, kept: try FolderMerge(volume: volume).dissolve(old, into: target))
    }
  }

  private func moveAside(_ target: String) throws {
    try volume.step("move the old folder aside")
    try PublishingFailure.check(rename(target, names.old) == 0, target)
    try synchronizeParent()
    try volume.step("rename into its place")
    guard rename(staging, target) == 0 else {
      let code = errno
      rename(names.old, target)
      throw PublishingFailure(path: target, code: code)
    }
  }

  private func take() throws -> Published {
    for number in 1... {
      let target = "\(destination.target)-\(number)"
      try volume.step("rename")
      if file_rename_exclusively(staging, target) == 0 {
        try synchronizeParent()
        return Published(path: target)
      }
      if VolumeCalls.isUnsupported(errno) {
        // The empty directory reserves the number; a directory may be renamed over an empty one.
        if mkdir(target, 0o750) == 0, rename(staging, target) == 0 {
          try synchronizeParent()
          return Published(path: target)
        }
      }
      guard errno == EEXIST else { throw PublishingFailure(path: target, code: errno) }
    }
    return Published(path: staging)
  }

  private func synchronizeParent() throws(PublishingFailure) {
    try PublishingFailure.check(directory_synchronize(names.directory) == 0, names.directory)
  }
}

extension ReportFolder.Destination {
  /// Refuses a report directory in which `held` or `ad-hoc` is a link, because it may lead to any directory.
  func requireNoLink() throws(PublishingFailure) {
    let directory: String
    switch self {
    case .nightly(let path, _), .held(let path, _), .heldSeparately(let path, _), .adHoc(let path, _): directory = path
    case .exact: return
    }
    for place in ReportDirectory.places where FileKind(path: "\(directory)/\(place)") == .link {
      throw PublishingFailure(link: "\(directory)/\(place)")
    }
  }

  var parent: String {
    switch self {
    case .nightly(let directory, _): directory
    case .held(let directory, _), .heldSeparately(let directory, _): directory + "/held"
    case .adHoc(let directory, _): directory + "/ad-hoc"
    case .exact(let path): (ReportFolder.absolute(path) as NSString).deletingLastPathComponent
    }
  }

  /// False for a held night, which is not used: the newest attempt replaces it whatever its as-of.
  var isPublished: Bool {
    switch self {
    case .nightly, .adHoc, .exact: true
    case .held, .heldSeparately: false
    }
  }

  var name: String { (target as NSString).lastPathComponent }

  var target: String {
    switch self {
    case .nightly(let directory, let date): "\(directory)/\(date)"
    case .held(let directory, let date): "\(directory)/held/\(date)"
    case .heldSeparately(let directory, let asOf): "\(directory)/held/\(asOf)"
    case .adHoc(let directory, let period): "\(directory)/ad-hoc/\(period)"
    case .exact(let path): ReportFolder.absolute(path)
    }
  }

  fileprivate var candidates: [String] {
    switch self {
    case .nightly, .held, .exact: return [target]
    case .adHoc(_, let name), .heldSeparately(_, let name):
      let names = (try? FileManager.default.contentsOfDirectory(atPath: parent)) ?? []
      return names.sorted().filter { $0.hasPrefix(name + "-") }.map { "\(parent)/\($0)" }
    }
  }
}

/// The hidden, unique names of a report until it is published.
struct StagingNames: Hashable {
  let directory: String
  let token: String

  static let prefix = ".night-audit-"

  private var stem: String { "\(directory)/\(StagingNames.prefix)\(token)" }

  var lease: String { stem + ".lease" }
  var nextLease: String { stem + ".next" }
  /// The new report; after an exchange, the replaced one.
  var staging: String { stem + ".partial" }
  /// The replaced report on a volume without exchange.
  var old: String { stem + ".old" }
  var link: String { stem + ".latest" }

  /// The mark of a folder that is being replaced (`name`) or removed (empty).
  ///
  /// The name is in the file name, because no file's content may decide where files are moved.
  func mark(replacing name: String) -> String { "\(stem).replacing.\(name)" }

  func marked() throws(PublishingFailure) -> [String] {
    // A trailing dot follows a link in the path, which operators may use.
    guard let folder = OpenDirectory(directory + "/.") else { throw PublishingFailure(path: directory, code: errno) }
    let start = (mark(replacing: "") as NSString).lastPathComponent
    return try folder.names().map(\.text).filter { $0.hasPrefix(start) }.map { String($0.dropFirst(start.count)) }
  }

  /// Records that the staging directory may contain files of people from now on.
  func writeMark(replacing name: String) throws(PublishingFailure) {
    let mark = mark(replacing: name)
    // A dead process may have left the mark to the run that finishes its work.
    let descriptor = open(mark, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o640)
    guard descriptor >= 0 else { throw PublishingFailure(path: mark, code: errno) }
    close(descriptor)
  }

  init(directory: String, token: String) { (self.directory, self.token) = (directory, token) }

  init?(directory: String, lease name: String) {
    guard let match = name.wholeMatch(of: /\.night-audit-([A-Za-z0-9-]+)\.lease/) else { return nil }
    self.init(directory: directory, token: String(match.1))
  }
}
