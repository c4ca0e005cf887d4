import Foundation
import Spreadsheet
import TestSupport
import Testing

/// Workbooks from various programs, and hostile or damaged files.
@Suite struct WorkbookReaderTests {
  private static let columns = ["Finding id", "Status", "Owner", "Remark"]

  private func read(_ path: String, sheet: String = "Findings") throws -> [ReadRow] {
    var rows: [ReadRow] = []
    let reader = try WorkbookReader(path: path)
    let found = try reader.columns(of: sheet, among: Self.columns, key: "Finding id")
    try reader.rows(of: sheet, columns: Self.columns, key: "Finding id") { row in
      #expect(found.isSuperset(of: row.cells.keys))
      rows.append(row)
    }
    return rows
  }

  /// Runs a Python program with helpers for hand-made archives, and passes its `book.xlsx` to the body.
  private func withBook<Result>(_ program: String, _ body: (String) throws -> Result) throws -> Result {
    try withTemporaryDirectory { directory throws in
      let path = "\(directory)/book.xlsx"
      try Command.run([ReadWorkbook.python(), "-", path], input: Self.prelude + program)
      return try body(path)
    }
  }

  private static let prelude = #"""
    import os, random, struct, sys, zipfile
    path = sys.argv[1]
    ns = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    rel = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006/relationships"

    def rels(*targets):
        return f'<Relationships xmlns="{package}">' + "".join(
            f'<Relationship Id="{i}" Type="{rel}/{t}" Target="{x}"/>' for i, t, x in targets) + "</Relationships>"

    def parts(sheet, shared=None, book=None):
        found = {"_rels/.rels": rels(("r1", "officeDocument", "xl/workbook.xml")),
                 "xl/workbook.xml": book or f'<workbook {ns} xmlns:r="{rel}"><sheets>'
                     '<sheet name="Findings" sheetId="1" r:id="s1"/></sheets></workbook>',
                 "xl/_rels/workbook.xml.rels": rels(("s1", "worksheet", "worksheets/sheet1.xml"),
                     *([("s2", "sharedStrings", "/xl/strings.xml")] if shared is not None else [])),
                 "xl/worksheets/sheet1.xml": sheet}
        if shared is not None:
            found["xl/strings.xml"] = shared
        return found

