"""Fills in lines such as `Prepared by|Dana`, separated by U+001F, as Excel does. An entry of digits is a date, as a serial
number. The cached results of formulas stay in the file.

usage: sign_workbook.py SOURCE TARGET yes|no LINES (no: the control totals disagree)
"""
import re, sys, zipfile, openpyxl
from xml.sax.saxutils import escape
source, target, balanced, lines = sys.argv[1:]
entries = dict(line.split("|") for line in lines.split("\x1f"))
sheet = openpyxl.load_workbook(source)["Summary"]
places = {f"B{row[0].row}": entries[row[0].value] for row in sheet.iter_rows(max_col=1) if row[0].value in entries}
with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
    for name in old.namelist():
        content = old.read(name)
        if name == "xl/worksheets/sheet1.xml":
            text = content.decode()
            for place, entry in places.items():
                value = f"><v>{entry}</v>" if entry.isdigit() else (
                    f' t="inlineStr"><is><t>{escape(entry)}</t></is>')
                text, count = re.subn(f'<c r="{place}"( s="[0-9]+")?/>',
                    lambda m: f'<c r="{place}"{m[1] or ""}{value}</c>', text)
                assert count == 1, place
            if balanced == "no":
                assert "<v>BALANCED: " in text
                text = text.replace("<v>BALANCED: ", "<v>NOT BALANCED: ")
            content = text.encode()
        new.writestr(name, content)
