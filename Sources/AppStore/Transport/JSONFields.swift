import Foundation

/// The fields of a JSON object that somebody else wrote, read with tolerance: numbers as texts, texts as numbers,
/// booleans in any dress, and nothing at all where the type makes no sense.
///
/// Foundation reads the JSON itself and refuses values nested deeper than 512 levels.
struct JSONFields {
  private var fields: [String: Any]

  private init(_ fields: [String: Any]) { self.fields = fields }

  /// Nil unless the bytes are JSON with an object at the top.
  init?(_ bytes: some Sequence<UInt8>) {
    guard let fields = try? JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any] else { return nil }
    self.fields = fields
  }

  /// Whether the field is there and says something: neither null nor an empty text.
  func has(_ key: String) -> Bool {
    switch fields[key] {
    case .none, is NSNull: false
    case let text as String: !text.isEmpty
    case .some: true
    }
  }

  /// A text without control characters, which no identifier of Apple's has and no database column takes, of at most
  /// 1,024 bytes; or a whole number, spelled out.
  func text(_ key: String) -> String? {
    switch fields[key] {
    case let text as String:
      let trimmed = text.trimmingCharacters(in: .whitespacesAndNewlines)
      let isPlain = trimmed.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
      return trimmed.isEmpty || trimmed.utf8.count > 1_024 || !isPlain ? nil : trimmed
    case let number as NSNumber where !number.isBoolean:
      let digits = number.stringValue
      return digits.utf8.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 } ? digits : nil
    default: return nil
    }
  }

  /// A whole number, or a text that is one.
  func integer(_ key: String) -> Int64? {
    switch fields[key] {
    case let text as String: Int64(text.trimmingCharacters(in: .whitespacesAndNewlines))
    case let number as NSNumber where !number.isBoolean: number as? Int64
    default: nil
    }
  }

  /// A boolean, 0 or 1, or one of the words for them.
  func flag(_ key: String) -> Bool? {
    switch fields[key] {
    case let text as String:
      switch text.lowercased() {
      case "true", "1", "yes": true
      case "false", "0", "no": false
      default: nil
      }
    case let number as NSNumber: number as? Bool
    default: nil
    }
  }

  /// A signed document, whatever its length.
  func document(_ key: String) -> String? { fields[key] as? String }

  /// The signed documents listed under the key; an empty one in the place of what is no text, so that it can be counted.
  func documents(_ key: String) -> [String] {
    (fields[key] as? [Any] ?? []).map { $0 as? String ?? "" }
  }

  /// The object under the key.
  func object(_ key: String) -> JSONFields? { (fields[key] as? [String: Any]).map(JSONFields.init) }

  /// The objects under the key, whether they are listed or there is a single one. What is no object comes as one without
  /// fields, so that it can be counted.
  func objects(_ key: String) -> [JSONFields] {
    switch fields[key] {
    case let list as [Any]: list.map { JSONFields($0 as? [String: Any] ?? [:]) }
    case let object as [String: Any]: [JSONFields(object)]
    default: []
    }
  }

  /// These fields with those of `other` over them wherever `other` says something.
  func overlaid(by other: JSONFields) -> JSONFields {
    var merged = self
    for key in other.fields.keys where other.has(key) { merged.fields[key] = other.fields[key] }
    return merged
  }
}

extension NSNumber {
  /// Foundation's only mark of a JSON `true` or `false` is the number's C type.
  fileprivate var isBoolean: Bool { String(cString: objCType) == "c" }
}
