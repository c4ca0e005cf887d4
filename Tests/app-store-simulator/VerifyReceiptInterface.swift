import Crypto
import Foundation

struct VerifyReceiptInterface: Sendable {
  var environment: World.Environment

  struct Query: Sendable {
    var receiptData: String?
    var password: String?

    init?(body: Data) {
      guard let fields = try? JSONSerialization.jsonObject(with: body) as? [String: Any] else { return nil }
      receiptData = fields["receipt-data"] as? String
      password = fields["password"] as? String
    }

    var subject: String {
      guard let receiptData else { return "none" }
      return SHA256.hash(data: Data(receiptData.utf8)).prefix(8).map { String(format: "%02x", $0) }.joined()
    }
  }

  func answer(_ query: Query?, world: World, time: SimulatedClock.Reading) -> Answer {
    guard let query else { return .json(["status": 21_000]) }
    guard let payload = query.receiptData else { return .json(["status": 21_002]) }
    guard let receipt = world.receipt(payload: payload) else {
      return .json(["status": Self.looksLikeReceipt(payload) ? 21_003 : 21_002])
    }
    guard receipt.environment == environment else {
      return .json(["status": environment == .production ? 21_007 : 21_008])
    }
    if let secret = world.app(bundleId: receipt.bundleId)?.sharedSecret, secret != query.password {
      return .json(["status": 21_004, "environment": environment.rawValue])
    }
    // 21006 includes the receipt's content; other forced statuses do not.
    if let status = receipt.status, status != 0, status != 21_006 {
      var fields: [String: Any] = ["status": status, "environment": environment.rawValue]
      if (21_100...21_199).contains(status) { fields["is_retryable"] = true }
      return .json(fields)
    }
    let answered = receipt.answeredAs.flatMap(world.receipt) ?? receipt
    let content = ReceiptContent(receipt: answered, world: world, now: time.now, horizon: time.horizon)
    let fields =
      switch answered.kind {
      case .app: content.unified
      case .transaction: content.flat ?? ["status": 21_002]
      }
    return .json(Self.without(receipt.omit ?? [], fields))
  }

  private static func without(_ names: [String], _ fields: [String: Any]) -> [String: Any] {
    guard !names.isEmpty else { return fields }
    return fields.filter { !names.contains($0.key) }.mapValues { value in
      switch value {
      case let inner as [String: Any]: without(names, inner)
      case let list as [[String: Any]]: list.map { without(names, $0) }
      default: value
      }
    }
  }

  /// PKCS#7 starts with a DER sequence, an old transaction receipt with a property list's brace.
  private static func looksLikeReceipt(_ payload: String) -> Bool {
    let bytes = Data(base64Encoded: payload.filter { !$0.isWhitespace })
    return bytes?.first == 0x30 || bytes?.first == UInt8(ascii: "{")
  }
}
