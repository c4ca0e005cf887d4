import Run
import Testing

@Suite struct MachineTextTests {
  private struct Row: Encodable {
    let text: String
    let values: [Int]
  }

  private struct Document: Encodable {
    let rows: [Row]
  }

  @Test(arguments: 0...2) func aListPrintedElementByElementEqualsTheWholeObject(_ count: Int) throws {
    let rows = (0..<count).map { Row(text: "first line\nline \($0)", values: [1, 2]) }
    var list = MachineText.List<Row>(named: "rows")
    var text = ""
    for row in rows { text += try list.add(row) }
    text += try list.end()
    #expect(try text == MachineText.json(Document(rows: rows)))
  }
}
