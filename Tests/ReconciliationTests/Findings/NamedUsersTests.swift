import Reconciliation
import Testing

@testable import SampleWorlds

/// Reasons know the places of user IDs, so that all user IDs can be replaced.
@Suite struct NamedUsersTests {
  /// The prefix of every user ID, and of nothing else.
  private static let mark = "~"

  @Test("No reason contains a user ID outside the known places", arguments: Effort.blocks)
  func sentences(block: UInt64) {
    var named: Set<FindingKind> = []
    forEachWorld(block) { unmarked in
      let world = unmarked.markingUsers(Self.mark)
      for finding in world.audited().findings {
        let isNamed = !finding.reason.users.isEmpty
        #expect(finding.reason.text.contains(Self.mark) == isNamed, "\(finding.kind): \(finding.reason)")
        let text = finding.reason.text(naming: { _ in "somebody" })
        #expect(!text.contains(Self.mark), "\(finding.kind): \(finding.reason)")
        if isNamed { named.insert(finding.kind) }
      }
      for facts in world.matchedFacts().orders.values {
        let reasoning = Judgement.explained(facts, rules: world.rules).reasoning
        for sentence in reasoning.steps.map(\.because) + [reasoning.disposition] {
          #expect(!sentence.contains(Self.mark), "\(sentence)")
        }
      }
    }
    #expect(named.isSuperset(of: [.wrongUser, .duplicateClaim]))
  }

  @Test("Reasons are equal however they were composed")
  func forms() {
    let clause: Reason = "user \(user: "u1") and \(2) more"
    let whole: Reason = "Goods are with user \(user: "u1") and 2 more."
    #expect("Goods are with \(clause)." as Reason == whole)
    #expect(whole.text == "Goods are with user u1 and 2 more." && whole.users == ["u1"])
    #expect(Reason("") == "" && Reason("Twice.").users.isEmpty)
  }
}

extension World {
  /// The world with marked user IDs.
  fileprivate func markingUsers(_ mark: String) -> World {
    func marked(_ id: Identifier) -> Identifier { Identifier(mark + id.text) }
    var world = self
    world.orders = orders.map { row -> OrderRow in
      switch row {
      case .valid(var order):
        order.userId = marked(order.userId)
        return .valid(order)
      case .bad(var bad):
        bad.userId = marked(bad.userId)
        return .bad(bad)
      }
    }
    for place in receipts.indices { world.receipts[place].userId = receipts[place].userId.map(marked) }
    for place in deliveries.indices { world.deliveries[place].userId = marked(deliveries[place].userId) }
    world.rules.testUsers = Set(rules.testUsers.map(marked))
    world.rules.people = People(aliases: rules.people.aliases.map { pair in (marked(pair.0), marked(pair.1)) })
    return world
  }
}
