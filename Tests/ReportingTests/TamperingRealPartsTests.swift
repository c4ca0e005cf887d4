import Foundation
import Reconciliation
import Testing

@testable import Reporting

@Suite("A cell that somebody changes turns its control and the banner red", .enabled(if: LibreOffice.isInstalled))
struct TamperingRealPartsTests {
  private func sample() throws -> SampleReport {
    var report = try SampleReport()
    for number in 0..<8 {
      report.add(
        try OrderStory(
          userId: Identifier("u\(number % 3)"), amount: money(Int64(100 + number), number % 2 == 0 ? "USD" : "JPY"),
          isPaid: number % 4 != 1, isDelivered: number % 3 != 0
        ).judgement(Identifier("o\(number)")))
    }
    return report
  }

  @Test("Untouched it is balanced; each tampering is found by LibreOffice's own calculation")
  func tampering() throws {
    var report = try sample()
    report.options.formats = [.xlsx]
    try withTemporaryDirectory { directory in
      try report.write(to: directory)
      let output = try run(
        try ReadBook.python(), ["-", "\(directory)/night-audit-2026-11-19.xlsx", try LibreOffice.path, directory],
        input: TamperingRealPartsTests.program)
      let found = try JSONDecoder().decode([String: Found].self, from: output)
      #expect(found.count == 11)
      for (name, result) in found {
        if name == "nothing" {
          #expect(result.bad == [], "\(name)")
          #expect(result.banner.hasPrefix("BALANCED: all "))
          #expect(result.controls >= 12)
        } else {
          #expect(!result.bad.isEmpty, "\(name) is not noticed")
          #expect(result.banner.hasPrefix("NOT BALANCED: "), "\(name): \(result.banner)")
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
    import json, os, shutil, subprocess, sys
    from openpyxl import load_workbook

    path, office, directory = sys.argv[1:]
    def head(sheet, title):
        return next(c.column for c in sheet[1] if c.value == title)
    def change(sheet, title, value):
        def apply(book):
            cell = book[sheet].cell(2, head(book[sheet], title))
            cell.value = value(cell.value)
        return apply
    more = lambda value: (value or 0) + 1
    edits = {
        "nothing": lambda book: None,
        "users ordered": change("Users", "Ordered", more), "users settled": change("Users", "Settled", more),
        "users orders": change("Users", "Orders", more), "amounts ordered": change("Amounts", "Ordered", more),
        "amounts void": change("Amounts", "Void", more), "amounts orders": change("Amounts", "Orders", more),
        "orders amount": change("Orders", "Amount", more),
        "orders disposition": change("Orders", "Disposition", lambda value: "void" if value != "void" else "settled"),
        "findings at stake": change("Findings", "At stake", more),
        "findings id": change("Findings", "Finding id", lambda value: None),
    }
    targets = []
    for name, edit in edits.items():
        book = load_workbook(path)
        edit(book)
        target = os.path.join(directory, name.replace(" ", "_") + ".xlsx")
        book.save(target)
        targets.append(target)
    out = os.path.join(directory, "calculated")
    subprocess.run([office, f"-env:UserInstallation=file://{directory}/profile", "--headless", "--convert-to", "xlsx",
                    "--outdir", out] + targets, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    results = {}
    for name in edits:
        sheet = load_workbook(os.path.join(out, name.replace(" ", "_") + ".xlsx"), data_only=True)["Summary"]
        banner = next(r[0].value for r in sheet.iter_rows(max_col=1) if r[0].value and "BALANCED: " in str(r[0].value))
        lines = [r for r in sheet.iter_rows(max_col=5) if r[4].value in ("balanced", "NOT BALANCED")]
        results[name] = {"banner": banner, "bad": [r[0].value for r in lines if r[4].value != "balanced"],
                         "controls": len(lines)}
    json.dump(results, sys.stdout)
    """#
}
