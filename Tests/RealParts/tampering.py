"""Changes copies of a workbook in harmless and in harmful ways, and prints what the controls of each show."""
import json, os, re, subprocess, sys
from openpyxl import load_workbook

path, office, directory = sys.argv[1:]
people = ("Status", "Owner", "Due", "Remark")
def change(sheet, row, column, value):
    def apply(book):
        book[sheet].cell(row, column).value = value
    return apply
def fill(sheet):
    for column in (c.column for c in sheet[1] if c.value in people):
        sheet.cell(2, column, "people")
def sort(sheet, last):
    content = [[c.value for c in row] for row in sheet.iter_rows(min_row=2, max_row=last)]
    for number, row in enumerate(reversed(content), 2):
        for column, value in enumerate(row, 1):
            sheet.cell(number, column).value = value
original = load_workbook(path)
edits = {"harmless: nothing": lambda book: None, "harmless: people": lambda book: fill(book["Findings"])}
for name in ("Users", "Amounts", "Products", "Orders", "Findings"):
    sheet = original[name]
    end = int(re.search(r"[0-9]+$", next(iter(sheet.tables.values())).ref)[0])
    edits[f"harmless: {name} from below"] = lambda book, name=name, end=end: sort(book[name], end)
    heads = [head.value for head in sheet[1]]
    amounts = {"Orders": ["Amount"], "Findings": ["At stake"]}.get(name) or heads[heads.index("Ordered"):]
    for head in amounts:
        if head == "App":
            continue
        column = heads.index(head) + 1
        row = next(row for row in range(2, end + 1) if sheet.cell(row, column).value is not None)
        edits[f"{name}, {head}"] = change(name, row, column, sheet.cell(row, column).value + 1)
targets = []
for number, edit in enumerate(edits.values()):
    book = load_workbook(path)
    edit(book)
    target = os.path.join(directory, f"{number}.xlsx")
    book.save(target)
    targets.append(target)
out = os.path.join(directory, "calculated")
subprocess.run([office, f"-env:UserInstallation=file://{directory}/profile", "--headless", "--convert-to", "xlsx",
                "--outdir", out] + targets, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
results = {}
for number, name in enumerate(edits):
    sheet = load_workbook(os.path.join(out, f"{number}.xlsx"), data_only=True)["Summary"]
    banner = next(r[0].value for r in sheet.iter_rows(max_col=1) if r[0].value and "BALANCED: " in str(r[0].value))
    lines = [r for r in sheet.iter_rows(max_col=6) if r[4].value in ("balanced", "NOT BALANCED")]
    results[name] = {"banner": banner, "bad": [r[0].value for r in lines if r[4].value != "balanced"],
                     "controls": len(lines)}
json.dump(results, sys.stdout)
