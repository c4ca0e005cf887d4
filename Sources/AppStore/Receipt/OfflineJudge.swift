import Reconciliation

/// What a receipt says by itself, without asking anybody.
package enum OfflineJudgement: Hashable, Sendable {
  /// Apple signed it.
  case genuine(GenuineProof)
  /// It proves that it is worth nothing: `signature_invalid`, `malformed` or `xcode`.
  case refused(PaymentReason)
  /// It cannot be judged here: Apple has to be asked about what it names.
  case claim(UnprovenClaim)
  /// There are no root certificates to judge it by. With what it says, where that can be read.
  case noRoots(WrittenContent?)
}

/// Something whose signature leads to one of Apple's roots.
package struct GenuineProof: Hashable, Sendable {
  /// Nil where Apple names none, which only things without purchases may.
  package var environment: AppleEnvironment?
  package var bundleId: String?
  /// What Apple signed, one fact a purchase, with the channel `offline`. None for what proves no purchase: an app
  /// transaction, renewal information, a notification without a transaction.
  package var facts: [TransactionFact]
  /// The id of the one purchase that it is about; nil for an app receipt, which lists many.
  package var signedTransactionId: String?
  /// When Apple made the app receipt; the same each time it is asked about.
  package var creationDate: Instant?

  package init(
    environment: AppleEnvironment?, bundleId: String?, facts: [TransactionFact], signedTransactionId: String? = nil,
    creationDate: Instant? = nil
  ) {
    self.environment = environment
    self.bundleId = bundleId
    self.facts = facts
    self.signedTransactionId = signedTransactionId
    self.creationDate = creationDate
  }
}

/// What a receipt says whose signature nobody here can judge. Never evidence: what Apple is to be asked about.
package struct UnprovenClaim: Hashable, Sendable {
  /// Why it cannot be judged, for people.
  package var why: String
  /// The transactions that it names, the newest first, at most a hundred; none where it is unreadable, or names none.
  package var transactionIds: [String]
  /// The app that it names.
  package var bundleId: String?
  /// What else a receipt says; nil where it cannot be read.
  package var content: WrittenContent?

  package init(why: String, transactionIds: [String], bundleId: String? = nil, content: WrittenContent? = nil) {
    self.why = why
    self.transactionIds = transactionIds
    self.bundleId = bundleId
    self.content = content
  }
}

/// Judges receipts without asking anybody. Works while Apple is down.
package struct OfflineJudge: Sendable {
  /// Whether any signature can be checked.
  package let hasRoots: Bool
  /// What a payload is, and what it says by itself.
  package let judge: @Sendable (_ payload: String) -> (kind: ReceiptKind, judgement: OfflineJudgement)

  package init(
    hasRoots: Bool, judge: @escaping @Sendable (String) -> (kind: ReceiptKind, judgement: OfflineJudgement)
  ) {
    self.hasRoots = hasRoots
    self.judge = judge
  }

  /// Judges against Apple's root certificates.
  ///
  /// - Parameter roots: nil where none are installed: nothing signed can be judged then.
  package init(roots: TrustedRoots?) {
    let verifiers = roots.map(Verifiers.init)
    self.init(hasRoots: roots != nil) { payload in
      let payload = ReceivedPayload(payload)
      return (payload.kind, verifiers?.judge(payload.content) ?? OfflineJudgement(withoutRoots: payload.content))
    }
  }
}

/// Everything that judges a signature.
private struct Verifiers: Sendable {
  let documents: JWSVerifier
  let appReceipts: AppReceiptVerifier
  let oldReceipts: OldReceiptVerifier

  init(_ roots: TrustedRoots) {
    documents = JWSVerifier(roots: roots)
    appReceipts = AppReceiptVerifier(roots: roots)
    oldReceipts = OldReceiptVerifier(roots: roots)
  }

  func judge(_ content: ReceivedPayload.Content) -> OfflineJudgement {
    switch content {
    case .unreadable: .refused(.malformed)
    case .signed(let jws): judge(documents.verifyDocument(jws, channel: .offline), content)
    case .app(let bytes):
      switch appReceipts.verify(bytes) {
      case .success(let receipt): .genuine(GenuineProof(receipt))
      case .failure(let refusal): OfflineJudgement(refusal, of: content)
      }
    case .transaction(let bytes): judge(oldReceipt: bytes)
    }
  }

