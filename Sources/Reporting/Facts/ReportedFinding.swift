import Crypto
import Reconciliation

extension Finding {
  /// The stable id: the first 32 hexadecimal digits of the SHA-256 of kind and subject. The same discrepancy has the same
  /// id every night.
  package var findingId: String { hexadecimal(digest) }

  /// The stable id of a finding with this digest.
  package static func id(ofDigest digest: [UInt8]) -> String { hexadecimal(digest) }

  /// The stable id as 16 bytes, which sort like its digits.
  package var digest: [UInt8] {
    var hash = SHA256()
    var text = identity
    text.withUTF8 { hash.update(bufferPointer: UnsafeRawBufferPointer($0)) }
    return Array(hash.finalize().prefix(16))
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
  /// The day by which people want it settled, `2026-12-01`.
  package var due: String?
  /// What was considered before it was found, one sentence each, in the words of `explain`; of critical ones only.
  package var explanation: [String] = []

  /// A finding whose id is that of its kind and subject.
  ///
  /// - Parameter findingId: ``Finding/findingId``, where it is known already.
  package init(
    _ finding: Finding, findingId: String? = nil, firstSeen: Instant, status: String = "open", owner: String? = nil,
    remark: String? = nil, due: String? = nil
  ) {
    self.findingId = findingId ?? finding.findingId
    self.finding = finding
    self.firstSeen = firstSeen
    self.status = status
    self.owner = owner
    self.remark = remark
    self.due = due
  }
}

extension ReportedFinding {
  /// Stands for a remark that names a user, where pseudonyms stand for users. Left as it is, it says nothing.
  package static let withheldRemark = "(not shown: it names a user)"

  /// Whether people have written the id of a user whom the finding is about into its remark, which is theirs to word.
  var remarkNamesUser: Bool {
    guard let remark else { return false }
    let users = finding.reason.users + [finding.userId, finding.heldBy].compactMap(\.self)
    return users.contains { !$0.isEmpty && remark.contains($0.text) }
  }
}
