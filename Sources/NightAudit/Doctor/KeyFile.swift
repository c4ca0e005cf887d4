import Foundation
import Run

/// A file with a secret, as the doctor looks at it.
struct KeyFile {
  let path: String
  /// The key of the configuration that names it.
  let key: String

  func examine() -> [Diagnosis] {
    // Where the path belongs the secret itself may have been put.
    let shown = SecretFile.shown(path)
    let subject = "\(key) \(shown)"
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
    return [Diagnosis(subject: subject, warning: "can be read by others; run: chmod 600 \(shown)")]
  }
}
