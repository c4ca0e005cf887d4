import Reconciliation
import X509

/// Verifies app receipts at their creation date (Apple: Validating receipts on the device, TN3138). It cannot detect a
/// genuine receipt of another device, because attribute 5 needs the device's ID, nor later revocations.
struct AppReceiptVerifier: Sendable {
  private let roots: [Certificate]

  init(roots: TrustedRoots) { self.roots = roots.ofAppReceipts }

  func verify(_ bytes: [UInt8]) -> Result<AppReceipt, SignedDataRefusal> {
    Result { () throws(SignedDataRefusal) in try verify(ReceiptContainer(bytes)) }
  }

  /// No Apple certificate with SHA-1 is valid from 2025-01-24T00:00:00Z. Until then apps that were not updated received
  /// SHA-1 (TN3138).
  private static let endOfSHA1 = Instant(seconds: 1_737_676_800)

  private func verify(_ container: ReceiptContainer) throws(SignedDataRefusal) -> AppReceipt {
    let content = Result { () throws(SignedDataRefusal) in try ReceiptContent(container.content) }
    if case .success(let content) = content,
      let claimed = content.environment.flatMap(AppleEnvironment.init(receiptType:)), claimed.isOfDevelopers
    {
      throw .notSignedByApple(claimed)
    }
    let signer: ReceiptContainer.Signer
    switch container.signature {
    case .supported(let supported): signer = supported
    case .unsupported(let what): throw .unsupported(what)
    }
    guard !roots.isEmpty else { throw .noRoots }

    let path = try self.path(container, signer)
    guard
      path.leafKey.isValidSignature(signer.signature, for: container.content, signatureAlgorithm: signer.algorithm)
    else { throw .signatureMismatch }

    // Apple signed the payload, so an unreadable one is not a forgery.
    let readable: Result<ReceiptContent, SignedDataRefusal> =
      content.mapError { $0 == .payloadUnreadable ? .payloadIncomplete("readable content") : $0 }
    let receipt = try AppReceipt(readable.get())
    guard path.covers(receipt.creationDate) else { throw .notValidAtSignedDate }
    let usesSHA1 = path.usesSHA1 || signer.algorithm == .sha1WithRSAEncryption
    guard receipt.creationDate < Self.endOfSHA1 || !usesSHA1 else { throw .digestTooWeak }
    return receipt
  }

  private func path(
    _ container: ReceiptContainer, _ signer: ReceiptContainer.Signer
  ) throws(SignedDataRefusal) -> AppleCertificatePath {
    var certificates: [Certificate] = []
    var refusal = SignedDataRefusal.chainNotTrusted
    for (index, bytes) in container.certificates.enumerated() {
      do throws(SignedDataRefusal) {
        certificates.append(try Certificate(received: bytes, at: index))
      } catch {
        // An unneeded certificate may be unreadable.
        if refusal.meaning != .undecided { refusal = error }
      }
    }
    let serialNumber = Certificate.SerialNumber(bytes: signer.serialNumber)
    for leaf in certificates where leaf.serialNumber == serialNumber {
      for intermediate in certificates where intermediate != leaf {
        do throws(SignedDataRefusal) {
          return try AppleCertificatePath(leaf: leaf, intermediate: intermediate, roots: roots)
        } catch {
          if refusal == .chainNotTrusted { refusal = error }
        }
      }
    }
    throw refusal
  }
}
