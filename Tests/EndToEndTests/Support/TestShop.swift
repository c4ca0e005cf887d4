import Foundation
import Postgres
import TestSupport
import Testing

/// A shop of a test: a folder with the configuration and the reports, a database, and a simulated App Store.
protocol TestShop {
  var directory: TemporaryDirectory { get }
  /// For the writer.
  var conninfo: String { get }
  /// The port of the App Store.
  var port: Int { get }
  /// The content of `night-audit.yaml` at first. Its last section is `report`.
  var configuration: String { get }
}

extension TestShop {
  var configurationFile: String { directory.file("night-audit.yaml") }
  var reports: String { directory.file("reports") }

  /// Writes the configuration with further lines.
  func configure(_ addition: String) throws { try configure { $0 + "\n" + addition } }

  func configure(_ change: (String) throws -> String) throws {
    try change(configuration).write(toFile: configurationFile, atomically: true, encoding: .utf8)
  }

  // MARK: Commands

  /// Runs the program and expects its exit status, and a text in its output, if they are given.
  @discardableResult
  func nightAudit(
    _ arguments: String..., more: [String] = [], environment: [String: String] = [:], exits statuses: Set<Int32>? = nil,
    says text: String? = nil, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> Program.Result {
    let arguments = arguments + more
    let result = try await Program.nightAudit.run(
      arguments + ["--config", configurationFile], environment: environment)
    if let statuses {
      #expect(statuses.contains(result.status), "\(arguments): \(result)", sourceLocation: sourceLocation)
    }
    if let text {
      #expect((result.output + result.errors).contains(text), "\(arguments): \(result)", sourceLocation: sourceLocation)
    }
    return result
  }

  /// Starts a command without waiting for its end.
  func start(_ arguments: String..., more: [String] = [], environment: [String: String] = [:]) throws -> Program.Running
  {
    try Program.nightAudit.start(arguments + more + ["--config", configurationFile], environment: environment)
  }

  // MARK: Reports

  private func path(_ folder: String) -> String { folder.hasPrefix("/") ? folder : reports + "/" + folder }

  /// The files by name of a folder of reports, such as `2026-11-19`, or of a folder with an absolute path.
  func files(_ folder: String) throws -> [String: Data] {
    try FileManager.default.contentsOfDirectory(atPath: path(folder)).reduce(into: [:]) { files, name in
      files[name] = try file(name, folder)
    }
  }

  /// The files of a report without `run.json`, which differs from run to run.
  func report(_ folder: String) throws -> [String: Data] { try files(folder).filter { $0.key != "run.json" } }

  func file(_ name: String, _ folder: String) throws -> Data {
    try Data(contentsOf: URL(filePath: path(folder) + "/" + name))
  }

  func table(_ name: String, _ folder: String) throws -> [[String: String]] { rows(try file(name + ".csv", folder)) }

  func summary(_ folder: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: file("summary.json", folder)) as? [String: Any])
  }

  // MARK: The database

  func value(_ sql: String, conninfo: String? = nil, as role: DatabaseRole = .superuser) async throws -> String {
    try await role.value(sql, in: conninfo ?? self.conninfo)
  }

  func execute(_ sql: String, conninfo: String? = nil, as role: DatabaseRole = .superuser) async throws {
    try await role.execute(sql, in: conninfo ?? self.conninfo)
  }

  func session() async throws -> PostgresSession { try await DatabaseRole.superuser.session(conninfo) }

  // MARK: The App Store

  /// The requests under a path; with `id`, only those about this transaction.
  func requests(_ path: String = "/", about id: String? = nil) throws -> Int {
    try String(contentsOfFile: directory.file("requests"), encoding: .utf8).split(separator: "\n").count { line in
      line.contains("\"path\":\"\(path)") && id.map { line.contains("\"subject\":\"\($0)\"") } ?? true
    }
  }
}
