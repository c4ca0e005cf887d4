import Foundation
import Glibc
@testable import Spreadsheet
import TestSupport
import Testing

struct LifecycleTests {
  @Test func theFileAppearsWhenTheWorkbookIsClosedAndOtherUsersCannotReadIt() throws {
    try withTemporaryDirectory { directory in
      let workbook = try Workbook(in: directory)
      try workbook.addSheet(named: "Orders", storage: .streamed).writeText("x", row: 0, column: 0)
      _ = try workbook.addSheet(named: "Empty", storage: .streamed)
      // Temporary files have no names.
      #expect(openFiles(in: directory).count == 2)
      #expect(try contents(of: directory).isEmpty)
      try workbook.close()
      #expect(openFiles(in: directory).isEmpty)
      #expect(try contents(of: directory) == ["book.xlsx"])
      let mode = try FileManager.default.attributesOfItem(atPath: "\(directory)/book.xlsx")[.posixPermissions] as? Int
      #expect(mode.map { $0 & 0o007 } == 0)
    }
  }

  @Test func anAbandonedWorkbookLeavesNoFileAndNoOpenDescriptor() throws {
    try withTemporaryDirectory { directory in
      func abandon() throws -> Sheet {
        let workbook = try Workbook(in: directory)
        let sheet = try workbook.addSheet(named: "Orders", storage: .streamed)
        let other = try workbook.addSheet(named: "Findings", storage: .inMemory)
        for row in 0..<5_000 {
          try sheet.writeText("order \(row)", row: row, column: 0)
          try other.writeText("finding \(row)", row: row, column: 0)
        }
        return sheet
      }
      let sheet = try abandon()
      #expect(try contents(of: directory).isEmpty)
      #expect(openFiles(in: directory).isEmpty)
      #expect(code { try sheet.writeText("x", row: 9_999, column: 0) } == .closed)
    }
  }

  @Test func everyOperationOnASheetOfAClosedWorkbookIsRejected() throws {
    try withTemporaryDirectory { directory in
      let workbook = try Workbook(in: directory)
      let sheet = try workbook.addSheet(named: "Orders", storage: .streamed)
      let format = try workbook.addFormat(CellStyle())
      try workbook.close()
      let range = CellRange(rows: 0...1, columns: 0...1)
      let attempts: [() throws -> Void] = [
        { try sheet.writeText("x", row: 0, column: 0, format: format) },
        { try sheet.writeNumber(1, row: 0, column: 0) }, { try sheet.writeBlank(row: 0, column: 0, format: format) },
        { try sheet.writeLink(to: CellReference(row: 0, column: 0), on: "Orders", text: "x", row: 0, column: 0) },
        { try sheet.setColumns(0...1, width: 10) }, { try sheet.setRow(0, height: 10) },
        { try sheet.freezePanes(aboveRow: 1) }, { try sheet.setAutofilter(range) },
        { try sheet.mergeCells(range, text: "x", format: format) }, { try sheet.setTabColour(Colour(0)) },
        { try sheet.hideGridlines() }, { try sheet.activate() }, { try sheet.setUpPrinting(PrintSetup()) },
        { try sheet.protect() }, { try sheet.addChoice(of: ["a"], in: range) },
        { try sheet.addConditionalFormat(.text(equals: "x", format), in: range) },
        {
          try sheet.addTable(
            ExcelTable(name: "Orders", columns: [.init(header: "A")]), firstRow: 0, firstColumn: 0, rowCount: 1)
        },
      ]
      for (index, attempt) in attempts.enumerated() { #expect(code(attempt) == .closed, "attempt \(index)") }
      #expect(sheet.remainingLinks == 0)
    }
  }

  @Test func aFormatOfAnotherWorkbookIsRejected() throws {
    try withSheet { sheet, _ in
      try withSheet { _, other in
        let format = try other.addFormat(CellStyle())
        #expect(code { try sheet.writeText("x", row: 0, column: 0, format: format) } == .wrongWorkbook)
        #expect(code { try sheet.setColumns(0...0, width: 9, format: format) } == .wrongWorkbook)
        #expect(
          code {
            try sheet.addConditionalFormat(.text(equals: "x", format), in: CellRange(rows: 0...0, columns: 0...0))
          }
            == .wrongWorkbook)
      }
    }
  }

  @Test func anExistingFileIsNeverOverwritten() throws {
    try withTemporaryDirectory { directory in
      let path = "\(directory)/book.xlsx"
      let workbook = try Workbook(in: directory)
      _ = try workbook.addSheet(named: "Orders", storage: .streamed)
      try Data("precious".utf8).write(to: URL(filePath: path))
      #expect(failure(of: workbook)?.code == .fileExists)
      #expect(code { _ = try Workbook(in: directory) } == .fileExists)
      #expect(try String(contentsOfFile: path, encoding: .utf8) == "precious")
    }
  }

