/// The action that a job of the shop may take, as in `actions.json`.
public enum FindingAction: String, Hashable, CaseIterable, Sendable {
  case deliver
  case deliverRest = "deliver_rest"
  case takeBack = "take_back"
  case bookRefund = "book_refund"
  case reinstate
  case correctStatus = "correct_status"
  case look

  /// True if a job gives or takes goods. It then needs an answer of this night.
  var movesGoods: Bool { deliversGoods || self == .takeBack }

  var deliversGoods: Bool {
    switch self {
    case .deliver, .deliverRest, .reinstate: true
    case .takeBack, .bookRefund, .correctStatus, .look: false
    }
  }

  /// The first step of a person if a rule has taken the action from the shop's jobs; nil: no job has it.
  var stepBeforePersonActs: String? {
    switch self {
    case .deliver, .deliverRest, .reinstate:
      "Ask Apple again (night-audit recheck --order ID), and read the reason and the order's other findings."
    case .takeBack: "Read the reason and the order's other findings before you take anything back."
    case .bookRefund: "Read the reason and the order's other findings before you book anything."
    case .correctStatus: "Read the reason and the order's other findings before you change the status."
    case .look: nil
    }
  }
}
