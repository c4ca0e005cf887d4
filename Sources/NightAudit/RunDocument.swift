import Asking
import AuditStore
import Foundation
import Publishing
import Reconciliation
import Run

/// `run.json`: values that differ between runs with the same result, and so are in no other file.
struct RunDocument: Encodable {
  private let runId: String
  private let command: String
  private let host: String
  private let version: String
  private let finishedAt: String
  private let seconds: Double
  private let exitStatus: Int32
  /// Hash of a trail entry. Every copy of this file then exposes a rewritten trail.
  private let trail: String?
  private let apple: Apple?

  private struct Apple: Encodable {
    let due: Int
    let outcomes: [String: Int]
    let httpStatuses: [String: Int]
    let faults: [String: String]
    let endedEarly: String?
    let sweep: Sweep?
  }

  private struct Sweep: Encodable {
    let pages: Int
    let notifications: Int
    let histories: Int
    let newFacts: Int
  }

  init(record: RunRecord, recheck: RecheckSummary?, duration: Duration, exitStatus: ExitStatus) {
    runId = record.runId
    command = record.command
    host = record.host
    version = Version.current
    trail = record.trail
    finishedAt = Date().ISO8601Format()
    seconds = duration.inSeconds
    self.exitStatus = exitStatus.rawValue
    apple = recheck.map { summary in
      Apple(
        due: summary.due,
        outcomes: Dictionary(uniqueKeysWithValues: summary.outcomes.map { ($0.key.rawValue, $0.value) }),
        httpStatuses: Dictionary(
          uniqueKeysWithValues: summary.httpStatuses.map { ($0.key == 0 ? "none" : String($0.key), $0.value) }),
        faults: summary.faults, endedEarly: summary.incompleteReason,
        sweep: summary.sweep.map {
          Sweep(pages: $0.pages, notifications: $0.notifications, histories: $0.histories, newFacts: $0.facts)
        })
    }
  }

  /// The `run.json` of a published folder with another exit status, for failures after publication.
  static func content(of directory: String, endingWith status: ExitStatus) throws -> Data {
    let data = try RegularFile(directory + "/run.json").content
    let line = #/"exit_status" : -?\d+/#
    return Data(
      String(decoding: data, as: UTF8.self).replacing(line, with: "\"exit_status\" : \(status.rawValue)").utf8)
  }

  func write(to folder: ReportFolder) throws {
    try folder.write(Data("\(try MachineText.json(self))\n".utf8), as: "run.json")
  }
}
