import Reconciliation
import Testing

@testable import SampleWorlds

/// The questions that decide the owner of a purchase, with the orders left after each, and the reason.
@Suite struct ClaimReasoningTests {
  /// The claimants of T1, which has the account token A1, and the questions until one order is left.
  private func told(_ scene: ShopFixture) -> (claims: [Identifier], steps: [String]) {
    let facts = scene.world.matchedFacts().orders
    let owner = facts.values.first { $0.claims.owned.contains { $0.transactionId == "T1" } }?.order.orderId
    let record = scene.world.transactions[0]
    let reasoning = ClaimReasoning(
      of: record, among: scene.world.claimants, owner: owner, rules: scene.world.rules)
    return (
      reasoning.claims.map(\.order.orderId),
      reasoning.steps.map { step in
        "\(step.question) \(step.left.map(\.text).joined(separator: ",")): \(step.because)"
      }
    )
  }

  private func scene(_ orders: [(id: String, token: String?, proof: ProofState?, names: Bool, hours: Int64)])
    -> ShopFixture
  {
    var scene = ShopFixture()
    let time = scene.time
    let record = scene.transaction { $0.appAccountToken = .stated("A1") }
    for one in orders {
      let order = scene.order(one.id, by: "u-" + one.id) { order in
        order.appAccountToken = one.token
        order.transactionId = one.names ? "T1" : nil
        order.createdAt = time + .hours(one.hours)
      }
      guard let proof = one.proof else { continue }
      scene.receipt("r-" + one.id, for: order, proof, containing: proof.outcome == .rejected ? [] : [record])
      if proof.outcome == .rejected { scene.world.lookups[order.orderId] = .verified(nil) }
    }
    return scene
  }

  @Test("A purchase without claimants has no owner")
  func nobody() {
    let (claims, steps) = told(scene([]))
    #expect(claims.isEmpty && steps == ["Which orders are linked to it? : No order that it could pay."])
  }

  @Test("A single claimant owns the purchase without further questions")
  func one() {
    let (claims, steps) = told(scene([("a", nil, nil, true, 0)]))
    #expect(claims == ["a"])
    #expect(
      steps == ["Which orders are linked to it? a: Only order a of user u-a.", "Which order owns it? a: Order a."])
  }

  @Test("Each question reduces the claimants")
  func narrowed() {
    let (claims, steps) = told(
      scene([
        ("forger", nil, .rejected(.signatureInvalid), true, -9), ("other", "b2", .verified(.app), true, -8),
        ("named", nil, nil, true, -7), ("bringing", nil, .verified(.app), false, -6),
        ("proven", nil, .verified(.app), true, 2), ("earlier", nil, .verified(.app), true, 1),
        ("also", nil, .verified(.app), true, 1),
      ]))
    #expect(claims == ["also", "earlier", "proven", "bringing", "named", "other"])
    #expect(
      steps.map { $0.prefix { $0 != ":" } } == [
        "Which orders are linked to it? also,earlier,proven,bringing,named,other",
        "Whose account token does it carry? also,earlier,proven,bringing,named,other",
        "Which order was created near the purchase date? also,earlier,proven,bringing,named,other",
        "Which order has no other account token? also,earlier,proven,bringing,named",
        "Which order has a verified proof of it? also,earlier,proven,bringing,named",
        "Which order is the nearest in time? also,earlier",
        "Which order is the earliest? also,earlier", "Which ID is the smallest? also", "Which order owns it? also",
      ])
    #expect(
      steps[0].hasSuffix(
        """
        6 orders: order also of user u-also, order earlier of user u-earlier, order proven of user u-proven, \
        order bringing of user u-bringing, order named of user u-named and 1 more.
        """))
    #expect(steps[1].hasSuffix(": None of them."))
    #expect(steps[5].hasSuffix("Order also of user u-also, order earlier of user u-earlier is the nearest."))
  }

  @Test("The nearer of two similar orders owns the purchase, without further questions")
  func two() {
    let (claims, steps) = told(scene([("a", nil, nil, true, 2), ("b", nil, nil, true, 1)]))
    #expect(claims == ["b", "a"])
    #expect(
      steps.suffix(2) == [
        "Which order is the nearest in time? b: Order b of user u-b is the nearest.",
        "Which order owns it? b: Order b.",
      ])
  }

  @Test("The account token is the first question and may decide alone")
  func token() {
    let (claims, steps) = told(
      scene([("early", nil, .verified(.app), true, -5), ("own", "a-1", nil, true, 5)]))
    #expect(claims == ["own", "early"])
    #expect(
      steps.map { $0.prefix { $0 != ":" } } == [
        "Which orders are linked to it? own,early",
        "Whose account token does it carry? own", "Which order owns it? own",
      ])
  }

  @Test("Claims without a stated ID are matched together, and a purchase without an owner has a reason")
  func otherwise() {
    // Both orders claim T1 by receipts. The test gives the owner, or none, to the reasoning.
    var scene = scene([("a", nil, .verified(.app), false, 0), ("b", nil, nil, false, 1)])
    let (first, later) = (scene.world.transactions[0], scene.time + .hours(1))
    let second = scene.transaction("T2") { $0.purchaseDate = later }
    for (id, order) in [("x", "a"), ("y", "b")] {
      guard case .valid(let row)? = scene.world.orders.first(where: { $0.orderId == Identifier(order) }) else { return }
      scene.receipt(id, for: row, .verified(.app), containing: id == "x" ? [first] : [first, second])
    }
    let claimed = ClaimReasoning(
      of: first, among: scene.world.claimants, owner: "b", rules: scene.world.rules)
    #expect(claimed.steps.last?.because.contains("paired in the order of time") == true)
    let unowned = ClaimReasoning(of: first, among: scene.world.claimants, owner: nil, rules: scene.world.rules)
    #expect(unowned.steps.last?.because.hasPrefix("None: order a of user u-a") == true)
    #expect(unowned.steps.last?.left.isEmpty == true)
  }
}
