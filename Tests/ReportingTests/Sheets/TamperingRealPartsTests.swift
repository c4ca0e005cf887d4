import Foundation
import Reconciliation
import Testing

@testable import Reporting

@Suite(.enabled(if: LibreOffice.isInstalled))
struct TamperingRealPartsTests {
  /// Every kind of cell: non-ASCII IDs, surrogate pairs, numbers as text, dates that Excel does not support.
  private func sample() throws -> SampleReport {
    var report = try SampleReport()
    let users: [Identifier] = ["u1", "7528972536751605695", "Zoë", "משתמש 👩‍👩‍👧\u{1}", "u\r\n2", ""]
    for number in 0..<12 {
      report.add(
        try OrderFixture(
          userId: users[number % users.count], amount: money(Int64(100 + number), number % 2 == 0 ? "USD" : "JPY"),
          isPaid: number % 4 != 1, isDelivered: number % 3 != 0
        ).judgement(Identifier("o\(number)")))
    }
    return report
  }

  @Test func sortingRowsAndFillingInEntriesChangeNoControlAChangedAmountFailsTheControlOfItsColumn() throws {
    var report = try sample()
    report.options.formats = [.xlsx]
    try withTemporaryDirectory { directory in
      try report.write(to: directory)
      let output = try run(
        try ReadBook.python(), ["-", "\(directory)/night-audit-2026-11-19.xlsx", try LibreOffice.path, directory],
        input: TamperingRealPartsTests.program)
      let found = try JSONDecoder().decode([String: Found].self, from: output)
      // The changed columns: ordered amounts and those by disposition in three tables, one of orders, one of findings.
      #expect(found.count(where: { !$0.key.hasPrefix("harmless") }) == 3 * (Disposition.inMoneyTotals.count + 1) + 2)
      for (name, result) in found.sorted(by: { $0.key < $1.key }) {
        if name.hasPrefix("harmless") {
          #expect(result.bad == [], "\(name)")
          #expect(result.banner.hasPrefix("BALANCED: all "))
          #expect(result.controls >= 12)
        } else {
          #expect(result.banner.hasPrefix("NOT BALANCED: "), "\(name): \(result.banner)")
          let (sheet, column) = (name.prefix { $0 != "," }.lowercased(), name.drop { $0 != "," }.dropFirst(2))
          let named = column == "Amount" ? "Ordered" : column
          #expect(
            result.bad.contains {
              $0.replacing(",", with: "").hasPrefix(named) || $0.hasSuffix("\(sheet) = their outcomes")
            }, "\(name): \(result.bad)")
        }
      }
    }
  }

  private struct Found: Decodable {
    let banner: String
    let bad: [String]
    let controls: Int
  }

  private static let program = #"""
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
    """#
}
