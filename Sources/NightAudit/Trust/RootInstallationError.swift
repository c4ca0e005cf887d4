import AppStore
import Foundation
import Run

/// Why there are still no root certificates to trust. The description says what to do.
package enum RootInstallationError: EndsRun, CustomStringConvertible {
  /// Nothing was brought by the address or directory.
  case unobtainable(TrustedRoots.Pin, origin: String, reason: String)
  /// Something was, but it is not the pinned certificate.
  case refused(TrustedRoots.Pin, origin: String, TrustedRoots.Pin.Mismatch)
  /// A file or directory could not be written; the system's error number.
  case cannotWrite(path: String, code: Int32)
  /// The certificates are there, but something else is too.
  case directoryUnusable(TrustedRootsError)

  package var description: String {
    switch self {
    case .unobtainable(let pin, let origin, let reason):
      """
      \(origin): \(pin.name) could not be had: \(reason). Without a way out, fetch \(pin.address) on another \
      machine, and run: night-audit trust --from DIR
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

  /// The exit status that it ends the program with.
  package var exitStatus: ExitStatus {
    switch self {
    case .unobtainable, .refused, .directoryUnusable: .configuration
    case .cannotWrite: .cannotWrite
    }
  }
}
