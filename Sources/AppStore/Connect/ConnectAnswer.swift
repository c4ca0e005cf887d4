/// What Apple said about one report.
package struct ConnectAnswer: Hashable, Sendable {
  /// A file as it came: gzip as a rule, inflated by somebody on the way, or compressed twice.
  package struct File: Hashable, Sendable {
    package var bytes: [UInt8]
    /// The server's own name for it.
    package var name: String?
    /// `1_0`: what the server says that it sent, else what was asked for; nil for finance reports.
    package var version: String?
  }

  package enum Outcome: Hashable, Sendable {
    case file(File)
    /// “There were no sales”: also said of retired versions and wrong parameters. Of finance reports it may mean that
    /// nothing is settled yet.
    case noSales
    case notYet
    /// Past Apple's retention.
    case gone
    /// Apple demands another version, and again after it was asked for the one that it had named.
    case otherVersion(String?)
    case refused(ConnectRefusal)
    /// Nothing was learnt; it is asked again the next night.
    case unanswered(Silence)
  }

  package var outcome: Outcome
  package var httpStatus: Int?
  /// How many requests it took.
  package var requests = 0
  /// What people should know although there is an answer.
  package var warnings: [String] = []
}

/// Why nothing of the kind will be answered before somebody does something. The description says what.
package enum ConnectRefusal: Hashable, Sendable, CustomStringConvertible {
  case token
  case role
  case agreements
  case parameters(String)
  case notAcceptable

  /// Whether every further question would be answered alike.
  package var isForAll: Bool {
    switch self {
    case .token, .role, .agreements, .notAcceptable: true
    case .parameters: false
    }
  }

  package var description: String {
    switch self {
    case .token:
      """
      Apple does not accept the App Store Connect key (401), also with a fresh token: check appStoreConnect.issuerId, \
      .keyId and .privateKeyFile, and this machine's clock. It must be a team key; the In-App Purchase key of the App \
      Store Server API does not work here
      """
    case .role:
      """
      the App Store Connect key may not download this report (403): its role must be Admin, Finance or Sales for sales \
      reports, Admin or Finance for finance reports, and it must be a team key, neither an individual nor an In-App \
      Purchase key
      """
    case .agreements:
      """
      Apple gives no reports because an agreement is missing or has expired (403): the Account Holder must accept it in \
      App Store Connect, Business. The key is fine
      """
    case .parameters(let detail): "Apple refuses the parameters of the question (400): \(detail)"
    case .notAcceptable:
      "Apple does not send what was asked for (406): a fault of this program or of a proxy on the way"
    }
  }
}
