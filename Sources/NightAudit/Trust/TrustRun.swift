import AppStore
import Foundation
import Reconciliation
import Run
import Settings

/// `night-audit trust`: fetches root certificates from Apple, a mirror or a directory.
package enum TrustRun {
  /// Throws `RootInstallationError`, `ConfigurationError` for a malformed URL, `CancellationError`.
  ///
  /// - Parameter source: a directory with fetched files, the https URL of a mirror, or nil for Apple.
  package static func run(_ settings: Settings, from source: String?) async throws -> [RootInstallation.Entry] {
    let installation = RootInstallation(directory: settings.rootCertificates, pinned: settings.pinRoots)
    var mirror: EndpointURL?
    if let source {
      guard source.contains("://") else {
        let files = CertificateFiles(directory: source)
        return try await installation.run { try files.content(of: $0) }
      }
      do throws(EndpointURLError) { mirror = try EndpointURL(source) } catch {
        throw ConfigurationError(key: "--from", problem: "\(error)")
      }
    }
    let transport = HTTPTransport(timeout: settings.timeout, concurrency: 1)
    let download = RootCertificateDownload(transport: transport, mirror: mirror, version: Version.current)
    return try await finally({ await transport.shutdown() }) {
      try await installation.run { pin in
        let origin = download.address(of: pin)
        switch try await download.content(of: pin) {
        case .success(let content): return (content, origin)
        case .failure(let silence):
          throw RootInstallationError.unobtainable(pin, origin: origin, reason: silence.detail)
        }
      }
    }
  }
}

struct CertificateFiles {
  let directory: String

  func content(of pin: TrustedRoots.PinnedRoot) throws(RootInstallationError) -> (content: [UInt8], origin: String) {
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: directory).filter { !$0.hasPrefix(".") }.sorted()
    } catch {
      throw .unobtainable(pin, origin: directory, reason: "the directory cannot be listed")
    }
    for name in names {
      let path = directory + "/" + name
      guard let content = Self.content(of: path) else { continue }
      if (try? pin.certificate(in: content)) != nil { return (content, path) }
    }
    throw .unobtainable(
      pin, origin: directory, reason: "none of its \(names.count) files has the SHA-256 \(pin.fingerprint)")
  }

  /// Reads at most 64 KiB, more than any certificate has.
  private static func content(of path: String) -> [UInt8]? {
    guard let descriptor = try? RegularFile.descriptor(path) else { return nil }
    let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    return (try? file.read(upToCount: 1 << 16)).map { Array($0) }
  }
}
