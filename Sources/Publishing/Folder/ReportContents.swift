import Crypto
import Foundation
import Reconciliation
import Reporting
import Run

/// The contents of a report folder, for sending, replacing or removing it.
package struct ReportContents {
  let directory: String
  /// Sorted by name: the files in `SHA256SUMS`, that file itself, and `run.json` if it exists.
  let files: [(name: String, sha256: String)]
  /// SHA-256 of `SHA256SUMS`, which identifies the content of the report.
  package let digest: String

  static let sums = "SHA256SUMS"
  /// In bytes; night-audit writes no larger `SHA256SUMS`, `run.json`, `summary.json` or lease.
  static let largestFile = 16 << 20

  package init?(directory: String) {
    guard let sums = ReportContents.read(ReportContents.sums, in: directory) else { return nil }
    var files: [(name: String, sha256: String)] = []
    for line in String(decoding: sums, as: UTF8.self).split(separator: "\n") {
      // The format of sha256sum(1): hash, two spaces, name.
      guard let match = line.wholeMatch(of: /([0-9a-f]{64})  ([A-Za-z0-9][A-Za-z0-9._-]*)/) else { return nil }
      files.append((String(match.2), String(match.1)))
    }
    digest = ReportContents.sha256(sums)
    files.append((ReportContents.sums, digest))
    if let run = ReportContents.read("run.json", in: directory) {
      files.append(("run.json", ReportContents.sha256(run)))
    }
    self.directory = directory
    self.files = files.sorted { $0.name < $1.name }
  }

  private static func sha256(_ data: Data) -> String { Digest.hexadecimal(SHA256.hash(data: data)) }

  // MARK: - Ownership of files

  /// True if night-audit made the folder: `SHA256SUMS` contains the hash of its summary.
  package var isOurs: Bool { summary != nil }

  package var summary: SummaryDocument? {
    guard let content = content(of: "summary.json"),
      files.contains(where: { $0.name == "summary.json" && $0.sha256 == ReportContents.sha256(Data(content)) })
    else { return nil }
    return SummaryDocument(json: content)
  }

  package var asOf: Instant? {
    summary.flatMap { try? Date($0.asOf, strategy: .iso8601) }
      .map { Instant(seconds: Int64($0.timeIntervalSince1970.rounded(.down))) }
  }

  /// True if the file is as night-audit wrote it. False for files that people added or edited.
  func owns(_ name: OpenDirectory.Name, in folder: OpenDirectory) -> Bool {
    guard let file = files.first(where: { $0.name == name.text }), let found = folder.sha256(name) else { return false }
    // `run.json` has no hash in `SHA256SUMS` and is recognised by its content.
    if file.name == "run.json" { return run != nil }
    return file.sha256 == found
  }

  /// The first missing or edited file, with the remedy; nil for an intact report. Reads all files.
  var problem: String? {
    // A trailing dot follows a link in the path, which operators may use.
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

  /// True if a file has a name of a report's files, whatever it contains.
  static func isOfReport(_ directory: String) -> Bool {
    let names = (try? OpenDirectory(directory)?.names()) ?? []
    return names.contains { $0.text == "run.json" || ReportWriter.writes($0.text) }
  }

  private struct Run: Decodable {
    var run_id: String
    var command: String?
    var trail: String?

    init?(json: Data) {
      guard let run = try? JSONDecoder().decode(Run.self, from: json) else { return nil }
      self = run
    }
  }

  private var run: Run? { ReportContents.read("run.json", in: directory).flatMap(Run.init(json:)) }

  var runId: String? { run?.run_id }

  var command: String? { run?.command }

  var trail: String? { run?.trail }

  var name: String { (directory as NSString).lastPathComponent }

  var workbook: String? { files.first { $0.name.hasSuffix(".xlsx") }?.name }

  func size(of name: String) -> Int? {
    let attributes = try? FileManager.default.attributesOfItem(atPath: "\(directory)/\(name)")
    return (attributes?[.size] as? NSNumber)?.intValue
  }

  func content(of name: String) -> [UInt8]? { ReportContents.read(name, in: directory).map { Array($0) } }

  private static func read(_ name: String, in directory: String) -> Data? {
    RegularFile.content("\(directory)/\(name)", atMost: largestFile)
  }
}
