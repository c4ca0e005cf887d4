import Crypto
import Reconciliation

extension Finding {
  /// The stable id: the first 32 hexadecimal digits of the SHA-256 of kind and subject. The same discrepancy has the same
  /// id every night.
  package var findingId: String {
    hexadecimal(SHA256.hash(data: Array(identity.utf8)).prefix(16))
  }
}

/// A finding with its history and what people made of it.
package struct ReportedFinding: Sendable {
  /// ``Finding/findingId``.
  package var findingId: String
  /// What this run says about it.
  package var finding: Finding
  /// As-of of the run that met it first.
  package var firstSeen: Instant
  /// `open`, `acknowledged` or `closed`.
  package var status: String
  /// Who takes care of it.
  package var owner: String?
  /// What people wrote about it.
  package var remark: String?

  /// A finding whose id is that of its kind and subject.
  package init(
    _ finding: Finding, firstSeen: Instant, status: String = "open", owner: String? = nil, remark: String? = nil
  ) {
    findingId = finding.findingId
    self.finding = finding
    self.firstSeen = firstSeen
    self.status = status
    self.owner = owner
    self.remark = remark
  }
}
