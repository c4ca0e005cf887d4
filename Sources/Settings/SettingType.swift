import AppStore
import Foundation
import Postgres
import Reconciliation
import Reporting

/// The type of a setting: how its text becomes a value, and how its default is written.
struct SettingType<Value: Sendable>: Sendable {
  var isList = false
  let text: @Sendable (Value) -> String
  /// Throws `ConfigurationError` for an invalid value. A value that may hold a secret is not quoted.
  let parse: @Sendable (_ key: String, _ values: [String]) throws -> Value

  /// A type of one value, which `convert` returns, or nil for an invalid text with this problem.
  static func single(
    _ text: @escaping @Sendable (Value) -> String, orRefuse problem: @escaping @Sendable (String) -> String,
    _ convert: @escaping @Sendable (String) -> Value?
  ) -> SettingType {
    SettingType(text: text) { key, values in
      let text = values.joined(separator: ",")
      guard let value = convert(text) else { throw ConfigurationError(key: key, problem: problem(text)) }
      return value
    }
  }

  /// The type of a setting that may have no value.
  static func optional<Wrapped>(_ type: SettingType<Wrapped>) -> SettingType where Value == Wrapped? {
    SettingType(text: { $0.map(type.text) ?? "" }, parse: type.parse)
  }
}

extension SettingType where Value == String {
  static var text: Self { checked { _ in nil } }

  static var nonBlank: Self {
    checked { $0.allSatisfy(\.isWhitespace) ? "is empty; give it a value, or leave it out" : nil }
  }

  /// A conninfo string that libpq accepts.
  static var connection: Self {
    checked { text in
      do throws(PostgresError) {
        _ = try ConnectionParameters(conninfo: text, applicationName: "night-audit")
        return nil
      } catch {
        return "\(error.message); its options are libpq's, such as host, port, dbname, user, sslmode and sslrootcert"
      }
    }
  }

  /// A URL to which secrets may be sent.
  static var endpoint: Self {
    checked { text in
      do throws(EndpointURLError) {
        _ = try EndpointURL(text)
        return nil
      } catch {
        return "\(error)"
      }
    }
  }

  static var link: Self {
    checked { text in
      ["http", "https"].contains(URL(string: text)?.scheme ?? "")
        ? nil : "is not a URL; write one such as https://reports.example.com/audit/"
    }
  }

  /// The URL of a monitor. Anybody who knows it can ping.
  static var monitor: Self {
    checked { text in
      guard let parts = URLComponents(string: text, encodingInvalidCharacters: false), parts.fragment == nil,
        let host = parts.host, !host.isEmpty, parts.user == nil, parts.password == nil,
        parts.scheme == "https" || parts.scheme == "http" && EndpointURL.isLoopback(host)
      else { return "is not an https URL without a user; write one such as https://hc-ping.com/ and the check's ID" }
      return nil
    }
  }

  static var timeZone: Self {
    checked { TimeZone(identifier: $0) == nil ? "\($0) is not a time zone; use a name such as Europe/Berlin" : nil }
  }

  static var reportVersion: Self {
    checked { $0.wholeMatch(of: /[0-9]+_[0-9]+/) == nil ? "\($0.prefix(20)) is not a version, such as 1_0" : nil }
  }

  private static func checked(_ problem: @escaping @Sendable (String) -> String?) -> Self {
    SettingType(text: { $0 }) { key, values in
      let text = values.joined(separator: ",")
      if let problem = problem(text) { throw ConfigurationError(key: key, problem: problem) }
      return text
    }
  }
}

extension SettingType where Value == [String] {
  static var texts: Self { SettingType(isList: true, text: { $0.joined(separator: ",") }) { $1 } }

  static var vendorNumbers: Self {
    SettingType(isList: true, text: texts.text) { key, numbers in
      for number in numbers where number.wholeMatch(of: /[0-9]{5,12}/) == nil {
        throw ConfigurationError(key: key, problem: "\(number.prefix(20)) is not a vendor number, such as 85012345")
      }
      return numbers
    }
  }
}

