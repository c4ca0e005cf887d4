import Foundation
import TestSupport
import Testing

@testable import Spreadsheet

/// Workbooks that somebody has broken, as archives and part by part within a sound archive: read, or refused by an error that
/// says so.
@Suite(.timeLimit(.minutes(30)))
struct HostileWorkbooksTests {
  private static let relationships = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
  private static let package = "http://schemas.openxmlformats.org/package/2006/relationships"
  private static let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"

  private static let parts: [(name: String, text: String)] = [
    (
      "_rels/.rels",
      """
      <Relationships xmlns="\(package)"><Relationship Id="r1" Type="\(relationships)/officeDocument" Target="xl/workbook.xml"/>
      <Relationship Id="r2" Type="\(package)/metadata/core-properties" Target="docProps/core.xml"/></Relationships>
      """
    ),
    (
      "docProps/core.xml",
      """
      <cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"
        xmlns:dcterms="http://purl.org/dc/terms/"><dcterms:created>2026-11-20T03:00:00Z</dcterms:created></cp:coreProperties>
      """
    ),
    (
      "xl/workbook.xml",
      """
      <workbook xmlns="\(main)" xmlns:r="\(relationships)"><sheets><sheet name="Findings" sheetId="1" r:id="r1"/></sheets></workbook>
      """
    ),
    (
      "xl/_rels/workbook.xml.rels",
      """
      <Relationships xmlns="\(package)"><Relationship Id="r1" Type="\(relationships)/worksheet" Target="worksheets/sheet1.xml"/>
      <Relationship Id="r2" Type="\(relationships)/sharedStrings" Target="sharedStrings.xml"/></Relationships>
      """
    ),
    (
      "xl/sharedStrings.xml",
      """
      <sst xmlns="\(main)" count="3" uniqueCount="3"><si><t>Finding id</t></si><si><t xml:space="preserve"> Owner </t></si>
      <si><r><t>a&amp;b</t></r><r><t>&#x1FA99;_x0041_</t></r></si></sst>
      """
    ),
    (
      "xl/worksheets/sheet1.xml",
      """
      <worksheet xmlns="\(main)"><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c></row>
      <row r="2"><c r="A2" t="s"><v>2</v></c><c r="B2"><v>46000.5</v></c><c r="XFD2" t="b"><v>1</v></c></row>
      <row r="1048576"><c r="A1048576" t="inlineStr"><is><t>id3</t></is></c><c r="B1048576" t="e"><v>#N/A</v></c></row>
      </sheetData></worksheet>
      """
    ),
  ]

  private static let tokens = [
    "<", "/>", "</row>", "<row>", "<c>", "r=\"A0\"", "r=\"XFE1\"", "r=\"1048577\"", "t=\"s\"", "t=\"d\"",
    "<v>99999999999</v>",
    "<v>-1</v>", "<!DOCTYPE a [<!ENTITY b \"c\">]>", "&b;", "<![CDATA[", "]]>", "<?xml version=\"1.1\"?>", "&#0;",
    "&#xD800;",
    "../../../etc/passwd", "<t>", "xmlns=\"\"", "PK\u{01}\u{02}",
  ]

  @Test func anyWorkbookIsReadOrRefused() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "night-audit-hostile-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let path = folder.appending(path: "broken.xlsx").path
    let sound = Self.archive(Self.parts.map { ($0.name, Array($0.text.utf8)) })
    try Data(sound).write(to: URL(filePath: path))
    #expect(try rows(path) == 2)
    let count = 600
    let archives = MutatedInputs([sound])
    let parts = Self.parts.map { MutatedInputs([Array($0.text.utf8)], tokens: Self.tokens) }
    var (read, refused) = (0, 0)
    for number in MutatedInputs.numbers(count) {
      // As an archive, or one of its parts.
      var bytes = archives.input(number)
      if !number.isMultiple(of: 4) {
        bytes = Self.archive(
          Self.parts.enumerated().map { place, part in
            (part.name, place == number % 7 % parts.count ? parts[place].input(number) : Array(part.text.utf8))
          })
      }
      try Data(bytes).write(to: URL(filePath: path))
      do {
        _ = try rows(path)
        read += 1
      } catch is WorkbookReadError {
        refused += 1
      } catch {
        Issue.record(error, "input \(number) of seed \(MutatedInputs.seed)")
      }
    }
    #expect(read > count / 50 && refused > count / 50, "\(read) read, \(refused) refused")
  }

  private func rows(_ path: String) throws -> Int {
    let reader = try WorkbookReader(path: path)
    var count = 0
    _ = try reader.rows(of: "Findings", columns: ["Finding id", "Owner"], key: "Finding id") { row in
      count += 1
      #expect((1...1_048_576).contains(row.number), "\(row)")
    }
    return count
  }

  /// A ZIP archive whose entries are stored as they are (PKWARE, APPNOTE.TXT).
  private static func archive(_ entries: [(name: String, content: [UInt8])]) -> [UInt8] {
    var (bytes, directory): ([UInt8], [UInt8]) = ([], [])
    for (name, content) in entries {
      let size = little(UInt32(content.count))
      let described =
        [20, 0, 0, 0, 0, 0, 0, 0, 33, 0] + little(checksum(content)) + size + size + little(UInt16(name.utf8.count)) + [
          0, 0,
        ]
      directory += Array("PK\u{01}\u{02}".utf8) + [20, 0] + described + Array(repeating: 0, count: 10)
      directory += little(UInt32(bytes.count)) + Array(name.utf8)
      bytes += Array("PK\u{03}\u{04}".utf8) + described + Array(name.utf8) + content
    }
    let count = little(UInt16(entries.count))
    let end = [0, 0, 0, 0] + count + count + little(UInt32(directory.count)) + little(UInt32(bytes.count)) + [0, 0]
    return bytes + directory + Array("PK\u{05}\u{06}".utf8) + end
  }

  private static func little<Value: FixedWidthInteger>(_ value: Value) -> [UInt8] {
    withUnsafeBytes(of: value.littleEndian) { Array($0) }
  }

  /// CRC-32 as ZIP has it.
  private static func checksum(_ bytes: [UInt8]) -> UInt32 {
    ~bytes.reduce(~0) { sum, byte in
      (0..<8).reduce(sum ^ UInt32(byte)) { rest, _ in rest & 1 == 1 ? rest >> 1 ^ 0xEDB8_8320 : rest >> 1 }
    }
  }
}
