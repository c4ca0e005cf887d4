import AuditStore
import Crypto
import Foundation
import Logging
import Reconciliation
import Reporting
import Run
import Synchronization
import TestSupport
import Testing

@testable import Publishing

extension VolumeCalls {
  /// A volume that can or, such as NFS, cannot exchange two directories.
  init(exchanges: Bool) {
    self.init()
    if !exchanges { exchange = { _, _ in EINVAL } }
  }
}

private let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

struct ReportsDirectory: ~Copyable {
  private let directory: TemporaryDirectory
  private let runs = Mutex<Set<String>>([])
  var path: String { directory.path }

  init() throws { directory = try TemporaryDirectory() }

  static func asOf(_ hour: Int) -> Instant { Instant(seconds: 1_795_057_200 + Int64(hour) * 3_600) }

  var known: KnownRuns { runs.withLock { KnownRuns($0) } }

  func run() -> String {
    let run = UUID().uuidString.lowercased()
    runs.withLock { _ = $0.insert(run) }
    return run
  }

  private static func fill(
    _ folder: ReportFolder, _ files: [String: String], asOf: Instant, run: String, command: String
  ) throws {
    var files = files
    let facts = SummaryFacts(
      isComplete: true, incompleteReasons: [],
      period: Period(since: "2026-11-19", until: "2026-11-19", start: asOf, end: asOf), timeZone: "UTC",
      configuration: "", findings: FindingsSummary(), history: [])
    let summary = SummaryDocument(totals: Totals(), summary: facts, control: [], asOf: asOf)
    files["summary.json"] = String(decoding: try summary.encoded(), as: UTF8.self)
    let sums = files.sorted { $0.key < $1.key }.map { name, text in
      "\(Digest.hexadecimal(SHA256.hash(data: Data(text.utf8))))  \(name)\n"
    }
    files["SHA256SUMS"] = sums.joined()
    files["run.json"] = #"{"run_id": "\#(run)", "command": "\#(command)"}"#
    for (name, text) in files { try folder.write(Data(text.utf8), as: name) }
  }

  @discardableResult
  func publish(
    _ text: String, _ destination: ReportFolder.Destination, hour: Int = 0, token: String? = nil,
    known: KnownRuns? = nil, command: String = "run", volume: VolumeCalls = VolumeCalls()
  ) throws -> ReportFolder.Published {
    try folder(destination, text, hour: hour, token: token, known: known, command: command, volume: volume).publish()
  }

  func night(_ date: String = "2026-11-19") -> ReportFolder.Destination { .nightly(directory: path, date: date) }

  func held(_ date: String = "2026-11-19") -> ReportFolder.Destination { .held(directory: path, date: date) }

  func adHoc(_ period: String) -> ReportFolder.Destination { .adHoc(directory: path, period: period) }

  func exact(_ name: String) -> ReportFolder.Destination { .exact("\(path)/\(name)") }

  func clearLeftovers(except run: String? = nil) {
    Leftovers(directory: path).clear(except: run.map { [$0] } ?? [])
  }

  func remove(_ name: String) throws { try FileManager.default.removeItem(atPath: "\(path)/\(name)") }

  func link(_ name: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(atPath: "\(path)/\(name)", withDestinationPath: target)
  }

  func mode(_ name: String) throws -> Int? {
    (try FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")[.posixPermissions] as? NSNumber)?.intValue
  }

  func write(_ text: String, _ name: String) throws {
    try text.write(toFile: "\(path)/\(name)", atomically: false, encoding: .utf8)
  }

  func text(_ name: String) -> String? { try? String(contentsOfFile: "\(path)/\(name)", encoding: .utf8) }

  func entries(_ folder: String = "") throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: "\(path)/\(folder)").sorted()
  }

  func makeDirectory(_ name: String) throws {
    try FileManager.default.createDirectory(atPath: "\(path)/\(name)", withIntermediateDirectories: true)
  }

  /// A filled folder that is not published yet.
  func folder(
    _ destination: ReportFolder.Destination, _ text: String, hour: Int = 0, token: String? = nil,
    known: KnownRuns? = nil, command: String = "run", volume: VolumeCalls = VolumeCalls()
  ) throws -> ReportFolder {
    let (asOf, run) = (ReportsDirectory.asOf(hour), token ?? run())
    let folder = try ReportFolder(destination, token: run, asOf: asOf, known: known ?? self.known, volume: volume)
    let files = ["orders.csv": text, "book.xlsx": "book of \(text)"]
    try ReportsDirectory.fill(folder, files, asOf: asOf, run: run, command: command)
    return folder
  }

  static let report = ["SHA256SUMS", "book.xlsx", "orders.csv", "run.json", "summary.json"]
}