  @Test(arguments: ["path", "temporary"])
  func aMissingDirectoryIsAnErrorOnCreation(which: String) throws {
    try withTemporaryDirectory { directory in
      let missing = "\(directory)/missing"
      let error = code {
        _ = try Workbook(
          path: which == "path" ? "\(missing)/book.xlsx" : "\(directory)/book.xlsx",
          temporaryDirectory: which == "path" ? directory : missing, properties: .sample)
      }
      #expect(error == .directoryNotUsable)
    }
  }

  @Test func aDeletedTemporaryDirectoryIsAnErrorAndNoOtherDirectoryIsUsed() throws {
    try withTemporaryDirectory { directory in
      let temporary = "\(directory)/temporary"
      try FileManager.default.createDirectory(atPath: temporary, withIntermediateDirectories: false)
      let workbook = try Workbook(path: "\(directory)/book.xlsx", temporaryDirectory: temporary, properties: .sample)
      _ = try workbook.addSheet(named: "Findings", storage: .inMemory)
      try FileManager.default.removeItem(atPath: temporary)
      #expect(code { _ = try workbook.addSheet(named: "Orders", storage: .streamed) } == .temporaryFileFailed)
      let failure = failure(of: workbook)
      #expect(failure?.code == .temporaryFileFailed && failure?.systemError == ENOENT)
      #expect(try contents(of: directory).isEmpty)
    }
  }

