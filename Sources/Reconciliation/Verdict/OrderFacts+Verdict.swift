extension OrderFacts {
  /// True if every valid or unreadable proof is a signed transaction or an old receipt.
  var areProofsOfOnePurchase: Bool {
    let proofs = validReceipts.filter { $0.state.outcome != .rejected || $0.state.isUnreadable }
    return !proofs.isEmpty && proofs.allSatisfy { $0.state.kind == .signed || $0.state.kind == .transaction }
  }

  /// True if no question is possible: an ID without receipt, and a channel without look-ups.
  public func isLookupImpossible(rules: Rules) -> Bool {
    order.transactionId != nil && validReceipts.isEmpty && !rules.appsWithLookup.contains(rules.bundleId(of: order))
  }

  /// True if no run has taken up the look-up of the stated ID, and no receipt came.
  public var isAwaitingLookup: Bool { order.transactionId != nil && receipts.isEmpty && lookup == nil }

  /// The result of the first rule that applies, and the steps to it if explaining. The last rule always applies.
  func verdict(rules: Rules, isExplaining: Bool) -> (verdict: Verdict, steps: [VerdictRule.Step]) {
    var steps: [VerdictRule.Step] = []
    for rule in VerdictRule.allCases {
      var because = Because(isWanted: isExplaining)
      var verdict = rule.verdict(self, rules, &because)
      if case .unpaid(let reason, _) = verdict, let source = unreadSource(rules),
        // A test user's purchase in the sandbox is no money, whatever is announced.
        !(reason == .sandbox && rules.testUsers.contains(order.userId))
      {
        let sentence = because.text
        verdict = because.noting(
          .unconfirmed(.awaitingEvidence), "\(sentence) But \(source).")
      }
      if isExplaining { steps.append(VerdictRule.Step(rule: rule, verdict: verdict, because: because.text)) }
      if let verdict { return (verdict, steps) }
    }
    return (.unconfirmed(.neverChecked), steps)
  }

  func disposition(of verdict: Verdict, _ rules: Rules, _ because: inout Because) -> Disposition {
    switch (verdict, goods) {
    case (.paid, .inFull): return because.noting(.settled, "Paid, and the goods were delivered in full.")
    case (.paid, .partly):
      return because.noting(
        .partlyDelivered,
        "Paid, and \(deliveredUnits) of \(Int64(order.quantity) - refundedUnits) were delivered.")
    case (.paid(let transaction), .none):
      let paidAt = transaction.saleDate ?? order.verifiedAt ?? order.createdAt
      return rules.asOf - paidAt <= rules.deliveryGrace
        ? because.noting(.inFlight, "Paid within the last \(rules.deliveryGrace.words); the goods may be on their way.")
        : because.noting(
          .paidNotDelivered, "Paid more than \(rules.deliveryGrace.words) ago, and no user has the goods.")
    case (.nothingToPay, .inFull), (.nothingToPay, .partly):
      return because.noting(.settled, "The amount of the order is 0, and goods were delivered.")
    case (.nothingToPay, .none):
      return because.noting(.void, "The amount of the order is 0, and no user has goods.")
    case (.reversed, .inFull), (.reversed, .partly):
      return because.noting(.refundedStillDelivered, "Refunded in full, and the goods were not taken back.")
    case (.reversed, .none): return because.noting(.refunded, "Refunded in full, and no user has goods.")
    // Sandbox purchases are test money, whatever the reason. Xcode's are not, because Apple has not signed them.
    case (.unpaid(_, .some(let transaction)), _)
    where transaction.environment == .sandbox && rules.testUsers.contains(order.userId):
      return because.noting(.sandbox, "A test purchase by a user who is on the list of test users.")
    case (.unpaid(.familyShared, _), _):
      return because.noting(.void, "Access through Family Sharing is no sale, whatever was delivered.")
    case (.unpaid(.restored, _), _):
      return because.noting(.void, "A restore of an earlier purchase is no sale, whatever was delivered.")
    case (.unpaid, .inFull), (.unpaid, .partly):
      return because.noting(.deliveredNotPaid, "Proven unpaid, and a user has the goods.")
    case (.unpaid, .none): return because.noting(.void, "Proven unpaid, and no user has goods.")
    case (.unconfirmed, _):
      return because.noting(.unconfirmed, "It is not known whether it is paid. A missing answer is no proof.")
    }
  }
}
