import Foundation
import Reconciliation
import Testing

@testable import Reporting

@Suite("A cell that somebody changes turns its control and the banner red", .enabled(if: LibreOffice.isInstalled))
struct TamperingRealPartsTests {
  /// Every kind of cell: non-ASCII IDs, surrogate pairs, numbers as text, dates that Excel does not support.
  private func sample() throws -> SampleReport {
    var report = try SampleReport()
    let users: [Identifier] = ["u1", "7528972536751605695", "Zoë", "משתמש 👩‍👩‍👧\u{1}", "u\r\n2", ""]
    for number in 0..<12 {
      report.add(
        try OrderStory(
          userId: users[number % users.count], amount: money(Int64(100 + number), number % 2 == 0 ? "USD" : "JPY"),
          isPaid: number % 4 != 1, isDelivered: number % 3 != 0
        ).judgement(Identifier("o\(number)")))
    }
    return report
  }

  @Test("Untouched, sorted or filled in it is balanced; each tampering is found by LibreOffice's own calculation")
  func tampering() throws {
    var report = try sample()
    report.options.formats = [.xlsx]
    try withTemporaryDirectory { directory in
      try report.write(to: directory)
      let output = try run(
        try ReadBook.python(), ["-", "\(directory)/night-audit-2026-11-19.xlsx", try LibreOffice.path, directory],
        input: TamperingRealPartsTests.program)
      let found = try JSONDecoder().decode([String: Found].self, from: output)
      let tables: [ReportTable] = [.users, .amounts, .orders, .findings]
      let columns = tables.reduce(0) { $0 + $1.columns.count(where: { !$0.type.isForPeople }) }
      #expect(found.count(where: { $0.key.hasSuffix(": a cell") }) == columns)
      #expect(found.count(where: { $0.key.hasSuffix(": an empty cell") }) > 5)
      for (name, result) in found.sorted(by: { $0.key < $1.key }) {
        if name.hasPrefix("harmless") {
          #expect(result.bad == [], "\(name)")
          #expect(result.banner.hasPrefix("BALANCED: all "))
          #expect(result.controls >= 12)
        } else {
          #expect(!result.bad.isEmpty, "\(name) is not noticed")
          #expect(result.banner.hasPrefix("NOT BALANCED: "), "\(name): \(result.banner)")
          // `Orders, Amount: a cell` must name the column.
          let parts = name.split(separator: ": ")[0].split(separator: ", ", maxSplits: 1)
          #expect(result.changed[String(parts[0])]?.contains(" \(parts[1]).") == true, "\(name): \(result.changed)")
        }
      }
    }
  }

  private struct Found: Decodable {
    let banner: String
    let bad: [String]
    let controls: Int
    let changed: [String: String]
  }

  private static let program = #"""
    import datetime, json, os, re, subprocess, sys
    from openpyxl import load_workbook

    path, office, directory = sys.argv[1:]
    people = ("Status", "Owner", "Due", "Remark")
    def other(value):
        if isinstance(value, datetime.datetime):
            return value + datetime.timedelta(seconds=1)
        if isinstance(value, (int, float)):
            return value + 1
        # The last character is another, or the first two change their places.
        return value[1::-1] + value[2:] if len(value) > 1 and value[0] != value[1] else value[:-1] + "#"
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
    for name in ("Users", "Amounts", "Orders", "Findings"):
        sheet = original[name]
        end = int(re.search(r"[0-9]+$", next(iter(sheet.tables.values())).ref)[0])
        edits[f"harmless: {name} from below"] = lambda book, name=name, end=end: sort(book[name], end)
        for head in sheet[1]:
            if name == "Findings" and head.value in people:
                continue
            key, column = f"{name}, {head.value}", head.column
            cells = [sheet.cell(row, column) for row in range(2, end + 1)]
            full = next((c for c in cells if c.value is not None), None)
            empty = next((c for c in cells if c.value is None), None)
            # Where a column is empty, a cell that is filled is the one that is changed.
            edits[f"{key}: a cell"] = change(name, full.row, column, other(full.value)) if full \
                else change(name, 2, column, "x")
            if full is not None and empty is not None:
                edits[f"{key}: an empty cell"] = change(name, empty.row, column, 0)
            if name == "Users":
                edits[f"{key}: its head"] = change(name, 1, column, head.value + "s")
                edits[f"{key}: an emptied cell"] = change(name, full.row, column, None)
            if name == "Orders" and full is not None and isinstance(full.value, str):
                longest = max((c for c in cells if c.value), key=lambda c: len(c.value))
                edits[f"{key}: a longer cell"] = change(name, longest.row, column, longest.value + "x")
            total = sheet.cell(end + 2, column)
            if name == "Amounts" and total.value is not None:
                edits[f"{key}: a sum"] = change(name, total.row, column, 7)
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
                         "controls": len(lines),
                         "changed": {r[0].value.split(":")[0]: str(r[5].value) for r in lines
                                     if "as written" in r[0].value and r[4].value != "balanced"}}
    json.dump(results, sys.stdout)
    """#
}
