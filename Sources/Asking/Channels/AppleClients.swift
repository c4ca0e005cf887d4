import AppStore
import Foundation
import Reconciliation
import Run
import Settings

/// The request rate, and the time that the night has left.
package struct Pace: Sendable {
  package let night: NightTime
  private let rates: SharedRates?

  /// - Parameter rates: the rates that all workers share; nil for this process alone.
  package init(night: NightTime = NightTime(), rates: SharedRates? = nil) {
    (self.night, self.rates) = (night, rates)
  }

  func gate(app: String, side: AppleHost, interface: String, rate: Double?) -> RateGate {
    RateGate(rate: rate, night: night, shared: rates?.turns(app: app, side: side, interface: interface, rate: rate))
  }
}

/// Makes the clients for Apple, once per app and run: a client holds its app's token and rate limits.
package enum AppleClients {
  /// The channel that checks the receipts of an app. `roots` is nil if none are installed.
  package static func channel(
    of app: Settings.App, settings: Settings, transport: HTTPTransport, roots: TrustedRoots?, asOf: Instant,
    pace: Pace = Pace(), now: @escaping @Sendable () -> Instant
  ) throws -> any AppleChannel {
    switch settings.effectiveChannel(of: app) {
    case .auto, .verifyReceipt:
      return VerifyReceiptChannel(
        app: app, client: try verifyReceipt(of: app, settings: settings, transport: transport, pace: pace, now: now),
        sharedSecret: try app.sharedSecretFile.map { try SecretFile.read($0, key: "app.\(app.name).sharedSecretFile") })
    case .serverApi:
      let client = try serverAPI(
        of: app, settings: settings, transport: transport, roots: roots ?? TrustedRoots.none, pace: pace, now: now)
      let policy = ServerAPIChannel.Policy(
        asOf: asOf, refundWindow: settings.refundWindow, matchWindow: settings.matchWindow,
        notFoundGrace: settings.notFoundGrace)
      return ServerAPIChannel(app: app, client: client, policy: policy)
    }
  }

  package static func verifyReceipt(
    of app: Settings.App, settings: Settings, transport: HTTPTransport, pace: Pace = Pace(),
    now: @escaping @Sendable () -> Instant
  ) throws(ConfigurationError) -> VerifyReceiptClient {
    let rate = settings.rate
    func gate(_ side: AppleHost, _ rate: Double?) -> RateGate {
      pace.gate(app: app.bundleId, side: side, interface: "verifyReceipt", rate: rate)
    }
    return VerifyReceiptClient(
      transport: transport.counting(for: app.name),
      production: .init(
        url: try endpoint(settings.verifyReceiptURL, "appstore.verifyReceiptUrl"), gate: gate(.production, rate)),
      sandbox: .init(
        url: try endpoint(settings.verifyReceiptSandboxURL, "appstore.verifyReceiptSandboxUrl"),
        gate: gate(.sandbox, rate.map { $0 * ServerAPIHost.sandboxShare })),
      version: Version.current, now: now)
  }

  /// Without root certificates, the client believes no answer.
  package static func serverAPI(
    of app: Settings.App, settings: Settings, transport: HTTPTransport, roots: TrustedRoots, pace: Pace = Pace(),
    now: @escaping @Sendable () -> Instant
  ) throws(ConfigurationError) -> ServerAPIClient {
    let rate = settings.rate
    let production = try endpoint(settings.productionURL, "appstore.productionUrl")
    let sandbox = try endpoint(settings.sandboxURL, "appstore.sandboxUrl")
    let credentials = try credentials(of: app)
    do throws(AppleKeyError) {
      return try ServerAPIClient(
        transport: transport.counting(for: app.name),
        production: ServerAPIHost(url: production, requestsPerSecond: rate) {
          pace.gate(app: app.bundleId, side: .production, interface: $0.rawValue, rate: $1)
        },
        sandbox: ServerAPIHost(url: sandbox, requestsPerSecond: rate.map { $0 * ServerAPIHost.sandboxShare }) {
          pace.gate(app: app.bundleId, side: .sandbox, interface: $0.rawValue, rate: $1)
        },
        credentials: credentials, verifier: JWSVerifier(roots: roots), version: Version.current, now: now)
    } catch {
      throw ConfigurationError(key: "app.\(app.name).\(error.setting)", problem: "\(error)")
    }
  }

  /// The root certificates; nil if none are installed and every app uses verifyReceipt.
  package static func roots(_ settings: Settings) throws(ConfigurationError) -> TrustedRoots? {
    do throws(TrustedRootsError) {
      return try TrustedRoots(directory: settings.rootCertificates, pinned: settings.pinRoots)
    } catch {
      if case .noRoots = error, settings.apps.allSatisfy({ settings.effectiveChannel(of: $0) == .verifyReceipt }) {
        return nil
      }
      throw ConfigurationError(key: "appstore.rootCertificates", problem: "\(error)")
    }
  }

  package static func credentials(of app: Settings.App) throws(ConfigurationError) -> ServerAPICredentials {
    let section = "app.\(app.name)"
    guard let file = app.privateKeyFile else {
      throw ConfigurationError(
        key: "\(section).privateKeyFile",
        problem: """
          the App Store Server API needs a key; name the .p8 file, or set appstore.channel to verifyReceipt
          """)
    }
    let credentials = ServerAPICredentials(
      issuerId: app.issuerId ?? "", keyId: app.keyId ?? "",
      privateKeyPEM: try SecretFile.read(file, key: "\(section).privateKeyFile"), bundleId: app.bundleId,
      appAppleId: app.appAppleId)
    do throws(AppleKeyError) {
      _ = try AppleToken(credentials)
    } catch {
      throw ConfigurationError(key: "\(section).\(error.setting)", problem: "\(error)")
    }
    return credentials
  }

  private static func endpoint(_ text: String, _ key: String) throws(ConfigurationError) -> EndpointURL {
    do throws(EndpointURLError) {
      return try EndpointURL(text)
    } catch {
      throw ConfigurationError(key: key, problem: "\(error)")
    }
  }
}

extension Settings {
  /// Requests per second; nil for no limit.
  fileprivate var rate: Double? { requestsPerSecond > 0 ? requestsPerSecond : nil }
}
