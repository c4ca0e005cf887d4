import Foundation
import Gzip

extension Answer {
  /// Changes the shape of the receipt in an answer of verifyReceipt. Answers without a receipt stay unchanged.
  func shaped(_ shape: ReceiptShape) -> Answer {
    guard var fields = try? JSONSerialization.jsonObject(with: body) as? [String: Any],
      var receipt = fields["receipt"] as? [String: Any]
    else { return self }
    switch shape {
    case .emptyReceipt: receipt = [:]
    case .textStatus: (receipt, fields["status"]) = ([:], "0")
    case .noBundleId: receipt["bundle_id"] = nil
    case .noInApp: receipt["in_app"] = nil
    case .nullInApp: receipt["in_app"] = NSNull()
    case .objectInApp: receipt["in_app"] = [String: Any]()
    case .nestedInApp: receipt["in_app"] = [[Any]()]
    case .surrogateInApp: receipt["in_app"] = ["\(Self.surrogate)"]
    case .textLatestInfo: fields["latest_receipt_info"] = "none"
    case .lacksPurchases: (receipt["in_app"], fields["latest_receipt_info"]) = ([Any](), nil)
    case .otherEnvironment:
      fields["environment"] = fields["environment"] as? String == "Sandbox" ? "Production" : "Sandbox"
    case .otherApp: receipt["bundle_id"] = "com.example.stranger"
    }
    fields["receipt"] = receipt
    var answer = replacing(fields)
    // The bytes are changed, because a Swift string cannot hold half of a surrogate pair.
    answer.body = Data(String(decoding: answer.body, as: UTF8.self).replacing(Self.surrogate, with: "\\ud800").utf8)
    return answer
  }

  private static let surrogate = "half-of-a-surrogate-pair"

  var compressed: Answer {
    guard let compression else { return self }
    var answer = self
    var bytes = Array(body)
    if compression == .bomb { bytes += [UInt8](repeating: 0x20, count: 64 << 20) }
    guard let compressed = Gunzip.compressed(bytes, level: compression == .bomb ? 9 : 6) else { return self }
    answer.body = Data(compressed)
    answer.headers["Content-Encoding"] = "gzip"
    return answer
  }
}
