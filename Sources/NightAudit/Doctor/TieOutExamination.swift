import AppStore
import Foundation
import Run
import TieOut

/// What the doctor asks of the tie-out's configuration: the key's kind, who it is of, and where files lie.
struct TieOutExamination {
  let settings: Settings

  func examine() -> [Diagnosis] {
    guard settings.isTieOutConfigured else { return [] }
    var found: [Diagnosis] = []
    if let folder = settings.tieOut.folder {
      var diagnosis = Diagnosis(subject: "tieOut.folder \(folder)")
      if (try? FileManager.default.contentsOfDirectory(atPath: folder)) == nil {
        // A night goes on without it, as without reports that are late.
        diagnosis.warning = "cannot be listed; create it, readable by the user that runs night-audit"
      }
      found.append(diagnosis)
    }
    guard let file = settings.appStoreConnect.privateKeyFile else { return found }
    let ofFile = KeyFile(path: file, key: "appStoreConnect.privateKeyFile").examine()
    found += ofFile
    do {
      let connect = try TieOutSettings.Connect(settings.appStoreConnect)
      found.append(
        Diagnosis(
          subject: """
            appStoreConnect (team key \(connect.credentials.keyId), vendors \
            \(connect.vendors.joined(separator: ", ")))
            """))
    } catch let error as ConfigurationError {
      // A file that cannot be read was named above.
      if ofFile.allSatisfy({ $0.problem == nil }) {
        found.append(Diagnosis(subject: error.key, problem: error.problem))
      }
    } catch {
      found.append(Diagnosis(subject: "appStoreConnect.url", problem: "\(error)"))
    }
    return found
  }
}

extension TieOutSettings.Connect {
  /// With the key read. Throws `ConfigurationError`, or the `EndpointURLError` of the URL.
  init(_ settings: Settings.AppStoreConnect) throws {
    let file = settings.privateKeyFile ?? ""
    do throws(ConnectCredentialsError) {
      // Told before the key is read: the other kind of key reads just as well.
      try ConnectCredentialsError.check(keyFile: file)
    } catch {
      throw ConfigurationError(key: error.key, problem: "\(error)")
    }
    let credentials = ConnectCredentials(
      issuerId: settings.issuerId ?? "", keyId: settings.keyId ?? "",
      privateKeyPEM: try SecretFile.read(file, key: "appStoreConnect.privateKeyFile"))
    do throws(ConnectCredentialsError) { _ = try ConnectToken(credentials) } catch {
      throw ConfigurationError(key: error.key, problem: "\(error)")
    }
    // The same vendor listed twice is one vendor: its reports must not be asked for twice.
    self.init(
      credentials: credentials, vendors: Set(settings.vendorNumbers).sorted(), url: try EndpointURL(settings.url),
      salesVersion: settings.salesVersion)
  }
}

extension ConnectCredentialsError {
  fileprivate var key: String {
    switch self {
    case .issuerIdMissing: "appStoreConnect.issuerId"
    case .keyIdMissing: "appStoreConnect.keyId"
    case .privateKeyUnreadable, .inAppPurchaseKey: "appStoreConnect.privateKeyFile"
    }
  }
}
