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
}
