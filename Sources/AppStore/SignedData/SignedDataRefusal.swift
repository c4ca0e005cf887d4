import Reconciliation

/// Why signed data is not evidence: one case for each way in which it can fail.
///
/// A refusal is an ordinary answer and goes into the report; it holds no payload and no key.
package enum SignedDataRefusal: Error, Hashable, Sendable {
  /// Longer than anything Apple signs; not read at all.
  case tooLarge
  /// Not three parts joined by dots.
  case notThreeParts
  /// The JWS header is not base64url, not JSON, or demands an extension (RFC 7515 section 4.1.11).
  case headerUnreadable
  /// The JWS is not signed with ES256; the name that its header gives.
  case algorithm(String)
  /// Not the three certificates that Apple sends; how many there are.
  case chainLength(Int)
  /// The certificate at this position (0 is the leaf) is not one.
  case certificateUnreadable(Int)
  /// The certificates do not lead to a trusted root.
  case chainNotTrusted
  /// The intermediate may not issue certificates.
  case intermediateNotAuthority
  /// A certificate of the chain may not sign, or has a critical extension that is unknown here.
  case certificateNotUsable(ChainPosition)
  /// Apple's marker extension is missing: the certificate was issued for another purpose.
  case markerMissing(ChainPosition)
  /// A certificate was not valid when the data says that it was signed.
  case notValidAtSignedDate
  /// The leaf's key is of another kind than the signature needs.
  case leafKeyKind
  /// SHA-1 in a receipt that is younger than Apple's last SHA-1 certificate.
  case digestTooWeak
  /// The JWS signature is not base64url.
  case signatureUnreadable
  /// The signature does not fit the content.
  case signatureMismatch
  /// Its end is missing.
  case truncated
  /// The content is not in the form that its kind has.
  case payloadUnreadable
  /// Authentic, but what a transaction must have is not there; the name of the first missing field.
  case payloadIncomplete(String)
  /// Authentic, but made in an environment that is unknown here; Apple's word for it, nil where it gives none.
  case environmentUnknown(String?)
  /// Signed in a way that Apple's receipts do not use today; what it is.
  case unsupported(String)
  /// Made by Xcode or StoreKit's local testing, signed by a developer's machine; never trusted.
  case notSignedByApple(AppleEnvironment, UnverifiedClaim)
  /// There is no root certificate to judge it by.
  case noRoots
}

/// Which of the two certificates below the root is meant.
package enum ChainPosition: String, Hashable, Sendable {
  /// The one whose key signed the data.
  case leaf
  /// The one that issued the leaf.
  case intermediate
}

/// What data that nobody vouches for says about itself; nil where it is unreadable. For explanations only.
package struct UnverifiedClaim: Hashable, Sendable {
  /// The transaction id that it names; of an app receipt's first purchase.
  package var transactionId: String?
  /// The product that it names.
  package var productId: String?

  /// A claim of these two.
  package init(transactionId: String? = nil, productId: String? = nil) {
    self.transactionId = transactionId
    self.productId = productId
  }
}

extension SignedDataRefusal {
  /// What a refusal says about the proof that was refused.
  package enum Meaning: Hashable, Sendable {
    /// Forged or damaged: the reason `signature_invalid`.
    case signatureInvalid
    /// None of the three kinds of receipt: the reason `malformed`.
    case malformed
    /// From Xcode or local testing: the reason `xcode`.
    case xcode
    /// Nothing is proven as long as there are no root certificates: the reason `no_roots`.
    case noRoots
    /// Nothing is proven: it cannot be judged offline, and Apple must be asked.
    case undecided
  }

  /// What this refusal proves. Only the first three prove that nothing was paid.
  package var meaning: Meaning {
    switch self {
    case .algorithm, .chainLength, .certificateUnreadable, .chainNotTrusted, .intermediateNotAuthority,
      .certificateNotUsable, .markerMissing, .notValidAtSignedDate, .leafKeyKind, .digestTooWeak, .signatureMismatch:
      .signatureInvalid
    case .notThreeParts, .headerUnreadable, .signatureUnreadable, .truncated, .payloadUnreadable:
      .malformed
    case .notSignedByApple: .xcode
    case .noRoots: .noRoots
    // Apple signed it, whatever is missing: that proves nothing against anybody.
    case .tooLarge, .environmentUnknown, .unsupported, .payloadIncomplete: .undecided
    }
  }
}

extension SignedDataRefusal: CustomStringConvertible {
  /// A short reason for people. Words that come from the data are cut to 40 characters.
  package var description: String {
    switch self {
    case .tooLarge: "larger than anything Apple signs"
    case .notThreeParts: "not three parts joined by dots"
    case .headerUnreadable: "the header is unreadable"
    case .algorithm(let name): "signed with \(name.prefix(40)), not with ES256"
    case .chainLength(let count): "\(count) certificates, not three"
    case .certificateUnreadable(let index): "certificate \(index + 1) is unreadable"
    case .chainNotTrusted: "the certificates do not lead to a trusted root"
    case .intermediateNotAuthority: "the intermediate certificate may not issue certificates"
    case .certificateNotUsable(let position): "the \(position.rawValue) certificate may not be used for this"
    case .markerMissing(let position): "the \(position.rawValue) certificate lacks Apple's marker"
    case .notValidAtSignedDate: "a certificate was not valid when this was signed"
    case .leafKeyKind: "the leaf certificate has a key of the wrong kind"
    case .digestTooWeak: "signed with SHA-1 after Apple had given it up"
    case .signatureUnreadable: "the signature is unreadable"
    case .signatureMismatch: "the signature does not fit the content"
    case .truncated: "its end is missing"
    case .payloadUnreadable: "the content is unreadable"
    case .payloadIncomplete(let field): "authentic, but without \(field)"
    case .environmentUnknown(let name): "from an unknown environment (\((name ?? "none given").prefix(40)))"
    case .unsupported(let what): "signed in an unknown way: \(what.prefix(40))"
    case .notSignedByApple(let environment, _): "made by \(environment.rawValue), not signed by Apple"
    case .noRoots: "there are no root certificates to judge it by"
    }
  }
}

/// At which instant the certificates had to be valid. Neither mode can see a certificate that was revoked since.
package enum ValidityMode: String, Hashable, Sendable {
  /// At the payload's own `signedDate`.
  case atSignedDate
  /// At an app receipt's creation date (attribute 12).
  case atCreationDate
}
