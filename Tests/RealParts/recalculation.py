"""Removes the stored results from a copy of a workbook, so that LibreOffice must calculate, and compares both files."""
import json, os, re, subprocess, sys, zipfile
from openpyxl import load_workbook

path, office, directory = sys.argv[1:]
bare = os.path.join(directory, "bare.xlsx")
with zipfile.ZipFile(path) as old, zipfile.ZipFile(bare, "w") as new:
    for name in old.namelist():
        content = old.read(name)
        if name.startswith("xl/worksheets/sheet"):
            content = re.sub(rb"(</f>)<v>[^<]*</v>", rb"\1", content)
        new.writestr(name, content)

def convert(source, kind, target):
    subprocess.run([office, f"-env:UserInstallation=file://{directory}/profile", "--headless", "--convert-to", kind,
                    "--outdir", target, source], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

convert(bare, "xlsx", os.path.join(directory, "calculated"))
convert(path, "pdf", os.path.join(directory, "printed"))
formulas, stored = load_workbook(path), load_workbook(path, data_only=True)
calculated = load_workbook(os.path.join(directory, "calculated", "bare.xlsx"), data_only=True)
count, differences = 0, []
for sheet in formulas.worksheets:
    for row in sheet.iter_rows():
        for cell in row:
            if cell.data_type != "f":
                continue
            count += 1
            here, there = stored[sheet.title][cell.coordinate].value, calculated[sheet.title][cell.coordinate].value
            same = abs(here - there) < 1e-9 if isinstance(here, (int, float)) and isinstance(there, (int, float)) \
                else here == there
            if not same:
                differences.append(f"{sheet.title}!{cell.coordinate} {cell.value}: {here} is not {there}")
with open(os.path.join(directory, "printed", os.path.basename(path)[:-4] + "pdf"), "rb") as pdf:
    pages = len(re.findall(rb"/Type\s*/Page[^s]", pdf.read()))
json.dump({"formulas": count, "differences": differences, "pages": pages}, sys.stdout)
