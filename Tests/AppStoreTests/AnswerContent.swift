import Reconciliation

@testable import AppStore

// Named unlike the cases, because an enum cannot have a case and a property of one name.
extension LookupOutcome {
  var content: Found? { if case .found(let found) = self { found } else { nil } }
  var reason: Silence.Reason? { if case .unanswered(let silence) = self { silence.reason } else { nil } }
}

extension HistoryAnswer {
  var reason: Silence.Reason? { if case .unanswered(let silence) = end { silence.reason } else { nil } }
}

extension NotificationAnswer {
  var reason: Silence.Reason? { if case .unanswered(let silence) = end { silence.reason } else { nil } }
}

extension ReceiptAnswer.Outcome {
  var receipt: VerifiedReceipt? { if case .verified(let receipt) = self { receipt } else { nil } }
}

extension ConnectAnswer.Outcome {
  var report: ConnectAnswer.File? { if case .file(let file) = self { file } else { nil } }
}

extension ReceivedPayload {
  var unreadable: Unreadable? { if case .unreadable(let why) = content { why } else { nil } }
}

extension OfflineJudgement {
  var refusal: PaymentReason? { if case .refused(let reason, _) = self { reason } else { nil } }
  var proof: GenuineProof? { if case .genuine(let proof) = self { proof } else { nil } }
  var unproven: UnprovenClaim? { if case .claim(let claim) = self { claim } else { nil } }
}

extension TransactionAnswer {
  var fact: TransactionFact? { outcome.content }
  var reason: Silence.Reason? { outcome.reason }
}

extension ReceiptAnswer {
  var reason: Silence.Reason? { if case .unanswered(let silence) = outcome { silence.reason } else { nil } }
}