  private func judge(
    _ result: Result<SignedDocument, SignedDataRefusal>, _ content: ReceivedPayload.Content
  ) -> OfflineJudgement {
    switch result {
    case .failure(let refusal): OfflineJudgement(refusal, of: content)
    case .success(.transaction(let transaction)): .genuine(GenuineProof(transaction.fact))
    case .success(.notification(let notification)):
      switch notification.transaction {
      case .success(let transaction): .genuine(GenuineProof(transaction.fact))
      // Apple signed the whole of it, and with it that which cannot be judged by itself.
      case .failure(let refusal): OfflineJudgement(refusal, of: content)
      case nil:
        .genuine(GenuineProof(environment: notification.environment, bundleId: notification.bundleId, facts: []))
      }
    case .success(.other(let paper)):
      .genuine(GenuineProof(environment: paper.environment, bundleId: paper.bundleId, facts: []))
    }
  }

  private func judge(oldReceipt bytes: [UInt8]) -> OfflineJudgement {
    do throws(SignedDataRefusal) {
      let receipt = try OldTransactionReceipt(bytes)
      switch oldReceipts.verify(receipt) {
      case .authentic: return .genuine(GenuineProof(TransactionFact(receipt)))
      case .forged: return .refused(.signatureInvalid)
      case .undecided: return .claim(UnprovenClaim(receipt))
      }
    } catch {
      return OfflineJudgement(error, of: .transaction(bytes))
    }
  }
}

extension OfflineJudgement {
  /// What a payload says where there is no root certificate.
  fileprivate init(withoutRoots content: ReceivedPayload.Content) {
    switch content {
    case .unreadable: self = .refused(.malformed)
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
    case .signatureInvalid: self = .refused(.signatureInvalid)
    case .malformed: self = .refused(.malformed)
    case .xcode: self = .refused(.xcode)
    case .noRoots: self.init(withoutRoots: content)
    case .undecided: self = .claim(UnprovenClaim(why: "\(refusal)", content: content))
    }
  }
}

extension GenuineProof {
  fileprivate init(_ receipt: AppReceipt) {
    self.init(
      environment: receipt.environment, bundleId: receipt.bundleId, facts: receipt.transactions,
      creationDate: receipt.creationDate)
  }

  /// A proof of one purchase.
  fileprivate init(_ fact: TransactionFact) {
    self.init(
      environment: fact.environment, bundleId: fact.bundleId, facts: [fact], signedTransactionId: fact.transactionId)
  }
}

extension UnprovenClaim {
  private static let mostTransactions = 100

  fileprivate init(_ receipt: OldTransactionReceipt) {
    self.init(
      why: "an old transaction receipt whose certificate leads to no root here",
      transactionIds: [receipt.transactionId], bundleId: receipt.bundleId, content: WrittenContent(receipt))
  }

  /// What the content says about itself, whoever signed it.
  fileprivate init(why: String, content: ReceivedPayload.Content) {
    self.init(why: why, transactionIds: [])
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
  /// The payload of a JWS, whoever signed it.
  fileprivate init?(signedPart text: Substring) {
    guard let bytes = Base64Text.decodeURLSafe(Array(text.utf8)[...]) else { return nil }
    self.init(bytes)
  }
}

extension TransactionFact {
  /// What an old receipt says whose signature holds, dated by the purchase that it was made for.
  fileprivate init(_ receipt: OldTransactionReceipt) {
    let date = receipt.purchaseDate ?? Instant(seconds: 0)
    self.init(
      environment: receipt.environment, transactionId: receipt.transactionId, productId: receipt.productId,
      channel: .offline, signedDate: date)
    bundleId = receipt.bundleId
    originalTransactionId = receipt.originalTransactionId
    webOrderLineItemId = receipt.webOrderLineItemId
    productType = receipt.expiresDate == nil ? nil : .autoRenewable
    quantity = receipt.quantity
    purchaseDate = receipt.purchaseDate
    originalPurchaseDate = receipt.originalPurchaseDate
    expiresDate = receipt.expiresDate
    if receipt.isTrial == true { hasOffer = true }
  }
}

extension OldTransactionReceipt {
  /// Which side it is from. Only the outer list says so, which nobody signs: taken off it would turn a purchase without money
  /// into one. The sandbox's ids of those years begin with 1000000 and have sixteen digits, and the id is signed.
  package var environment: AppleEnvironment {
    let isSandboxId = transactionId.utf8.count == 16 && transactionId.hasPrefix("1000000")
    return claimedEnvironment == "Sandbox" || isSandboxId ? .sandbox : .production
  }
}
