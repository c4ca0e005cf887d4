import Reconciliation

/// The reason of an order's disposition, kept as values until the text is needed.
package struct DispositionReason: Hashable, Sendable {
  package enum PaymentGround: Hashable, Sendable {
    case broken
    case paid
    case nothingToPay
    case reversed
    case unpaid(PaymentReason)
    case unconfirmed(PaymentReason)
  }

  package var ground: PaymentGround
  package var paidAt: Instant?
  package var refundedAt: Instant?
  package var deliveredAt: Instant?

  package init(ground: PaymentGround, paidAt: Instant?, refundedAt: Instant?, deliveredAt: Instant?) {
    (self.ground, self.paidAt, self.refundedAt, self.deliveredAt) = (ground, paidAt, refundedAt, deliveredAt)
  }

  package var words: String {
    func at(_ instant: Instant?) -> String { instant.map { " \($0.text)" } ?? "" }
    let goods = deliveredAt.map { ", delivered \($0.text)" } ?? ", and the user has no goods"
    switch ground {
    case .broken: return "its row breaks the contract of the sales tables"
    case .nothingToPay: return "nothing was to be paid\(goods)"
    case .paid: return "Apple confirms the payment\(at(paidAt))\(goods)"
    case .reversed: return "Apple refunded it\(at(refundedAt))\(goods)"
    case .unpaid(let reason): return "it is unpaid, because \(reason.explanation)\(goods)"
    case .unconfirmed(let reason): return "it is not known whether it is paid, because \(reason.explanation)\(goods)"
    }
  }
}

extension Judgement {
  package var dispositionReason: DispositionReason {
    let ground: DispositionReason.PaymentGround =
      switch verdict {
      case .none: .broken
      case .paid: .paid
      case .nothingToPay: .nothingToPay
      case .reversed: .reversed
      case .unpaid(let reason, _): .unpaid(reason)
      case .unconfirmed(let reason): .unconfirmed(reason)
      }
    return DispositionReason(ground: ground, paidAt: paidAt, refundedAt: refundedAt, deliveredAt: deliveredAt)
  }
}
