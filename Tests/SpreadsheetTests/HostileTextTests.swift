import Spreadsheet
import TestSupport
import Testing

struct HostileTextTests {
  /// Texts that must be read back unchanged.
  static let texts: [String] = controls + others

  private static let controls: [String] = (1...0x1F).flatMap { (value: UInt8) in
    let character = Character(Unicode.Scalar(value))
    return ["a\(character)b", "\(character)x\(character)"]
  }

  private static let others: [String] =
    [
      // Formulas that a spreadsheet, or a shell behind it, would execute.
      "=1+1", "=SUM(A1:A9)", "+1", "-1", "@SUM(1)", "=HYPERLINK(\"http://evil.example\",\"x\")",
      "=cmd|' /C calc'!A0", "=WEBSERVICE(\"http://evil.example\")", "=IMPORTXML(A1,\"//a\")", "\t=1+1", "\r=1+1",
      "\n=1+1", " =1+1", "＝1+1", "{=1+1}", "'=1+1", "\"=1+1\"", "%0A=1", "=", "==", "-", "+",
      // Escapes of the file format, and similar text.
      "_x0001_", "_x0000_", "_x000D_", "_x005F_", "_x005F_x0001_", "_x0041_", "_x0041_x0042_", "__x0041__",
      "_x004a_", "_x004G_", "_x41_", "_x00041_", "_X0041_", "_x0041", "x0041_", "_x0041\u{1}", "_x0041\r",
      "\u{1}x0041_", "_x0041_\u{1}_x0041_", "_xFFFF_", "_xD83D_", "a_xb", "_", "__", "_x", "_x0041_x", "order_x1234_5",
      // Markup.
      "<", ">", "&", "&amp;", "&#1;", "&#x1;", "<![CDATA[x]]>", "]]>", "<c r=\"A1\"/>", "</t></is></c>", "<!--", "-->",
      "<?xml?>", "\"", "'", "\"'<>&", "&lt;&gt;",
      // White space that XML readers trim or change.
      " ", "  ", " lead", "trail ", "  both  ", "two  inside", "\n", "\r", "\r\n", "a\r\nb", "a\rb", "a\n\nb",
      "\t", "a\tb", "\u{A0}", "\u{2003}em", "\u{3000}", "line\u{2028}separator", "para\u{2029}graph", "\u{200B}",
      // Scripts, direction, combining marks.
      "שלום", "مرحبا بالعالم", "\u{202E}evil", "\u{202A}a\u{202C}", "\u{2066}a\u{2069}", "\u{200F}x", "日本語テキスト",
      "한국어", "ไทย", "हिन्दी", "e\u{301}", "\u{E9}", "Å", "Z̸̢͎a̴̛l̷͠g̵o", "İıŞ", "ﬁ", "ß", "Ǆ",
      // Beyond the basic multilingual plane.
      "😀", "👩‍👩‍👧‍👦", "🇩🇪🇯🇵", "👍🏽", "𝕏", "𠮷野家", "\u{10FFFF}", "\u{1F468}\u{200D}\u{1F4BB}", "\u{E0001}",
      "\u{1FFFE}",
      // Non-characters, private use, byte order marks.
      "\u{FFFD}", "\u{FFFE}", "\u{FFFF}", "a\u{FFFE}b\u{FFFF}c", "\u{FEFF}bom", "\u{E000}", "\u{80}\u{9F}",
      // Identifiers and numbers that must stay text.
      "1234567890123456789", "9000000000000000101", "9007199254740993", "000123", "1e5", "0x1F", "1,5", "12/11/2026",
      "TRUE", "#REF!", "NaN",
      "-INF", "2000000123456789", "3.0", "١٢٣",
      // Unusual but harmless.
      "%s%n%d", "${x}", "../../etc/passwd", "'; DROP TABLE orders; --", "\\", "\\0", "\\u0000", "NULL",
      "internal:'Orders'!A1", "https://example.com/a b?c=d#e", "mailto:a@example.com",
      String(repeating: "a", count: 32_767), String(repeating: "é", count: 32_767),
      String(repeating: "😀", count: 16_383), String(repeating: "\u{1}", count: 4_681),
    ]

  @Test(arguments: [Workbook.Storage.streamed, .inMemory])
  func textIsReadBackUnchangedFromBothKindsOfSheets(storage: Workbook.Storage) throws {
    let sheet = try roundTrip(storage) { sheet, _ in
      for (row, text) in Self.texts.enumerated() { try sheet.writeText(text, row: row, column: 0) }
    }
    for (row, text) in Self.texts.enumerated() {
      let cell = "A\(row + 1)"
      let back = try #require(sheet.raw[cell], "\(cell) is not text: \(text.prefix(40).debugDescription)")
      // Compared as bytes, because String's == ignores normalization.
      #expect(Array(back.utf8) == Array(text.utf8), "\(cell): \(text.prefix(40).debugDescription)")
      #expect(sheet.cells[cell]?.formula == nil, "\(cell) became a formula")
    }
  }

  @Test(arguments: [
    ("NUL alone", "\0", SpreadsheetError.Code.textNotRepresentable), ("NUL inside", "a\0b", .textNotRepresentable),
    ("NUL at the end", "a\0", .textNotRepresentable), ("NUL behind an escape", "_x0041_\0", .textNotRepresentable),
    ("one too many", String(repeating: "a", count: 32_768), .textTooLong),
    ("one too many, accented", String(repeating: "é", count: 32_768), .textTooLong),
    ("one pair too many, as Excel counts", String(repeating: "😀", count: 16_384), .textTooLong),
    ("too long once escaped", String(repeating: "\u{1}", count: 4_682), .textTooLong),
  ])
  func textBeyondTheFileFormatIsRejectedWithItsCellButWithoutItsContent(
    name: String, text: String, expected: SpreadsheetError.Code
  ) throws {
    try withSheet { sheet, _ in
      let error = #expect(throws: SpreadsheetError.self, "\(name)") { try sheet.writeText(text, row: 3, column: 2) }
      #expect(error?.code == expected && (error?.sheet, error?.row, error?.column) == ("Orders", 3, 2))
      #expect(error?.description == "workbook: cannot write text on sheet Orders at C4: \(expected.rawValue)")
    }
  }

  @Test(arguments: [
    String(repeating: "a", count: 40_000), String(repeating: "😀", count: 40_000), "a\0b",
    String(repeating: "\u{1}", count: 40_000), String(repeating: "_x0041_", count: 8_000),
  ])
  func textThatIsTooLongIsShortenedAndMarkedAsCut(text: String) throws {
    let fitting = CellText.fitting(text)
    #expect(fitting.utf16.count <= CellText.maximumLength && fitting.hasSuffix(" [cut]") == (text.count > 10))
    #expect(text.replacing("\0", with: "\u{FFFD}").hasPrefix(fitting.replacing(" [cut]", with: "")))
    #expect(try roundTrip { sheet, _ in try sheet.writeText(fitting, row: 0, column: 0) }.raw["A1"] == fitting)
  }

  @Test(arguments: ["", "a", "_x0001_", "😀", String(repeating: "a", count: 32_767)])
  func textThatFitsIsUnchanged(text: String) { #expect(CellText.fitting(text) == text) }
}
