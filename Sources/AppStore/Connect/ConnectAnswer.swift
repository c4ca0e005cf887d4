package struct ConnectAnswer: Hashable, Sendable {
  /// A report file as it arrived: gzip, unless a proxy has inflated it or compressed it twice.
  package struct File: Hashable, Sendable {
    package var bytes: [UInt8]
    package var name: String?
    /// `1_0`: the version that the server names, else the requested one; nil for finance reports.
    package var version: String?
  }

  package enum Outcome: Hashable, Sendable {
    case file(File)
    /// “There were no sales”. Also sent for retired versions, wrong parameters and unsettled finance reports.
    case noSales
    case notYet
    case gone
    /// Apple demands another version, also after a retry with the version that it named.
    case otherVersion(String?)
    case refused(ConnectRefusal)
    case unanswered(Silence)
  }

  package var outcome: Outcome
  package var httpStatus: Int?
  package var requests = 0
  package var warnings: [String] = []
}

/// A refusal that lasts until a person acts. The description contains the remedy.
package enum ConnectRefusal: Hashable, Sendable, CustomStringConvertible {
  case token
  case role
  case agreements
  case parameters(String)
  case notAcceptable

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
    case .parameters(let detail): "Apple refuses the parameters of the request (400): \(detail)"
    case .notAcceptable:
      "Apple does not send the requested format (406): an error of this program or of a proxy on the way"
    }
  }
}
