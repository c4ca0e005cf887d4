"""Compares every number of the first sheet with the CSV files; prints the differences as JSON.

usage: first_sheet.py REPORT_BEFORE REPORT REPORT_OF_THE_DAY_BEFORE
"""
import csv, glob, json, sys
from collections import Counter, defaultdict
from decimal import Decimal
from openpyxl import load_workbook

before, folder, day = sys.argv[1:]
def rows(where, name):
    with open(f"{where}/{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
number = lambda text: Decimal(text) if text else Decimal(0)
DECIDED = ("accepted", "closed")
orders, findings, changes = rows(folder, "orders"), rows(folder, "findings"), rows(folder, "changes")
work = [f for f in findings if f["status"] not in DECIDED]
if sorted(f["status"] for f in findings if f["status"] in DECIDED) != ["accepted", "closed"]:
    raise SystemExit("the decisions are not in the report")
with open(f"{folder}/summary.json", encoding="utf-8") as file:
    summary = json.load(file)
book = load_workbook(glob.glob(f"{folder}/night-audit-*.xlsx")[0], data_only=True)
sheet = book["Summary"]
seen, wrong = set(), []

def compare(cell, expected, what):
    seen.add(cell.coordinate)
    value = Decimal(str(cell.value if cell.value is not None else 0))
    if abs(value - Decimal(expected)) > Decimal("0.0000001"):
        wrong.append(f"{cell.coordinate} {what}: {cell.value} is not {expected}")

# The sheet Findings has the name of each kind beside the stable id, findings.csv the code.
listed = book["Findings"]
place = {cell.value: cell.column for cell in listed[1]}
kind_of = {f["finding_id"]: f["kind"] for f in findings}
codes = {"All kinds": "all_kinds", "of these": "of_these"}
for line in range(2, listed.max_row + 1):
    kind = kind_of.get(listed.cell(line, place["Finding ID"]).value)
    if kind and codes.setdefault(listed.cell(line, place["Kind"]).value, kind) != kind:
        wrong.append(f"two kinds have the name {listed.cell(line, place['Kind']).value}")

def words(text):
    return codes.get(text, text.replace(" ", "_").lower())

def find(text, start=1):
    for line in range(start, sheet.max_row + 1):
        if sheet.cell(line, 1).value and str(sheet.cell(line, 1).value).startswith(text):
            return line
    raise SystemExit(f"no line {text}")

def line_after(start):
    """The lines below a heading, up to the first empty one."""
    line = start
    while sheet.cell(line, 1).value is not None:
        yield line
        line += 1

OUT = ("sandbox", "bad_row")
# The large figures.
line = find("Orders read")
tiles = {sheet.cell(line, c).value: sheet.cell(line + 1, c) for c in range(1, 12) if sheet.cell(line, c).value}
new = [c for c in changes if c["change"] in ("new", "reopened")]
closed = [c for c in changes if c["change"] == "closed"]
for title, expected in {
        "Orders read": len(orders), "Open findings": len(findings),
        "Critical": sum(f["severity"] == "critical" for f in findings), "New": len(new), "Closed": len(closed),
        "Amount unknown": summary["findings"]["at_stake_unknown"]}.items():
    compare(tiles[title], expected, title)
compare(sheet.cell(find("Orders read", line + 1), 2), len(orders), "orders read")

# Orders and money by disposition.
line = find("Orders and money by outcome") + 1
# The columns are those of users.csv, in its order.
heads = dict(enumerate(list(rows(folder, "users")[0])[4:13], 3))
codes.update({sheet.cell(line, c).value: code for c, code in heads.items()})
counts, money = Counter(o["disposition"] for o in orders), defaultdict(Decimal)
for order in orders:
    money[order["currency"], order["disposition"]] += number(order["amount"])
for row in line_after(line + 1):
    name = sheet.cell(row, 1).value
    if name == "Sandbox (excluded)":
        compare(sheet.cell(row, 2), counts["sandbox"], name)
    elif name == "Invalid source rows (excluded)":
        compare(sheet.cell(row, 2), counts["bad_row"], name)
    elif name == "Number of orders":
        compare(sheet.cell(row, 2), sum(n for d, n in counts.items() if d not in OUT), name)
        for c, disposition in heads.items():
            compare(sheet.cell(row, c), counts[disposition], f"{name} {disposition}")
    elif name.startswith("Amount at risk in open findings, "):
        code = name.split(", ")[1]
        compare(sheet.cell(row, 2), sum(number(f["at_stake"]) for f in findings if f["currency"] == code), name)
    else:
        compare(sheet.cell(row, 2), sum(m for (k, d), m in money.items() if k == name and d not in OUT), name)
        for c, disposition in heads.items():
            compare(sheet.cell(row, c), money[name, disposition], f"{name} {disposition}")

# Sales, refunds by Apple, and the liability to customers.
line = find("Sales, proceeds") + 2
heads = {c: words(sheet.cell(line, c).value) for c in range(7, 12) if sheet.cell(line, c).value}
refunds = rows(folder, "refunds")
for row in line_after(line + 1):
    code = sheet.cell(row, 1).value
    compare(sheet.cell(row, 2), sum(m for (k, d), m in money.items() if k == code and d not in OUT), f"ordered {code}")
    compare(sheet.cell(row, 3), sum(number(r["amount"]) for r in refunds if r["currency"] == code), f"refunded {code}")
    parts = [sum(number(f["at_stake"]) for f in work if f["kind"] == kind and f["currency"] == code)
             for kind in heads.values()]
    compare(sheet.cell(row, 6), sum(parts), f"owed {code}")
    for c, value in zip(heads, parts):
        compare(sheet.cell(row, c), value, f"owed {heads[c]} {code}")
# Refund rates by product and by user.
line = find("Refund rates") + 2
for row in line_after(line):
    name, code = sheet.cell(row, 1).value, sheet.cell(row, 2).value
    if code == "Currency":
        column = {"Product": "product_id", "User": "user_id"}[name]
        continue
    mine = [o for o in orders if o[column] == name and o["currency"] == code and o["disposition"] not in OUT]
    back = [o for o in mine if o["disposition"] in ("refunded", "refunded_still_delivered")]
    compare(sheet.cell(row, 3), sum(number(o["amount"]) for o in mine), f"ordered {name}")
    compare(sheet.cell(row, 4), sum(number(o["amount"]) for o in back), f"refunded {name}")

# From night to night.
def stake(lines):
    sums = defaultdict(Decimal)
    for item in lines:
        if item["at_stake"]:
            sums[item["currency"]] += number(item["at_stake"])
    return sums
opening, closing, came, went = stake(rows(before, "findings")), stake(findings), stake(new), stake(closed)
line = find("Exposure roll-forward since") + 3
for row in line_after(line):
    name = sheet.cell(row, 1).value
    if name == "Findings":
        expected = [len(rows(before, "findings")), len(new), len(closed), 0, len(findings)]
    elif name == "Amount unknown":
        compare(sheet.cell(row, 6), summary["findings"]["at_stake_unknown"], name)
        continue
    else:
        expected = [opening[name], came[name], went[name], closing[name] - opening[name] - came[name] + went[name],
                    closing[name]]
    for c, value in enumerate(expected, 2):
        compare(sheet.cell(row, c), value, f"{name} {c}")
if set(stake(findings)) - {sheet.cell(r, 1).value for r in line_after(line)}:
    wrong.append("a currency is missing")

# The first findings, and the owners of findings.
line = find("What to do first") + 2
urgent = list(line_after(line))
if len(urgent) != min(5, len(work)):
    wrong.append(f"{len(urgent)} findings come first")
place_of_finding = {}
for r in range(2, listed.max_row + 1):
    place_of_finding.setdefault((listed.cell(r, place["Order ID"]).value or "", listed.cell(r, place["Kind"]).value), r)
for row in urgent:
    kind = sheet.cell(row, 1).value
    own = place_of_finding.get((sheet.cell(row, 3).value, kind)) or place_of_finding.get(("", kind))
    if own is None:
        wrong.append(f"the finding in row {row} is not on the sheet Findings")
        continue
    if sheet.cell(row, 3).value == listed.cell(own, place["Order ID"]).value:
        if listed.cell(own, place["Status"]).value in DECIDED:
            wrong.append(f"row {row} is a decided finding")
    for c, column in ((2, "Severity"), (5, "Currency")):
        if (sheet.cell(row, c).value or "") != (listed.cell(own, place[column]).value or ""):
            wrong.append(f"{sheet.cell(row, c).coordinate} is not {column} of the sheet Findings")
    if isinstance(sheet.cell(row, 6).value, (int, float)):
        compare(sheet.cell(row, 6), listed.cell(own, place["At stake"]).value, "first findings")
line = find("Open findings by owner") + 2
for row in line_after(line):
    name = sheet.cell(row, 1).value
    mine = [f for f in work if f["owner"] == ("" if name == "No owner" else name)]
    overdue = [f for f in mine if f["due"] and f["due"] < "2026-11-20"]
    for c, expected in enumerate([len(mine), sum(f["severity"] == "critical" for f in mine), len(overdue)], 2):
        compare(sheet.cell(row, c), expected, f"{name} {c}")

# Kinds, and ages.
line = find("Open findings by kind") + 1
currencies = {c: sheet.cell(line, c).value for c in range(5, 12) if sheet.cell(line, c).value}
unknown = 0
for row in line_after(line + 1):
    kind = words(sheet.cell(row, 1).value)
    if kind == "of_these":
        mine = [f for f in findings if f["severity"] == sheet.cell(row, 2).value]
    else:
        mine = [f for f in findings if f["kind"] == kind or kind == "all_kinds"]
    compare(sheet.cell(row, 3), len(mine), kind)
    if kind == "all_kinds":
        compare(sheet.cell(row, 4), unknown, kind)
    elif kind != "of_these":
        unknown += sheet.cell(row, 4).value
    if sheet.cell(row, 4).value > sum(not f["amount"] and not f["at_stake"] for f in mine):
        wrong.append(f"{kind}: more unknown amounts than findings without an amount")
    seen.add(sheet.cell(row, 4).coordinate)
    for c, code in currencies.items():
        compare(sheet.cell(row, c), stake(mine)[code], f"{kind} {code}")
if unknown != summary["findings"]["at_stake_unknown"]:
    wrong.append("unknown amounts by kind")
ranges = {"0-1 days": (0, 1), "2-7 days": (2, 7), "8-30 days": (8, 30), "over 30 days": (31, 10 ** 9)}
line = find("Ageing by transaction date") + 1
currencies = {c: sheet.cell(line, c).value for c in range(5, 12) if sheet.cell(line, c).value}
unknown = 0
for row in line_after(line + 1):
    name = sheet.cell(row, 1).value
    def within(column):
        if name == "no date":
            return [f for f in findings if f[column] == ""]
        low, high = ranges[name]
        return [f for f in findings if f[column] != "" and low <= int(f[column]) <= high]
    compare(sheet.cell(row, 2), len(within("days_since")), name)
    unknown += sheet.cell(row, 3).value
    seen.add(sheet.cell(row, 3).coordinate)
    compare(sheet.cell(row, 4), len(within("age_days")), f"{name} known")
    for c, code in currencies.items():
        compare(sheet.cell(row, c), stake(within("days_since"))[code], f"{name} {code}")
if unknown != summary["findings"]["at_stake_unknown"]:
    wrong.append("unknown amounts by age")

# Adjustments: the reported figures of the previous night's day, and its current figures.
def of_day(where):
    sums = defaultdict(lambda: [0, Decimal(0)])
    for order in rows(where, "orders"):
        if order["disposition"] not in OUT:
            sums[order["disposition"], order["currency"]][0] += 1
            sums[order["disposition"], order["currency"]][1] += number(order["amount"])
    return sums
then, now = of_day(before), of_day(day)
line = find("Adjustments to earlier days") + 3
adjustments, net = 0, defaultdict(Decimal)
for key in set(then) | set(now):
    net[key[1]] += now[key][1] - then[key][1]
for row in line_after(line):
    code = sheet.cell(row, 3).value
    if sheet.cell(row, 1).value.startswith("Net"):
        compare(sheet.cell(row, 9), net[code], "net")
        continue
    if sheet.cell(row, 2).value != "2026-11-18":
        wrong.append(f"an adjustment of {sheet.cell(row, 2).value}")
    adjustments += 1
    key = words(sheet.cell(row, 1).value), code
    for c, value in enumerate([then[key][0], now[key][0], now[key][0] - then[key][0],
                               then[key][1], now[key][1], now[key][1] - then[key][1]], 4):
        compare(sheet.cell(row, c), value, f"adjustment {key} {c}")

# Controls, and the sheets' lengths.
controls = 0
for row in range(find("Controls"), sheet.max_row + 1):
    if sheet.cell(row, 5).value in ("balanced", "NOT BALANCED"):
        controls += 1
        left, right, difference = (sheet.cell(row, c) for c in (2, 3, 4))
        compare(right, str(left.value), sheet.cell(row, 1).value)
        compare(difference, 0, sheet.cell(row, 1).value)
        seen.add(left.coordinate)
line = find("Sheets of this workbook") + 2
for row in line_after(line):
    name = sheet.cell(row, 1).value
    if name != "Days":
        compare(sheet.cell(row, 2), len(rows(folder, name.lower().replace(" ", "-"))), f"rows of {name}")
    seen.add(sheet.cell(row, 2).coordinate)
# The data of the charts.
row = find("Night", find("Amount at risk at the end of each night"))
codes = {c: sheet.cell(row, c).value for c in range(2, 12) if sheet.cell(row, c).value}
for where, row in ((before, row + 1), (folder, row + 2)):
    for c, code in codes.items():
        compare(sheet.cell(row, c), stake(rows(where, "findings"))[code], f"chart {code}")

unread = [cell.coordinate for line in sheet.iter_rows() for cell in line
          if isinstance(cell.value, (int, float)) and not isinstance(cell.value, bool) and cell.coordinate not in seen]
json.dump({"wrong": wrong, "unread": unread, "compared": len(seen), "controls": controls,
           "adjustments": adjustments}, sys.stdout)
