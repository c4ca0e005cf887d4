/// Reads named columns of a workbook that was edited in Excel, LibreOffice or another program. The file is not trusted:
/// parts are streamed with limits, formulas are never evaluated, external references are ignored.
package struct WorkbookReader: ~Copyable {
  /// The sheet names in tab order, including hidden sheets.
  package let sheetNames: [String]
  /// The creation date in seconds since 1970, which editing programs keep.
  package let created: Int64?

  private let archive: ZipArchive
  private let parts: [String: String]
  private let shared: SharedStrings

  // Relationships and lists of sheets are small.
  private static let smallPart = 16 << 20
  // 1,048,576 rows of findings have less than 1 GB.
  private static let largePart = 4 << 30

  package init(path: String) throws(WorkbookReadError) {
    let archive = try ZipArchive(path: path)
    let top = Relationships(base: "")
    guard try archive.scan("_rels/.rels", limit: Self.smallPart, top), let main = top.part(ofType: "officeDocument")
    else { throw .notAWorkbook("it is an archive of something else") }
    let directory = main.split(separator: "/").dropLast().joined(separator: "/")
    let name = main.split(separator: "/").last ?? ""
    let list = SheetList()
    guard try archive.scan(main, limit: Self.smallPart, list), !list.sheets.isEmpty else {
      throw .notAWorkbook("it is an Office document of another kind")
    }
    let relationships = Relationships(base: directory)
    let relationshipsPart = (directory.isEmpty ? "" : directory + "/") + "_rels/\(name).rels"
    guard try archive.scan(relationshipsPart, limit: Self.smallPart, relationships) else {
      throw .damaged(part: relationshipsPart, "it is missing")
    }
    let sharedPart = relationships.part(ofType: "sharedStrings")
    let shared = SharedStrings(part: sharedPart ?? "")
    if let sharedPart, try !archive.scan(sharedPart, limit: Self.largePart, shared) {
      throw .damaged(part: sharedPart, "it is missing")
    }
    let properties = CoreProperties()
    if let part = top.part(ofType: "core-properties") { _ = try archive.scan(part, limit: Self.smallPart, properties) }
    var parts: [String: String] = [:]
    for sheet in list.sheets { parts[sheet.name] = relationships.part(id: sheet.relationship) }
    sheetNames = list.sheets.map(\.name)
    created = properties.created
    self.archive = archive
    (self.parts, self.shared) = (parts, shared)
  }

  /// Reads the rows below the header of one sheet with content in the requested columns.
  /// - Parameters:
  ///   - columns: headings in any position; case, spaces and underscores do not matter.
  ///   - key: the required column, whose heading identifies the header row.
  package func rows(of sheet: String, columns: [String], key: String, _ body: (ReadRow) throws -> Void) throws {
    let part = try part(of: sheet)
    try withoutActuallyEscaping(body) { body in
      // The scanner's errors are typed, so the body's error is kept here.
      var failure: (any Error)?
      let handler = SheetRows(part: part, sheet: sheet, wanted: columns, key: key, shared: shared) { row in
        if failure != nil { return }
        do { try body(row) } catch { failure = error }
      }
      let isThere = try archive.scan(part, limit: Self.largePart, handler)
      if let failure { throw failure }
      guard isThere else { throw WorkbookReadError.damaged(part: part, "it is missing") }
      guard handler.hasHeader else { throw WorkbookReadError.noColumn(key, sheet: sheet) }
    }
  }

  package func columns(
    of sheet: String, among columns: [String], key: String
  ) throws(WorkbookReadError) -> Set<String> {
    let part = try part(of: sheet)
    let handler = SheetRows(
      part: part, sheet: sheet, wanted: columns, key: key, shared: shared, endsWithHeader: true
    ) { _ in }
    guard try archive.scan(part, limit: Self.largePart, handler) else {
      throw .damaged(part: part, "it is missing")
    }
    guard handler.hasHeader else { throw .noColumn(key, sheet: sheet) }
    return Set(handler.columns.values)
  }

  private func part(of sheet: String) throws(WorkbookReadError) -> String {
    guard let part = parts[sheet] else { throw .noSheet(sheet, present: sheetNames.map { String($0.prefix(31)) }) }
    return part
  }

  /// Reads the rows of a sheet without a header; returns false if there is no such sheet.
  /// - Parameter columns: names by column, from zero.
  package func rows(of sheet: String, columns: [Int: String], _ body: (ReadRow) throws -> Void) throws -> Bool {
    guard let part = parts[sheet] else { return false }
    return try withoutActuallyEscaping(body) { body in
      var failure: (any Error)?
      let handler = SheetRows(part: part, sheet: sheet, wanted: [], key: "", shared: shared, columns: columns) { row in
        if failure != nil { return }
        do { try body(row) } catch { failure = error }
      }
      let isThere = try archive.scan(part, limit: Self.largePart, handler)
      if let failure { throw failure }
      return isThere
    }
  }
}
