import Reconciliation

/// A reason why signed data is rejected. It is an ordinary result for the report and contains no payload and no key.
package enum SignedDataRefusal: Error, Hashable, Sendable {
  /// Longer than anything Apple signs; not read at all.
  case tooLarge
  case notThreeParts
  /// The JWS header is not base64url, not JSON, or demands an extension (RFC 7515 section 4.1.11).
  case headerUnreadable
  /// The JWS algorithm, which is not ES256.
  case algorithm(String)
  case chainLength(Int)
  case certificateUnreadable(Int)
  case chainNotTrusted
  case intermediateNotAuthority
  /// A certificate may not sign, or has an unknown critical extension.
  case certificateNotUsable(ChainPosition)
  /// Apple's marker extension is missing: the certificate was issued for another purpose.
  case markerMissing(ChainPosition)
  case notValidAtSignedDate
  /// The leaf's key is of another kind than the signature needs.
  case leafKeyKind
  /// SHA-1 in a receipt younger than Apple's last SHA-1 certificate.
  case digestTooWeak
  case signatureUnreadable
  case signatureMismatch
  case truncated
  case payloadUnreadable
  case payloadIncomplete(String)
  case environmentUnknown(String?)
  /// Signed in a way that Apple's receipts do not use today.
  case unsupported(String)
  /// Created by Xcode or StoreKit's local testing and signed by a developer's machine.
  case notSignedByApple(AppleEnvironment)
  case noRoots
}

package enum ChainPosition: String, Hashable, Sendable {
  case leaf
  case intermediate
}

extension SignedDataRefusal {
  package enum Meaning: Hashable, Sendable {
    /// Forged or damaged: the reason `signature_invalid`.
    case signatureInvalid
    /// None of the three kinds of receipt: the reason `malformed`.
    case malformed
    /// From Xcode or local testing: the reason `xcode`.
    case xcode
    /// Unknown until root certificates are installed: the reason `no_roots`.
    case noRoots
    /// Apple's chain is right except for its dates: the reason `certificate_expired`. Apple must be asked.
    case expired
    /// Cannot be verified offline; Apple must be asked.
    case undecided
  }

  /// The conclusion. Only the first three prove that nothing was paid.
  package var meaning: Meaning {
    switch self {
    case .algorithm, .chainLength, .certificateUnreadable, .chainNotTrusted, .intermediateNotAuthority,
      .certificateNotUsable, .markerMissing, .leafKeyKind, .digestTooWeak, .signatureMismatch:
      .signatureInvalid
    case .notValidAtSignedDate: .expired
    case .notThreeParts, .headerUnreadable, .signatureUnreadable, .truncated, .payloadUnreadable:
      .malformed
    case .notSignedByApple: .xcode
    case .noRoots: .noRoots
    // Apple may have signed it, so it proves nothing against the order.
    case .tooLarge, .environmentUnknown, .unsupported, .payloadIncomplete: .undecided
    }
  }
}

extension SignedDataRefusal: CustomStringConvertible {
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
    case .notSignedByApple(let environment): "made by \(environment.rawValue), not signed by Apple"
    case .noRoots: "there are no root certificates to verify it with"
    }
  }
}