@Suite struct ReportFolderTests {
  /// A person saves a file into the old folder while it is dissolved.
  @Test func filesSavedDuringAReplacementAreKept() throws {
    let reports = try ReportsDirectory()
    try reports.publish("one", reports.night())
    let token = reports.run()
    let place = StagingNames(directory: reports.path, token: token).staging + "/notes.txt"
    var volume = VolumeCalls()
    volume.step = { step in
      if step.hasPrefix("take orders.csv") { try "kept".write(toFile: place, atomically: false, encoding: .utf8) }
    }
    let folder = try reports.folder(reports.night(), "two", hour: 1, token: token, volume: volume)
    _ = try folder.publish()
    folder.discard()
    #expect(reports.text("2026-11-19/notes.txt") == "kept" && reports.text("2026-11-19/orders.csv") == "two")
    #expect(try reports.entries() == ["2026-11-19", "latest"])
  }

  /// A folder that cannot be listed must not count as empty. /dev/null replaces its descriptor.
  @Test func anUnreadableFolderIsNotEmpty() throws {
    let reports = try ReportsDirectory()
    let folder = try #require(OpenDirectory(reports.path))
    #expect(try folder.names() == [])
    let device = open("/dev/null", O_RDONLY | O_CLOEXEC)
    #expect(dup2(device, folder.descriptor) == folder.descriptor)
    close(device)
    #expect(throws: PublishingFailure.self) { try folder.names() }
  }

  /// A mark protects files of people. Its content must not decide where the files are moved to.
  @Test(arguments: [["a", "b"], [".."], ["."], [".night-audit-x.partial"]])
  func aMarkWithoutAFolderNameMovesNothing(_ marked: [String]) throws {
    let reports = try ReportsDirectory()
    let names = StagingNames(directory: reports.path, token: "dead")
    try FileManager.default.createDirectory(atPath: names.old, withIntermediateDirectories: false)
    try "kept".write(toFile: names.old + "/notes.txt", atomically: false, encoding: .utf8)
    try JSONEncoder().encode(StagingLease.Content.here).write(to: URL(fileURLWithPath: names.lease))
    for name in marked { try names.writeMark(replacing: name) }
    let before = try reports.entries()
    let leftovers = Leftovers(directory: reports.path)
    #expect(leftovers.abandoned() == [names])
    leftovers.clearUnfinished()
    leftovers.clear(except: [])
    #expect(try reports.entries() == before)
    #expect(try String(contentsOfFile: names.old + "/notes.txt", encoding: .utf8) == "kept")
  }

  /// An attacker with write access to the volume plants a lease, a mark and a folder.
  @Test func aPlantedLeaseMovesNothingOutOfItsDirectory() throws {
    let reports = try ReportsDirectory()
    let outside = reports.path + "-outside"
    defer { try? FileManager.default.removeItem(atPath: outside) }
    let names = StagingNames(directory: reports.path, token: "planted")
    try FileManager.default.createDirectory(atPath: names.old, withIntermediateDirectories: false)
    try "key".write(toFile: names.old + "/authorized_keys", atomically: false, encoding: .utf8)
    let here = StagingLease.Content.here
    let lease = #"{"host": "\#(here.host)", "boot": "\#(here.boot)", "process": 0, "target": "\#(outside)"}"#
    try lease.write(toFile: names.lease, atomically: false, encoding: .utf8)
    try reports.write("", ".night-audit-planted.replacing")
    try names.writeMark(replacing: "planted")
    reports.clearLeftovers()
    #expect(!FileManager.default.fileExists(atPath: outside))
    #expect(reports.text("planted/authorized_keys") == "key")
  }

  @Test func aFolderWithATooLongNameIsNotReplaced() throws {
    let reports = try ReportsDirectory()
    let out = ReportFolder.Destination.exact(reports.path + "/" + String(repeating: "a", count: 250))
    try reports.publish("first", out)
    #expect(throws: PublishingFailure.self) { try reports.publish("second", out) }
    #expect(reports.text("\(String(repeating: "a", count: 250))/orders.csv") == "first")
  }

