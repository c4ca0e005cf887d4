import Foundation
import Testing

/// A workbook as read by openpyxl, an independent library.
struct ReadWorkbook: Decodable {
  struct Cell: Decodable {
    /// openpyxl's data type: `s`, `n`, `b`, `d`, `f`.
    let kind: String
    let text: String?
    let number: Double?
    let formula: String?
    let numberFormat: String
    let isBold: Bool
    let isLocked: Bool
    let fill: String?
  }

  struct Table: Decodable {
    let range: String
    let columns: [String]
  }

  struct Sheet: Decodable {
    let name: String
    let dimensions: String
    let cells: [String: Cell]
    let merged: [String]
    let links: [String: String]
    let tables: [String: Table]
    let freeze: String?
    let filter: String?
    let widths: [String: Double]
    let heights: [String: Double]
    let validations: [String: String]
    let conditional: [String: [String]]
    let charts: [String]
    let landscape: Bool
    let fitsToPage: Bool
    /// The number of pages; 1 if not set, 0 for as many as needed.
    let fitToWidth: Int?
    let fitToHeight: Int?
    let paper: Int?
    let titleRows: String?
    let printArea: String?
    let footer: String?
    let header: String?
    let tab: String?
    let gridlines: Bool
    let protection: [String: Bool]
    /// The exact characters of each text, read from the XML without openpyxl.
    let raw: [String: String]
  }

  let sheets: [Sheet]
  let active: String
  let title: String?
  let creator: String?
  let created: String
  let custom: [String: String]

  init(path: String) throws {
    let output = try run(Python.withOpenpyxl(), ["-", path], input: Self.program)
    self = try JSONDecoder().decode(ReadWorkbook.self, from: output)
  }

  func sheet(_ name: String) throws -> Sheet {
    try #require(sheets.first { $0.name == name }, "no sheet named \(name)")
  }

  private static let program = #"""
    import json, re, sys, zipfile
    import xml.etree.ElementTree as ET
    from openpyxl import load_workbook

    path = sys.argv[1]
    formulas, values = load_workbook(path), load_workbook(path, data_only=True)
    archive = zipfile.ZipFile(path)
    assert archive.testzip() is None
    for part in archive.namelist():
        ET.fromstring(archive.read(part))

    # ECMA-376 part 1, 22.9.2.19: _xHHHH_ stands for a character.
    def decode(text):
        return re.sub("_x([0-9A-Fa-f]{4})_", lambda m: chr(int(m[1], 16)), text)

    main = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"

    def raw(index):
        shared = []
        if "xl/sharedStrings.xml" in archive.namelist():
            table = ET.fromstring(archive.read("xl/sharedStrings.xml"))
            shared = [item.findtext(main + "t") or "" for item in table]
        texts = {}
        for cell in ET.fromstring(archive.read(f"xl/worksheets/sheet{index}.xml")).iter(main + "c"):
            if cell.get("t") == "inlineStr":
                texts[cell.get("r")] = decode(cell.find(main + "is").findtext(main + "t") or "")
            elif cell.get("t") == "s":
                texts[cell.get("r")] = decode(shared[int(cell.findtext(main + "v"))])
        return texts

    def cell(cell, value):
        result = {
            "kind": cell.data_type, "numberFormat": cell.number_format, "isBold": bool(cell.font.b),
            "isLocked": bool(cell.protection.locked),
            "fill": cell.fill.fgColor.rgb if cell.fill.fill_type else None,
        }
        if cell.data_type == "f":
            result["formula"] = cell.value
        if isinstance(value, (bool, int, float)):
            result["number"] = float(value)
        elif value is not None:
            result["text"] = value if isinstance(value, str) else value.isoformat()
        return result

    def custom():
        if "docProps/custom.xml" not in archive.namelist():
            return {}
        return {item.get("name"): "".join(item.itertext())
                for item in ET.fromstring(archive.read("docProps/custom.xml"))}

    def sheet(index, sheet):
        twin = values[sheet.title]
        # Only the cells of the file, because iterating over rows would create empty ones.
        cells = [c for _, c in sorted(sheet._cells.items())]
        names = ["sheet", "formatCells", "formatColumns", "sort", "autoFilter", "selectLockedCells"]
        return {
            "name": sheet.title, "dimensions": sheet.dimensions,
            "cells": {c.coordinate: cell(c, twin[c.coordinate].value)
                      for c in cells if c.value is not None or c.has_style},
            "merged": sorted(str(r) for r in sheet.merged_cells.ranges),
            "links": {c.coordinate: c.hyperlink.target or c.hyperlink.location for c in cells if c.hyperlink},
            "tables": {t.name: {"range": t.ref, "columns": [c.name for c in t.tableColumns]}
                       for t in sheet.tables.values()},
            "freeze": sheet.freeze_panes, "filter": sheet.auto_filter.ref,
            "widths": {k: d.width for k, d in sheet.column_dimensions.items()},
            "heights": {str(k): d.height for k, d in sheet.row_dimensions.items() if d.height},
            "validations": {str(v.sqref): v.formula1 for v in sheet.data_validations.dataValidation},
            "conditional": {str(r.sqref): [f"{x.type} {x.operator} {x.formula}" for x in r.rules]
                            for r in sheet.conditional_formatting},
            "charts": [type(c).__name__ for c in sheet._charts],
            "landscape": sheet.page_setup.orientation == "landscape",
            "fitsToPage": bool(sheet.sheet_properties.pageSetUpPr and sheet.sheet_properties.pageSetUpPr.fitToPage),
            "fitToWidth": sheet.page_setup.fitToWidth, "fitToHeight": sheet.page_setup.fitToHeight,
            "paper": int(sheet.page_setup.paperSize) if sheet.page_setup.paperSize else None,
            "titleRows": sheet.print_title_rows, "printArea": sheet.print_area and "".join(sheet.print_area),
            "footer": sheet.oddFooter.center.text, "header": sheet.oddHeader.center.text,
            "tab": sheet.sheet_properties.tabColor and
                sheet.sheet_properties.tabColor.rgb,
            "gridlines": sheet.sheet_view.showGridLines is not False,
            "protection": {name: bool(getattr(sheet.protection, name)) for name in names},
            "raw": raw(index),
        }

    json.dump({
        "sheets": [sheet(i + 1, s) for i, s in enumerate(formulas.worksheets)],
        "active": formulas.active.title, "title": formulas.properties.title,
        "creator": formulas.properties.creator, "created": formulas.properties.created.isoformat(),
        "custom": custom(),
    }, sys.stdout)
    """#
}

enum Python {
  /// The first Python with openpyxl. Debian installs it for its own Python, which may not be the first in `PATH`.
  static func withOpenpyxl() throws -> String {
    try #require(found, "openpyxl is missing: `apt-get install python3-openpyxl`, or `pip install openpyxl`")
  }

  private static let found: String? = {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    let candidates = ["/usr/bin/python3"] + path.split(separator: ":").map { "\($0)/python3" }
    return candidates.first { (try? run($0, ["-c", "import openpyxl"])) != nil }
  }()
}
