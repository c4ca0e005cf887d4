"""Compares the workbook of two days with the reports of its nights; prints the differences as JSON.

usage: month_workbook.py REPORTS MONTH
"""
import csv, json, sys
from collections import defaultdict
from decimal import Decimal
from openpyxl import load_workbook

reports, month = sys.argv[1:]
def rows(where, name):
    with open(f"{where}/{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
number = lambda text: Decimal(text) if text else Decimal(0)
book = load_workbook(f"{month}/night-audit-2026-11-18_2026-11-19.xlsx", data_only=True)
summary, wrong = book["Summary"], []
def compare(value, expected, what):
    if value is None or abs(Decimal(str(value)) - Decimal(expected)) > Decimal("0.0000001"):
        wrong.append(f"{what}: {value} is not {expected}")
def find(text):
    return next(r for r in range(1, summary.max_row + 1) if str(summary.cell(r, 1).value or "").startswith(text))
if summary["A1"].value != "App Store night audit 2026-11-18 to 2026-11-19":
    wrong.append(summary["A1"].value)
if [summary.cell(find(text), 2).value for text in ("First day", "Last day")] != ["2026-11-18", "2026-11-19"]:
    wrong.append("first or last day of the period")

# The roll-forward of open findings, from before the first day to after the last one.
findings, changes = rows(month, "findings"), rows(month, "changes")
before = rows(f"{reports}/2026-11-17", "findings")
new = [c for c in changes if c["change"] in ("new", "reopened")]
closed = [c for c in changes if c["change"] == "closed"]
def stake(lines, code):
    return sum((number(f["at_stake"]) for f in lines if f["currency"] == code), Decimal(0))
own = [f for f in findings if "2026-11-18" <= f["occurred_at"][:10] <= "2026-11-19"]
row = find("End of the period: exposure roll-forward") + 2
if [summary.cell(row, c).value for c in range(2, 7)] != ["Opening", "+ New", "− Closed", "± Changed", "= Closing"]:
    wrong.append("headers of the roll-forward")
if not own or summary.cell(row, 7).value != "of which: this period's transactions":
    wrong.append("the period's own transactions")
for c, expected in ((2, before), (3, new), (4, closed), (6, findings), (7, own)):
    compare(summary.cell(row + 1, c).value, len(expected), f"findings {c}")
row += 2
while summary.cell(row, 1).value != "Amount unknown":
    code = summary.cell(row, 1).value
    for c, expected in ((2, before), (3, new), (4, closed), (6, findings), (7, own)):
        compare(summary.cell(row, c).value, stake(expected, code), f"{code} {c}")
    row += 1

# The findings about the period's own transactions.
sheet = book["Period findings"]
head = {c.value: c.column - 1 for c in sheet[1]}
listed = {line[head["Finding ID"]] for line in sheet.iter_rows(min_row=2, values_only=True)}
if listed != {f["finding_id"] for f in own}:
    wrong.append("findings of the period")

# The days of the period: their current figures, and those that the night of each day reported.
OUT = ("sandbox", "bad_row")
def by_day(where, day):
    sums = defaultdict(lambda: [0, Decimal(0)])
    for order in rows(where, "orders"):
        if order["created_at"][:10] == day and order["disposition"] not in OUT:
            for key in (order["currency"], ""), (order["currency"], order["disposition"]):
                sums[key][0] += 1
                sums[key][1] += number(order["amount"])
    return sums
sheet = book["Days"]
head = {c.value: c.column - 1 for c in sheet[1]}
lines = [line for line in sheet.iter_rows(min_row=2, values_only=True)
         if line[0] in ("2026-11-18", "2026-11-19") and line[1]]
differing = 0
for line in lines:
    day, code = line[:2]
    for where, prefix in ((month, ""), (f"{reports}/{day}", "reported ")):
        sums = by_day(where, day)
        title = lambda words: (prefix + words).capitalize()
        outcome = lambda words: words if prefix == "" else "Reported: " + words
        compare(line[head[title("orders")]], sums[code, ""][0], f"{day} {code} {prefix}orders")
        compare(line[head[title("ordered")]], sums[code, ""][1], f"{day} {code} {prefix}ordered")
        for disposition, words in (
                ("settled", "Settled"), ("refunded", "Refunded"), ("void", "Not paid, nothing delivered"),
                ("paid_not_delivered", "Paid, not delivered"), ("delivered_not_paid", "Delivered, not paid")):
            compare(line[head[outcome(words)]], sums[code, disposition][1], f"{day} {code} {prefix}{disposition}")
    differing += line[head["Differs"]]
if {(day, code) for day in ("2026-11-18", "2026-11-19") for code, d in by_day(month, day) if not d} \
        != {line[:2] for line in lines}:
    wrong.append("a day is missing")
controls = {r[0]: r[4] for r in summary.iter_rows(max_col=5, values_only=True) if r[4] in ("balanced", "NOT BALANCED")}
if set(controls.values()) != {"balanced"} or "Ordered USD: users = days" not in controls:
    wrong.append("controls")
json.dump({"wrong": wrong, "days": len(lines), "differing": differing, "closed": len(closed)}, sys.stdout)
