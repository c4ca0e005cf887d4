import CSystemCalls
import Foundation
import Glibc
import Reconciliation
import Run

/// A file beside a staging directory, locked for as long as the process that makes the report lives.
///
/// Host and age complete it: process IDs mean nothing to other hosts, and some volumes share no locks.
final class StagingLease: Sendable {
  struct Content: Codable, Hashable {
    var host: String
    /// The kernel's boot ID, which scopes locks and process IDs.
    var boot: String
    var process: Int32

    static var here: Content {
      let boot = (try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)) ?? ""
      return Content(
        host: ProcessInfo.processInfo.hostName, boot: boot.trimmingCharacters(in: .whitespacesAndNewlines),
        process: getpid())
    }
  }

  enum Lock: Hashable, CaseIterable {
    case free
    case locked
    case unknown
  }

  /// Age after which a process without a visible lock counts as dead; longer than any night.
  static let waitLimit = Span.days(1)

  /// True if the process that made the lease is dead.
  ///
  /// - Parameter content: nil for an empty file: its process died at once, or is about to write it.
  static func isAbandoned(_ content: Content?, lock: Lock, here: Content, isAlive: Bool, idle: Span) -> Bool {
    guard let content else { return lock != .locked && idle > waitLimit }
    let isOfThisKernel = content.boot == here.boot
    switch lock {
    case .locked: return false
    // A restarted host has none of its earlier processes.
    case .free: return isOfThisKernel || content.host == here.host || idle > waitLimit
    case .unknown:
      if content.host == here.host { return isOfThisKernel ? !isAlive : true }
      return idle > waitLimit
    }
  }

  private let descriptor: Int32

  /// Throws if the file exists already or cannot be created.
  init(path: String) throws(PublishingFailure) {
    // Unnamed until it is written, if the volume supports that, so that a kill leaves no empty lease.
    if let unnamed = Self.unnamed(in: (path as NSString).deletingLastPathComponent) {
      if file_name_nameless(unnamed, path) == 0 {
        descriptor = unnamed
        return
      }
      close(unnamed)
    }
    descriptor = try Self.named(path)
  }

  /// Replaces the lease of a dead process by renaming, because leftovers without a lease are not found.
  init(succeeding names: StagingNames) throws(PublishingFailure) {
    unlink(names.nextLease)
    descriptor = try Self.named(names.nextLease)
    guard rename(names.nextLease, names.lease) == 0 else {
      let code = errno
      unlink(names.nextLease)
      // All properties are initialised, so `deinit` runs and closes the descriptor.
      throw PublishingFailure(path: names.lease, code: code)
    }
  }

  private static func unnamed(in directory: String) -> Int32? {
    let descriptor = file_open_nameless(directory, 0o640)
    guard descriptor >= 0 else { return nil }
    if writeContent(to: descriptor) { return descriptor }
    close(descriptor)
    return nil
  }

  private static func named(_ path: String) throws(PublishingFailure) -> Int32 {
    let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o640)
    guard descriptor >= 0 else { throw PublishingFailure(path: path, code: errno) }
    guard writeContent(to: descriptor) else {
      let code = errno
      // An empty lease would be respected for as long as its process might still write it.
      unlink(path)
      close(descriptor)
      throw PublishingFailure(path: path, code: code)
    }
    return descriptor
  }

  private static func writeContent(to descriptor: Int32) -> Bool {
    // The result is ignored: without locks, host, process and age decide.
    _ = flock(descriptor, LOCK_EX | LOCK_NB)
    let bytes = Array((try? JSONEncoder().encode(Content.here)) ?? Data())
    return file_write_durably(descriptor, bytes, bytes.count, 0o640) == 0
  }

  deinit { close(descriptor) }
}
