"""Writes a workbook of findings with the longest texts.

usage: huge_workbook.py FILE ROWS
"""
import sys, zipfile
path, count = sys.argv[1], int(sys.argv[2])
main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
package = "http://schemas.openxmlformats.org/package/2006/relationships"
def relationships(*targets):
    return f'<Relationships xmlns="{package}">' + "".join(
        f'<Relationship Id="r{i}" Type="{office}/{kind}" Target="{target}"/>'
        for i, (kind, target) in enumerate(targets)) + "</Relationships>"
texts = ["Finding id", "Status", "Owner", "Remark", "Due", "x" * 32767]
row = '<row>' + '<c t="inlineStr"><is><t>%s</t></is></c>' + '<c t="s"><v>5</v></c>' * 4 + '</row>'
with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as book:
    book.writestr("_rels/.rels", relationships(("officeDocument", "xl/workbook.xml")))
    book.writestr("xl/_rels/workbook.xml.rels", relationships(
        ("worksheet", "sheet.xml"), ("sharedStrings", "texts.xml")))
    book.writestr("xl/workbook.xml", f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        '<sheet name="Findings" sheetId="1" r:id="r0"/></sheets></workbook>')
    book.writestr("xl/texts.xml", f'<sst xmlns="{main}">'
        + "".join(f"<si><t>{text}</t></si>" for text in texts) + "</sst>")
    with book.open("xl/sheet.xml", "w") as sheet:
        sheet.write(f'<worksheet xmlns="{main}"><sheetData><row>'.encode())
        sheet.write("".join(f'<c t="s"><v>{i}</v></c>' for i in range(5)).encode() + b"</row>")
        for start in range(0, count, 10000):
            sheet.write("".join(row % f"{i:016x}" for i in range(start, min(count, start + 10000))).encode())
        sheet.write(b"</sheetData></worksheet>")
