import AppStore
import Run

/// The output of `night-audit trust`.
package struct TrustText {
  private let entries: [RootInstallation.Entry]

  package init(_ entries: [RootInstallation.Entry]) { self.entries = entries }

  struct Document: Encodable {
    let name: String
    let file: String
    let sha256: String
    let state: String
  }

  package var lines: String {
    entries.map { entry in
      "\(entry.isNew ? "installed     " : "already there ") \(entry.path)  \(entry.pin.name), SHA-256 \(entry.pin.fingerprint)"
    }.joined(separator: "\n")
  }

  package var json: String {
    get throws {
      try MachineText.json(
        entries.map { entry in
          Document(
            name: entry.pin.name, file: entry.path, sha256: entry.pin.fingerprint,
            state: entry.isNew ? "installed" : "present")
        })
    }
  }
}
