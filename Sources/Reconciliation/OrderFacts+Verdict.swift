/// What an order comes to by all rules together.
extension OrderFacts {
  /// Whether every proof that is not false is about one purchase: a signed transaction or an old receipt. A payload that
  /// nobody can read may be about any.
  var isProvenPurchaseByPurchase: Bool {
    let proofs = soundReceipts.filter { $0.state.outcome != .rejected || $0.state.isUnreadable }
    return !proofs.isEmpty && proofs.allSatisfy { $0.state.kind == .signed || $0.state.kind == .transaction }
  }

  /// Whether nobody can ask Apple about it: it names an id, no receipt came, and its app's channel cannot ask about ids.
  public func isBeyondAsking(rules: Rules) -> Bool {
    order.transactionId != nil && soundReceipts.isEmpty && !rules.lookedUpApps.contains(rules.bundleId(of: order))
  }

  /// Whether it names an id that no run has taken up to ask Apple about, and no receipt came to ask about instead.
  public var isYetToBeLookedUp: Bool { order.transactionId != nil && receipts.isEmpty && lookup == nil }

  /// The verdict on payment: the first rule that holds. The last rule always does.
  public func verdict(rules: Rules) -> Verdict {
    var reasoning = Reasoning(isWanted: false)
    return verdict(rules: rules, &reasoning)
  }

  func verdict(rules: Rules, _ reasoning: inout Reasoning) -> Verdict {
    for rule in VerdictRule.allCases {
      var because = Because(isWanted: reasoning.isWanted)
      let verdict = rule.verdict(self, rules, &because)
      reasoning.take(rule, verdict, because)
      if let verdict { return verdict }
    }
    return .unconfirmed(.neverChecked)
  }

  /// How much of the order its user holds: units not taken back, whoever got them.
  public var goods: Goods {
    let units = deliveredUnits
    return units >= Int64(order.quantity) ? .inFull : (units > 0 ? .partly : .none)
  }

  /// Units that are with a user now.
  public var heldUnits: Int64 { soundDeliveries.reduce(0) { $0 + ($1.stands ? $1.quantity ?? 0 : 0) } }

  /// Units delivered and not taken back. Access to a subscription that was taken back once the period paid for was over,
  /// or the plan was replaced by another one, was delivered; after a refund only what the user still holds counts.
  public var deliveredUnits: Int64 {
    let owned = claims.owned.first.flatMap { $0.isLive ? $0 : nil }
    let isReplaced = owned?.isUpgraded == true
    return soundDeliveries.reduce(0) { units, delivery in
      var isDelivered = delivery.stands
      if let end = owned?.expiresDate, let revoked = delivery.revokedAt, isReplaced || revoked >= end {
        isDelivered = true
      }
      return units + (isDelivered ? delivery.quantity ?? 0 : 0)
    }
  }

  /// The bucket that payment and goods put the order in.
  public func disposition(of verdict: Verdict, rules: Rules) -> Disposition {
    var because = Because(isWanted: false)
    return disposition(of: verdict, rules, &because)
  }

  func disposition(of verdict: Verdict, _ rules: Rules, _ because: inout Because) -> Disposition {
    switch (verdict, goods) {
    case (.paid, .inFull): return because.noting(.settled, "Paid, and the goods were delivered in full.")
    case (.paid, .partly):
      return because.noting(.partlyDelivered, "Paid, and \(deliveredUnits) of \(order.quantity) were delivered.")
    case (.paid(let transaction), .none):
      let paidAt = transaction.saleDate ?? order.verifiedAt ?? order.createdAt
      return rules.asOf - paidAt <= rules.deliveryGrace
        ? because.noting(.inFlight, "Paid within the last \(rules.deliveryGrace.words); the goods may be on their way.")
        : because.noting(
          .paidNotDelivered, "Paid more than \(rules.deliveryGrace.words) ago, and no user has the goods.")
    case (.nothingToPay, .inFull), (.nothingToPay, .partly):
      return because.noting(.settled, "Nothing was to be paid, and goods were delivered.")
    case (.nothingToPay, .none):
      return because.noting(.void, "Nothing was to be paid, and no goods are with a user.")
    case (.reversed, .inFull), (.reversed, .partly):
      return because.noting(.refundedStillDelivered, "Refunded in full, and the goods were not taken back.")
    case (.reversed, .none): return because.noting(.refunded, "Refunded in full, and no goods are with a user.")
    // Play money, whatever keeps it from paying this order. What was made in Xcode is none: Apple has not signed it.
    case (.unpaid(_, .some(let transaction)), _)
    where transaction.environment == .sandbox && rules.testUsers.contains(order.userId):
      return because.noting(.sandbox, "A test purchase by a user who is on the list of test users.")
    case (.unpaid(.familyShared, _), _):
      return because.noting(.void, "Access through Family Sharing is no sale, whatever was delivered.")
    case (.unpaid(.restored, _), _):
      return because.noting(.void, "A restore gives again what was paid for before, whatever was delivered.")
    case (.unpaid, .inFull), (.unpaid, .partly):
      return because.noting(.deliveredNotPaid, "Proven unpaid, and goods are with a user.")
    case (.unpaid, .none): return because.noting(.void, "Proven unpaid, and no goods are with a user.")
    case (.unconfirmed, _):
      return because.noting(.unconfirmed, "Whether it is paid is not known; silence is not a no.")
    }
  }
}
