import AppStore
import Asking
import AuditStore
import Auditing
import Foundation
import Postgres
import Publishing
import Reconciliation
import Reporting
import Run
import SalesStore
import Settings

/// Checks everything that a night needs, and names remedies.
package struct Doctor: Sendable {
  package let settings: Settings

  package let isOnline: Bool

  var resolve: @Sendable (String) async -> HostLookup = HostLookup.ask

  package init(settings: Settings, isOnline: Bool = false) {
    self.settings = settings
    self.isOnline = isOnline
  }

  /// Runs all checks. Never throws: a check that fails to run is a problem.
  package func examine() async -> [Diagnosis] {
    // Only a warning, because a cluster names variables after its services, and one may begin with our prefix.
    var found = settings.warnings.map { Diagnosis.warning("environment", $0) }
    found += files()
    found.append(await reportDirectory())
    found += await dispatches()
    found += HostExamination(settings: settings).examine()
    found += await databases()
    if isOnline { found += await online() }
    return found
  }

  // MARK: - Files

  func files() -> [Diagnosis] {
    keyFiles() + identifiers() + rate() + endpoints() + roots() + tieOut()
  }

  private func keyFiles() -> [Diagnosis] {
    settings.apps.flatMap { app -> [Diagnosis] in
      let files = [("sharedSecretFile", app.sharedSecretFile), ("privateKeyFile", app.privateKeyFile)]
      var found = files.compactMap { field, path in
        path.map { Diagnosis.keyFile($0, key: "app.\(app.name).\(field)") }
      }
      switch settings.effectiveChannel(of: app) {
      case .serverApi:
        do throws(ConfigurationError) {
          let credentials = try AppleClients.credentials(of: app)
          found.append(.fine("app.\(app.name) (App Store Server API, key \(credentials.keyId))"))
        } catch {
          // An unreadable file was reported above.
          if !found.contains(where: { $0.problem != nil }) { found.append(.problem(error.key, error.problem)) }
        }
      case .auto, .verifyReceipt:
        guard app.sharedSecretFile == nil else { break }
        let key = "app.\(app.name).sharedSecretFile"
        found.append(
          app.privateKeyFile == nil
            ? Diagnosis.warning(
              key,
              """
              is not set, nor is a key of the App Store Server API: receipts with subscriptions will be refused with \
              21004; set it, or issuerId, keyId and privateKeyFile
              """)
            : Diagnosis.fine("\(key) (none: receipts with subscriptions will be refused with 21004)"))
      }
      return found
    }
  }

  private func identifiers() -> [Diagnosis] {
    settings.apps.flatMap { app -> [Diagnosis] in
      // Another server than Apple's may accept any text.
      let isAppleAsked = Doctor.isApple(settings.productionURL) && settings.effectiveChannel(of: app) == .serverApi
      var defects: [(field: String, text: String, place: String)] = []
      if let issuer = app.issuerId, UUID(uuidString: issuer) == nil {
        defects.append(("issuerId", "is not a UUID", "the Issuer ID above the list of keys"))
      }
      if let key = app.keyId, key.wholeMatch(of: /[A-Z0-9]{10}/) == nil {
        defects.append(("keyId", "is not 10 capital letters and digits", "the Key ID beside the key"))
      }
      return defects.map { field, defect, place in
        let subject = "app.\(app.name).\(field)"
        let text = """
          \(defect), and Apple will refuse every request; copy \(place) in App Store Connect, Users and Access, Integrations
          """
        return isAppleAsked ? Diagnosis.problem(subject, text) : Diagnosis.warning(subject, text)
      }
    }
  }

  private static func isApple(_ url: String) -> Bool { url.contains(".apple.com") }

  /// Apple's limit for most endpoints, in requests a second for each app.
  private static let highestRate = 50.0

  private func rate() -> [Diagnosis] {
    let rate = settings.requestsPerSecond
    guard rate == 0 || rate > Doctor.highestRate,
      [settings.productionURL, settings.verifyReceiptURL].contains(where: Doctor.isApple)
    else { return [] }
    return [
      .warning(
        "appstore.requestsPerSecond",
        """
        \(rate == 0 ? "is 0, which sets no limit" : "is \(rate)"), and Apple's limit is 50 requests a second: Apple will \
        refuse requests with 429; set it to 25
        """)
    ]
  }

  private func endpoints() -> [Diagnosis] {
    let urls = [
      ("appstore.verifyReceiptUrl", settings.verifyReceiptURL),
      ("appstore.verifyReceiptSandboxUrl", settings.verifyReceiptSandboxURL),
      ("appstore.productionUrl", settings.productionURL), ("appstore.sandboxUrl", settings.sandboxURL),
    ]
    return urls.map { key, text in
      do throws(EndpointURLError) {
        _ = try EndpointURL(text)
        return .fine("\(key) \(ShownURL.text(text))")
      } catch {
        return .problem(key, "\(error)")
      }
    }
  }

  private static let notice = Span.days(180)

  func roots() -> [Diagnosis] {
    do throws(TrustedRootsError) {
      return try TrustedRoots(directory: settings.rootCertificates, pinned: settings.pinRoots).entries.map { root in
        var diagnosis = Diagnosis(
          subject: "root certificate \(root.name) (SHA-256 \(root.fingerprint.prefix(16))…, until \(root.ends.text))")
        if root.ends < .now {
          diagnosis.problem = "has expired: signed data that leads to it is not accepted; run: night-audit trust"
        } else if root.ends < .now + Doctor.notice {
          diagnosis.warning = "expires soon; install a newer release with Apple's next one, and run: night-audit trust"
        }
        return diagnosis
      }
    } catch {
      if case .noRoots = error, settings.apps.allSatisfy({ settings.effectiveChannel(of: $0) == .verifyReceipt }) {
        return [.fine("appstore.rootCertificates (none: signed transactions stay unconfirmed; run: night-audit trust)")]
      }
      return [.problem("appstore.rootCertificates", "\(error)")]
    }
  }

  func reportDirectory() async -> Diagnosis {
    let subject = "report.directory \(settings.reportDirectory)"
    do {
      let night = Period.dayBefore(.now, in: settings.timeZone).until
      let settings = settings
      // An unreadable database is reported by another check.
      let known = try? await withBlockingThread { scope in
        try KnownRuns.read(on: scope.connect(settings.databaseURL, applicationName: "night-audit doctor"))
      }
      try ReportFolder.check(.nightly(directory: settings.reportDirectory, date: night), asOf: .now, known: known)
      switch try VolumeProbe.examine(settings.reportDirectory) {
      case .exchanges: return .fine("\(subject) (exchanges folders in one step)")
      case .renames(let reason):
        return .fine(
          "\(subject) (cannot exchange folders: \(reason); a repeated night takes two renames, with a moment "
            + "without a folder)")
      }
    } catch {
      return .problem(subject, "\(error)", .cannotWrite)
    }
  }

  // MARK: - Databases

  func databases() async -> [Diagnosis] {
    var found: [Diagnosis] = []
    let settings = settings
    found += await Self.examining("database.url") { scope in
      let connection = try scope.connect(settings.databaseURL, applicationName: "night-audit doctor")
      return try StoreExamination(settings: settings, isOwn: true).examine(connection)
        + OwnSchemaExamination().examine(connection)
    }
    // A second problem of the same connection would repeat the first.
    if settings.salesURL == nil, found.count == 1, found[0].problem != nil { return found }
    let place = settings.salesURL == nil ? "database.url" : "database.salesUrl"
    found += await Self.examining(place) { scope in
      let connection = try SalesStore.open(settings, scope, applicationName: "night-audit doctor")
      let server =
        settings.salesURL == nil ? [] : try StoreExamination(settings: settings, isOwn: false).examine(connection)
      return try server + SalesHealth(settings: settings).examine(connection, scope)
    }
    return found
  }

  private static func examining(
    _ key: String, _ body: @escaping @Sendable (BlockingScope) throws -> [Diagnosis]
  ) async -> [Diagnosis] {
    do { return try await withBlockingThread { scope in try body(scope) } } catch let error as PostgresError {
      let hint =
        error.kind == .connectionFailed
        ? "; check \(key) or libpq's PG* variables, and that the server accepts this host" : ""
      return [.problem(key, error.description(inDoctor: true) + hint, error.exitStatus)]
    } catch {
      return [.problem(key, "\(error)", ExitStatus(for: error))]
    }
  }
}
