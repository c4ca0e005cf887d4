import Foundation
import Reconciliation
import Run
import Synchronization
import Testing

@testable import Publishing

@Suite struct KilledPublishingTests {
  private struct Killed: Error {}

  private func volume(dyingAt last: Int, exchanges: Bool) -> VolumeCalls {
    let counter = Counter()
    var volume = VolumeCalls(exchanges: exchanges)
    volume.step = { _ in if counter.next() > last { throw Killed() } }
    return volume
  }

  private final class Counter: Sendable {
    private let count = Mutex(0)

    func next() -> Int {
      count.withLock {
        $0 += 1
        return $0
      }
    }
  }

  /// A report that waits for its volume must not be cleared away.
  @Test func reportsWaitingForTheirVolumeAreNotCleared() throws {
    let reports = try ReportsDirectory()
    let run = reports.run()
    #expect(throws: Killed.self) {
      try reports.publish("waits", reports.night(), token: run, volume: volume(dyingAt: 0, exchanges: true))
    }
    let left = try reports.entries()
    #expect(left.count == 2)
    reports.clearLeftovers(except: run)
    #expect(try reports.entries() == left)
    reports.clearLeftovers()
    #expect(try reports.entries() == [])
  }

  @Test(arguments: [true, false]) func aKillAtAnyStepLosesNothing(_ exchanges: Bool) throws {
    var kills = 0
    for last in 0... {
      let reports = try ReportsDirectory()
      try reports.publish("first", reports.night())
      try reports.write("signed off", "2026-11-19/notes.txt")
      try reports.write("edited by finance", "2026-11-19/book.xlsx")
      do {
        try reports.publish("second", reports.night(), volume: volume(dyingAt: last, exchanges: exchanges))
        #expect(kills > 5)
        return
      } catch is Killed {
        kills += 1
      }
      // Whole, old or new, unless killed between two renames.
      let seen = reports.text("2026-11-19/orders.csv")
      #expect(seen == "first" || seen == "second" || (seen == nil && !exchanges), "step \(last)")
      reports.clearLeftovers()
      #expect(try reports.entries() == ["2026-11-19", "latest"], "step \(last)")
      #expect(["first", "second"].contains(reports.text("2026-11-19/orders.csv")), "step \(last)")
      #expect(reports.text("2026-11-19/notes.txt") == "signed off", "step \(last)")
      try reports.publish("third", reports.night())
      #expect(reports.text("2026-11-19/book.edited.xlsx") == "edited by finance", "step \(last)")
      #expect(
        try reports.entries("2026-11-19")
          == (ReportsDirectory.report + ["book.edited.xlsx", "notes.txt"]).sorted(), "step \(last)")
      #expect(reports.text("2026-11-19/orders.csv") == "third")
    }
  }

  /// A concurrent reader of the volume, such as `doctor`, removes no file.
  @Test(arguments: [true, false], [true, false])
  func aKilledPublicationIsCompleted(_ exchanges: Bool, _ isFirst: Bool) throws {
    for last in 0... {
      let reports = try ReportsDirectory()
      if !isFirst {
        try reports.publish("first", reports.night())
        try reports.write("signed off", "2026-11-19/notes.txt")
      }
      let token = reports.run()
      var digest = ""
      do {
        let folder = try reports.folder(
          reports.night(), "second", hour: 1, token: token, volume: volume(dyingAt: last, exchanges: exchanges))
        digest = try #require(folder.digest)
        _ = try folder.publish()
        return
      } catch is Killed {
        _ = try VolumeProbe.examine(reports.path)
        let published = try ReportFolder.resume(
          reports.night(), token: token, asOf: ReportsDirectory.asOf(1), digest: digest, known: reports.known)
        #expect(published?.path == reports.path + "/2026-11-19", "step \(last)")
        reports.clearLeftovers()
        #expect(reports.text("2026-11-19/orders.csv") == "second", "step \(last)")
        if !isFirst { #expect(reports.text("2026-11-19/notes.txt") == "signed off", "step \(last)") }
        #expect(try reports.entries() == ["2026-11-19", "latest"], "step \(last)")
      }
    }
  }

  @Test func aMissingStagingFolderIsNotResumed() throws {
    let reports = try ReportsDirectory()
    #expect(
      try ReportFolder.resume(
        reports.night(), token: "x", asOf: ReportsDirectory.asOf(0), digest: "0", known: reports.known) == nil)
  }

  /// The same facts give the same bytes, so the digest does not identify the run.
  @Test(arguments: [true, false]) func aRunIsFinishedFromItsOwnReport(_ isNight: Bool) throws {
    let reports = try ReportsDirectory()
    let destination = isNight ? reports.night() : reports.adHoc("2026-11-01_2026-11-30")
    let first = try reports.publish("same", destination).path
    let token = reports.run()
    #expect(throws: Killed.self) {
      try reports.publish("same", destination, token: token, volume: volume(dyingAt: 0, exchanges: true))
    }
    let digest = try #require(ReportContents(directory: first)).digest
    let published = try ReportFolder.resume(
      destination, token: token, asOf: ReportsDirectory.asOf(0), digest: digest, known: reports.known)
    let path = try #require(published?.path)
    #expect((path == first) == isNight)
    #expect(ReportContents(directory: path)?.runId == token && ReportContents(directory: path)?.digest == digest)
    Leftovers(directory: reports.path + (isNight ? "" : "/ad-hoc")).clear(except: [])
    #expect(try reports.entries(isNight ? "" : "ad-hoc").filter { $0.hasPrefix(".") } == [])
    // A report of the same content by another run does not count.
    let gone = try ReportFolder.resume(
      destination, token: reports.run(), asOf: ReportsDirectory.asOf(0), digest: digest, known: reports.known)
    #expect(gone == nil)
  }

  @Test(arguments: StagingLease.Lock.allCases, [true, false])
  func abandonedLeasesAreDetectedByLockHostAndAge(_ lock: StagingLease.Lock, _ isOld: Bool) {
    let here = StagingLease.Content(host: "a", boot: "1", process: 0)
    let idle = isOld ? .hours(25) : Span.seconds(1)
    func isAbandoned(_ host: String, _ boot: String, _ isAlive: Bool = false) -> Bool {
      let content = StagingLease.Content(host: host, boot: boot, process: 7)
      return StagingLease.isAbandoned(content, lock: lock, here: here, isAlive: isAlive, idle: idle)
    }
    switch lock {
    case .locked: for host in ["a", "b"] { #expect(!isAbandoned(host, "1") && !isAbandoned(host, "2")) }
    case .free:
      // Another container of this host, this host before a restart, another host.
      #expect(isAbandoned("b", "1") && isAbandoned("a", "2") && isAbandoned("b", "2") == isOld)
    case .unknown:
      #expect(isAbandoned("a", "1", false) && !isAbandoned("a", "1", true) && isAbandoned("a", "2", true))
      // A process ID of another container identifies no process here.
      #expect(isAbandoned("b", "1", false) == isOld && isAbandoned("b", "2", true) == isOld)
    }
    #expect(
      StagingLease.isAbandoned(nil, lock: lock, here: here, isAlive: false, idle: idle) == (isOld && lock != .locked))
  }
}
