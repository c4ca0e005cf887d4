import CSystemCalls
import Foundation
import Glibc
import Run

/// Where a report is made, and how it becomes visible: whole, by one rename.
package struct ReportFolder: Sendable {
  /// What kind of folder the report ends in.
  package enum Destination: Hashable, Sendable {
    /// `<directory>/<date>/`, replacing the same night's; `latest` follows.
    case nightly(directory: String, date: String)
    /// `<directory>/ad-hoc/<as-of>-<n>/`.
    case adHoc(directory: String, asOf: String)
    /// A directory that the caller named; it becomes the folder itself.
    case exact(String)
  }

  /// A directory that cannot be written. Exit status 73.
  package struct Failure: EndsRun, CustomStringConvertible {
    package var exitStatus: ExitStatus { .cannotWrite }
    package var path: String
    package var code: Int32
    package var description: String {
      "cannot write \(path): \(String(cString: strerror(code))); check the path, its owner and the free space"
    }
  }

  /// The directory that files are written to until `publish`.
  package let staging: String
  private let destination: Destination

  /// Makes the staging directory, on the file system that it will be renamed within.
  package init(_ destination: Destination, token: String) throws(Failure) {
    self.destination = destination
    let parent: String
    switch destination {
    case .nightly(let directory, _): parent = directory
    case .adHoc(let directory, _): parent = directory + "/ad-hoc"
    case .exact(let path): parent = (ReportFolder.absolute(path) as NSString).deletingLastPathComponent
    }
    do {
      try FileManager.default.createDirectory(
        atPath: parent, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o750])
    } catch {
      throw Failure(path: parent, code: errno == 0 ? EIO : errno)
    }
    ReportFolder.removeAbandoned(in: parent)
    staging = "\(parent)/.partial-\(getpid())-\(token)"
    guard mkdir(staging, 0o750) == 0 else { throw Failure(path: staging, code: errno) }
  }

  package static func absolute(_ path: String) -> String {
    let whole = path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
    return (whole as NSString).standardizingPath
  }

  /// Staging directories of processes that were killed.
  private static func removeAbandoned(in parent: String) {
    for name in (try? FileManager.default.contentsOfDirectory(atPath: parent)) ?? [] where name.hasPrefix(".partial-") {
      let parts = name.split(separator: "-")
      guard parts.count >= 3, let process = Int32(parts[1]), process != getpid(), kill(process, 0) != 0, errno == ESRCH
      else { continue }
      try? FileManager.default.removeItem(atPath: parent + "/" + name)
    }
  }

  /// Where the report will be; for an ad-hoc folder without its number, which only publishing finds.
  package var finalPath: String {
    switch destination {
    case .nightly(let directory, let date): "\(directory)/\(date)"
    case .adHoc(let directory, let asOf): "\(directory)/ad-hoc/\(asOf)"
    case .exact(let path): ReportFolder.absolute(path)
    }
  }

  /// Gives the report up.
  package func discard() { try? FileManager.default.removeItem(atPath: staging) }

  /// Writes one more file into the staging directory, such as `run.json`.
  package func write(_ content: Data, as name: String) throws(Failure) {
    let path = staging + "/" + name
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o640)
    guard descriptor >= 0 else { throw Failure(path: path, code: errno) }
    defer { close(descriptor) }
    let isWritten = content.withUnsafeBytes { bytes in
      var rest = bytes
      while !rest.isEmpty {
        let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
        if count < 0, errno == EINTR { continue }
        if count <= 0 { return false }
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      }
      return fsync(descriptor) == 0
    }
    guard isWritten else { throw Failure(path: path, code: errno) }
  }

  /// Makes the report visible.
  ///
  /// - Returns: where it is.
  package func publish() throws(Failure) -> String {
    switch destination {
    case .nightly(let directory, let date):
      let target = "\(directory)/\(date)"
      try replace(target)
      try pointLatest(in: directory, to: date)
      return target
    case .exact(let path):
      let target = ReportFolder.absolute(path)
      try replace(target)
      return target
    case .adHoc(let directory, let asOf):
      for number in 1... {
        let target = "\(directory)/ad-hoc/\(asOf)-\(number)"
        if file_rename_exclusively(staging, target) == 0 {
          try ReportFolder.synchronize("\(directory)/ad-hoc")
          return target
        }
        guard errno == EEXIST else { throw Failure(path: target, code: errno) }
      }
      return staging
    }
  }

  /// Takes the place of what is there in one step: at no moment is there no report.
  private func replace(_ target: String) throws(Failure) {
    try ReportFolder.synchronize(staging)
    if file_exchange(staging, target) == 0 {
      try? FileManager.default.removeItem(atPath: staging)
    } else {
      guard errno == ENOENT, rename(staging, target) == 0 else { throw Failure(path: target, code: errno) }
    }
    try ReportFolder.synchronize((target as NSString).deletingLastPathComponent)
  }

  private func pointLatest(in directory: String, to name: String) throws(Failure) {
    let current = try? FileManager.default.destinationOfSymbolicLink(atPath: directory + "/latest")
    // An older night made again is not what people expect to open in the morning.
    if let current, current > name, FileManager.default.fileExists(atPath: directory + "/" + current) { return }
    let temporary = "\(directory)/.latest-\(getpid())"
    unlink(temporary)
    guard symlink(name, temporary) == 0, rename(temporary, "\(directory)/latest") == 0 else {
      throw Failure(path: "\(directory)/latest", code: errno)
    }
    try ReportFolder.synchronize(directory)
  }

  private static func synchronize(_ directory: String) throws(Failure) {
    let descriptor = open(directory.isEmpty ? "/" : directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Failure(path: directory, code: errno) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw Failure(path: directory, code: errno) }
  }
}
