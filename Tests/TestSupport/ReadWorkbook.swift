import Foundation

/// A workbook as openpyxl reads it, a library that is independent of ours.
package struct ReadWorkbook: Decodable, Sendable {
  package struct Cell: Decodable, Sendable {
    /// openpyxl's data type: `s` text, `n` number, `b` Boolean, `d` date, `f` formula.
    package let kind: String
    /// The text, or the stored result of a formula.
    package let text: String?
    package let number: Double?
    package let formula: String?
    package let format: String
    package let link: String?
    package let isBold: Bool
    /// True if the style of the cell locks it.
    package let isLocked: Bool
    package let fill: String?
  }

  package struct Table: Decodable, Sendable {
    package let range: String
    package let columns: [String]
  }

  package struct Sheet: Decodable, Sendable {
    package let name: String
    package let dimensions: String
    /// By coordinate, such as `A1`.
    package let cells: [String: Cell]
    /// Cells with a content, by column letter. Empty for sheets of more than 10,000 rows.
    package let rows: [[String: Cell]]
    /// The exact characters of each text, read from the XML without openpyxl.
    package let raw: [String: String]
    package let merged: [String]
    package let tables: [String: Table]
    package let freeze: String?
    package let filter: String?
    /// In characters, by column letter.
    package let widths: [String: Double]
    package let heights: [String: Double]
    package let choices: [String: String]
    package let conditional: [String]
    package let charts: [String]
    package let notes: [String: String]
    package let landscape: Bool
    /// The number of pages; nil if the sheet is not scaled to pages, 0 for as many as needed.
    package let pagesWide: Int?
    package let pagesHigh: Int?
    package let paper: Int?
    package let titleRows: String?
    package let printArea: String?
    package let header: String?
    package let footer: String?
    package let tab: String?
    package let gridlines: Bool
    package let isProtected: Bool
    package let permissions: [String]
    /// Ranges without Excel's mark for numbers stored as text.
    package let ignored: String?
  }

  /// The visible sheets.
  package let sheets: [Sheet]
  package let hidden: [String]
  package let active: String
  package let title: String?
  package let creator: String?
  package let created: String
  package let custom: [String: String]

  package init(path: String) throws {
    let program = Repository.root.appending(path: "Tests/TestSupport/read_workbook.py").path
    self = try JSONDecoder().decode(ReadWorkbook.self, from: Command.run([Self.python(), program, path]))
  }

  package func sheet(_ name: String) throws -> Sheet {
    guard let sheet = sheets.first(where: { $0.name == name }) else {
      throw Command.Failure(description: "no sheet \(name) among \(sheets.map(\.name))")
    }
    return sheet
  }

  /// The first Python with openpyxl. Debian installs it for its own Python, which may not be the first in `PATH`.
  package static func python() throws -> String {
    guard let found else { throw Command.Failure(description: "openpyxl is missing: apt-get install python3-openpyxl") }
    return found
  }

  private static let found: String? = {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    let candidates = ["/usr/bin/python3"] + path.split(separator: ":").map { "\($0)/python3" }
    return candidates.first { (try? Command.run([$0, "-c", "import openpyxl"])) != nil }
  }()
}
