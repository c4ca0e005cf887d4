import AuditStore
import Reconciliation
import Testing

@testable import Auditing

/// A question of one audit is not repeated by the next audit of the same night, whether or not it was answered.
@Suite struct OpenQuestionsTests {
  @Test func onlyNewOpenQuestionsAreAskedAgain() {
    let (first, second) = (CheckSubject(kind: .receipt, id: "1"), CheckSubject(kind: .lookup, id: "1"))
    let noon = Instant(seconds: 43_200)
    var asked = OpenQuestions()
    #expect(!OpenQuestions().addsAny(to: asked))
    for (critical, unknownFrom, isNew) in [
      ([first], nil, true), ([first], nil, false), ([first, second], nil, true), ([second], nil, false),
      ([], noon, true), ([second], noon, false), ([], noon - .hours(1), false), ([], nil, false),
    ] as [(Set<CheckSubject>, Instant?, Bool)] {
      let open = OpenQuestions(critical: critical, unknownFrom: unknownFrom)
      #expect(open.addsAny(to: asked) == isNew, "\(critical) \(unknownFrom as Any)")
      asked.add(open)
    }
    #expect(asked.critical == [first, second] && asked.unknownFrom == noon - .hours(1))
  }
}