extension SettingType where Value == Set<ReportFormat> {
  static var formats: Self {
    SettingType(isList: true, text: { $0.map(\.rawValue).sorted().joined(separator: ",") }) { key, names in
      Set(
        try names.map { name in
          guard let format = ReportFormat(rawValue: name) else {
            let known = ReportFormat.allCases.map(\.rawValue).joined(separator: ", ")
            throw ConfigurationError(key: key, problem: "\(name) is not a format; use some of \(known)")
          }
          return format
        })
    }
  }
}

extension SettingType where Value == Span {
  static var span: Self { single(DurationText.text, orRefuse: DurationText.problem, DurationText.parse) }

  /// A span with a lower limit, and the consequence of a shorter one.
  static func span(atLeast least: Span, _ consequence: String) -> Self {
    SettingType(text: DurationText.text) { key, values in
      let span = try Self.span.parse(key, values)
      if span < least { throw ConfigurationError(key: key, problem: "\(values.joined()) \(consequence)") }
      return span
    }
  }
}

extension SettingType where Value == Span? {
  /// How long something is kept; nil keeps it forever.
  static var retention: Self {
    single(
      { $0.map(DurationText.text) ?? "forever" },
      orRefuse: { "\($0) is no retention; write forever, or at least 1s and at most 365000d, such as 90d or 12h" }
    ) { text in
      if text == "forever" || text == "for ever" { return .some(nil) }
      guard let span = DurationText.parse(text), span.wholeSeconds > 0 else { return nil }
      return span
    }
  }
}

extension SettingType where Value == Int {
  static func count(atLeast least: Int = 1) -> Self {
    single({ "\($0)" }, orRefuse: { "\($0) is not a whole number of \(least) or more" }) { text in
      Int(digits: text).flatMap { $0 >= least ? $0 : nil }
    }
  }
}

extension SettingType where Value == Double {
  /// Requests per second; 0 sets no limit.
  static var rate: Self {
    SettingType(text: { "\(Decimal($0))" }) { key, values in
      let text = values.joined()
      guard let number = Double(text), number >= 0, number.isFinite else {
        throw ConfigurationError(key: key, problem: "\(text) is not a number of 0 or more")
      }
      guard number == 0 || number >= 0.001 else {
        throw ConfigurationError(
          key: key, problem: "\(text) is less than one request in a thousand seconds; 0 sets no limit")
      }
      return number
    }
  }
}

extension SettingType where Value == Int64 {
  /// An amount in major units, as millionths.
  static var amount: Self {
    single(
      { "\(Decimal($0) / 1_000_000)" },
      orRefuse: { "\($0) is not an amount in major units of 0 or more, such as 0.01" }
    ) { text in
      Int64(decimalText: text, digits: 6).flatMap { $0 < 1_000_000_000_000_000 ? $0 : nil }
    }
  }
}

extension SettingType where Value == Share {
  static var share: Self {
    single(
      \.description,
      orRefuse: { "\($0) is not a share from 0 to 1 with at most six decimals, such as 0.25" }, Share.init)
  }
}

extension SettingType where Value == Bool {
  static var flag: Self {
    single({ "\($0)" }, orRefuse: { "\($0) is neither true nor false" }) { text in
      let word = text.lowercased()
      if ["true", "yes", "on", "1"].contains(word) { return true }
      return ["false", "no", "off", "0"].contains(word) ? false : nil
    }
  }
}

extension SettingType where Value: CaseIterable & RawRepresentable<String> {
  static var word: Self {
    single(\.rawValue, orRefuse: { "\($0) is not one of \(Value.allCases.map(\.rawValue).joined(separator: ", "))" }) {
      Value(rawValue: $0)
    }
  }
}

extension SettingType where Value == ExcelLocale {
  static var locale: Self {
    single(\.name, orRefuse: { "\($0) is not a locale; write language and region, such as de-DE" }, { ExcelLocale($0) })
  }
}

extension SettingType where Value == Pseudonyms? {
  static var pseudonyms: Self {
    SettingType(text: { _ in "" }) { key, values in
      let path = values.joined(separator: ",")
      guard let pseudonyms = Pseudonyms(key: Array(try SecretFile.read(path, key: key).reveal().utf8)) else {
        throw ConfigurationError(
          key: key,
          problem: """
            \(SecretFile.shown(path)) holds fewer than \(Pseudonyms.shortestKey) bytes, which could be guessed; write a \
            key to it with `openssl rand -hex 32`
            """)
      }
      return pseudonyms
    }
  }
}
