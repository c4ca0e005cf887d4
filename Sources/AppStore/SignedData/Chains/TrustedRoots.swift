import CSystemCalls
import Crypto
import Foundation
import Reconciliation
import SwiftASN1
import X509

/// The installed root certificates: Apple's own two by SHA-256, unless `pinned` is false, as in a rehearsal.
/// Certificates in signed data are never trusted as roots.
package struct TrustedRoots: Sendable {
  /// No roots: every verifier returns `noRoots`.
  package static let none = TrustedRoots(unchecked: [])

  let certificates: [Certificate]

  /// Apple signs documents under G3, an elliptic curve, never under the RSA root of app receipts.
  var ofSignedTransactions: [Certificate] { certificates.filter(Self.hasEllipticCurve) }
  var ofAppReceipts: [Certificate] { certificates.filter { !Self.hasEllipticCurve($0) } }

  private static func hasEllipticCurve(_ certificate: Certificate) -> Bool {
    P384.Signing.PublicKey(certificate.publicKey) != nil || P256.Signing.PublicKey(certificate.publicKey) != nil
  }

  package struct Entry: Hashable, Sendable {
    package var name: String
    package var fingerprint: String
    package var ends: Instant
  }

  package var entries: [Entry] {
    certificates.map { certificate in
      var serializer = DER.Serializer()
      try? serializer.serialize(certificate)
      let names = certificate.subject.flatMap { $0 }.filter { $0.type == .RDNAttributeType.commonName }
      return Entry(
        name: names.first.map { String(describing: $0.value) } ?? "without a name",
        fingerprint: TrustedRoots.fingerprint(serializer.serializedBytes),
        ends: Instant(seconds: Int64(certificate.notValidAfter.timeIntervalSince1970)))
    }.sorted { ($0.name, $0.fingerprint) < ($1.name, $1.fingerprint) }
  }

  package var isEmpty: Bool { certificates.isEmpty }

  private init(unchecked certificates: [Certificate]) { self.certificates = certificates }

  /// Reads every file of a directory except hidden ones, as DER or PEM. If `pinned`, they must be exactly Apple's
  /// roots.
  package init(directory: String, pinned: Bool) throws(TrustedRootsError) {
    let files = try Self.files(of: directory)
    var found: [(certificate: DERBytes, origin: String)] = []
    for file in files {
      for certificate in try Self.certificates(inFile: file) { found.append((certificate, file)) }
    }
    try self.init(found, pinned: pinned, place: directory)
  }

  package init(certificates: [[UInt8]], pinned: Bool) throws(TrustedRootsError) {
    let found = certificates.enumerated().map { ($1, "certificate \($0 + 1)") }
    try self.init(found, pinned: pinned, place: "memory")
  }

  private typealias DERBytes = [UInt8]

  private init(_ found: [(certificate: DERBytes, origin: String)], pinned: Bool, place: String)
    throws(TrustedRootsError)
  {
    guard !found.isEmpty else { throw .noRoots(directory: place) }
    var roots: [String: Certificate] = [:]
    for (bytes, origin) in found {
      guard bytes.count <= DecodingLimits.certificateLength, let root = try? Certificate(derEncoded: bytes) else {
        throw .unreadable(file: origin, reason: "it is not an X.509 certificate")
      }
      guard case .isCertificateAuthority = try? root.extensions.basicConstraints else {
        throw .notAuthority(file: origin)
      }
      let fingerprint = Self.fingerprint(bytes)
      guard !pinned || Self.applePins.contains(where: { $0.fingerprint == fingerprint }) else {
        throw .notPinned(file: origin, fingerprint: fingerprint)
      }
      roots[fingerprint] = root
    }
    if pinned {
      for pin in Self.applePins where roots[pin.fingerprint] == nil { throw .missing(pin, directory: place) }
    }
    self.init(unchecked: roots.sorted { $0.key < $1.key }.map(\.value))
  }

  private static func files(of directory: String) throws(TrustedRootsError) -> [String] {
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: directory)
    } catch CocoaError.fileReadNoSuchFile {
      throw .noRoots(directory: directory)
    } catch {
      throw .unreadable(file: directory, reason: "the directory cannot be listed")
    }
    return names.filter { !$0.hasPrefix(".") }.sorted().map { directory + "/" + $0 }
  }

  private static func certificates(inFile path: String) throws(TrustedRootsError) -> [DERBytes] {
    var (owner, mode): (UInt32, UInt32) = (0, 0)
    let descriptor = file_open_regular(path, &owner, &mode)
    guard descriptor >= 0 else {
      throw .unreadable(file: path, reason: "the file \(String(cString: file_open_problem(errno)))")
    }
    let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    let longest = DecodingLimits.certificateLength * 16
    let content: Data
    do {
      content = try handle.read(upToCount: longest + 1) ?? Data()
    } catch {
      throw .unreadable(file: path, reason: "the file cannot be read")
    }
    guard content.count <= longest else { throw .unreadable(file: path, reason: "it is too large for a certificate") }
    guard let certificates = certificates(in: DERBytes(content)) else {
      throw .unreadable(file: path, reason: "it is neither DER nor PEM")
    }
    return certificates
  }

  /// The certificates of a PEM text, or content that begins like DER; nil for anything else.
  static func certificates(in content: [UInt8]) -> [[UInt8]]? {
    guard content.first != 0x30 else { return [content] }
    guard let text = String(validating: content, as: UTF8.self),
      let documents = try? PEMDocument.parseMultiple(pemString: text), !documents.isEmpty,
      documents.allSatisfy({ $0.discriminator == Certificate.defaultPEMDiscriminator })
    else { return nil }
    return documents.map(\.derBytes)
  }

  static func fingerprint(_ certificate: [UInt8]) -> String {
    SHA256.hash(data: certificate).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}

package enum TrustedRootsError: Error, Hashable, Sendable {
  case noRoots(directory: String)
  case unreadable(file: String, reason: String)
  case notAuthority(file: String)
  /// A certificate other than Apple's roots, although they are pinned.
  case notPinned(file: String, fingerprint: String)
  /// One of Apple's roots is missing, so that its receipts would all seem forged.
  case missing(TrustedRoots.PinnedRoot, directory: String)
}

extension TrustedRootsError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .noRoots(let directory):
      "no root certificates in \(directory): expected Apple's as DER or PEM files; run `night-audit trust`"
    case .unreadable(let file, let reason):
      "\(file): \(reason); expected a root certificate as DER or PEM; mend or remove it, or run `night-audit trust`"
    case .notAuthority(let file):
      "\(file): expected a root certificate, but this one may not issue others; remove it, and run `night-audit trust`"
    case .notPinned(let file, let fingerprint):
      """
      \(file): expected one of Apple's root certificates \
      (\(TrustedRoots.applePins.map { "\($0.name) \($0.fingerprint)" }.joined(separator: ", "))), \
      but its SHA-256 is \(fingerprint); remove it and run `night-audit trust`, \
      or set appstore.pinRoots to false in a rehearsal
      """
    case .missing(let pin, let directory):
      "\(directory): \(pin.name) (SHA-256 \(pin.fingerprint)) is missing; run `night-audit trust`"
    }
  }
}
