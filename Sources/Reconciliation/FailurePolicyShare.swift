/// The kinds of refusal that accuse a customer when they are few, and ourselves when they are many.
public enum Refusal: String, Hashable, CaseIterable, Sendable {
  case malformed
  case signatureInvalid = "signature_invalid"
  case wrongBundle = "wrong_bundle"
  case idMismatch = "id_mismatch"
  case notFound = "not_found"

  /// What was refused about a proof; nil when nothing was.
  ///
  /// - Parameters:
  ///   - provenBundleId: the app that a verified proof belongs to.
  ///   - expectedBundleIds: the app of the order; where it names none, all configured ones.
  ///   - provenIds: the transaction inside a signed proof, by its own and its original id; empty for a proof that lists
  ///     many.
  ///   - namedId: the transaction that the order names.
  public init?(
    _ outcome: CheckOutcome, reason: PaymentReason?, provenBundleId: String? = nil, expectedBundleIds: [String] = [],
    provenIds: [String] = [], namedId: String? = nil
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
      } else {
        return nil
      }
    case .pending, .unanswered, .review: return nil
    }
  }

  /// Whether Apple has not accepted the proof: that it is of another app or transaction than its order names is the order's
  /// matter.
  public var isOfProof: Bool {
    switch self {
    case .malformed, .signatureInvalid, .notFound: true
    case .wrongBundle, .idMismatch: false
    }
  }

  /// What is probably wrong with the mapping or the configuration when nearly everything is refused so, and what to do.
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
    }
  }
}

/// The first answers that one app got in a night, and those that deny what Apple has accepted before: no first ones, but no
/// other answer says more plainly that refusals of their kind are not the customers' doing.
public struct FirstAnswers: Hashable, Sendable {
  /// Fewer refusals of one kind are never systemic.
  public static let fewest = 20

  /// All of them, refusals and denials included, and what a signature has answered while Apple is silent.
  public var count: Int
  public var refusals: [Refusal: Int]

  public init(count: Int = 0, refusals: [Refusal: Int] = [:]) {
    self.count = count
    self.refusals = refusals
  }

  /// The kinds of refusal that are too many to be the customers' doing.
  ///
  /// - Parameter share: of the first answers (`audit.systemicShare`); all of them switch it off.
  public func systemic(share: Share) -> [Refusal] {
    Refusal.allCases.filter { kind in
      let refused = refusals[kind] ?? 0
      return refused >= Self.fewest && share.isExceeded(by: refused, of: count)
    }
  }

  /// One sentence for the operator on each kind, and what to do.
  public func complaint(app: String, share: Share) -> String? {
    let sentences = systemic(share: share).map { kind in
      """
      \(refusals[kind] ?? 0) of the \(count) first answers about \(app), and of denials of what was accepted before, are \
      \(kind.rawValue), which is no accident: they accuse nobody and are asked again the next night. \(kind.remedy) A shop \
      that is really under such attack sets audit.systemicShare to 1.
      """
    }
    return sentences.isEmpty ? nil : sentences.joined(separator: " ")
  }
}