    def save(found, mode=zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(path, "w", mode) as archive:
            for name, content in found.items():
                archive.writestr(name, content)

    def inline(*rows):
        return f"<worksheet {ns}><sheetData>" + "".join(
            "<row>" + "".join(f'<c t="inlineStr"><is><t>{x}</t></is></c>' for x in row) + "</row>"
            for row in rows) + "</sheetData></worksheet>"

    """#

  @Test func aPipeInPlaceOfAWorkbookIsRejectedWithoutWaiting() throws {
    try withTemporaryDirectory { directory in
      let path = "\(directory)/book.xlsx"
      #expect(mkfifo(path, 0o600) == 0)
      let error = try #require(#expect(throws: (any Error).self) { _ = try WorkbookReader(path: path) })
      #expect("\(error)".contains("is a pipe"))
    }
  }

  /// Writes a sheet of these rows and passes its `book.xlsx` to the body.
  private func withFindings(_ rows: [[String]], _ body: (_ path: String, _ directory: String) throws -> Void) throws {
    try withTemporaryDirectory { directory throws in
      let workbook = try Workbook(in: directory)
      let sheet = try workbook.addSheet(named: "Findings", storage: .streamed)
      for (row, cells) in rows.enumerated() {
        for (column, text) in cells.enumerated() { try sheet.writeText(text, row: row, column: column) }
      }
      try workbook.close()
      try body("\(directory)/book.xlsx", directory)
    }
  }

  @Test func ourOwnWorkbooksAreRead() throws {
    let remark = "a_x0041_b\u{1}\nשלום 😀"
    try withFindings([["Finding id", "Remark"], ["0123", remark]]) { path, _ throws in
      #expect(try read(path) == [ReadRow(number: 2, cells: ["Finding id": .text("0123"), "Remark": .text(remark)])])
      #expect(try WorkbookReader(path: path).created == 1_763_510_400)
    }
  }

  @Test func openpyxlsWorkbooksAreRead() throws {
    let program = #"""
      import openpyxl, datetime
      book = openpyxl.Workbook()
      book.active.title = "Notes"
      sheet = book.create_sheet("Findings")
      sheet.append(["a note above", None])
      sheet.append(["Mine", "REMARK", "owner", "Finding_id", " Status "])
      sheet.append([1, "r", "o", "id1", "open"])
      sheet.append([])
      sheet.append([2, "=1+1", 7, "id2", True])
      sheet.append([3, datetime.datetime(2026, 11, 19), "#N/A", "id3", None])
      sheet.sheet_state = "hidden"
      book.save(path)
      """#
    try withBook(program) { path throws in
      #expect(try WorkbookReader(path: path).sheetNames == ["Notes", "Findings"])
      let rows = try read(path)
      #expect(rows.map(\.number) == [3, 5, 6])
      #expect(
        rows.prefix(2).map(\.cells) == [
          ["Finding id": .text("id1"), "Status": .text("open"), "Owner": .text("o"), "Remark": .text("r")],
          [
            "Finding id": .text("id2"), "Status": .boolean(true), "Owner": .number("7"),
            "Remark": .formula(result: nil),
          ],
        ])
      #expect(rows[2].cells["Owner"] == .error("#N/A"))
      guard case .number = rows[2].cells["Remark"] else {
        Issue.record("a date is not read as a number: \(rows[2])")
        return
      }
    }
  }

  /// Excel's form of a sheet: shared and rich strings, phonetic hints, namespace prefixes, cells without a reference.
  @Test func excelsWayOfWritingIsRead() throws {
    let program = #"""
      shared = (f'<x:sst xmlns:x="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        '<x:si><x:t>Finding id</x:t></x:si><x:si><x:t>Remark</x:t></x:si><x:si><x:t>id1</x:t></x:si>'
        '<x:si><x:r><x:rPr><x:b/></x:rPr><x:t xml:space="preserve">two </x:t></x:r><x:r><x:t>runs_x000D_</x:t></x:r>'
        '<x:rPh sb="0" eb="1"><x:t>never</x:t></x:rPh></x:si></x:sst>')
      sheet = (f'<x:worksheet xmlns:x="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><x:sheetData>'
        '<x:row r="1"><x:c r="AB1" t="s"><x:v>0</x:v></x:c><x:c t="s"><x:v>1</x:v></x:c></x:row>'
        '<x:row r="7" hidden="1"><x:c r="AB7" t="s"><x:v>2</x:v></x:c><x:c r="AC7" t="s"><x:v>3</x:v></x:c></x:row>'
        '<x:row r="9"><x:c r="AB9" t="str"><x:f>A1</x:f><x:v>x</x:v></x:c></x:row></x:sheetData></x:worksheet>')
      save(parts(sheet, shared))
      """#
    try withBook(program) { path throws in
      #expect(
        try read(path) == [
          ReadRow(number: 7, cells: ["Finding id": .text("id1"), "Remark": .text("two runs\r")]),
          ReadRow(number: 9, cells: ["Finding id": .formula(result: "x")]),
        ])
    }
  }

  @Test func workbooksSavedByLibreOfficeAreRead() throws {
    guard let office = ["/usr/bin/soffice", "/usr/local/bin/soffice"].first(where: FileManager.default.fileExists)
    else { return }
    let rows = [["Finding id", "Remark"], ["00123", "=cmd()"], ["00124", "two\nlines 😀"]]
    try withFindings(rows) { path, directory throws in
      try Command.run([
        office, "--headless", "-env:UserInstallation=file://\(directory)/profile", "--convert-to", "xlsx", "--outdir",
        "\(directory)/saved", path,
      ])
      let saved = "\(directory)/saved/book.xlsx"
      #expect(
        try read(saved) == [
          ReadRow(number: 2, cells: ["Finding id": .text("00123"), "Remark": .text("=cmd()")]),
          ReadRow(number: 3, cells: ["Finding id": .text("00124"), "Remark": .text("two\nlines 😀")]),
        ])
      #expect(try WorkbookReader(path: saved).created == 1_763_510_400)
    }
  }

  struct Hostile: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var program: String
    /// A part of the message.
    var says: String

    init(_ name: String, _ program: String, says: String) {
      (testDescription, self.program, self.says) = (name, program, says)
    }
  }

  @Test(arguments: [
    Hostile("no archive", "open(path, 'w').write('id,status')", says: "not an .xlsx"),
    Hostile("empty", "open(path, 'w')", says: "not an .xlsx"),
    Hostile("old or encrypted", "open(path, 'wb').write(bytes.fromhex('D0CF11E0A1B11AE1'))", says: "password"),
    Hostile("another archive", "save({'word.txt': 'x'})", says: "something else"),
    Hostile("no sheets", "save(parts('', book='<workbook/>'))", says: "another kind"),
    Hostile("cut off", "save(parts(inline(['Finding id']))); os.truncate(path, 400)", says: "cut off"),
    Hostile(
      "flipped bit",
      """
      save(parts(inline(['Finding id'], ['id1'])), zipfile.ZIP_STORED)
      content = bytearray(open(path, 'rb').read())
      content[content.index(b'id1')] ^= 1
      open(path, 'wb').write(content)
      """, says: "check sum"),
    Hostile("no XML", "save(parts('<worksheet><row></worksheet>'))", says: "line 1"),
    Hostile(
      "entities",
      """
      bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
      save(parts(bomb + inline(['Finding id'], ['&b;'])))
      """, says: "document type"),
    Hostile(
      "an external entity",
      """
      save(parts('<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + inline(['Finding id'], ['&a;'])))
      """, says: "document type"),
    Hostile(
      "a decompression bomb", "save(parts('', book=f'<workbook {ns}>' + ' ' * (17 << 20) + '</workbook>'))",
      says: "more than 16 MB"),
    Hostile("nested", "save(parts('<a>' * 100000))", says: "nested"),
    Hostile(
      "many names", "save(parts('<a>' + ''.join(f'<b{i}/>' for i in range(9999)) + '</a>'))", says: "kinds of elements"),
    Hostile("one endless element", "save(parts('<a b=\"' + 'x' * (9 << 20)))", says: "1 MB"),
    Hostile(
      "a text longer than Excel's limit", "save(parts(inline(['Finding id'], ['x' * 400000])))",
      says: "longer than Excel"),
    Hostile(
      "a missing shared text",
      "save(parts(f'<worksheet {ns}><row><c t=\"s\"><v>5</v></c></row></worksheet>', f'<sst {ns}/>'))",
      says: "text that is not there"),
    Hostile(
      "a cell beyond the sheet", "save(parts(f'<worksheet {ns}><row r=\"1\"><c r=\"ZZZZ1\"/></row></worksheet>'))",
      says: "place ZZZZ1"),
    Hostile(
      "a row beyond the sheet", "save(parts(f'<worksheet {ns}><row r=\"99999999999999999999\"/></worksheet>'))",
      says: "the number 9999"),
    Hostile("no header", "save(parts(inline(['Status'], ['open'])))", says: "no column"),
    Hostile(
      "two columns with one name", "save(parts(inline(['Finding id', 'Status', 'STATUS'])))", says: "two columns"),
    Hostile(
      "no such sheet", "import openpyxl; openpyxl.Workbook().save(path)",
      says: "no sheet Findings; its sheets are: Sheet"),
  ])
  func aFileThatIsNoWorkbookIsRejected(_ hostile: Hostile) throws {
    try withBook(hostile.program) { path throws in
      let error = #expect(throws: WorkbookReadError.self) { try read(path) }
      #expect(error?.description.contains(hostile.says) == true, "\(String(describing: error))")
    }
  }

  @Test func aMissingWorkbookIsReported() throws {
    let error = #expect(throws: WorkbookReadError.self) { try read("/nonexistent/book.xlsx") }
    #expect(error?.description == "cannot open /nonexistent/book.xlsx: does not exist")
  }

  /// Reading any damaged file ends with rows or with a `WorkbookReadError`.
  @Test func damagedFilesNeverCrash() throws {
    let program = "save(parts(inline(['Finding id', 'Status'], *[[f'id{i}', 'open'] for i in range(200)])))"
    try withBook(program) { path throws in
      let whole = try Data(contentsOf: URL(filePath: path))
      var random = SeededGenerator(seed: 1)
      var refused = 0
      for _ in 0..<400 {
        var damaged = whole
        for _ in 0..<Int.random(in: 1...6, using: &random) {
          damaged[Int.random(in: 0..<damaged.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
        }
        if Bool.random(using: &random) { damaged = damaged.prefix(Int.random(in: 0..<damaged.count, using: &random)) }
        try damaged.write(to: URL(filePath: path))
        do { _ = try read(path) } catch is WorkbookReadError { refused += 1 }
      }
      #expect(refused > 0)
    }
  }
}
