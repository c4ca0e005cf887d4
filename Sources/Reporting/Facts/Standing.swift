import Reconciliation

extension Judgement {
  /// Why the order is in its bucket, as a clause for people who compare two nights.
  package var standing: String {
    func at(_ instant: Instant?) -> String { instant.map { " \($0.text)" } ?? "" }
    let goods = deliveredAt.map { ", delivered \($0.text)" } ?? ", and no goods are with the user"
    switch verdict {
    case .none: return "its row breaks the contract of the sales tables"
    case .paid: return "Apple confirms the payment\(at(paidAt))\(goods)"
    case .reversed: return "Apple refunded it\(at(refundedAt))\(goods)"
    case .unpaid(let reason, _): return "it is unpaid, because \(reason.explanation)\(goods)"
    case .unconfirmed(let reason): return "nobody knows whether it is paid, because \(reason.explanation)\(goods)"
    }
  }
}
