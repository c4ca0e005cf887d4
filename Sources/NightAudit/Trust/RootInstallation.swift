import AppStore
import Foundation
import Glibc
import Publishing
import Run

/// Installs Apple's root certificates, after all of them are fetched and match their pins.
package struct RootInstallation: Sendable {
  package struct Entry: Hashable, Sendable {
    package var pin: TrustedRoots.PinnedRoot
    package var path: String
    package var isNew: Bool

    package struct Document: Encodable {
      let name: String
      let file: String
      let sha256: String
      let state: String
    }

    package var document: Document {
      Document(name: pin.name, file: path, sha256: pin.fingerprint, state: isNew ? "installed" : "present")
    }

    package var line: String {
      "\(isNew ? "installed     " : "already there ") \(path)  \(pin.name), SHA-256 \(pin.fingerprint)"
    }
  }

  let directory: String
  var pins = TrustedRoots.applePins
  /// True if other certificates in the directory are a fault (`appstore.pinRoots`).
  let pinned: Bool

  /// Installs the missing certificates. Throws `RootInstallationError`, and errors of `fetch`.
  func run(
    fetch: (TrustedRoots.PinnedRoot) async throws -> (content: [UInt8], origin: String)
  ) async throws -> [Entry] {
    var entries: [Entry] = []
    var missing: [(path: String, certificate: [UInt8])] = []
    for pin in pins {
      let path = directory + "/" + pin.fileName
      let isThere = Self.isInstalled(pin, path)
      if !isThere {
        let (content, origin) = try await fetch(pin)
        do throws(TrustedRoots.PinnedRoot.Mismatch) {
          missing.append((path, try pin.certificate(in: content)))
        } catch {
          throw RootInstallationError.refused(pin, origin: origin, error)
        }
      }
      entries.append(Entry(pin: pin, path: path, isNew: !isThere))
    }
    if !missing.isEmpty {
      try Self.makeDirectory(directory)
      for file in missing {
        do throws(WholeFile.Failure) {
          try WholeFile(path: file.path).write(file.certificate)
        } catch {
          throw RootInstallationError.cannotWrite(path: error.path, code: error.code)
        }
      }
    }
    do throws(TrustedRootsError) {
      _ = try TrustedRoots(directory: directory, pinned: pinned)
    } catch {
      throw RootInstallationError.directoryUnusable(error)
    }
    return entries
  }

  /// Mode 0755 for new parents, too, because the service runs as another user than the installer.
  private static func makeDirectory(_ path: String) throws(RootInstallationError) {
    guard !FileManager.default.fileExists(atPath: path) else { return }
    let parent = (path as NSString).deletingLastPathComponent
    if !parent.isEmpty, parent != path { try makeDirectory(parent) }
    guard mkdir(path, 0o755) == 0 || errno == EEXIST, chmod(path, 0o755) == 0 else {
      throw .cannotWrite(path: path, code: errno)
    }
  }

  private static func isInstalled(_ pin: TrustedRoots.PinnedRoot, _ path: String) -> Bool {
    guard let content = RegularFile.content(path) else { return false }
    return (try? pin.certificate(in: Array(content))) != nil
  }
}
