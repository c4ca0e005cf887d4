import Foundation
import Reconciliation
import SwiftASN1
import X509

/// A path of leaf, intermediate and trusted root, the only shape that Apple signs with. A value exists only if every
/// signature holds, the intermediate is an authority, and both have Apple's marker extensions; without the markers any
/// developer certificate would pass. The root's own signature is not checked, because an installed root is trusted.
/// `covers` checks the dates, because one path signs data of many.
struct AppleCertificatePath: Sendable {
  let leafKey: Certificate.PublicKey
  let usesSHA1: Bool
  /// The common validity of the certificates in seconds since 1970, inclusive (RFC 5280 4.1.2.5).
  private let notBefore: Int64
  private let notAfter: Int64

  init(leaf: Certificate, intermediate: Certificate, roots: [Certificate]) throws(SignedDataRefusal) {
    guard
      let root = roots.first(where: { Self.issued(intermediate, by: $0) }),
      Self.issued(leaf, by: intermediate)
    else { throw .chainNotTrusted }

    guard case .isCertificateAuthority = try? intermediate.extensions.basicConstraints else {
      throw .intermediateNotAuthority
    }
    if case .isCertificateAuthority(let longest?) = try? root.extensions.basicConstraints, longest < 1 {
      throw .intermediateNotAuthority
    }
    try Self.requireUsable(intermediate, at: .intermediate, marker: Self.intermediateMarker) { $0.keyCertSign }
    try Self.requireUsable(leaf, at: .leaf, marker: Self.leafMarker) { $0.digitalSignature }

    leafKey = leaf.publicKey
    usesSHA1 = [leaf, intermediate].contains { $0.signatureAlgorithm == .sha1WithRSAEncryption }
    let path = [leaf, intermediate, root]
    notBefore = path.reduce(.min) { max($0, Self.seconds($1.notValidBefore)) }
    notAfter = path.reduce(.max) { min($0, Self.seconds($1.notValidAfter)) }
  }

  func covers(_ instant: Instant) -> Bool {
    notBefore <= instant.seconds && instant.seconds <= notAfter
  }

  /// "Mac App Store receipt signing" (Apple, Validating receipts on the device).
  private static let leafMarker: ASN1ObjectIdentifier = [1, 2, 840, 113_635, 100, 6, 11, 1]
  /// "Apple Worldwide Developer Relations certification authority".
  private static let intermediateMarker: ASN1ObjectIdentifier = [1, 2, 840, 113_635, 100, 6, 2, 1]
  private static let basicConstraints: ASN1ObjectIdentifier = [2, 5, 29, 19]
  private static let keyUsage: ASN1ObjectIdentifier = [2, 5, 29, 15]

  private static func issued(_ certificate: Certificate, by issuer: Certificate) -> Bool {
    certificate.issuer.isSame(as: issuer.subject)
      && issuer.publicKey.isValidSignature(certificate.signature, for: certificate)
  }

  private static func requireUsable(
    _ certificate: Certificate, at position: ChainPosition, marker: ASN1ObjectIdentifier, may: (KeyUsage) -> Bool
  ) throws(SignedDataRefusal) {
    guard certificate.extensions[oid: marker] != nil else { throw .markerMissing(position) }
    let understood = [marker, basicConstraints, keyUsage]
    guard certificate.extensions.allSatisfy({ !$0.critical || understood.contains($0.oid) }) else {
      throw .certificateNotUsable(position)
    }
    let usage: KeyUsage?
    do {
      usage = try certificate.extensions.keyUsage
    } catch {
      throw .certificateNotUsable(position)
    }
    guard usage.map(may) ?? true else { throw .certificateNotUsable(position) }
  }

  private static func seconds(_ date: Date) -> Int64 { Int64(date.timeIntervalSince1970) }
}

extension DistinguishedName {
  /// Compares the characters of two names, in whatever string types they are encoded (RFC 5280, 7.1).
  func isSame(as other: DistinguishedName) -> Bool { self == other || characters == other.characters }

  private var characters: [[String]] {
    map { $0.map { "\($0.type) \(String($0.value) ?? $0.value.description)" } }
  }
}

extension Certificate {
  /// Parses a certificate from signed data. One in a form that the library does not read, such as with a negative
  /// serial number, is unsupported rather than invalid, so that Apple is asked.
  init(received bytes: ArraySlice<UInt8>, at index: Int) throws(SignedDataRefusal) {
    guard bytes.count <= DecodingLimits.certificateLength else { throw .certificateUnreadable(index) }
    do {
      try self.init(derEncoded: Array(bytes))
    } catch {
      guard var parts = BERElement(bytes)?.children, parts.next(BERElement.sequence) != nil,
        parts.next(BERElement.sequence) != nil, parts.next(BERElement.bitString) != nil, parts.isAtEnd
      else { throw .certificateUnreadable(index) }
      throw .unsupported("certificate \(index + 1) has an unknown form")
    }
  }
}
