import Foundation
import Testing

@testable import Publishing

/// Reports appear whole, by one rename.
@Suite struct ReportFolderTests {
  private func inTemporaryDirectory(_ body: (String) throws -> Void) throws {
    let directory = NSTemporaryDirectory() + "night-audit-folders-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try body(directory)
  }

  private func publish(_ text: String, _ destination: ReportFolder.Destination) throws -> String {
    let folder = try ReportFolder(destination, token: UUID().uuidString)
    try folder.write(Data(text.utf8), as: "report")
    return try folder.publish()
  }

  private func entries(_ directory: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
  }

  @Test func theSameNightIsReplacedAndLatestFollows() throws {
    try inTemporaryDirectory { directory throws in
      let night = ReportFolder.Destination.nightly(directory: directory, date: "2026-11-19")
      #expect(try publish("first", night) == directory + "/2026-11-19")
      #expect(try publish("second", night) == directory + "/2026-11-19")
      #expect(try String(contentsOfFile: directory + "/latest/report", encoding: .utf8) == "second")
      _ = try publish("next", .nightly(directory: directory, date: "2026-11-20"))
      #expect(try String(contentsOfFile: directory + "/latest/report", encoding: .utf8) == "next")
      _ = try publish("older again", night)
      #expect(try String(contentsOfFile: directory + "/latest/report", encoding: .utf8) == "next")
      #expect(try entries(directory) == ["2026-11-19", "2026-11-20", "latest"])
    }
  }

  @Test func adHocReportsAreNumberedAndLatestStays() throws {
    try inTemporaryDirectory { directory throws in
      let adHoc = ReportFolder.Destination.adHoc(directory: directory, asOf: "20261120T030000Z")
      #expect(try publish("a", adHoc) == directory + "/ad-hoc/20261120T030000Z-1")
      #expect(try publish("b", adHoc) == directory + "/ad-hoc/20261120T030000Z-2")
      #expect(try entries(directory) == ["ad-hoc"])
    }
  }

  @Test func anExactFolderBecomesTheReport() throws {
    try inTemporaryDirectory { directory throws in
      #expect(try publish("a", .exact(directory + "/out")) == directory + "/out")
      #expect(try publish("b", .exact(directory + "/out/")) == directory + "/out")
      #expect(try String(contentsOfFile: directory + "/out/report", encoding: .utf8) == "b")
      #expect(try entries(directory) == ["out"])
    }
  }

  @Test func whatWasGivenUpLeavesNothing() throws {
    try inTemporaryDirectory { directory throws in
      let folder = try ReportFolder(.nightly(directory: directory, date: "2026-11-19"), token: "x")
      try folder.write(Data("half".utf8), as: "report")
      folder.discard()
      #expect(try entries(directory) == [])
    }
  }

  @Test func stagingOfDeadProcessesIsRemovedAndOfLiveOnesKept() throws {
    try inTemporaryDirectory { directory throws in
      // No process has the largest id: the kernel counts to 2^22.
      for name in [".partial-4194999-x", ".partial-1-x"] {
        try FileManager.default.createDirectory(atPath: directory + "/" + name, withIntermediateDirectories: false)
      }
      _ = try publish("a", .nightly(directory: directory, date: "2026-11-19"))
      #expect(try entries(directory) == [".partial-1-x", "2026-11-19", "latest"])
    }
  }

  @Test func aFileInTheWayIsAnErrorThatNamesIt() throws {
    try inTemporaryDirectory { directory throws in
      try Data().write(to: URL(fileURLWithPath: directory + "/reports"))
      let error = #expect(throws: ReportFolder.Failure.self) {
        try ReportFolder(.nightly(directory: directory + "/reports", date: "2026-11-19"), token: "x")
      }
      #expect(error?.description.contains(directory + "/reports") == true)
    }
  }
}
