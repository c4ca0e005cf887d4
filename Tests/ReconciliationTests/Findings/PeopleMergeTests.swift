import Reconciliation
import Testing

@testable import SampleWorlds

/// Merging of a workbook with decisions that were stored in the meantime.
@Suite struct PeopleMergeTests {
  struct Case: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var sheet: String?
    var now: String?
    var before: String?
    var expected: PeopleColumnMerge<String?>
  }

  private static let cases = [
    Case(testDescription: "unchanged", sheet: "a", now: "a", before: "a", expected: .keep),
    Case(testDescription: "filled in", sheet: "a", now: nil, before: nil, expected: .take("a")),
    Case(testDescription: "changed", sheet: "b", now: "a", before: "a", expected: .take("b")),
    Case(testDescription: "cleared", sheet: nil, now: "a", before: "a", expected: .take(nil)),
    Case(testDescription: "changed elsewhere only", sheet: "a", now: "b", before: "a", expected: .keep),
    Case(testDescription: "filled elsewhere only", sheet: nil, now: "b", before: nil, expected: .keep),
    Case(testDescription: "changed on both sides", sheet: "c", now: "b", before: "a", expected: .conflict),
    Case(testDescription: "cleared here, changed there", sheet: nil, now: "b", before: "a", expected: .conflict),
    Case(testDescription: "the same on both sides", sheet: "b", now: "b", before: "a", expected: .keep),
  ]

  @Test(arguments: cases)
  func sheetCellsMergeWithStoredDecisions(_ example: Case) {
    let merged = PeopleColumnMerge<String?>(
      sheet: example.sheet, now: example.now, before: example.before)
    #expect(merged == example.expected)
  }

  /// A second import of the same file changes nothing.
  @Test(arguments: cases)
  func takingAValueIsIdempotent(_ example: Case) {
    guard case .take(let value) = example.expected else { return }
    let again = PeopleColumnMerge<String?>(
      sheet: example.sheet, now: value, before: example.before)
    #expect(again == .keep)
  }
}
