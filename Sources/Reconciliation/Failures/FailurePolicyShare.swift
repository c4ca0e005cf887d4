/// A kind of refusal. A few accuse customers; many point to a wrong mapping.
public enum Refusal: String, Hashable, CaseIterable, Sendable {
  case malformed
  case signatureInvalid = "signature_invalid"
  case wrongBundle = "wrong_bundle"
  case idMismatch = "id_mismatch"
  case notFound = "not_found"
  case productMismatch = "product_mismatch"

  /// Classifies the refusal in an answer; nil: nothing was refused.
  /// `provenIds` is empty for a proof that lists many. `expectedBundleIds` are all apps if the order states none.
  public init?(
    _ outcome: CheckOutcome, reason: PaymentReason?, provenBundleId: String? = nil, expectedBundleIds: [String] = [],
    provenIds: [String] = [], namedId: String? = nil, provenProductId: String? = nil, orderedProductId: String? = nil
  ) {
    switch outcome {
    case .rejected:
      switch reason {
      case .malformed: self = .malformed
      case .signatureInvalid: self = .signatureInvalid
      default: return nil
      }
    case .notFound: self = .notFound
    case .verified:
      if let provenBundleId, !expectedBundleIds.isEmpty, !expectedBundleIds.contains(provenBundleId) {
        self = .wrongBundle
      } else if let namedId, !namedId.isEmpty, !provenIds.isEmpty, !provenIds.contains(namedId) {
        self = .idMismatch
      } else if let provenProductId, let orderedProductId, provenProductId != orderedProductId,
        !TransactionRecord.items(provenProductId).contains(orderedProductId[...])
      {
        self = .productMismatch
      } else {
        return nil
      }
    case .pending, .unanswered, .review: return nil
    }
  }

  /// True if Apple has not accepted the proof. Other kinds compare an accepted proof with its order.
  public var isOfProof: Bool {
    switch self {
    case .malformed, .signatureInvalid, .notFound: true
    case .wrongBundle, .idMismatch, .productMismatch: false
    }
  }

  public var remedy: String {
    switch self {
    case .malformed:
      """
      The column payload no longer holds what clients sent: check it in sales.receipts, and its cast in the view.
      """
    case .signatureInvalid:
      """
      Proofs arrive damaged, the root certificates are not Apple's, or Apple answers 21003 for a shared secret that is not \
      the app's: compare a payload with what the app sent, and run night-audit trust.
      """
    case .wrongBundle: "bundleId in the configuration, or bundle_id in sales.orders, is another app's: compare the two."
    case .idMismatch:
      "transaction_id in sales.orders is not the transaction in the order's proof: correct the column."
    case .notFound:
      """
      Apple knows none of the ids: transaction_id in sales.orders holds something else, or the key belongs to another \
      app.
      """
    case .productMismatch:
      "product_id in sales.orders is not the product ID of App Store Connect: compare it with Apple's transactions."
    }
  }
}

/// The persons with a first answer about an app, and the refusals among them.
/// The refusal of a proof that Apple accepted before counts as a first answer.
public struct FirstAnswers: Hashable, Sendable {
  /// Refusals of fewer persons are never systemic.
  public static let fewest = 20

  /// Persons refused, accepted, or with a valid signature while Apple is silent.
  public var persons: Int
  public var refusals: [Refusal: Int]

  public init(persons: Int = 0, refusals: [Refusal: Int] = [:]) {
    self.persons = persons
    self.refusals = refusals
  }

  /// The refusals whose share is too large for customers to be the cause.
  /// - Parameter share: `audit.systemicShare`; 1 switches the check off.
  public func systemic(share: Share) -> [Refusal] {
    Refusal.allCases.filter { kind in
      let refused = refusals[kind] ?? 0
      return refused >= Self.fewest && share.isExceeded(by: refused, of: persons)
    }
  }

  /// The systemic refusals with their remedies, for the operator; nil: none.
  public func faultMessage(app: String, subject: String, share: Share) -> String? {
    let sentences = systemic(share: share).map { kind in
      """
      \(refusals[kind] ?? 0) of the \(persons) customers with first answers about \(subject) of \(app) are refused for \
      \(kind.rawValue). So many refusals of one kind are an error of the mapping or of the configuration: night-audit \
      accuses nobody, and asks again the next night. \(kind.remedy) A shop that is really under such attack sets \
      audit.systemicShare to 1.
      """
    }
    return sentences.isEmpty ? nil : sentences.joined(separator: " ")
  }
}

/// The answer about a proof before the next one.
public enum EarlierAnswer: Hashable, Sendable {
  case none
  case verified
  case refused(Refusal)
  /// Refused in the run of that as-of, whose share of refusals is not decided yet.
  case pendingRefusal(Refusal, since: Instant)

  /// Counts the next answer. A repeated refusal is no first answer, or repeats alone would be systemic.
  /// `refusal` accuses a customer. `denial` refuses a proof that Apple signed or accepted before.
  public func count(_ outcome: CheckOutcome, refusal: Refusal?, denial: Refusal?, asOf: Instant) -> AnswerCount {
    switch self {
    case .pendingRefusal(let before, let since) where refusal == before:
      return AnswerCount(isFirst: false, pendingSince: since)
    case .refused(let before) where refusal == before: return AnswerCount(isFirst: false)
    // The order states another app, ID or product now; the proof is as valid as before.
    case .verified where outcome == .verified: return AnswerCount(isFirst: false)
    case .none, .verified, .refused, .pendingRefusal:
      if let refusal { return AnswerCount(isFirst: true, refusal: refusal, pendingSince: asOf) }
      return AnswerCount(isFirst: denial != nil || self == .none, refusal: denial)
    }
  }
}

/// The count of one answer in the share of refusals.
public struct AnswerCount: Hashable, Sendable {
  public var isFirst: Bool
  /// The refusal of a first answer; nil: it counts as accepted.
  public var refusal: Refusal?
  /// The as-of of the run that counts an undecided refusal; nil: nothing is undecided.
  public var pendingSince: Instant?

  public init(isFirst: Bool, refusal: Refusal? = nil, pendingSince: Instant? = nil) {
    (self.isFirst, self.refusal, self.pendingSince) = (isFirst, refusal, pendingSince)
  }
}

/// The undecided refusals of one run about one kind of proof of one app.
public struct PendingRefusals: Hashable, Sendable {
  /// One night. A re-check before it and a second attempt count together with it.
  public static let night = RetrySchedule.nightly

  public var since: Instant
  public var asked: Instant
  /// First answers of that run, of its night, and of all nights since. The newest answer of a proof counts.
  public var spans: [FirstAnswers]

  public init(since: Instant, asked: Instant, spans: [FirstAnswers]) {
    (self.since, self.asked, self.spans) = (since, asked, spans)
  }

  /// The systemic refusals. One that continues from an earlier night is systemic in any number.
  public func systemic(among all: [PendingRefusals], share: Share) -> Set<Refusal> {
    let isNew = asked <= since
    let continuing = all.filter { isNew && $0.since < $0.asked && $0.asked > since - Self.night }
    return Set((continuing + [self]).flatMap { $0.spans.flatMap { $0.systemic(share: share) } })
  }
}
