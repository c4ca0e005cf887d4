import Foundation

/// Damage to a payload on its way from a client to the shop's column.
enum TransportDamage: String, Decodable, Sendable {
  /// Caused by form decoding.
  case spaceForPlus
  /// base64 and base64url exchanged.
  case otherAlphabet
  case lostPadding
  case lines
  case quotes
  /// The whole verifyReceipt request was stored.
  case json
  case bytea
  case percent
  /// The column was too short; this cannot be undone.
  case truncated

  func applied(to payload: String) -> String {
    let isJWS = payload.contains(".")
    switch self {
    case .spaceForPlus: return payload.replacing("+", with: " ")
    case .otherAlphabet:
      return isJWS
        ? payload.replacing("-", with: "+").replacing("_", with: "/")
        : payload.replacing("+", with: "-").replacing("/", with: "_")
    case .lostPadding: return payload.replacing("=", with: "")
    case .lines:
      return stride(from: 0, to: payload.utf8.count, by: 64)
        .map { payload.dropFirst($0).prefix(64) }.joined(separator: "\r\n")
    case .quotes: return "\"\(payload)\""
    case .json: return #"{"receipt-data":"\#(payload)","password":"x"}"#
    case .bytea: return "\\x" + payload.utf8.map { String(format: "%02x", $0) }.joined()
    case .percent: return payload.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? payload
    case .truncated: return String(payload.prefix(payload.utf8.count / 2))
    }
  }
}
