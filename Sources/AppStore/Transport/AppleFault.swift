/// A refusal of the credentials or the request, or an answer without a trusted root. Nothing follows about the
/// transaction or receipt. It may concern one question (a receipt of another developer's app gives 21004, an invented
/// ID 4000000) or the whole app, so the caller compares kinds and credentials.
package enum AppleFault: Error, Hashable, Sendable {
  /// HTTP 401 from this environment.
  case tokenRefused(AppleHost)
  case accessRefused
  /// 4040003.
  case appUnknown(bundleId: String)
  /// 21004.
  case sharedSecretRefused
  /// 21000, 4000000 and the codes of wrong parameters.
  case requestRefused(code: Int?)
  case tokenNotSigned
  /// The certificates in an answer lead to none of our root certificates.
  case rootMissing

  /// The kind of refusal, by which faults are compared.
  package enum Kind: String, Hashable, CaseIterable, Sendable {
    case tokenRefused = "token_refused"
    case accessRefused = "access_refused"
    case appUnknown = "app_unknown"
    case sharedSecretRefused = "shared_secret_refused"
    case requestRefused = "request_refused"
    case tokenNotSigned = "token_not_signed"
    case rootMissing = "root_missing"
  }

  /// The credential of a question. An accepted answer shows that its credential works.
  package enum Credential: String, Hashable, CaseIterable, Sendable {
    case serverAPIKey
    /// verifyReceipt's password.
    case sharedSecret
    /// The root certificates. A verified answer shows that they are Apple's.
    case rootCertificates
  }

  package var kind: Kind {
    switch self {
    case .tokenRefused: .tokenRefused
    case .accessRefused: .accessRefused
    case .appUnknown: .appUnknown
    case .sharedSecretRefused: .sharedSecretRefused
    case .requestRefused: .requestRefused
    case .tokenNotSigned: .tokenNotSigned
    case .rootMissing: .rootMissing
    }
  }

  /// The refused credential; nil if the request is refused.
  package var credential: Credential? {
    switch self {
    case .tokenRefused, .accessRefused, .appUnknown, .tokenNotSigned: .serverAPIKey
    case .sharedSecretRefused: .sharedSecret
    case .rootMissing: .rootCertificates
    case .requestRefused: nil
    }
  }

  package var message: String {
    switch self {
    case .tokenRefused(let host):
      """
      Apple's \(host) side does not accept our token (HTTP 401). Check issuerId, keyId and privateKeyFile against App \
      Store Connect (Users and Access > Integrations > In-App Purchase: a key of another kind does not do), bundleId, \
      and this machine's clock. Production also refuses every token for an app that was never released.
      """
    case .accessRefused:
      """
      Apple knows our key but refuses this request to it (HTTP 403). Check in App Store Connect that it is an In-App \
      Purchase key that was not revoked, and that all agreements are accepted; otherwise look for a proxy that answers \
      in Apple's place.
      """
    case .appUnknown(let bundleId):
      """
      Apple does not find the app \(bundleId) for our key (4040003). Check bundleId, and that the key is of the account \
      that owns the app.
      """
    case .sharedSecretRefused:
      """
      Apple does not accept the app's shared secret (status 21004). Put the current one from App Store Connect \
      (Apps > the app > App Information > App-Specific Shared Secret) into the file named by sharedSecretFile; \
      generating a new secret there invalidates the old one at once.
      """
    case .requestRefused(let code):
      """
      Apple says that the request itself is wrong (\(code.map { $0 < 100_000 ? "status \($0)" : "\($0)" } ?? "no code")). \
      Check the URLs of Apple's interfaces in the configuration, and that no proxy between here and Apple changes \
      requests; otherwise it is a defect of this program.
      """
    case .tokenNotSigned: "The token could not be signed with the key in privateKeyFile. Download or make a new key."
    case .rootMissing:
      """
      The certificates in Apple's answers lead to none of the root certificates in appstore.rootCertificates. Run \
      night-audit trust, which installs Apple's; if they are installed, look for a proxy that answers in Apple's place.
      """
    }
  }
}
