import Foundation
import Settings

extension Diagnosis {
  static func keyFile(_ path: String, key: String) -> Diagnosis {
    // `shown` hides the value, because the secret itself may have been put in place of the path.
    let shown = SecretFile.shown(path)
    let subject = "\(key) \(shown)"
    do throws(ConfigurationError) { _ = try SecretFile.read(path, key: key) } catch {
      return .problem(key, error.problem)
    }
    let attributes = try? FileManager.default.attributesOfItem(atPath: path)
    let mode = (attributes?[.posixPermissions] as? NSNumber)?.intValue ?? 0
    guard mode & 0o077 != 0 else { return .fine(subject) }
    return .warning(subject, "can be read by others; run: chmod 600 \(shown)")
  }
}
