import AppStore
import Foundation
import Settings
import TieOut

extension Doctor {
  func tieOut() -> [Diagnosis] {
    guard settings.isTieOutConfigured else { return [] }
    var found: [Diagnosis] = []
    if let folder = settings.tieOut.folder {
      var diagnosis = Diagnosis(subject: "tieOut.folder \(folder)")
      if (try? FileManager.default.contentsOfDirectory(atPath: folder)) == nil {
        // A warning, because a night completes without the tie-out.
        diagnosis.warning = "cannot be listed; create it, readable by the user that runs night-audit"
      }
      found.append(diagnosis)
    }
    guard let file = settings.appStoreConnect.privateKeyFile else { return found }
    let ofFile = Diagnosis.keyFile(file, key: "appStoreConnect.privateKeyFile")
    found.append(ofFile)
    do {
      let connect = try ConnectAccount(settings.appStoreConnect)
      found.append(
        .fine(
          """
          appStoreConnect (team key \(connect.credentials.keyId), vendors \
          \(connect.vendors.joined(separator: ", ")))
          """))
    } catch let error as ConfigurationError {
      // An unreadable file was reported above.
      if ofFile.problem == nil { found.append(.problem(error.key, error.problem)) }
    } catch {
      found.append(.problem("appStoreConnect.url", "\(error)"))
    }
    return found
  }
}
