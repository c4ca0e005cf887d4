"""Edits the sheet Findings as people do. An edit is ROW|COLUMN|VALUE, with a value such as int:42 or none:.

usage: edit_findings.py SOURCE TARGET EDIT...
"""
import sys, openpyxl
source, target, *edits = sys.argv[1:]
book = openpyxl.load_workbook(source)
sheet = book["Findings"]
rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
head = rows[0]
for edit in edits:
    row, column, value = edit.split("|", 2)
    kinds = {"int": int, "none": lambda _: None}
    kind, _, rest = value.partition(":")
    rows[int(row)][head.index(column)] = kinds[kind](rest) if kind in kinds else value
# Usual edits by people: another sort order, an additional first column, rows hidden by a filter.
# Earlier versions wrote "Finding id".
table = [["My notes"] + [title.replace(" ID", " id") for title in head]] + [["x"] + row for row in sorted(rows[1:], key=lambda r: str(r[3]))]
copy = openpyxl.Workbook()
copy.properties.created = book.properties.created
copy.active.title = "Mine"
out = copy.create_sheet("Findings")
for index, row in enumerate(table, 1):
    for column, value in enumerate(row, 1):
        cell = out.cell(index, column)
        cell.value = value
        # A text that begins with "=" is a formula only where a person typed it.
        if isinstance(value, str) and value.startswith("=") and value != "=1+1":
            cell.data_type = "s"
    out.row_dimensions[index].hidden = index % 3 == 0
copy.save(target)
