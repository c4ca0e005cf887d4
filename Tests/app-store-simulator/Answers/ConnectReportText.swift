import Foundation
import Gzip

struct ConnectReportText: Sendable {
  var preamble: [[String]] = []
  var header: [String]
  var rows: [[String]]
  var footer: [[String]] = []
  var fileName: String
  var version: String?

  /// The answer with Apple's unregistered content encoding.
  var answer: Answer { answer(ConnectDisturbance()) }

  func answer(_ disturbance: ConnectDisturbance) -> Answer {
    var text = changed(by: disturbance).lines.joined(separator: disturbance.hasCRLF == true ? "\r\n" : "\n")
    text += disturbance.hasCRLF == true ? "\r\n" : "\n"
    var bytes = Array(text.utf8)
    if disturbance.isBomb == true {
      bytes += [UInt8](repeating: UInt8(ascii: " "), count: 64 << 20)
    }
    for _ in 0..<(disturbance.compressions ?? 1) { bytes = Gunzip.compressed(bytes) ?? [] }
    if disturbance.isCut == true { bytes.removeLast(min(bytes.count, 9)) }
    var answer = Answer(body: Data(bytes), report: self)
    answer.headers = [
      "Content-Type": "application/a-gzip", "Content-Disposition": "attachment;filename=\(fileName)",
      "x-reports-filename": fileName, "X-Rate-Limit": "user-hour-lim:3600;user-hour-rem:3599;",
    ]
    answer.headers["x-reports-download-version"] = version
    let encoding = disturbance.encoding ?? "agzip"
    if encoding != "none" { answer.headers["Content-Encoding"] = encoding }
    return answer
  }

  private func changed(by disturbance: ConnectDisturbance) -> ConnectReportText {
    var report = self
    func place(of column: String?) -> Int? { column.flatMap { report.header.firstIndex(of: $0) } }
    func changeRows(_ change: (inout [String]) -> Void) {
      for index in report.rows.indices { change(&report.rows[index]) }
    }
    if let place = place(of: disturbance.missingColumn) {
      report.header.remove(at: place)
      changeRows { $0.remove(at: place) }
    }
    if let name = disturbance.extraColumn {
      report.header.append(name)
      changeRows { $0.append("x") }
    }
    if let type = disturbance.type, let place = place(of: "Product Type Identifier") { changeRows { $0[place] = type } }
    if disturbance.hasZeroUnits == true, let place = place(of: "Units"), !report.rows.isEmpty {
      report.rows[0][place] = "0"
    }
    if disturbance.isReversed == true {
      report.header.reverse()
      changeRows { $0.reverse() }
    }
    if disturbance.hasBlanks == true { changeRows { row in row = row.map { $0.isEmpty ? " " : $0 } } }
    if disturbance.hasTrailingTab == true { changeRows { $0.append("") } }
    if disturbance.hasBadTotals == true {
      report.footer = report.footer.map { $0[0].hasPrefix("Total_") ? [$0[0], "424242"] : $0 }
    }
    if disturbance.isHeaderOnly == true { (report.rows, report.footer) = ([], []) }
    return report
  }

  private var lines: [String] { (preamble + [header] + rows + footer).map { $0.joined(separator: "\t") } }
}

/// Amounts in hundredths of the major unit, as in reports.
enum ConnectMoney {
  static func text(hundredths: Int64) -> String {
    let (whole, rest) = hundredths.magnitude.quotientAndRemainder(dividingBy: 100)
    return "\(hundredths < 0 ? "-" : "")\(whole).\(rest < 10 ? "0" : "")\(rest)"
  }

  static func hundredths(_ text: String) -> Int64 {
    let digits = text.filter { $0.isNumber }
    return (text.hasPrefix("-") ? -1 : 1) * (Int64(digits) ?? 0)
  }
}
