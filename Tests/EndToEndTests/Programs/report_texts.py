"""Prints the content of files and folders as a JSON object by name, with each part of a workbook.

usage: report_texts.py PATH...
"""
import glob, json, os, sys, zipfile

texts = {}
for path in sys.argv[1:]:
    for file in glob.glob(path + "/*") if os.path.isdir(path) else [path]:
        with open(file, "rb") as content:
            texts[os.path.basename(file)] = content.read().decode(errors="replace")
        if file.endswith(".xlsx"):
            with zipfile.ZipFile(file) as book:
                for name in book.namelist():
                    texts[name] = book.read(name).decode(errors="replace")
print(json.dumps(texts))
