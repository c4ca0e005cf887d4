import AppStore
import Asking
import AuditStore
import Foundation
import Postgres
import Publishing
import Reconciliation
import Run
import SalesStore

/// One thing that was checked.
package struct Diagnosis: Sendable {
  package var subject: String
  /// What is wrong and how to mend it; nil when all is well.
  package var problem: String?
  /// What is not as it should be although a night can live with it, and how to mend it.
  package var warning: String?
  /// The exit status that the problem would end a run with.
  package var status: ExitStatus = .configuration

  package init(
    subject: String, problem: String? = nil, warning: String? = nil, status: ExitStatus = .configuration
  ) {
    self.subject = subject
    self.problem = problem
    self.warning = warning
    self.status = status
  }

  /// Whether there is nothing to be mended.
  package var isFine: Bool { problem == nil && warning == nil }
}

/// Checks everything that a night needs, and says how to mend what is not right.
package struct Doctor: Sendable {
  package let settings: Settings

  package init(settings: Settings) { self.settings = settings }

  /// Looks at everything. Never throws: what cannot be looked at is a problem.
  package func examine() async -> [Diagnosis] {
    var found = settings.warnings.map { Diagnosis(subject: "environment", problem: $0) }
    found += keyFiles()
    found += endpoints()
    found.append(roots())
    found.append(reportDirectory())
    found += await dispatches()
    found += HostExamination(settings: settings).examine()
    found += await databases()
    return found
  }

  // MARK: - Files

  private func keyFiles() -> [Diagnosis] {
    settings.apps.flatMap { app -> [Diagnosis] in
      let files = [("sharedSecretFile", app.sharedSecretFile), ("privateKeyFile", app.privateKeyFile)]
      var found = files.flatMap { field, path in path.map { keyFile($0, key: "app.\(app.name).\(field)") } ?? [] }
      switch settings.effectiveChannel(of: app) {
      case .serverApi:
        do throws(ConfigurationError) {
          let credentials = try AppleClients.credentials(of: app)
          found.append(Diagnosis(subject: "app.\(app.name) (App Store Server API, key \(credentials.keyId))"))
        } catch {
          // A file that cannot be read was named above.
          if !found.contains(where: { $0.problem != nil }) {
            found.append(Diagnosis(subject: error.key, problem: error.problem))
          }
        }
      case .auto, .verifyReceipt:
        if app.sharedSecretFile == nil {
          found.append(
            Diagnosis(
              subject:
                "app.\(app.name).sharedSecretFile (none: receipts with subscriptions will be refused with 21004)"))
        }
      }
      return found
    }
  }

  func keyFile(_ path: String, key: String) -> [Diagnosis] {
    let subject = "\(key) \(path)"
    let attributes = try? FileManager.default.attributesOfItem(atPath: path)
    let mode = (attributes?[.posixPermissions] as? NSNumber)?.intValue ?? 0
    if attributes == nil || !FileManager.default.isReadableFile(atPath: path) {
      return [
        Diagnosis(
          subject: subject, problem: "cannot be read; create it, owned by the user that runs night-audit, mode 0600")
      ]
    }
    if (attributes?[.size] as? NSNumber)?.intValue == 0 {
      return [Diagnosis(subject: subject, problem: "is empty; put the key into it")]
    }
    guard mode & 0o077 != 0 else { return [Diagnosis(subject: subject)] }
    return [Diagnosis(subject: subject, warning: "can be read by others; run: chmod 600 \(path)")]
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
        return Diagnosis(subject: "\(key) \(text)")
      } catch {
        return Diagnosis(subject: key, problem: "\(error)")
      }
    }
  }

  private func roots() -> Diagnosis {
    do throws(TrustedRootsError) {
      _ = try TrustedRoots(directory: settings.rootCertificates, pinned: settings.pinRoots)
      return Diagnosis(subject: "appstore.rootCertificates \(settings.rootCertificates)")
    } catch {
      if case .noRoots = error, settings.apps.allSatisfy({ settings.effectiveChannel(of: $0) == .verifyReceipt }) {
        return Diagnosis(
          subject: "appstore.rootCertificates (none: signed transactions stay unconfirmed; run: night-audit trust)")
      }
      return Diagnosis(subject: "appstore.rootCertificates", problem: "\(error)")
    }
  }

  private func reportDirectory() -> Diagnosis {
    let subject = "report.directory \(settings.reportDirectory)"
    do {
      try ReportFolder.check(.nightly(directory: settings.reportDirectory, date: "doctor"), asOf: .now)
      switch try VolumeProbe(directory: settings.reportDirectory).examine() {
      case .exchanges: return Diagnosis(subject: "\(subject) (exchanges folders in one step)")
      case .renames(let reason):
        return Diagnosis(
          subject: "\(subject) (cannot exchange folders: \(reason); a night made again is two renames, with a moment "
            + "without a folder)")
      }
    } catch {
      return Diagnosis(subject: subject, problem: "\(error)", status: .cannotWrite)
    }
  }

  // MARK: - Databases

  /// Both stores: where our own schema is, and where the shop's relations are.
  func databases() async -> [Diagnosis] {
    var found: [Diagnosis] = []
    let settings = settings
    found += await Self.examining("database.url") { scope in
      let connection = try scope.connect(settings.databaseURL, applicationName: "night-audit doctor")
      return try StoreExamination(settings: settings, isOwn: true).examine(connection)
        + OwnSchemaExamination(settings: settings).examine(connection)
    }
    // The same server has said the same already.
    if settings.salesURL == nil, found.contains(where: { $0.status == .databaseUnreachable }) { return found }
    let place = settings.salesURL == nil ? "database.url" : "database.salesUrl"
    found += await Self.examining(place) { scope in
      let connection = try SalesStore.open(settings, scope, applicationName: "night-audit doctor")
      let server =
        settings.salesURL == nil ? [] : try StoreExamination(settings: settings, isOwn: false).examine(connection)
      return try server + SalesHealth(settings: settings).examine(connection)
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
      return [Diagnosis(subject: key, problem: "\(error)\(hint)", status: error.exitStatus)]
    } catch {
      return [Diagnosis(subject: key, problem: "\(error)", status: ExitStatus(for: error))]
    }
  }
}