  // The test runs in a separate process, because the limit applies to a whole process.
  @Test func aFullDiskWhileRowsAreWrittenIsAnErrorThoughTheLibraryReportsNone() async {
    await #expect(processExitsWith: .success) {
      try withTemporaryDirectory { directory in
        let workbook = try Workbook(in: directory)
        let sheet = try workbook.addSheet(named: "Orders", storage: .streamed)
        signal(SIGXFSZ, SIG_IGN)
        // The rows compress so well that the archive itself stays below the limit.
        var limit = rlimit(rlim_cur: 100_000, rlim_max: 100_000)
        setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
        for row in 0..<10_000 { try sheet.writeText("the same", row: row, column: 0) }
        let failure = failure(of: workbook)
        #expect(failure?.code == .temporaryFileFailed && failure?.systemError == EFBIG)
        #expect(try contents(of: directory).isEmpty)
      }
    }
  }

  // The library copies a sheet's rows once more for the archive, and does not check those writes either. The truncated
  // part then has a valid checksum, and the return code is 0.
  @Test func aFullDiskWhileTheRowsAreCopiedIntoTheArchiveIsAnErrorToo() async {
    await #expect(processExitsWith: .success) {
      try withTemporaryDirectory { directory in
        signal(SIGXFSZ, SIG_IGN)
        func write(_ name: String) throws(SpreadsheetError) {
          let workbook = try Workbook(path: "\(directory)/\(name)", temporaryDirectory: directory, properties: .sample)
          let sheet = try workbook.addSheet(named: "Orders", storage: .streamed)
          for row in 0..<2_000 { try sheet.writeText("the same", row: row, column: 0) }
          try workbook.close()
        }
        func setLimit(_ size: rlim_t) {
          var limit = rlimit(rlim_cur: size, rlim_max: rlim_t.max)
          setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
        }
        var (whole, foundByFlushing, foundByCopying) = (0, 0, 0)
        for size in stride(from: rlim_t(90_000), to: 160_000, by: 500) {
          setLimit(size)
          do throws(SpreadsheetError) {
            try write("\(size).xlsx")
            whole += 1
          } catch {
            #expect(error.code == .temporaryFileFailed)
            switch "\(error.operation)" {
            case "write workbook": foundByFlushing += 1
            case "read the finished workbook back": foundByCopying += 1
            default: Issue.record("\(error)")
            }
          }
        }
        setLimit(rlim_t.max)
        #expect(whole > 0 && foundByFlushing > 0 && foundByCopying > 0, "\((whole, foundByFlushing, foundByCopying))")
        let kept = try contents(of: directory)
        #expect(kept.count == whole)
        for name in kept {
          #expect(try firstSheet(of: "\(directory)/\(name)").split(separator: "<row ").count == 2_001, "\(name)")
        }
      }
    }
  }

  @Test func aFinishedWorkbookWithAPartOfIncompleteXMLIsAnError() throws {
    try withTemporaryDirectory { directory in
      let workbook = try Workbook(in: directory)
      try workbook.addSheet(named: "Orders", storage: .streamed).writeText("the same", row: 0, column: 0)
      try workbook.close()
      let path = "\(directory)/\(try #require(contents(of: directory).first))"
      #expect(throws: Never.self) { try FinishedFile.prove(path, sheets: []) }
      for part in ["xl/worksheets/sheet1.xml", "xl/styles.xml"] {
        try damage(path, to: "\(directory)/broken.xlsx", part, as: "content[: len(content) // 2]")
        let error = #expect(throws: SpreadsheetError.self) {
          try FinishedFile.prove("\(directory)/broken.xlsx", sheets: [])
        }
        #expect(error?.code == .temporaryFileFailed, "\(part)")
      }
    }
  }

  @Test func rewindIsLibcsOwnSoTheStreamsOfOtherLibrariesBehaveAsUsual() throws {
    let libc = try #require(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD))
    #expect(dlsym(nil, "rewind") == dlsym(libc, "rewind"))
  }

  // The bytes of a streamed sheet's rows are counted; everything else is parsed.
  @Test(arguments: [1, 4_000])
  func aFinishedWorkbookWithAnIncompleteStreamedSheetIsAnError(rowCount: Int) throws {
    try withTemporaryDirectory { directory in
      let workbook = try Workbook(in: directory)
      let sheet = try workbook.addSheet(named: "Orders", storage: .streamed)
      // The text is long enough for rows to cross the boundaries of quarter-megabyte blocks.
      let text = String(repeating: "the same ", count: 20)
      try sheet.setColumns(0...0, width: 20)
      for row in 0..<rowCount { try sheet.writeText(text, row: row, column: 0) }
      // A row without cells has no end tag.
      try sheet.setRow(rowCount, height: 30)
      try workbook.close()
      let path = "\(directory)/\(try #require(contents(of: directory).first))"
      let rows = try #require(firstSheet(of: path).firstMatch(of: /<sheetData>(.*)<\/sheetData>/)).1
      func prove(_ path: String, rowBytes: Int) throws(SpreadsheetError) {
        try FinishedFile.prove(path, sheets: [.init(name: "Orders", rowBytes: rowBytes)])
      }
      #expect(throws: Never.self) { try prove(path, rowBytes: rows.utf8.count) }
      for error in [1, -1] {
        #expect(throws: SpreadsheetError.self) { try prove(path, rowBytes: rows.utf8.count + error) }
      }
      let losses = [
        #"content.replace(b"</row>", b"", 1)"#, #"content.replace(b"he s", b"", 1)"#,
        #"content.replace(b"<row ", b"", 1)"#, #"content.replace(b"</sheetData>", b"")"#,
        #"content.replace(b"<sheetData>", b"")"#, #"content.replace(b"</sheetViews>", b"")"#,
        #"content.replace(b"</worksheet>", b"")"#,
        #"content[: content.index(b"</sheetData>") - 3] + content[content.index(b"</sheetData>"):]"#,
      ]
      for loss in losses {
        try damage(path, to: "\(directory)/broken.xlsx", "xl/worksheets/sheet1.xml", as: loss)
        let error = #expect(throws: SpreadsheetError.self, "\(loss)") {
          try prove("\(directory)/broken.xlsx", rowBytes: rows.utf8.count)
        }
        #expect(error?.code == .temporaryFileFailed, "\(loss)")
      }
    }
  }

  private func openFiles(in directory: String) -> [String] {
    let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    return descriptors.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)") }
      .filter { $0.hasPrefix("\(directory)/") }
  }
}

/// The error of closing a workbook; nil if there is none.
private func failure(of workbook: consuming Workbook) -> SpreadsheetError? {
  do throws(SpreadsheetError) {
    try workbook.close()
    return nil
  } catch {
    return error
  }
}

private func firstSheet(of path: String) throws -> String {
  let program = "import sys, zipfile; print(zipfile.ZipFile(sys.argv[1]).read('xl/worksheets/sheet1.xml').decode())"
  return String(decoding: try Command.run(["python3", "-c", program, path]), as: UTF8.self)
}

/// Copies a workbook, and one part of it as the Python expression over its `content`.
private func damage(_ path: String, to other: String, _ part: String, as expression: String) throws {
  let program = """
    import sys, zipfile
    with zipfile.ZipFile(sys.argv[1]) as book, zipfile.ZipFile(sys.argv[2], "w") as copy:
        for name in book.namelist():
            content = book.read(name)
            copy.writestr(name, \(expression) if name == sys.argv[3] else content)
    """
  try Command.run(["python3", "-c", program, path, other, part])
}

private func contents(of directory: String) throws -> [String] {
  try FileManager.default.contentsOfDirectory(atPath: directory)
}
