import Foundation

extension Answer {
  /// The answer with every signature in it made wrong; all else stays as it is.
  func withSpoiltSignatures() -> Answer {
    guard let value = try? JSONSerialization.jsonObject(with: body),
      let body = try? JSONSerialization.data(withJSONObject: Self.spoilt(value), options: [.sortedKeys])
    else { return self }
    var answer = self
    answer.body = body
    return answer
  }

  private static func spoilt(_ value: Any) -> Any {
    switch value {
    case let fields as [String: Any]: fields.mapValues(spoilt)
    case let list as [Any]: list.map(spoilt)
    case let text as String: spoilt(text)
    default: value
    }
  }

  /// A JWS has three parts; the first character of the third carries six whole bits of the signature.
  private static func spoilt(_ text: String) -> String {
    var parts = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 3, text.hasPrefix("eyJ"), let first = parts[2].first else { return text }
    parts[2] = (first == "A" ? "B" : "A") + parts[2].dropFirst()
    return parts.joined(separator: ".")
  }
}
