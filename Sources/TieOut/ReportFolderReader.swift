import Foundation
import Logging
import Postgres
import Reconciliation
import Run

/// Reads the files in `tieOut.folder`. Sales reports have Apple's names; others are known by their first line.
struct ReportFolderReader {
  /// Two million rows, compressed, are a tenth of it.
  private static let largestFile = 256 << 20

  let directory: String
  /// The vendor of finance reports whose names have none; nil: unknown.
  let onlyVendor: String?
  /// The as-of of reports that the run stores.
  let asOf: Instant
  let logger: Logger

  /// Stores new files in the order of names, so that the result is deterministic. Of two files of one report the last
  /// counts.
  func read(on connection: borrowing BlockingConnection) throws -> TieOutRun.Gathered {
    var result = TieOutRun.Gathered()
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: directory).filter { !$0.hasPrefix(".") }
        .sorted { ReportFileName.precedes($0, $1) }
    } catch {
      result.problems.append("the folder \(directory) of tieOut.folder cannot be read")
      return result
    }
    let all = Set(names)
    for name in names { try read(name, among: all, &result, on: connection) }
    return result
  }

  private func read(
    _ name: String, among names: Set<String>, _ result: inout TieOutRun.Gathered,
    on connection: borrowing BlockingConnection
  ) throws {
    let path = directory + "/" + name
    let attributes = try? FileManager.default.attributesOfItem(atPath: path)
    guard attributes?[.type] as? FileAttributeType == .typeRegular else { return }
    guard (attributes?[.size] as? Int ?? 0) <= Self.largestFile, let data = RegularFile.content(path) else {
      result.problems.append("\(name): cannot be read, or is larger than \(Self.largestFile >> 20) MiB")
      return
    }
    let bytes = [UInt8](data)
    let report: ConnectReport
    do {
      // A sales report is known by its name, so that one that cannot be read is stored.
      let firstLine = try ReportFileName(name) == nil ? Self.firstLine(bytes) : ""
      if Payment.isHeader(firstLine) {
        let file = try Payment.read(bytes)
        result.payments += file.payments
        result.problems += file.problems.map { "\(name): \($0)" }
        return
      }
      guard let found = try self.report(named: name, firstLine: firstLine, bytes) else { return }
      report = found
    } catch {
      result.problems.append("\(name): \(error)")
      return
    }
    // A file replaced by Apple's answer does not become current again.
    if let state = try ConnectReportTable.folderFileState(bytes, as: report, asOf: asOf, on: connection),
      !state.isNews(name, among: names)
    {
      return
    }
    let stored = try ConnectReportTable.store(bytes, as: report, asOf: asOf, on: connection)
    if let problem = stored.problem {
      logger.warning("a report cannot be read", metadata: ["file": "\(name)", "problem": "\(problem)"])
    }
    for note in stored.notes { logger.notice("\(note)", metadata: ["file": "\(name)"]) }
  }

  private func report(named name: String, firstLine: String, _ bytes: [UInt8]) throws -> ConnectReport? {
    if let file = ReportFileName(name) {
      return ConnectReport(
        vendor: file.vendor, kind: .sales, frequency: file.frequency.rawValue, name: file.frequency.name(of: file.days),
        source: .folder, fileName: name)
    }
    if let kind = FinanceReport.kind(ofFirstLine: firstLine) {
      // A region is part of a report and would replace the whole.
      if kind == .financial, let region = ReportFileName.region(ofFinanceFile: name), region != "ZZ" {
        logger.notice(
          "ignored a finance report of one region; the report of all regions is ZZ",
          metadata: ["file": "\(name)", "region": "\(region)"])
        return nil
      }
      guard let vendor = ReportFileName.vendor(ofFinanceFile: name) ?? onlyVendor else {
        throw ReportProblem("the vendor is unknown; begin the file name with the vendor number and an underscore")
      }
      // First to find the period by its dates.
      let reading = try FinanceReport.read(bytes, period: nil) { _ in }
      guard let first = reading.first, let period = FiscalCalendar.period(containing: first) else {
        throw ReportProblem("has no dates of a fiscal period")
      }
      // Then with the checks for that period, so that an unreadable file replaces no other.
      _ = try FinanceReport.read(bytes, period: period) { _ in }
      return ConnectReport(
        vendor: vendor, kind: kind, name: period.description, source: .folder, fileName: name)
    }
    if Payment.isFileName(name) {
      let columns = Payment.columns.joined(separator: ",")
      throw ReportProblem("has no header of a payments file: \(columns), separated by commas")
    }
    if SalesReport.isHeader(firstLine) {
      throw ReportProblem("is a sales report without Apple's name, such as S_D_80012345_20261119.txt.gz")
    }
    // Prices in subscription reports are not sums; other files are ignored.
    logger.notice(
      "ignored a file that is not a sales report, finance report or payments file", metadata: ["file": "\(name)"])
    return nil
  }

  private struct Enough: Error {}

  /// Throws for text in UTF-16 alone, because other files may be no reports.
  private static func firstLine(_ bytes: [UInt8]) throws(ReportProblem) -> String {
    var first = ""
    do {
      try ReportLines.read(bytes) { line, _ in
        first = String(decoding: line, as: UTF8.self)
        throw Enough()
      }
    } catch let problem as ReportProblem where problem == ReportLines.inUTF16 {
      throw problem
    } catch {}
    return first
  }
}
