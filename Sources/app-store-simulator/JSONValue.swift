/// A value that a fault puts into an answer.
enum JSONValue: Decodable, Sendable {
  case text(String)
  case integer(Int64)
  case boolean(Bool)
  case null

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let flag = try? container.decode(Bool.self) {
      self = .boolean(flag)
    } else if let number = try? container.decode(Int64.self) {
      self = .integer(number)
    } else {
      self = .text(try container.decode(String.self))
    }
  }

  /// As Foundation writes it; nil for null, which means that the field is left out.
  var value: Any? {
    switch self {
    case .text(let text): text
    case .integer(let number): number
    case .boolean(let flag): flag
    case .null: nil
    }
  }
}
