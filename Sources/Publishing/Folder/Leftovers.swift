import Foundation
import Glibc
import Reconciliation
import Run

/// Finishes or undoes the publication of killed runs, so that each report folder is whole again.
struct Leftovers {
  let directory: String
  var volume = VolumeCalls()

  /// Clears leftovers of dead processes, except of runs in `waiting`, whose report may still be published.
  func clear(except waiting: Set<String>) {
    for names in abandoned() where !waiting.contains(names.token) { clear(names) }
  }

  /// Clears leftovers without a whole report, whose runs cannot have decided to publish.
  func clearUnfinished() {
    for names in abandoned() where isUnfinished(names) { clear(names) }
  }

  /// False if that cannot be determined, because an unreadable folder may be a whole report.
  private func isUnfinished(_ names: StagingNames) -> Bool {
    do throws(PublishingFailure) {
      guard try FileKind.isThere("\(names.staging)/\(ReportContents.sums)") else { return true }
      guard let contents = ReportContents(directory: names.staging) else { return false }
      if contents.isOurs { return false }
      return try !FileKind.isThere("\(names.staging)/summary.json")
    } catch {
      return false
    }
  }

  func abandoned() -> [StagingNames] {
    let names = ((try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []).sorted()
    return names.compactMap { StagingNames(directory: directory, lease: $0) }.filter(isAbandoned)
  }

  private func isAbandoned(_ names: StagingNames) -> Bool {
    let descriptor = open(names.lease, O_RDWR | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    let lock: StagingLease.Lock
    if flock(descriptor, LOCK_EX | LOCK_NB) == 0 {
      lock = .free
    } else {
      lock = errno == EWOULDBLOCK ? .locked : .unknown
    }
    let content = RegularFile.content(names.lease, atMost: ReportContents.largestFile).flatMap {
      try? JSONDecoder().decode(StagingLease.Content.self, from: $0)
    }
    let process = content?.process ?? 0
    return StagingLease.isAbandoned(
      content, lock: lock, here: .here, isAlive: process > 0 && (kill(process, 0) == 0 || errno == EPERM),
      idle: .now - newest(names))
  }

  private func newest(_ names: StagingNames) -> Instant {
    let files = ((try? FileManager.default.contentsOfDirectory(atPath: names.staging)) ?? []).map {
      "\(names.staging)/\($0)"
    }
    let dates = ([names.lease, names.staging] + files).compactMap { path -> Date? in
      (try? FileManager.default.attributesOfItem(atPath: path))?[.modificationDate] as? Date
    }
    return Instant(seconds: Int64((dates.max() ?? .now).timeIntervalSince1970))
  }

  /// Finishes or undoes a publication, and removes its files. Failures are left for a later run.
  func clear(_ names: StagingNames) {
    do {
      let replaced = try names.marked()
      if replaced.isEmpty {
        // Without a mark the staging directory contains no files of people.
        try empty(names.staging)
      } else {
        try finish(names, replacing: replaced)
      }
      unlink(names.link)
      // The lease goes last, because leftovers are found by it.
      for path in [names.staging, names.old] where try FileKind.isThere(path) { return }
      for name in replaced { unlink(names.mark(replacing: name)) }
      unlink(names.nextLease)
      unlink(names.lease)
    } catch {
      return
    }
  }

  /// - Parameter replaced: names in the marks. A process writes one; with several, nothing is moved.
  private func finish(_ names: StagingNames, replacing replaced: [String]) throws {
    guard let name = replaced.first, replaced.count == 1, name != ".", name != "..",
      !name.hasPrefix(StagingNames.prefix)
    else { return }
    let merge = FolderMerge(volume: volume)
    if name.isEmpty {
      _ = try merge.dissolve(names.old, into: nil)
      return
    }
    let target = "\(names.directory)/\(name)"
    if try !FileKind.isThere(target) {
      // Killed between two renames. The new report is whole, because only a whole one gets so far.
      if try FileKind.isThere(names.old) {
        let next = ReportContents(directory: names.staging)?.isOurs == true ? names.staging : names.old
        guard rename(next, target) == 0 else { return }
      }
    }
    for old in [names.old, names.staging] { _ = try merge.dissolve(old, into: target) }
  }

  private func empty(_ path: String) throws {
    guard try FileKind.isThere(path) else { return }
    guard let folder = OpenDirectory(path) else { throw PublishingFailure(path: path, code: errno) }
    for name in try folder.names() where unlinkat(folder.descriptor, name.bytes, 0) != 0 {
      throw PublishingFailure(path: "\(path)/\(name.text)", code: errno)
    }
    rmdir(path)
  }
}
