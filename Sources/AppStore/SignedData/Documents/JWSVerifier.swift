import Crypto
import Reconciliation
import SwiftASN1
import Synchronization
import X509

/// Verifies Apple's signed transactions, renewal information and notifications offline. The rules are those of Apple's
/// server libraries: ES256 only, exactly three certificates under one of our roots, both of Apple's marker extensions,
/// every certificate valid at `signedDate`. The caller compares bundle and environment. A chain is cached once it has
/// signed something authentic; the next signature of its leaf costs one P-256 verification.
package final class JWSVerifier: Sendable {
  private let roots: [Certificate]
  let remembered = Mutex(RememberedChains())

  package init(roots: TrustedRoots) { self.roots = roots.ofSignedTransactions }

  /// Verifies a signed transaction (Apple: `JWSTransaction`).
  package func verifyTransaction(
    _ jws: String, channel: EvidenceChannel
  ) -> Result<TransactionFact, SignedDataRefusal> {
    verify(jws) { payload throws(SignedDataRefusal) in try TransactionFact(signed: payload, channel: channel) }
  }

  /// Verifies signed renewal information (Apple: `JWSRenewalInfo`).
  package func verifyRenewalInfo(_ jws: String) -> Result<SignedRenewalInfo, SignedDataRefusal> {
    verify(jws) { payload throws(SignedDataRefusal) in try SignedRenewalInfo(payload) }
  }

  /// Verifies a notification (Apple: `responseBodyV2`, its `signedPayload`) and, separately, the documents in it.
  package func verifyNotification(_ jws: String) -> Result<SignedNotification, SignedDataRefusal> {
    verify(jws) { payload throws(SignedDataRefusal) in try notification(payload, channel: .notification) }
  }

  private func notification(
    _ payload: JSONFields, channel: EvidenceChannel
  ) throws(SignedDataRefusal) -> SignedNotification {
    let data = payload.object("data")
    return try SignedNotification(
      payload, transaction: data?.document("signedTransactionInfo").map { verifyTransaction($0, channel: channel) },
      renewalInfo: data?.document("signedRenewalInfo").map(verifyRenewalInfo))
  }

  /// Verifies a document of any kind, and returns the transaction in it, if there is one.
  func verifyDocument(_ jws: String, channel: EvidenceChannel) -> Result<GenuineProof, SignedDataRefusal> {
    verify(jws) { payload throws(SignedDataRefusal) in
      if payload.has("notificationType") {
        let notification = try notification(payload, channel: channel)
        // Apple signed the notification, but the transaction in it may not verify by itself.
        if let transaction = notification.transaction { return GenuineProof(try transaction.get()) }
        return GenuineProof(environment: notification.environment, bundleId: notification.bundleId, facts: [])
      }
      if payload.has("transactionId") || payload.has("webOrderLineItemId") {
        return GenuineProof(try TransactionFact(signed: payload, channel: channel))
      }
      // Renewal information, an app transaction, or a newer kind: none has a transaction ID.
      let environment =
        payload.text("environment").flatMap(AppleEnvironment.init(rawValue:))
        ?? payload.text("receiptType").flatMap(AppleEnvironment.init(receiptType:))
      return GenuineProof(environment: environment, bundleId: payload.text("bundleId"), facts: [])
    }
  }

  private func verify<Document>(
    _ jws: String, read: (JSONFields) throws(SignedDataRefusal) -> Document
  ) -> Result<Document, SignedDataRefusal> {
    Result { () throws(SignedDataRefusal) in try read(verifiedPayload(JWSParts(jws))) }
  }

  private func verifiedPayload(_ jws: JWSParts) throws(SignedDataRefusal) -> JSONFields {
    let payload = JSONFields(jws.payload)
    let environment =
      payload?.text("environment") ?? payload?.object("data")?.text("environment") ?? payload?.text("receiptType")
    if let claimed = environment.flatMap(AppleEnvironment.init(rawValue:)), claimed.isOfDevelopers {
      throw .notSignedByApple(claimed)
    }

    let known = remembered.withLock { $0.chain(for: jws.header) }
    let chain: RememberedChain
    if let known { chain = known } else { chain = try readChain(ofHeader: jws.header) }
    // A shorter signature was truncated; an empty or different one was never Apple's.
    guard !(1..<64).contains(jws.signature.count) else { throw .truncated }
    guard jws.signature.count == 64,
      let signature = try? P256.Signing.ECDSASignature(rawRepresentation: jws.signature),
      chain.key.isValidSignature(signature, for: jws.signedText)
    else { throw .signatureMismatch }
    // Cached only after verification, so that forged headers cannot fill the cache.
    if known == nil { remembered.withLock { $0.remember(chain, for: jws.header) } }

    guard let payload else { throw .payloadIncomplete("readable content") }
    // An app transaction has the date of its creation instead (Apple: `AppTransaction`).
    guard let signedDate = payload.instant("signedDate") ?? payload.instant("receiptCreationDate") else {
      throw .payloadIncomplete("signedDate")
    }
    guard chain.path.covers(signedDate) else { throw .notValidAtSignedDate }
    return payload
  }

  private func readChain(ofHeader text: ArraySlice<UInt8>) throws(SignedDataRefusal) -> RememberedChain {
    guard let bytes = Base64Text.decodeURLSafe(text), let header = JSONFields(bytes), !header.has("crit") else {
      throw .headerUnreadable
    }
    guard header.text("alg") == "ES256" else { throw .algorithm(header.text("alg") ?? "nothing") }
    let chain = header.texts("x5c") ?? []
    guard chain.count == 3 else { throw .chainLength(chain.count) }
    guard !roots.isEmpty else { throw .noRoots }

    var certificates: [Certificate] = []
    // The third certificate only names the root, and our own is used.
    for (index, text) in chain.enumerated() {
      guard let bytes = text.flatMap({ Base64Text.decodePadded(ArraySlice($0.utf8)) }) else {
        throw .certificateUnreadable(index)
      }
      guard index < 2 else { break }
      certificates.append(try Certificate(received: bytes[...], at: index))
    }
    let path = try AppleCertificatePath(leaf: certificates[0], intermediate: certificates[1], roots: roots)
    guard let key = P256.Signing.PublicKey(path.leafKey) else { throw .leafKeyKind }
    return RememberedChain(path: path, key: key)
  }
}

/// The three parts of a compact JWS (RFC 7515 section 7.1).
struct JWSParts {
  /// Kept encoded: it is the cache key of the chain, and is decoded once per chain.
  let header: ArraySlice<UInt8>
  let payload: [UInt8]
  let signature: [UInt8]
  let signedText: ArraySlice<UInt8>

  init(_ jws: String) throws(SignedDataRefusal) {
    guard jws.utf8.count <= DecodingLimits.jwsLength else { throw .tooLarge }
    let text = Array(jws.utf8)
    let dot = UInt8(ascii: ".")
    guard let first = text.firstIndex(of: dot), let last = text.lastIndex(of: dot), first < last,
      !text[(first + 1)..<last].contains(dot)
    else { throw .notThreeParts }
    header = text[..<first]
    signedText = text[..<last]
    guard let payload = Base64Text.decodeURLSafe(text[(first + 1)..<last]) else { throw .payloadUnreadable }
    guard let signature = Base64Text.decodeURLSafe(text[(last + 1)...]) else { throw .signatureUnreadable }
    (self.payload, self.signature) = (payload, signature)
  }
}
