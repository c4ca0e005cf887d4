import Postgres
import Run

/// `config show`: every setting with its value and origin. Secrets are masked.
package struct SettingsListing: Encodable, Sendable {
  package struct Line: Encodable, Sendable {
    package var key: String
    package var value: String?
    /// `default`, or the place where it was set.
    package var origin: String
  }

  package let settings: [Line]

  package init(_ loader: SettingsLoader) {
    var keys = SettingKey.all + loader.ofSections()
    let owned = SettingKey.ofOwners.filter { loader.origin(of: $0) != nil }
    keys += owned.isEmpty ? [.owners] : owned
    let accounts = SettingKey.ofJournal.filter { loader.origin(of: $0) != nil }
    keys += accounts.isEmpty ? [.accounts] : accounts
    settings = keys.map { key in
      guard let origin = loader.origin(of: key), let values = loader.list(key.name) else {
        return Line(key: key.name, value: key.standard.isEmpty ? nil : key.standard, origin: "default")
      }
      return Line(key: key.name, value: Self.shown(values, key).joined(separator: ","), origin: origin)
    }
  }

  private static func shown(_ values: [String], _ key: SettingKey) -> [String] {
    guard case .command = key.secrecy else { return values.map { shown($0, key) } }
    return values.prefix(1).map(DispatchTarget.shownProgram) + values.dropFirst().map { _ in "…" }
  }

  private static func shown(_ value: String, _ key: SettingKey) -> String {
    switch key.secrecy {
    case .none, .command: value
    case .addressOfDelivery: ShownURL.delivery(value)
    case .connection: ConnectionParameters.summary(of: value) ?? "(hidden: it cannot be understood)"
    case .url: ShownURL.text(value)
    case .pathOfURL: ShownURL.host(value)
    case .file: SecretFile.shown(value)
    }
  }

  package func table(width: Int?) -> String {
    var table = TextTable([.left("KEY"), .left("VALUE"), .left("FROM")])
    for line in settings { table.add([line.key, line.value ?? "-", line.origin]) }
    return table.text(width: width)
  }
}
