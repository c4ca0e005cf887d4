import AppStore
import Foundation
import Reconciliation

/// What is made of an app's configuration to speak with the App Store Server API. Made once per app and run: a client
/// holds the token and the rate limits of its app.
package enum AppleClients {
  /// The client of one app.
  ///
  /// - Parameter roots: what Apple's signatures are checked against; without roots no answer would be believed.
  /// - Throws: `ConfigurationError` for a key that is missing, cannot be read or cannot work, or a URL that tokens may
  ///   not travel to.
  package static func serverAPI(
    of app: Settings.App, settings: Settings, transport: HTTPTransport, roots: TrustedRoots,
    now: @escaping @Sendable () -> Instant
  ) throws -> ServerAPIClient {
    let section = "app.\(app.name)"
    guard let file = app.privateKeyFile else {
      throw ConfigurationError(
        key: "\(section).privateKeyFile", problem: "the App Store Server API needs a key; name the .p8 file")
    }
    let rate = settings.requestsPerSecond > 0 ? settings.requestsPerSecond : nil
    let production = try endpoint(settings.productionURL, "appstore.productionUrl")
    let sandbox = try endpoint(settings.sandboxURL, "appstore.sandboxUrl")
    let credentials = ServerAPICredentials(
      issuerId: app.issuerId ?? "", keyId: app.keyId ?? "",
      privateKeyPEM: try AppChannel.secret(in: file, key: "\(section).privateKeyFile"), bundleId: app.bundleId)
    do throws(ServerAPICredentialsError) {
      return try ServerAPIClient(
        transport: transport, production: ServerAPIHost(url: production, requestsPerSecond: rate),
        sandbox: ServerAPIHost(url: sandbox, requestsPerSecond: rate.map { $0 * ServerAPIHost.sandboxShare }),
        credentials: credentials, verifier: JWSVerifier(roots: roots), version: Version.current, now: now)
    } catch {
      let key =
        switch error {
        case .issuerIdMissing: "\(section).issuerId"
        case .keyIdMissing: "\(section).keyId"
        case .bundleIdMissing: "\(section).bundleId"
        case .privateKeyUnreadable: "\(section).privateKeyFile"
        }
      throw ConfigurationError(key: key, problem: "\(error)")
    }
  }

  private static func endpoint(_ text: String, _ key: String) throws(ConfigurationError) -> EndpointURL {
    do throws(EndpointURLError) {
      return try EndpointURL(text)
    } catch {
      throw ConfigurationError(key: key, problem: "\(error)")
    }
  }
}
