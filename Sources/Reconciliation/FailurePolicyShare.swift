/// The kinds of refusal that accuse a customer when they are few, and point to a wrong mapping when they are many.
public enum Refusal: String, Hashable, CaseIterable, Sendable {
  case malformed
  case signatureInvalid = "signature_invalid"
  case wrongBundle = "wrong_bundle"
  case idMismatch = "id_mismatch"
  case notFound = "not_found"
  case productMismatch = "product_mismatch"

  /// What was refused about a proof; nil when nothing was.
  ///
  /// - Parameters:
  ///   - provenBundleId: the app that a verified proof belongs to.
  ///   - expectedBundleIds: the app of the order; where it names none, all configured ones.
  ///   - provenIds: the transaction inside a signed proof, by its own and its original id; empty for a proof that lists
  ///     many.
  ///   - namedId: the transaction that the order names.
  ///   - provenProductId: the product of the one transaction that a proof is about.
  ///   - orderedProductId: the product of the order.
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
      } else if let provenProductId, let orderedProductId, provenProductId != orderedProductId {
        self = .productMismatch
      } else {
        return nil
      }
    case .pending, .unanswered, .review: return nil
    }
  }

  /// Whether Apple has not accepted the proof. The other kinds compare an accepted proof with its order.
  public var isOfProof: Bool {
    switch self {
    case .malformed, .signatureInvalid, .notFound: true
    case .wrongBundle, .idMismatch, .productMismatch: false
    }
  }

  /// The probable error in the mapping or the configuration when many are refused alike, and its remedy.
  public var remedy: String {
    switch self {
    case .malformed:
      """
      The column payload no longer holds what clients sent: look at it in sales.receipts, and at the view's cast of it.
      """
    case .signatureInvalid:
      """
      Proofs arrive damaged, the root certificates are not Apple's, or Apple answers 21003 for a shared secret that is not \
      the app's: compare a payload with what the app sent, and run night-audit trust.
      """
    case .wrongBundle: "bundleId in the configuration, or bundle_id in sales.orders, is another app's: compare the two."
    case .idMismatch:
      "transaction_id in sales.orders is not the transaction that the order's proof is about: mend the column."
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

/// How many persons got a first answer about an app, and how many of them were refused.
///
/// A refusal of a proof that Apple has accepted before counts like a first answer.
public struct FirstAnswers: Hashable, Sendable {
  /// Refusals of fewer persons are never systemic.
  public static let fewest = 20

  /// All persons: refused, accepted, and those whose proof is genuine by its signature while Apple is silent.
  public var persons: Int
  public var refusals: [Refusal: Int]

  public init(persons: Int = 0, refusals: [Refusal: Int] = [:]) {
    self.persons = persons
    self.refusals = refusals
  }

  /// The reasons for which too many persons were refused for the refusals to be theirs.
  ///
  /// - Parameter share: of the persons (`audit.systemicShare`); 1 switches the guard off.
  public func systemic(share: Share) -> [Refusal] {
    Refusal.allCases.filter { kind in
      let refused = refusals[kind] ?? 0
      return refused >= Self.fewest && share.isExceeded(by: refused, of: persons)
    }
  }

  /// One sentence for the operator on each systemic reason, and its remedy; nil when no reason is systemic.
  ///
  /// - Parameter subject: the plural of the proofs that were checked.
  public func complaint(app: String, subject: String, share: Share) -> String? {
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

/// The answer that a proof has before it is asked about once more.
public enum EarlierAnswer: Hashable, Sendable {
  /// None that accepts or refuses it.
  case none
  case verified
  /// It was refused, and its customer is accused.
  case refused(Refusal)
  /// It was refused in the run of that as-of, and the share of that run's refusals is not decided for it.
  case pendingRefusal(Refusal, since: Instant)

  /// Counts the next answer. A refusal that repeats itself is no first answer: repeated refusals alone would always be too many.
  ///
  /// - Parameters:
  ///   - refusal: the refusal, if it accuses a customer.
  ///   - denial: a refusal of a proof that Apple has signed or accepted before.
  ///   - asOf: of the run that asks.
  public func count(_ outcome: CheckOutcome, refusal: Refusal?, denial: Refusal?, asOf: Instant) -> AnswerCount {
    switch self {
    case .pendingRefusal(let before, let since) where refusal == before:
      return AnswerCount(isFirst: false, pendingSince: since)
    case .refused(let before) where refusal == before: return AnswerCount(isFirst: false)
    // The order states another app, ID or product by now; the proof is as good as before.
    case .verified where outcome == .verified: return AnswerCount(isFirst: false)
    case .none, .verified, .refused, .pendingRefusal:
      if let refusal { return AnswerCount(isFirst: true, refusal: refusal, pendingSince: asOf) }
      return AnswerCount(isFirst: denial != nil || self == .none, refusal: denial)
    }
  }
}

/// How one answer counts in the share of refusals.
public struct AnswerCount: Hashable, Sendable {
  public var isFirst: Bool
  /// The refusal that a first answer counts as; nil: it counts as accepted.
  public var refusal: Refusal?
  /// As-of of the run in which a refusal that is not decided yet is counted; nil: nothing waits for a decision.
  public var pendingSince: Instant?

  public init(isFirst: Bool, refusal: Refusal? = nil, pendingSince: Instant? = nil) {
    self.isFirst = isFirst
    self.refusal = refusal
    self.pendingSince = pendingSince
  }
}

/// Undecided refusals of one run about one kind of proof of one app, with the first answers that decide them.
public struct PendingRefusals: Hashable, Sendable {
  /// One night: a re-check before it and a second attempt at it count together with it.
  public static let night = RetrySchedule.nightly

  /// As-of of the run in which they are counted.
  public var since: Instant
  /// As-of of the last run that asked about any of them.
  public var asked: Instant
  /// The first answers of that run, of its night, and of all nights since then. A proof counts by its newest answer.
  public var spans: [FirstAnswers]

  public init(since: Instant, asked: Instant, spans: [FirstAnswers]) {
    self.since = since
    self.asked = asked
    self.spans = spans
  }

  /// The systemic reasons. A reason that goes on from an earlier night is systemic in this one too, however few are new.
  ///
  /// - Parameter all: the undecided refusals about the same kind of proof of the same app.
  public func systemic(among all: [PendingRefusals], share: Share) -> Set<Refusal> {
    let isNew = asked <= since
    let goingOn = all.filter { isNew && $0.since < $0.asked && $0.asked > since - Self.night }
    return Set((goingOn + [self]).flatMap { $0.spans.flatMap { $0.systemic(share: share) } })
  }
}
