import Foundation

/// A length of time as it is written on the command line: `4s`, `1.5s`, `250ms` or `0`.
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

/// One way for an answer to be wrong.
enum Damage: String, Decodable, CaseIterable, Sendable {
  case empty
  case html
  /// Valid HTTP whose JSON ends in the middle.
  case truncated
  /// Valid JSON of another shape.
  case wrongType
  /// 17 MiB of valid JSON.
  case huge
  /// The connection ends in the middle of the answer.
  case closed
}

/// One way in which verifyReceipt's answer to a genuine receipt lacks or contradicts its content.
enum ReceiptShape: String, Decodable, CaseIterable, Sendable {
  /// `receipt` is `{}`.
  case emptyReceipt
  /// The same, with `status` as a text.
  case textStatus
  case noBundleId
  case noInApp
  case nullInApp
  /// `in_app` is an object.
  case objectInApp
  /// `in_app` is a list of lists.
  case nestedInApp
  /// `in_app` holds half of a surrogate pair.
  case surrogateInApp
  /// `latest_receipt_info` is a text.
  case textLatestInfo
  /// `in_app` is empty, and `latest_receipt_info` is not there.
  case lacksPurchases
  /// `environment` is the other side's.
  case otherEnvironment
  /// `bundle_id` is another app's.
  case otherApp
}

/// A compression of the body for requests that accept gzip.
enum Compression: String, Decodable, CaseIterable, Sendable {
  case gzip
  /// 64 MiB of blanks behind the answer.
  case bomb
}

/// What goes wrong with one request; nothing when all is nil.
struct Disturbance: Decodable, Sendable {
  /// Only paths that begin so are disturbed; nil: all.
  var path: String?
  /// For so many requests; nil: until faults are set anew.
  var next: Int?
  var httpStatus: Int?
  var headers: [String: String]?
  var body: Damage?
  /// Apple's `status` instead of the true one.
  var status: Int?
  /// Goes with a status from 21100 on.
  var isRetryable: Bool?
  /// An error of the App Store Server API instead of the answer; the HTTP status follows from it.
  var errorCode: Int?
  /// Whether the signatures in the answer are spoilt.
  var badSignature: Bool?
  /// What becomes of a receipt in verifyReceipt's answer.
  var receipt: ReceiptShape?
  /// How the body is compressed; nil: not at all.
  var compression: Compression?
  /// Instead of the latency that all answers have.
  var latency: Latency?
  /// `Retry-After` in the App Store Server API's form: this many milliseconds from now, as an absolute time.
  var retryAfter: Int64?
  /// Fields of the answer itself, such as `hasMore`, with other values or added.
  var fields: [String: JSONValue]?
  /// Fields of whatever is signed in the answer, such as `bundleId`, with other values wherever they occur.
  var payload: [String: JSONValue]?
  /// Whether all that is signed is signed by a stranger, whose chain is complete but leads to a root of its own.
  var stranger: Bool?
  /// Which share of the requests meets it, 0 to 1, drawn for each; nil: every one.
  var share: Double?
  /// Only questions about these are disturbed: transaction ids, or digests of receipts; nil: all.
  var subjects: [String]?
  /// When it begins and ends, in milliseconds since the epoch by the simulated clock; the end itself is outside.
  var from: Int64?
  var until: Int64?
  /// What becomes of a report of the App Store Connect API.
  var connect: ConnectDisturbance?
}
