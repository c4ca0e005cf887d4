import CSystemCalls
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

    static var here: Content {
      let boot = (try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)) ?? ""
      return Content(
        host: ProcessInfo.processInfo.hostName, boot: boot.trimmingCharacters(in: .whitespacesAndNewlines),
        process: getpid())
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

  private let descriptor: Int32

  /// - Throws: when it cannot be made, or there is one already.
  init(path: String, content: Content) throws(PublishingFailure) {
    // Where the volume can: without a name until it says whose it is, so that a maker that dies meanwhile leaves nothing.
    if let unnamed = Self.unnamed(in: (path as NSString).deletingLastPathComponent, content) {
      if file_name_nameless(unnamed, path) == 0 {
        descriptor = unnamed
        return
      }
      close(unnamed)
    }
    descriptor = try Self.named(path, content)
  }

  /// Takes the place of a maker that is gone. Its lease lies there until this one does: without any, nobody would look for
  /// what it has left.
  init(succeeding names: StagingNames, content: Content) throws(PublishingFailure) {
    unlink(names.nextLease)
    descriptor = try Self.named(names.nextLease, content)
    guard rename(names.nextLease, names.lease) == 0 else {
      let code = errno
      unlink(names.nextLease)
      // What `deinit` closes: all of it is made, so it runs.
      throw PublishingFailure(path: names.lease, code: code)
    }
  }

  /// A file that has no name yet; nil where there can be none.
  private static func unnamed(in directory: String, _ content: Content) -> Int32? {
    let descriptor = file_open_nameless(directory, 0o640)
    guard descriptor >= 0 else { return nil }
    if write(content, to: descriptor) { return descriptor }
    close(descriptor)
    return nil
  }

  private static func named(_ path: String, _ content: Content) throws(PublishingFailure) -> Int32 {
    let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o640)
    guard descriptor >= 0 else { throw PublishingFailure(path: path, code: errno) }
    guard write(content, to: descriptor) else {
      let code = errno
      // One that says nothing would lie there for as long as its maker might still write it.
      unlink(path)
      close(descriptor)
      throw PublishingFailure(path: path, code: code)
    }
    return descriptor
  }

  /// - Returns: whether all of it is on the volume; else `errno` says why not.
  private static func write(_ content: Content, to descriptor: Int32) -> Bool {
    // Where there are no locks, host, process and age must do.
    _ = flock(descriptor, LOCK_EX | LOCK_NB)
    let bytes = Array((try? JSONEncoder().encode(content)) ?? Data())
    return Glibc.write(descriptor, bytes, bytes.count) == bytes.count && fchmod(descriptor, 0o640) == 0
      && fsync(descriptor) == 0
  }

  deinit { close(descriptor) }
}
