import Crypto
import Reconciliation

extension Finding {
  /// The stable ID: the first 32 hexadecimal digits of the SHA-256 of kind and subject.
  package var findingId: String { hexadecimal(digest) }

  package static func id(ofDigest digest: [UInt8]) -> String { hexadecimal(digest) }

  /// The stable ID as 16 bytes, which sort like its digits.
  package var digest: [UInt8] {
    var hash = SHA256()
    var text = identity
    text.withUTF8 { hash.update(bufferPointer: UnsafeRawBufferPointer($0)) }
    return Array(hash.finalize().prefix(16))
  }
}

/// A finding with its history and the entries of people.
package struct ReportedFinding: Sendable {
  package var findingId: String
  package var finding: Finding
  /// As-of of the run that found it first.
  package var firstSeen: Instant
  /// `open`, `acknowledged`, `accepted` or `closed`.
  package var status: String
  package var owner: String?
  package var remark: String?
  /// The day by which people want it settled, such as `2026-12-01`.
  package var due: String?
  /// The acceptance that has ended with this run.
  package var endedAcceptance: String?
  /// The steps of the decision in the sentences of `explain`; only for critical findings.
  package var explanation: [String] = []

  package init(
    _ finding: Finding, findingId: String? = nil, firstSeen: Instant, status: String = "open", owner: String? = nil,
    remark: String? = nil, due: String? = nil
  ) {
    self.findingId = findingId ?? finding.findingId
    (self.finding, self.firstSeen, self.status, self.owner, self.remark) = (finding, firstSeen, status, owner, remark)
    self.due = due
  }
}

extension ReportedFinding {
  /// True unless a person has accepted or closed the finding.
  var isUndecided: Bool { status == FindingStatus.open.rawValue || status == FindingStatus.acknowledged.rawValue }

  /// One line for people: `Paid, not delivered, order o1, 4.99 USD: Deliver the goods …`.
  package var line: String {
    let money = finding.atStake?.text ?? (finding.isAmountAtRiskUnknown ? "amount unknown" : nil)
    return [finding.kind.title, place, money].compactMap(\.self).joined(separator: ", ") + ": "
      + finding.suggestedAction
  }

  /// The order, or the subject of a finding without one: `order o1`, `transaction 2000000512129662`.
  var place: String {
    if let orderId = finding.orderId { return "order \(orderId)" }
    return switch finding.subject.kind {
    case .order, .delivery, .receipt, .transaction: "\(finding.subject.kind) \(finding.subject.id)"
    case .productWeek: "product and week \(finding.subject.id)"
    }
  }

  /// The amount at risk in a list; `unknown`, or empty for none.
  package var stakeText: String { finding.atStake?.text ?? (finding.isAmountAtRiskUnknown ? "unknown" : "") }

  /// Replaces a remark that names a user where users are pseudonyms. An import ignores it unchanged.
  package static let withheldRemark = "(not shown: it names a user)"

  var remarkNamesUser: Bool {
    guard let remark else { return false }
    let users = finding.reason.users + [finding.userId, finding.goodsHolder].compactMap(\.self)
    return users.contains { !$0.isEmpty && remark.contains($0.text) }
  }
}
