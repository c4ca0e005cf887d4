import Foundation
import TestSupport
import Testing

func run(_ program: String, _ arguments: [String], input: String = "") throws -> Data {
  try Command.run([program] + arguments, input: input)
}

struct ReadBook: Decodable {
  struct Cell: Decodable {
    /// `s` text, `n` number, `d` date, `f` formula.
    let kind: String
    /// The stored result.
    let text: String?
    let number: Double?
    let formula: String?
    let format: String
    let link: String?
  }

  struct Sheet: Decodable {
    let name: String
    let rows: [[String: Cell]]
    let freeze: String?
    let tables: [String]
    let filter: String?
    let choices: [String: String]
    let conditional: [String]
    let charts: Int
    let landscape: Bool
    let titleRows: String?
    let notes: [String: String]
    let isProtected: Bool
    let permissions: [String]
    let entries: [String]
    let locked: [String]
    let printed: String?
    let pagesWide: Int?
    /// Ranges without Excel's mark for numbers stored as text.
    let ignored: String?
    /// In characters, by column letter.
    let widths: [String: Double]

    func texts(_ row: Int) -> [String] {
      guard row < rows.count else { return [] }
      return rows[row].sorted { ($0.key.count, $0.key) < ($1.key.count, $1.key) }
        .map { $0.value.text ?? $0.value.number.map { "\($0)" } ?? "" }
    }

    /// - Parameter number: from 1, as spreadsheets count.
    func row(_ number: Int) throws -> [String: Cell] {
      try #require(number <= rows.count, "\(name) has no row \(number)")
      return rows[number - 1]
    }

    func letter(_ heading: String) throws -> String {
      try #require(rows.first?.first { $0.value.text == heading }?.key, "\(name) has no column \(heading)")
    }

    func cell(_ heading: String, _ number: Int) throws -> Cell? { try row(number)[letter(heading)] }

    func column(_ letter: String, _ numbers: ClosedRange<Int>) throws -> [String?] {
      try numbers.map { try row($0)[letter]?.text }
    }

    func row(named name: String) -> [String: Cell]? { rows.first { $0["A"]?.text == name } }
  }

  let sheets: [Sheet]
  let hidden: [String]
  let created: String
  let title: String

  init(directory: String, name: String = "night-audit-2026-11-19.xlsx") throws {
    let output = try run(try ReadBook.python(), ["-", "\(directory)/\(name)"], input: ReadBook.program)
    self = try JSONDecoder().decode(ReadBook.self, from: output)
  }

  func sheet(_ name: String) throws -> Sheet { try #require(sheets.first { $0.name == name }, "no sheet \(name)") }

  /// Debian installs openpyxl for its own Python, which may not be the first in `PATH`.
  static func python() throws -> String {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    let candidates = ["/usr/bin/python3"] + path.split(separator: ":").map { "\($0)/python3" }
    let found = candidates.first { (try? run($0, ["-c", "import openpyxl"])) != nil }
    return try #require(found, "openpyxl is missing: `apt-get install python3-openpyxl`")
  }

  private static let program = #"""
    import json, re, sys, zipfile
    from openpyxl import load_workbook
    from openpyxl.utils import get_column_letter

    parts = zipfile.ZipFile(sys.argv[1])
    titles = re.findall(r'<sheet name="([^"]+)"', parts.read("xl/workbook.xml").decode())
    ignored = {title: (re.search(r'<ignoredError sqref="([^"]+)" numberStoredAsText="1"',
                                 parts.read(f"xl/worksheets/sheet{number}.xml").decode()) or [None, None])[1]
               for number, title in enumerate(titles, 1)}
    formulas, values = load_workbook(sys.argv[1]), load_workbook(sys.argv[1], data_only=True)

    def cell(cell, value):
        result = {"kind": cell.data_type, "format": cell.number_format}
        if cell.data_type == "f":
            result["formula"] = getattr(cell.value, "text", cell.value)
        if cell.hyperlink:
            result["link"] = cell.hyperlink.location
        if isinstance(value, (int, float)):
            result["number"] = float(value)
        elif value is not None:
            result["text"] = value if isinstance(value, str) else value.isoformat(sep=" ", timespec="seconds")
        return result

    def sheet(sheet):
        twin = values[sheet.title]
        return {
            "name": sheet.title,
            "rows": [{c.column_letter: cell(c, twin[c.coordinate].value) for c in row if c.value is not None}
                     for row in sheet.iter_rows()],
            "freeze": sheet.freeze_panes, "tables": [f"{t.name} {t.ref}" for t in sheet.tables.values()],
            "filter": sheet.auto_filter.ref,
            "choices": {str(v.sqref): v.formula1 for v in sheet.data_validations.dataValidation},
            "conditional": sorted(f"{r.sqref} {x.operator} {','.join(x.formula)}"
                                  for r in sheet.conditional_formatting for x in r.rules),
            "charts": len(sheet._charts), "landscape": sheet.page_setup.orientation == "landscape",
            "titleRows": sheet.print_title_rows,
            "isProtected": bool(sheet.protection.sheet),
            "permissions": sorted(name for name in ("sort", "autoFilter", "formatColumns", "formatCells", "deleteRows")
                                  if not getattr(sheet.protection, name)),
            "entries": sorted(c.coordinate for row in sheet.iter_rows(min_row=2, max_row=2) for c in row
                              if c.fill.fgColor.rgb == "FFFFF9E5"),
            "locked": sorted(c.coordinate for row in sheet.iter_rows(max_row=2) for c in row
                             if c.has_style and c.protection.locked),
            "printed": " ".join([sheet.print_area] if isinstance(sheet.print_area, str) else sheet.print_area or []) or None, "pagesWide": (sheet.page_setup.fitToWidth or 1) if sheet.sheet_properties.pageSetUpPr
                         and sheet.sheet_properties.pageSetUpPr.fitToPage else None,
            "ignored": ignored.get(sheet.title),
            # Excel and the library add a margin to the width.
            "widths": {get_column_letter(i): round(d.width - 0.7109375, 1) for d in sheet.column_dimensions.values()
                       for i in range(d.min, d.max + 1)},
            "notes": {c.coordinate: c.comment.text for row in sheet.iter_rows() for c in row if c.comment},
        }

    json.dump({"sheets": [sheet(s) for s in formulas.worksheets if s.sheet_state == "visible"],
               "hidden": [s.title for s in formulas.worksheets if s.sheet_state == "hidden"], "title": formulas.properties.title,
               "created": formulas.properties.created.isoformat()}, sys.stdout)
    """#
}
