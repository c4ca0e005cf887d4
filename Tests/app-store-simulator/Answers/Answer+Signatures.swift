import Foundation

extension Answer {
  /// Invalidates every signature in the answer.
  func withSpoiltSignatures() -> Answer { mapTexts { Self.spoilt($0) } }

  func with(_ fields: [String: JSONValue]) -> Answer {
    guard var object = try? JSONSerialization.jsonObject(with: body) as? [String: Any] else { return self }
    for (name, value) in fields { object[name] = value.value }
    return replacing(object)
  }

  /// Signs every payload again; `changes` replace existing fields within signed payloads.
  func signedAnew(by authority: SigningAuthority, changing changes: [String: JSONValue]) throws -> Answer {
    try mapTexts { try Self.signedAnew($0, by: authority, changing: changes) }
  }

  private func mapTexts(_ change: (String) throws -> String) rethrows -> Answer {
    guard let value = try? JSONSerialization.jsonObject(with: body) else { return self }
    return replacing(try Self.mapTexts(of: value, change))
  }

  func replacing(_ value: Any) -> Answer {
    guard
      let body = try? JSONSerialization.data(withJSONObject: value, options: [.sortedKeys, .withoutEscapingSlashes])
    else { return self }
    var answer = self
    answer.body = body
    return answer
  }

  private static func mapTexts(of value: Any, _ change: (String) throws -> String) rethrows -> Any {
    switch value {
    case let fields as [String: Any]: try fields.mapValues { try mapTexts(of: $0, change) }
    case let list as [Any]: try list.map { try mapTexts(of: $0, change) }
    case let text as String: try change(text)
    default: value
    }
  }

  private static func signedAnew(
    _ text: String, by authority: SigningAuthority, changing changes: [String: JSONValue]
  ) throws -> String {
    guard let parts = parts(ofJWS: text), let payload = Data(base64URL: parts[1]),
      let fields = try JSONSerialization.jsonObject(with: payload) as? [String: Any]
    else { return text }
    // Inner payloads first, because a notification contains a signed transaction.
    let inner = try mapTexts(of: fields) { try signedAnew($0, by: authority, changing: changes) }
    return try authority.sign(changed(inner, changes) as? [String: Any] ?? fields)
  }

  private static func changed(_ value: Any, _ changes: [String: JSONValue]) -> Any {
    guard let fields = value as? [String: Any] else { return value }
    var changed = fields.mapValues { Self.changed($0, changes) }
    for (name, value) in changes where fields[name] != nil { changed[name] = value.value }
    return changed
  }

  private static func parts(ofJWS text: String) -> [String]? {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    return parts.count == 3 && text.hasPrefix("eyJ") ? parts : nil
  }

  /// Changes the first character of the signature, all six bits of which are significant.
  private static func spoilt(_ text: String) -> String {
    guard var parts = parts(ofJWS: text), let first = parts[2].first else { return text }
    parts[2] = (first == "A" ? "B" : "A") + parts[2].dropFirst()
    return parts.joined(separator: ".")
  }
}
