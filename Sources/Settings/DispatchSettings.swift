import AppStore
import Foundation
import Reconciliation

extension SettingKey {
  package static let ofDelivery: [SettingKey] = [
    SettingKey("url", "`smtps:`, `smtp:` (STARTTLS), `sftp:`, `https:`", secrecy: .addressOfDelivery),
    SettingKey("command", "a program; the folder's path is its last argument", secrecy: .command, isList: true),
    SettingKey("from", "the sender of a mail"), SettingKey("to", "the recipients of a mail", isList: true),
    SettingKey("user", "the user of the server, or the access key ID of an S3 bucket"),
    SettingKey("passwordFile", "a file with the password; without a user a bearer token", secrecy: .file),
    SettingKey("privateKeyFile", "the key of an SFTP client", secrecy: .file),
    SettingKey("hostKey", "the fingerprint of an SFTP server"), SettingKey("region", "the region of an S3 bucket"),
    SettingKey("caFile", "trusted certificates in place of the system's", secrecy: .file),
    SettingKey("attempts", "attempts in one night", standard: "3"),
  ]
}

extension SettingsLoader {
  func dispatchTargets() throws -> [DispatchTarget] {
    let names = list("report.deliver") ?? []
    guard Set(names).count == names.count else {
      throw ConfigurationError(key: "report.deliver", problem: "must name each place once")
    }
    for name in names where name.wholeMatch(of: /[A-Za-z][A-Za-z0-9_-]*/) == nil {
      throw ConfigurationError(
        key: "report.deliver", problem: "\(name) is not a name; use letters, digits, - and _, a letter first")
    }
    if let stray = sections("deliver", in: fileValues.keys + emptyKeys).first(where: { !names.contains($0) }) {
      throw ConfigurationError(key: "deliver.\(stray)", problem: "is configured but not listed in report.deliver")
    }
    return try names.map { try DispatchSection(name: $0, loader: self).target() }
  }
}

private struct DispatchSection {
  let name: String
  let loader: SettingsLoader

  func target() throws -> DispatchTarget {
    switch (text("url"), loader.list(key("command"))) {
    case (nil, nil), (_?, _?):
      throw ConfigurationError(
        key: "deliver.\(name)", problem: "needs either a url (smtps, smtp, sftp or https) or a command")
    case (let url?, nil): return try target(url)
    case (nil, let command?):
      guard let program = command.first, program.hasPrefix("/") else {
        throw error("command", "must begin with the program's whole path, such as [/usr/local/bin/send-report]")
      }
      try allow(["command"], for: "a command")
      return DispatchTarget(name: name, means: .command(command), attempts: try attempts())
    }
  }

  private func target(_ url: String) throws -> DispatchTarget {
    guard let parts = URLComponents(string: url), let scheme = parts.scheme?.lowercased(), let host = parts.host,
      !host.isEmpty, !url.contains(where: \.isWhitespace), parts.port.map({ (1...65_535).contains($0) }) ?? true
    else { throw error("url", "is not a URL; write scheme://host/path, and %20 for a blank") }
    guard parts.user == nil, parts.password == nil else {
      throw error("url", "must not carry a user name or password; use user and passwordFile")
    }
    guard parts.query == nil, parts.fragment == nil else {
      throw error("url", "must end with its path: the names of folder and files are appended to it")
    }
    let account = DispatchTarget.Account(
      url: url, user: text("user"), passwordFile: text("passwordFile"), caFile: text("caFile"))
    if account.user != nil, account.passwordFile == nil, text("privateKeyFile") == nil {
      throw error("passwordFile", "is required when there is a user")
    }
    return DispatchTarget(name: name, means: try means(scheme, host, account), attempts: try attempts())
  }

  private func means(
    _ scheme: String, _ host: String, _ account: DispatchTarget.Account
  ) throws -> DispatchTarget.DeliveryMethod {
    switch scheme {
    case "smtp", "smtps":
      try allow(["url", "from", "to", "user", "passwordFile", "caFile"], for: scheme)
      return .mail(try mail(account))
    case "sftp":
      try allow(["url", "user", "passwordFile", "privateKeyFile", "hostKey"], for: scheme)
      return .upload(DispatchTarget.Upload(account: account, kind: try sftp(account)))
    case "https", "http":
      guard scheme == "https" || EndpointURL.isLoopback(host) else {
        throw error("url", "plain http would show reports to the network: use https (http is for loopback only)")
      }
      try allow(["url", "user", "passwordFile", "region", "caFile"], for: scheme)
      guard let region = text("region") else {
        return .upload(DispatchTarget.Upload(account: account, kind: .https))
      }
      guard account.user != nil, account.passwordFile != nil else {
        throw error("user", "is required with a region: the access key id; its secret is in passwordFile")
      }
      guard region.wholeMatch(of: /[A-Za-z0-9-]+/) != nil else { throw error("region", "is not the name of a region") }
      return .upload(DispatchTarget.Upload(account: account, kind: .s3(region: region)))
    default: throw error("url", "\(scheme) is not one of smtps, smtp, sftp, https")
    }
  }

  private func mail(_ account: DispatchTarget.Account) throws -> DispatchTarget.Mail {
    guard let from = text("from") else { throw error("from", "is required: the address that the mail comes from") }
    guard let to = loader.list(key("to")), !to.isEmpty else {
      throw error("to", "is required: the addresses that the mail goes to")
    }
    for (field, address) in [("from", from)] + to.map({ ("to", $0) }) {
      guard address.wholeMatch(of: /[!-~&&[^<>",;:@]]+@[A-Za-z0-9.-]+/) != nil else {
        throw error(field, "\(address) is not an address; write name@example.com, without a display name")
      }
    }
    return DispatchTarget.Mail(account: account, from: from, to: to)
  }

  private func sftp(_ account: DispatchTarget.Account) throws -> DispatchTarget.Upload.Kind {
    guard account.user != nil else { throw error("user", "is required with sftp") }
    guard let hostKey = text("hostKey"), hostKey.wholeMatch(of: /SHA256:[A-Za-z0-9+\/]{43}=?/) != nil else {
      throw error("hostKey", "is required with sftp: the server's fingerprint, SHA256:…, as ssh-keygen -l prints it")
    }
    return .sftp(hostKey: hostKey, privateKeyFile: text("privateKeyFile"))
  }

  private func attempts() throws -> Int {
    guard let text = text("attempts") else { return 3 }
    guard let number = Int(digits: text), (1...10).contains(number) else {
      throw error("attempts", "\(text) is not a whole number from 1 to 10")
    }
    return number
  }

  /// Refuses keys that would have no effect.
  private func allow(_ fields: [String], for means: String) throws {
    for field in SettingKey.ofDelivery.map(\.name) where field != "attempts" && !fields.contains(field) {
      if loader.list(key(field)) != nil { throw error(field, "has no effect with \(means); remove it") }
    }
  }

  private func key(_ field: String) -> String { "deliver.\(name).\(field)" }

  private func text(_ field: String) -> String? { loader.text(key(field)) }

  private func error(_ field: String, _ problem: String) -> ConfigurationError {
    ConfigurationError(key: key(field), problem: problem)
  }
}
