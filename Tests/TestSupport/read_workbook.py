"""Prints a workbook as JSON, as openpyxl reads it: a library that is independent of ours."""
import json
import re
import sys
import xml.etree.ElementTree as ET
import zipfile

from openpyxl import load_workbook
from openpyxl.utils import get_column_letter

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
PERMISSIONS = ("autoFilter", "deleteRows", "formatCells", "formatColumns", "selectLockedCells", "sort")
# A sheet with a cell in the last row that Excel has would be a million rows.
MOST_ROWS = 10_000

path = sys.argv[1]
formulas, values = load_workbook(path), load_workbook(path, data_only=True)
archive = zipfile.ZipFile(path)
assert archive.testzip() is None
parts = {name: archive.read(name) for name in archive.namelist()}
for content in parts.values():
    ET.fromstring(content)


def decoded(text):
    """ECMA-376 part 1, 22.9.2.19: _xHHHH_ stands for a character."""
    return re.sub("_x([0-9A-Fa-f]{4})_", lambda match: chr(int(match[1], 16)), text)


def raw(part):
    """The exact characters of each text, read from the XML without openpyxl."""
    shared = []
    if "xl/sharedStrings.xml" in parts:
        shared = [item.findtext(MAIN + "t") or "" for item in ET.fromstring(parts["xl/sharedStrings.xml"])]
    texts = {}
    for cell in ET.fromstring(part).iter(MAIN + "c"):
        if cell.get("t") == "inlineStr":
            texts[cell.get("r")] = decoded(cell.find(MAIN + "is").findtext(MAIN + "t") or "")
        elif cell.get("t") == "s":
            texts[cell.get("r")] = decoded(shared[int(cell.findtext(MAIN + "v"))])
    return texts


def read_cell(cell, value):
    result = {"kind": cell.data_type, "format": cell.number_format, "isBold": bool(cell.font.b),
              "isLocked": bool(cell.has_style and cell.protection.locked),
              "fill": cell.fill.fgColor.rgb if cell.fill.fill_type else None}
    if cell.data_type == "f":
        result["formula"] = getattr(cell.value, "text", cell.value)
    if cell.hyperlink:
        result["link"] = cell.hyperlink.target or cell.hyperlink.location
    if isinstance(value, (int, float)):
        result["number"] = float(value)
    elif value is not None:
        result["text"] = value if isinstance(value, str) else value.isoformat(sep=" ", timespec="seconds")
    return result


def read_sheet(number, sheet):
    part, twin, last = parts[f"xl/worksheets/sheet{number}.xml"], values[sheet.title], sheet.max_row
    # Only the cells of the file, because iterating over rows would create empty ones.
    cells = [cell for _, cell in sorted(sheet._cells.items())]
    read = {cell.coordinate: read_cell(cell, twin[cell.coordinate].value)
            for cell in cells if cell.value is not None or cell.has_style}
    rows = [{} for _ in range(last)] if last <= MOST_ROWS else []
    for cell in cells if rows else []:
        if cell.value is not None:
            rows[cell.row - 1][cell.column_letter] = read[cell.coordinate]
    page = sheet.sheet_properties.pageSetUpPr
    fits = bool(page and page.fitToPage)
    area = sheet.print_area
    ignored = re.search(r'<ignoredError sqref="([^"]+)" numberStoredAsText="1"', part.decode())
    return {
        "name": sheet.title, "dimensions": sheet.dimensions, "cells": read, "rows": rows, "raw": raw(part),
        "merged": sorted(str(r) for r in sheet.merged_cells.ranges),
        "tables": {t.name: {"range": t.ref, "columns": [c.name for c in t.tableColumns]} for t in sheet.tables.values()},
        "freeze": sheet.freeze_panes, "filter": sheet.auto_filter.ref,
        # Excel and the library add a margin to the width.
        "widths": {get_column_letter(i): round(d.width - 0.7109375, 1) for d in sheet.column_dimensions.values()
                   for i in range(d.min, d.max + 1)},
        "heights": {str(k): d.height for k, d in sheet.row_dimensions.items() if d.height},
        "choices": {str(v.sqref): v.formula1 for v in sheet.data_validations.dataValidation},
        "conditional": sorted(f"{r.sqref} {x.operator or x.type} {','.join(x.formula)}"
                              for r in sheet.conditional_formatting for x in r.rules),
        "charts": [type(c).__name__ for c in sheet._charts],
        "notes": {c.coordinate: c.comment.text for c in cells if c.comment},
        "landscape": sheet.page_setup.orientation == "landscape",
        "pagesWide": (sheet.page_setup.fitToWidth or 1) if fits else None,
        "pagesHigh": sheet.page_setup.fitToHeight if fits else None,
        "paper": int(sheet.page_setup.paperSize) if sheet.page_setup.paperSize else None,
        "titleRows": (sheet.print_title_rows or "").replace("$", "") or None,
        "printArea": " ".join([area] if isinstance(area, str) else area or []) or None,
        "header": sheet.oddHeader.center.text, "footer": sheet.oddFooter.center.text,
        "tab": sheet.sheet_properties.tabColor and sheet.sheet_properties.tabColor.rgb,
        "gridlines": sheet.sheet_view.showGridLines is not False, "isProtected": bool(sheet.protection.sheet),
        # openpyxl's true means locked.
        "permissions": [name for name in PERMISSIONS if not getattr(sheet.protection, name)],
        "ignored": ignored and ignored[1],
    }


custom = ET.fromstring(parts["docProps/custom.xml"]) if "docProps/custom.xml" in parts else []
sheets = [(number, sheet) for number, sheet in enumerate(formulas.worksheets, 1)]
json.dump({
    "sheets": [read_sheet(number, sheet) for number, sheet in sheets if sheet.sheet_state == "visible"],
    "hidden": [sheet.title for _, sheet in sheets if sheet.sheet_state == "hidden"],
    "active": formulas.active.title, "title": formulas.properties.title, "creator": formulas.properties.creator,
    "created": formulas.properties.created.isoformat(),
    "custom": {item.get("name"): "".join(item.itertext()) for item in custom},
}, sys.stdout)
