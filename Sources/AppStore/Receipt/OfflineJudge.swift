import Reconciliation

package enum OfflineJudgement: Hashable, Sendable {
  case genuine(GenuineProof)
  /// The receipt is rejected: `signature_invalid`, `malformed` or `xcode`, with the check that failed.
  case refused(PaymentReason, failedCheck: String? = nil)
  /// The receipt cannot be verified offline; Apple must be asked about the IDs in it.
  case claim(UnprovenClaim)
  /// No root certificates are installed. Contains the unverified content, if it is readable.
  case noRoots(WrittenContent?)
}

/// The unverified content of a receipt. It is no evidence, and is used only to decide what to ask Apple.
package struct UnprovenClaim: Hashable, Sendable {
  package var why: String
  /// The transaction IDs in it, newest first, at most 100; empty if it is unreadable or contains none.
  package var transactionIds: [String]
  package var bundleId: String?
  package var content: WrittenContent?
  /// True if Apple signed it with a certificate that was not valid at that time. An ID that Apple confirms is verified.
  package var isExpired = false
}

/// Checks receipts offline, also while Apple is down.
package struct OfflineJudge: Sendable {
  package let hasRoots: Bool
  /// Identifies the root certificates.
  package let identity: String
  /// Returns the kind of a payload and the result of its offline check.
  package let judge: @Sendable (_ payload: String) -> (kind: ReceiptKind, judgement: OfflineJudgement)

  package init(
    hasRoots: Bool, identity: String = "",
    judge: @escaping @Sendable (String) -> (kind: ReceiptKind, judgement: OfflineJudgement)
  ) {
    (self.hasRoots, self.identity, self.judge) = (hasRoots, identity, judge)
  }

  package init(roots: TrustedRoots?) {
    let verifiers = roots.map(Verifiers.init)
    let identity = roots?.entries.map(\.fingerprint).sorted().joined(separator: " ")
    self.init(hasRoots: roots != nil, identity: identity ?? "none") { payload in
      let payload = ReceivedPayload(payload)
      return (payload.kind, verifiers?.judge(payload.content) ?? OfflineJudgement(withoutRoots: payload.content))
    }
  }
}

private struct Verifiers: Sendable {
  let documents: JWSVerifier
  let appReceipts: AppReceiptVerifier

  init(_ roots: TrustedRoots) {
    documents = JWSVerifier(roots: roots)
    appReceipts = AppReceiptVerifier(roots: roots)
  }

  func judge(_ content: ReceivedPayload.Content) -> OfflineJudgement {
    switch content {
    case .unreadable(let why): .refused(.malformed, failedCheck: why.rawValue)
    case .signed(let jws):
      switch documents.verifyDocument(jws, channel: .offline) {
      case .success(let proof): .genuine(proof)
      case .failure(let refusal): OfflineJudgement(refusal, of: content)
      }
    case .app(let bytes):
      switch appReceipts.verify(bytes) {
      case .success(let receipt):
        .genuine(
          GenuineProof(
            environment: receipt.environment, bundleId: receipt.bundleId, facts: receipt.transactions,
            creationDate: receipt.creationDate))
      case .failure(let refusal): OfflineJudgement(refusal, of: content)
      }
    case .transaction: OfflineJudgement(withoutRoots: content)
    }
  }
}

extension OfflineJudgement {
  /// The judgement of a payload whose signature cannot be checked.
  fileprivate init(withoutRoots content: ReceivedPayload.Content) {
    switch content {
    case .unreadable(let why): self = .refused(.malformed, failedCheck: why.rawValue)
    case .signed: self = .noRoots(nil)
    case .app(let bytes): self = .noRoots(WrittenContent(app: bytes))
    case .transaction(let bytes):
      do throws(SignedDataRefusal) {
        self = .claim(UnprovenClaim(try OldTransactionReceipt(bytes)))
      } catch {
        self.init(error, of: content)
      }
    }
  }

  fileprivate init(_ refusal: SignedDataRefusal, of content: ReceivedPayload.Content) {
    switch refusal.meaning {
    case .signatureInvalid: self = .refused(.signatureInvalid, failedCheck: "\(refusal)")
    case .malformed: self = .refused(.malformed, failedCheck: "\(refusal)")
    case .xcode: self = .refused(.xcode)
    case .expired: self = .claim(UnprovenClaim(why: "\(refusal)", content: content, isExpired: true))
    case .noRoots: self.init(withoutRoots: content)
    case .undecided: self = .claim(UnprovenClaim(why: "\(refusal)", content: content))
    }
  }
}

extension UnprovenClaim {
  private static let mostTransactions = 100

  fileprivate init(_ receipt: OldTransactionReceipt) {
    self.init(
      why: "an old transaction receipt, which only Apple can verify",
      transactionIds: [receipt.transactionId], bundleId: receipt.bundleId, content: WrittenContent(receipt))
  }

  fileprivate init(why: String, content: ReceivedPayload.Content, isExpired: Bool = false) {
    self.init(why: why, transactionIds: [], isExpired: isExpired)
    switch content {
    case .signed(let jws):
      let payload = jws.split(separator: ".").dropFirst().first.flatMap { JSONFields(signedPart: $0) }
      let transaction = payload?.object("data")?.document("signedTransactionInfo")
        .flatMap { $0.split(separator: ".").dropFirst().first }.flatMap { JSONFields(signedPart: $0) }
      transactionIds = [(transaction ?? payload)?.text("transactionId")].compactMap(\.self)
      bundleId = (transaction ?? payload)?.text("bundleId")
    case .app(let bytes):
      guard let content = try? ReceiptContent(ReceiptContainer(bytes).content) else { return }
      bundleId = content.bundleId
      self.content = WrittenContent(content)
      let newestFirst = content.purchases.sorted {
        ($0.purchaseDate?.microseconds ?? 0, $0.transactionId ?? "")
          > ($1.purchaseDate?.microseconds ?? 0, $1.transactionId ?? "")
      }
      transactionIds = Array(newestFirst.lazy.compactMap(\.transactionId).prefix(Self.mostTransactions))
    case .transaction, .unreadable: break
    }
  }
}

extension JSONFields {
  /// Decodes the payload of a JWS without verification.
  fileprivate init?(signedPart text: Substring) {
    guard let bytes = Base64Text.decodeURLSafe(Array(text.utf8)[...]) else { return nil }
    self.init(bytes)
  }
}
