import AppStore
import Foundation
import Reconciliation
import Run

extension SettingsLoader {
  func loadAdditionalSettings(into settings: inout Settings) throws {
    settings.systemicShare = try share("audit.systemicShare", settings.systemicShare)
    settings.holdShare = try share("audit.holdShare", settings.holdShare)
    settings.reviewWindows = try reviewWindows(in: settings.timeZone)
    settings.evidenceRetention = try retention("evidence.retention", nil)
    settings.pingURL = try text("notify.pingUrl").map { try pingURL($0) }
    if let word = text("notify.on") {
      guard let known = Settings.NotifyOn(rawValue: word) else {
        throw ConfigurationError(key: "notify.on", problem: "\(word) is neither change nor always")
      }
      settings.notifyOn = known
    }
    settings.metricsTextfile = try words("metrics.textfile")
    try loadTieOut(into: &settings.tieOut)
    try loadAppStoreConnect(into: &settings.appStoreConnect)
  }

  private func loadTieOut(into tieOut: inout Settings.TieOut) throws {
    tieOut.folder = try words("tieOut.folder")
    tieOut.timeZoneName = text("tieOut.timeZone") ?? tieOut.timeZoneName
    guard TimeZone(identifier: tieOut.timeZoneName) != nil else {
      throw ConfigurationError(
        key: "tieOut.timeZone", problem: "\(tieOut.timeZoneName) is not a time zone; use a name such as Europe/Berlin")
    }
    tieOut.trailingDays = try count("tieOut.trailingDays", tieOut.trailingDays)
    tieOut.keepRaw = try retention("tieOut.keepRaw", tieOut.keepRaw)
    tieOut.alertUnits = try count("tieOut.alertUnits", tieOut.alertUnits, least: 0)
    tieOut.alertShare = try share("tieOut.alertShare", tieOut.alertShare)
  }

  private func loadAppStoreConnect(into connect: inout Settings.AppStoreConnect) throws {
    connect.issuerId = text("appStoreConnect.issuerId")
    connect.keyId = text("appStoreConnect.keyId")
    connect.privateKeyFile = text("appStoreConnect.privateKeyFile")
    connect.vendorNumbers = list("appStoreConnect.vendorNumbers") ?? []
    for number in connect.vendorNumbers where number.wholeMatch(of: /[0-9]{5,12}/) == nil {
      throw ConfigurationError(
        key: "appStoreConnect.vendorNumbers", problem: "\(number.prefix(20)) is not a vendor number, such as 85012345")
    }
    connect.url = try url("appStoreConnect.url", connect.url)
    if let version = text("appStoreConnect.salesVersion") {
      guard version.wholeMatch(of: /[0-9]+_[0-9]+/) != nil else {
        throw ConfigurationError(
          key: "appStoreConnect.salesVersion", problem: "\(version.prefix(20)) is not a version, such as 1_0")
      }
      connect.salesVersion = version
    }
    guard connect.privateKeyFile != nil else {
      if connect.issuerId == nil, connect.keyId == nil { return }
      throw ConfigurationError(
        key: "appStoreConnect.privateKeyFile",
        problem: "is required with issuerId or keyId: the .p8 file of the team key, without which nothing is fetched")
    }
    if connect.keyId == nil {
      throw ConfigurationError(key: "appStoreConnect.keyId", problem: "is required with a private key")
    }
    if connect.vendorNumbers.isEmpty {
      throw ConfigurationError(
        key: "appStoreConnect.vendorNumbers",
        problem: "is required with a private key: the vendor numbers in App Store Connect, Sales and Trends")
    }
  }

  private func share(_ key: String, _ standard: Share) throws -> Share {
    guard let text = text(key) else { return standard }
    guard let share = Share(text) else {
      throw ConfigurationError(
        key: key, problem: "\(text) is not a share from 0 to 1 with at most six decimals, such as 0.25")
    }
    return share
  }

  /// Reads a retention; nil keeps everything.
  func retention(_ key: String, _ standard: Span?) throws -> Span? {
    guard let text = text(key) else { return standard }
    if text == "forever" || text == "for ever" { return nil }
    guard let span = DurationText.parse(text), span.wholeSeconds > 0 else { throw badDuration(key, text) }
    return span
  }

  private func pingURL(_ text: String) throws -> String {
    guard let parts = URLComponents(string: text, encodingInvalidCharacters: false), parts.fragment == nil,
      let host = parts.host, !host.isEmpty,
      parts.scheme == "https" || parts.scheme == "http" && Loopback.contains(host)
    else {
      // The value is not quoted, because anybody who knows the URL can ping.
      throw ConfigurationError(
        key: "notify.pingUrl", problem: "is not an https URL; write one such as https://hc-ping.com/ and the check's ID"
      )
    }
    return text
  }

  private func reviewWindows(in zone: TimeZone) throws -> [Period] {
    try (list("audit.reviewWindows") ?? []).map { text in
      let days = text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
      guard days.count == 2, let period = try? Period(since: days[0], until: days[1], in: zone) else {
        throw ConfigurationError(
          key: "audit.reviewWindows",
          problem:
            "\(text.prefix(40)) is not a window; write a list of since and until, two days such as 2026-11-19, in order"
        )
      }
      return period
    }
  }
}
