import Foundation
import Glibc
import Reconciliation
import Run

/// Who is making a report: a file beside the staging directory, locked for as long as its maker lives.
///
/// A process id says nothing to another host or container, and the lock of a file nothing where the volume does not
/// pass locks on. Together with host and age they tell whom nobody will hear of again.
final class StagingLease: Sendable {
  /// What the file says.
  struct Content: Codable, Hashable {
    var host: String
    /// The kernel's boot id: whose locks and process ids these are.
    var boot: String
    var process: Int32
    /// The folder that the report is to become.
    var target: String

    static func here(target: String) -> Content {
      let boot = (try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)) ?? ""
      return Content(
        host: ProcessInfo.processInfo.hostName, boot: boot.trimmingCharacters(in: .whitespacesAndNewlines),
        process: getpid(), target: target)
    }
  }

  /// What the lock of the file says.
  enum Lock: Hashable, CaseIterable {
    case free
    case held
    /// The volume knows no locks.
    case unknown
  }

  /// From then on nobody waits for a maker whose locks cannot be seen from here: longer than any night.
  static let patience = Span.days(1)

  /// Whether the maker is gone. Pure.
  ///
  /// - Parameters:
  ///   - content: nil when the file says nothing: its maker died at once, or is about to write it.
  ///   - isAlive: whether there is a process of that number here.
  ///   - idle: since the last change of anything.
  static func isAbandoned(_ content: Content?, lock: Lock, here: Content, isAlive: Bool, idle: Span) -> Bool {
    guard let content else { return lock != .held && idle > patience }
    let isOfThisKernel = content.boot == here.boot
    switch lock {
    case .held: return false
    // A host that was started anew has none of its earlier processes.
    case .free: return isOfThisKernel || content.host == here.host || idle > patience
    case .unknown:
      if content.host == here.host { return isOfThisKernel ? !isAlive : true }
      return idle > patience
    }
  }

  let path: String
  private let descriptor: Int32

  init(path: String, content: Content) throws(PublishingFailure) {
    self.path = path
    descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o640)
    guard descriptor >= 0 else { throw PublishingFailure(path: path, code: errno) }
    // Where there are no locks, host, process and age must do.
    _ = flock(descriptor, LOCK_EX | LOCK_NB)
    let bytes = Array(((try? JSONEncoder().encode(content)) ?? Data()))
    guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count, fchmod(descriptor, 0o640) == 0,
      fsync(descriptor) == 0
    else {
      let code = errno
      // One that says nothing would lie there for as long as its maker might still write it.
      unlink(path)
      throw PublishingFailure(path: path, code: code)
    }
  }

  deinit { close(descriptor) }
}
