import AppStore
import Foundation
import Run

/// Why root certificates could not be installed. The description names a remedy.
package enum RootInstallationError: RunEndingError, CustomStringConvertible {
  case unobtainable(TrustedRoots.PinnedRoot, origin: String, reason: String)
  /// The content is not the pinned certificate.
  case refused(TrustedRoots.PinnedRoot, origin: String, TrustedRoots.PinnedRoot.Mismatch)
  /// A file or directory could not be written; `code` is `errno`.
  case cannotWrite(path: String, code: Int32)
  case directoryUnusable(TrustedRootsError)

  package var description: String {
    switch self {
    case .unobtainable(let pin, let origin, let reason):
      """
      \(origin): \(pin.name) could not be fetched: \(reason). On a machine without internet access, fetch \(pin.address) \
      on another machine, and run: night-audit trust --from DIR
      """
    case .refused(let pin, let origin, let mismatch):
      """
      \(origin): expected \(pin.name), whose SHA-256 is \(pin.fingerprint), but \(mismatch). Nothing was installed. \
      Look for a proxy that answers in Apple's place, or fetch \(pin.address) elsewhere, and run: night-audit trust --from DIR
      """
    case .cannotWrite(let path, let code):
      """
      cannot write \(path): \(String(cString: strerror(code))); run it as a user who may, such as root, or name another \
      directory in appstore.rootCertificates
      """
    case .directoryUnusable(let error): "\(error)"
    }
  }

  package var exitStatus: ExitStatus {
    switch self {
    case .unobtainable, .refused, .directoryUnusable: .configuration
    case .cannotWrite: .cannotWrite
    }
  }
}
