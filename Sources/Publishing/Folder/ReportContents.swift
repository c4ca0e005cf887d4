import Crypto
import Foundation
import Reconciliation
import Reporting
import Run

/// A published report folder, as those see it who send, replace or remove it.
package struct ReportContents {
  /// The folder's absolute path.
  let directory: String
  /// Files with their SHA-256, sorted by name: those of `SHA256SUMS`, that file itself, and `run.json` where it is.
  let files: [(name: String, sha256: String)]
  /// SHA-256 of `SHA256SUMS`: two folders with the same have the same content.
  package let digest: String

  static let sums = "SHA256SUMS"

  /// nil when there is no folder with a readable `SHA256SUMS`.
  package init?(directory: String) {
    guard let sums = RegularFile.content("\(directory)/\(ReportContents.sums)") else { return nil }
    var files: [(name: String, sha256: String)] = []
    for line in String(decoding: sums, as: UTF8.self).split(separator: "\n") {
      // The format of sha256sum(1): the hash, two spaces, the name.
      guard let match = line.wholeMatch(of: /([0-9a-f]{64})  ([A-Za-z0-9][A-Za-z0-9._-]*)/) else { return nil }
      files.append((String(match.2), String(match.1)))
    }
    digest = ReportContents.sha256(sums)
    files.append((ReportContents.sums, digest))
    if let run = RegularFile.content("\(directory)/run.json") {
      files.append(("run.json", ReportContents.sha256(run)))
    }
    self.directory = directory
    self.files = files.sorted { $0.name < $1.name }
  }

  private static func sha256(_ data: Data) -> String { Digest.hexadecimal(SHA256.hash(data: data)) }

  // MARK: - Whose a file is

  /// Whether night-audit has made this folder: its check sums are there, and the summary that they vouch for.
  package var isOurs: Bool { summary != nil }

  /// The summary, if it is the one that the check sums vouch for.
  package var summary: SummaryDocument? {
    guard let content = content(of: "summary.json"),
      files.contains(where: { $0.name == "summary.json" && $0.sha256 == ReportContents.sha256(Data(content)) })
    else { return nil }
    return SummaryDocument(json: content)
  }

  /// As-of of the run that made it; nil in a folder that is not ours.
  package var asOf: Instant? {
    summary.flatMap { try? Date($0.instant, strategy: .iso8601) }
      .map { Instant(seconds: Int64($0.timeIntervalSince1970.rounded(.down))) }
  }

  /// Whether an entry of the folder is as night-audit has written it, by its hash. What people have put there, and what
  /// they have edited, is not.
  func owns(_ name: OpenDirectory.Name, in folder: OpenDirectory) -> Bool {
    guard let file = files.first(where: { $0.name == name.text }), let found = folder.sha256(name) else { return false }
    // It has no check sum. Its content tells it.
    if file.name == "run.json" { return Run(content(of: file.name) ?? []) != nil }
    return file.sha256 == found
  }

  /// Why the folder is not the report that was written any more; nil when it is. Reads all of it.
  var problem: String? {
    // The way may lead through a link, which is the operator's business.
    let folder = OpenDirectory(directory + "/.")
    for file in files {
      let place = "\(directory)/\(file.name)"
      guard let found = folder?.sha256(OpenDirectory.Name(file.name)) else {
        return "\(place) is missing or cannot be read; put it back, or make the report again"
      }
      if found != file.sha256 { return "\(place) was edited since; make the report again" }
    }
    return nil
  }

  /// What `run.json` says of the run.
  private struct Run: Decodable {
    var run_id: String
    var command: String?
    var trail: String?

    init?(_ content: [UInt8]) {
      guard let run = try? JSONDecoder().decode(Run.self, from: Data(content)) else { return nil }
      self = run
    }
  }

  /// The run that `run.json` names.
  var runId: String? { content(of: "run.json").flatMap { Run($0)?.run_id } }

  /// The command that `run.json` names.
  var command: String? { content(of: "run.json").flatMap { Run($0)?.command } }

  /// The entry of the trail that `run.json` names, by its hash.
  var trail: String? { content(of: "run.json").flatMap { Run($0)?.trail } }

  /// The folder's own name, such as `2026-11-19`.
  var name: String { (directory as NSString).lastPathComponent }

  /// The workbook's name; nil in a report without one.
  var workbook: String? { files.first { $0.name.hasSuffix(".xlsx") }?.name }

  /// The size of a file in bytes; nil when it cannot be seen.
  func size(of name: String) -> Int? {
    let attributes = try? FileManager.default.attributesOfItem(atPath: "\(directory)/\(name)")
    return (attributes?[.size] as? NSNumber)?.intValue
  }

  /// The bytes of a file; nil when it cannot be read.
  func content(of name: String) -> [UInt8]? {
    RegularFile.content("\(directory)/\(name)").map { Array($0) }
  }
}
