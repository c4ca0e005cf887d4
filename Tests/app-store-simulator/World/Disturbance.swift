import Foundation

/// A duration such as `4s`, `1.5s`, `250ms` or `0`.
struct Latency: Hashable, Sendable, Decodable {
  var milliseconds: Double

  init(milliseconds: Double) { self.milliseconds = milliseconds }

  init?(_ text: String) {
    let isMilliseconds = text.hasSuffix("ms")
    let digits = text.dropLast(isMilliseconds ? 2 : text.hasSuffix("s") ? 1 : 0)
    guard let number = Double(digits) else { return nil }
    milliseconds = isMilliseconds ? number : number * 1_000
    guard (0...3_600_000).contains(milliseconds) else { return nil }
  }

  var duration: Duration { .microseconds(Int64(milliseconds * 1_000)) }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let text = try container.decode(String.self)
    guard let latency = Latency(text) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "no duration like 4s or 250ms")
    }
    self = latency
  }
}

enum Damage: String, Decodable, CaseIterable, Sendable {
  case empty
  case html
  /// Valid HTTP with truncated JSON.
  case truncated
  /// Valid JSON of another shape.
  case wrongType
  /// 17 MiB of valid JSON.
  case huge
  /// Closes the connection in the middle of the answer.
  case closed
}

enum ReceiptShape: String, Decodable, CaseIterable, Sendable {
  case emptyReceipt
  case textStatus
  case noBundleId
  case noInApp
  case nullInApp
  case objectInApp
  case nestedInApp
  case surrogateInApp
  case textLatestInfo
  /// `in_app` is empty, and `latest_receipt_info` is missing.
  case lacksPurchases
  case otherEnvironment
  case otherApp
}

enum Compression: String, Decodable, CaseIterable, Sendable {
  case gzip
  /// 64 MiB of spaces after the answer.
  case bomb
}

struct Disturbance: Decodable, Sendable {
  /// A path prefix; nil: all paths.
  var path: String?
  /// The number of requests affected; nil: all.
  var next: Int?
  var httpStatus: Int?
  var headers: [String: String]?
  var body: Damage?
  var status: Int?
  /// Sent only with a status from 21100 on.
  var isRetryable: Bool?
  /// An error of the App Store Server API; the HTTP status follows from it.
  var errorCode: Int?
  var badSignature: Bool?
  var receipt: ReceiptShape?
  var compression: Compression?
  /// Replaces the general latency.
  var latency: Latency?
  /// Milliseconds from now; sent as an absolute time.
  var retryAfter: Int64?
  /// Put into the answer.
  var fields: [String: JSONValue]?
  /// Put into what is signed in the answer.
  var payload: [String: JSONValue]?
  /// Signs everything with a complete chain to an untrusted root.
  var stranger: Bool?
  /// The share of requests affected, 0 to 1, drawn for each; nil: all.
  var share: Double?
  /// Transaction IDs or receipt digests affected; nil: all.
  var subjects: [String]?
  /// Beginning and end (exclusive), in milliseconds since the epoch by the simulated clock.
  var from: Int64?
  var until: Int64?
  var connect: ConnectDisturbance?
}