  @Test func theReportOfAnotherInstallationIsNotReplaced() throws {
    let reports = try ReportsDirectory()
    try reports.publish("theirs", reports.night())
    try reports.publish("theirs", reports.held())
    try reports.publish("theirs", reports.exact("out"))
    let before = try reports.entries()
    let adHoc = reports.adHoc("2026-11-01_2026-11-30")
    for destination in [
      reports.night(), reports.night("2026-11-20"), reports.held(), adHoc,
      reports.exact("out"),
    ] {
      let error = #expect(throws: PublishingFailure.self, "\(destination)") {
        try reports.publish("ours", destination, hour: 1, known: KnownRuns())
      }
      #expect(error?.exitStatus == .cannotWrite && error?.problem.contains("--adopt") == true)
    }
    #expect(try reports.entries() == before)
    for place in ["2026-11-19", "held/2026-11-19", "out"] { #expect(reports.text(place + "/orders.csv") == "theirs") }
  }

  /// The first night of the other installation was held, or its `latest` was removed.
  @Test func aDirectoryWithAReportOfAnotherInstallationIsRefusedWithoutLatest() throws {
    let places: [@Sendable (String) -> ReportFolder.Destination] = [
      { .nightly(directory: $0, date: "2026-11-18") }, { .held(directory: $0, date: "2026-11-18") },
      { .heldSeparately(directory: $0, asOf: "20261119T030000Z") }, { .adHoc(directory: $0, period: "2026-11-18") },
    ]
    for place in places {
      let reports = try ReportsDirectory()
      let theirs = try reports.publish("theirs", place(reports.path)).path
      try? FileManager.default.removeItem(atPath: reports.path + "/latest")
      for destination in [reports.night(), reports.adHoc("2026-11-19")] {
        let error = #expect(throws: PublishingFailure.self, "\(theirs)") {
          try ReportFolder.check(destination, asOf: ReportsDirectory.asOf(1), known: KnownRuns())
        }
        #expect(error?.path == theirs && error?.problem.contains("--adopt") == true)
        #expect(throws: Never.self) {
          try ReportFolder.check(destination, asOf: ReportsDirectory.asOf(1), known: reports.known)
        }
      }
    }
  }

  /// An attacker with write access to the volume puts a link in place of a subdirectory.
  @Test(arguments: ["held", "ad-hoc"]) func aLinkInPlaceOfASubdirectoryIsNotFollowed(_ place: String) throws {
    let reports = try ReportsDirectory()
    let elsewhere = try ReportsDirectory()
    let names = StagingNames(directory: elsewhere.path, token: "dead")
    try FileManager.default.createDirectory(atPath: names.staging, withIntermediateDirectories: false)
    try JSONEncoder().encode(StagingLease.Content.here).write(to: URL(fileURLWithPath: names.lease))
    let link = reports.path + "/" + place
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: elsewhere.path)
    let before = try elsewhere.entries()
    let directory = ReportDirectory(directory: reports.path, known: KnownRuns(), logger: silent)
    for destination in [
      reports.night(), reports.held(),
      .heldSeparately(directory: reports.path, asOf: "20261119T030000Z"),
      reports.adHoc("2026-11-19"),
    ] {
      directory.clearLeftovers(except: [])
      ReportFolder.clearLeftovers(beside: destination, except: [])
      let error = #expect(throws: PublishingFailure.self, "\(destination)") { try reports.publish("a", destination) }
      #expect(error?.path == link && error?.exitStatus == .cannotWrite)
      #expect(error?.problem.contains("replace it by a directory") == true)
      #expect(throws: PublishingFailure.self) {
        try ReportFolder.resume(
          destination, token: "dead", asOf: ReportsDirectory.asOf(0), digest: "", known: KnownRuns())
      }
    }
    #expect(try elsewhere.entries() == before)
    #expect(try reports.entries() == [place])
  }

  @Test func theReportDirectoryItselfMayBeALink() throws {
    let reports = try ReportsDirectory()
    let link = reports.path + "-link"
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: reports.path)
    defer { try? FileManager.default.removeItem(atPath: link) }
    for destination in [
      ReportFolder.Destination.nightly(directory: link, date: "2026-11-19"),
      .held(directory: link, date: "2026-11-19"), .adHoc(directory: link, period: "2026-11-19"),
    ] { try reports.publish("a", destination) }
    #expect(try reports.entries() == ["2026-11-19", "ad-hoc", "held", "latest"])
  }

  /// The database records no run of `reconcile`.
  @Test func reconcileReplacesItsOwnReport() throws {
    let reports = try ReportsDirectory()
    let out = reports.exact("out")
    try reports.publish("first", out, token: "a", command: "reconcile")
    try reports.publish("second", out, token: "b", command: "reconcile")
    #expect(reports.text("out/orders.csv") == "second")
    try reports.remove("out/run.json")
    #expect(throws: PublishingFailure.self) { try reports.publish("third", out, token: "c", command: "reconcile") }
  }

  @Test(
    arguments: [
      "", "held", "held/x", "ad-hoc", "ad-hoc/1", "latest", "2099-01-01", "2099-01-01/x", ".night-audit-x.partial",
      "mine/.night-audit-x", "link/held",
    ])
  func reservedNamesAreNoReportFolders(_ name: String) throws {
    let reports = try ReportsDirectory()
    try reports.link("link", to: ".")
    let error = #expect(throws: PublishingFailure.self) {
      try ReportFolder.requireUnreserved("\(reports.path)/\(name)", reports: reports.path)
    }
    #expect(error?.exitStatus == .cannotWrite)
    #expect(throws: Never.self) {
      try ReportFolder.requireUnreserved("\(reports.path)/november", reports: reports.path)
      try ReportFolder.requireUnreserved("\(reports.path)/../held", reports: reports.path)
    }
  }

  @Test func theSameNightIsReplacedAndLatestNeverPointsBack() throws {
    let reports = try ReportsDirectory()
    #expect(try reports.publish("first", reports.night()).path == reports.path + "/2026-11-19")
    try reports.publish("second", reports.night())
    #expect(reports.text("latest/orders.csv") == "second")
    try reports.publish("next", reports.night("2026-11-20"), hour: 24)
    #expect(reports.text("latest/orders.csv") == "next")
    try reports.publish("older again", reports.night(), hour: 1)
    #expect(reports.text("latest/orders.csv") == "next")
    #expect(try reports.entries() == ["2026-11-19", "2026-11-20", "latest"])
    // `latest` does not point back even after the newest folder was deleted.
    try reports.remove("2026-11-20")
    try reports.publish("once more", reports.night(), hour: 2)
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: reports.path + "/latest") == "2026-11-20")
  }

  @Test func adHocReportsAreNumberedAndLatestStays() throws {
    let reports = try ReportsDirectory()
    let adHoc = reports.adHoc("2026-11-01_2026-11-30")
    #expect(try reports.publish("a", adHoc).path == reports.path + "/ad-hoc/2026-11-01_2026-11-30-1")
    #expect(try reports.publish("b", adHoc).path == reports.path + "/ad-hoc/2026-11-01_2026-11-30-2")
    #expect(try reports.entries() == ["ad-hoc"] && reports.entries("ad-hoc").count == 2)
  }

  @Test func anExactFolderBecomesTheReport() throws {
    let reports = try ReportsDirectory()
    #expect(try reports.publish("a", reports.exact("out")).path == reports.path + "/out")
    #expect(try reports.publish("b", reports.exact("out/")).path == reports.path + "/out")
    #expect(reports.text("out/orders.csv") == "b")
    try reports.makeDirectory("empty")
    try reports.publish("c", reports.exact("empty"))
    #expect(try reports.entries() == ["empty", "out"] && reports.entries("empty") == ReportsDirectory.report)
  }

  @Test func foreignFoldersAreNotReplaced() throws {
    let reports = try ReportsDirectory()
    try reports.publish("a", reports.exact("out"))
    try reports.makeDirectory("theirs")
    try reports.write("precious", "theirs/notes.txt")
    try reports.write("precious", "file")
    try reports.link("link", to: "out")
    // A folder with a foreign `SHA256SUMS` is no report of night-audit.
    try reports.makeDirectory("mirror")
    try reports.write("x", "mirror/x")
    try reports.write("\(String(repeating: "0", count: 64))  x\n", "mirror/SHA256SUMS")
    let before = try reports.entries()
    for name in ["theirs", "file", "link", "mirror", "."] {
      let error = #expect(throws: PublishingFailure.self, "\(name)") {
        try reports.publish("b", .exact(reports.path + "/" + name))
      }
      #expect(error?.exitStatus == .cannotWrite)
    }
    #expect(try reports.entries() == before && reports.text("theirs/notes.txt") == "precious")
    #expect(reports.text("file") == "precious")
  }

  @Test(arguments: [true, false]) func aForeignLatestIsRejectedBeforehand(isFolder: Bool) throws {
    let reports = try ReportsDirectory()
    if isFolder { try reports.makeDirectory("latest") } else { try reports.link("latest", to: "/srv/elsewhere") }
    #expect(throws: PublishingFailure.self) {
      try ReportFolder.check(reports.night(), asOf: ReportsDirectory.asOf(0), known: reports.known)
    }
    #expect(throws: PublishingFailure.self) { try reports.publish("a", reports.night()) }
    #expect(try reports.entries() == ["latest"])
  }

  @Test func anAuditOfAnEarlierInstantReplacesNothing() throws {
    let reports = try ReportsDirectory()
    try reports.publish("later", reports.night(), hour: 2)
    let error = #expect(throws: PublishingFailure.self) { try reports.publish("earlier", reports.night(), hour: 1) }
    #expect(error?.description.contains("as of") == true)
    #expect(reports.text("2026-11-19/orders.csv") == "later")
    #expect(try reports.entries() == ["2026-11-19", "latest"])
    try reports.publish("the same instant", reports.night(), hour: 2)
    #expect(reports.text("2026-11-19/orders.csv") == "the same instant")
  }

  @Test func editedReportsAreNotSent() throws {
    let reports = try ReportsDirectory()
    try reports.publish("a", reports.night())
    let folder = reports.path + "/2026-11-19"
    func problem() -> String? { ReportContents(directory: folder)?.problem }
    try reports.write("notes", "2026-11-19/notes.txt")
    #expect(problem() == nil)
    try reports.write(#"{"run_id": "a", "exit_status": 73}"#, "2026-11-19/run.json")
    #expect(problem() == nil)
    try reports.write("edited", "2026-11-19/book.xlsx")
    #expect(problem() == "\(folder)/book.xlsx was edited since; make the report again")
    try FileManager.default.removeItem(atPath: folder + "/book.xlsx")
    #expect(problem()?.hasPrefix("\(folder)/book.xlsx is missing") == true)
  }

  /// The latest attempt of a held night replaces the earlier one, whatever its as-of.
  @Test func theLatestAttemptReplacesAHeldReport() throws {
    let reports = try ReportsDirectory()
    let held = reports.held()
    try reports.publish("later", held, hour: 2)
    try reports.publish("earlier", held, hour: 1)
    #expect(reports.text("held/2026-11-19/orders.csv") == "earlier")
    #expect(try reports.entries("held") == ["2026-11-19"])
  }

  @Test(arguments: [true, false]) func filesAddedByPeopleAreKept(_ exchanges: Bool) throws {
    let volume = VolumeCalls(exchanges: exchanges)
    let reports = try ReportsDirectory()
    try reports.publish("first", reports.night())
    try reports.write("signed off", "2026-11-19/notes.txt")
    try reports.write("edited by finance", "2026-11-19/book.xlsx")
    try reports.makeDirectory("2026-11-19/scans/1")
    try reports.write("scan", "2026-11-19/scans/1/page")
    let second = try reports.publish("second", reports.night(), volume: volume)
    #expect(
      second.kept == [
        KeptFile(was: "book.xlsx", now: "book.edited.xlsx"), KeptFile(was: "notes.txt", now: "notes.txt"),
        KeptFile(was: "scans", now: "scans"),
      ])
    try reports.write("edited again", "2026-11-19/book.xlsx")
    try reports.publish("third", reports.night(), volume: volume)
    #expect(
      try reports.entries("2026-11-19")
        == (ReportsDirectory.report + ["book.edited.xlsx", "book.edited-2.xlsx", "notes.txt", "scans"]).sorted())
    #expect(reports.text("2026-11-19/orders.csv") == "third")
    #expect(reports.text("2026-11-19/book.xlsx") == "book of third")
    #expect(reports.text("2026-11-19/book.edited.xlsx") == "edited by finance")
    #expect(reports.text("2026-11-19/book.edited-2.xlsx") == "edited again")
    #expect(reports.text("2026-11-19/scans/1/page") == "scan")
    #expect(try reports.entries() == ["2026-11-19", "latest"])
  }

  @Test(arguments: [0, 0o077, 0o777] as [mode_t])
  func modesAreTheSameWhateverTheUmaskAndFoldersInheritTheGroup(_ mask: mode_t) throws {
    let reports = try ReportsDirectory()
    // The set-group-ID bit gives new files the group of the directory, whose members read the reports.
    #expect(chmod(reports.path, 0o2750) == 0)
    let before = umask(mask)
    defer { umask(before) }
    try reports.publish("a", .nightly(directory: reports.path + "/new", date: "2026-11-19"))
    for name in ["new", "new/2026-11-19"] { #expect(try reports.mode(name) == 0o2750) }
    for name in ["book.xlsx", "run.json"] { #expect(try reports.mode("new/2026-11-19/\(name)") == 0o640) }
  }

  /// Such a directory is found before Apple is asked, not when the report appears.
  @Test func aDirectoryThatCannotHoldAReportIsRefusedBeforeTheNight() throws {
    let asOf = ReportsDirectory.asOf(0)
    let mounted = #expect(throws: PublishingFailure.self) {
      try ReportFolder.check(.exact("/proc"), asOf: asOf, known: KnownRuns())
    }
    #expect(mounted?.problem.contains("is a mount point") == true)
    // The superuser may write everywhere.
    if getuid() == 0 { return }
    let reports = try ReportsDirectory()
    let path = reports.path
    #expect(chmod(path, 0o555) == 0)
    defer { chmod(path, 0o755) }
    for destination in [reports.night(), reports.held(), reports.adHoc("2026-11-19"), reports.exact("out/put")] {
      let error = #expect(throws: PublishingFailure.self, "\(destination)") {
        try ReportFolder.check(destination, asOf: asOf, known: reports.known)
      }
      #expect(error?.path == path && error?.exitStatus == .cannotWrite)
    }
  }

  @Test func discardedReportsLeaveNoFiles() throws {
    let reports = try ReportsDirectory()
    let folder = try ReportFolder(reports.night(), token: "x", asOf: ReportsDirectory.asOf(0), known: reports.known)
    try folder.write(Data("half".utf8), as: "report")
    reports.clearLeftovers()
    #expect(try reports.entries().count == 2)
    folder.discard()
    #expect(try reports.entries() == [])
  }

  @Test func aFileInTheWayIsAnErrorThatNamesIt() throws {
    let reports = try ReportsDirectory()
    try reports.write("", "reports")
    let error = #expect(throws: PublishingFailure.self) {
      try ReportFolder(
        .nightly(directory: reports.path + "/reports", date: "2026-11-19"), token: "x", asOf: ReportsDirectory.asOf(0),
        known: reports.known)
    }
    #expect(error?.description.contains(reports.path + "/reports") == true)
  }

  @Test func aRedirectedReportMovesCompletely() throws {
    let reports = try ReportsDirectory()
    let folder = try reports.folder(reports.night(), "a", token: "x")
    let held = try folder.redirected(to: reports.held())
    #expect(try held.publish().path == reports.path + "/held/2026-11-19")
    #expect(reports.text("held/2026-11-19/orders.csv") == "a")
    #expect(try reports.entries() == ["held"] && reports.entries("held") == ["2026-11-19"])
  }

  @Test(arguments: [true, false]) func theDoctorsProbeLeavesNothing(_ exchanges: Bool) throws {
    let volume = VolumeCalls(exchanges: exchanges)
    let reports = try ReportsDirectory()
    let found = try VolumeProbe.examine(reports.path, volume: volume)
    #expect((found == .exchanges) == exchanges)
    #expect(try reports.entries() == [])
    // The folder does not exist before the first night.
    let first = try VolumeProbe.examine(reports.path + "/of/the-first-night", volume: volume)
    #expect(first == found)
    #expect(try reports.entries() == [])
  }

  @Test(arguments: [
    ("orders.csv", 1, "orders.edited.csv"), ("orders.csv", 3, "orders.edited-3.csv"),
    (".hidden", 1, ".hidden.edited"), ("notes", 1, "notes.edited"),
  ])
  func editedFilesAreRenamed(name: String, number: Int, edited: String) {
    #expect(FolderMerge.editedName(name, number) == edited)
  }
}
