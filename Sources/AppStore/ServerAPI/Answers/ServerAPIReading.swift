import NIOCore
import NIOHTTP1
import Reconciliation

/// Interprets one response of the App Store Server API. Pure: no I/O.
struct ServerAPIReading {
  enum Meaning {
    case answer(JSONFields)
    case refused
    /// No request was sent, because signing the token failed.
    case unsigned
    case silent(Silence)
  }

  /// The limit of Apple's own Swift client. Twenty transactions have some 150 KB.
  static let maximumBodyBytes = 1 << 20

  var meaning: Meaning
  var httpStatus: Int?
  var errorCode: Int?
  var retryAfter: Instant?

  static func read(_ result: Result<HTTPReply, Silence>, receivedAt: Instant) -> ServerAPIReading {
    switch result {
    case .failure(let silence): Self(meaning: .silent(silence))
    case .success(let reply): read(reply, receivedAt: receivedAt)
    }
  }

  static var unsigned: Self { Self(meaning: .unsigned) }

  private static func read(_ reply: HTTPReply, receivedAt: Instant) -> Self {
    let isReadable = reply.body.readableBytes <= maximumBodyBytes
    // Apple answers a refused token in plain text.
    let fields = isReadable ? JSONFields(Array(reply.body.readableBytesView)) : nil
    guard reply.status != 200 else {
      let problem = isReadable ? "answer is no JSON object" : "answer longer than 1 MiB"
      return Self(meaning: fields.map(Meaning.answer) ?? .silent(.appleError(problem)), httpStatus: 200)
    }
    let errorCode = fields?.integer32("errorCode").map(Int.init)
    return Self(
      meaning: .refused, httpStatus: reply.status, errorCode: errorCode, retryAfter: reply.retryAfter(now: receivedAt))
  }

  func silence(_ reason: Silence.Reason) -> Silence {
    let status = "HTTP \(httpStatus.map(String.init) ?? "none")"
    return Silence(reason: reason, detail: errorCode.map { "\(status), error \($0)" } ?? status, retryAfter: retryAfter)
  }
}

enum ServerAPIRefusal: Error, Hashable {
  case notFound
  case accountGone
  case malformedId
  case revisionRefused
  case windowExpired
  case unanswered(Silence)
  case fault(AppleFault)
}

extension ServerAPIReading {
  func resolved(from host: AppleHost, bundleId: String) -> Result<JSONFields, ServerAPIRefusal> {
    switch meaning {
    case .answer(let fields): .success(fields)
    case .silent(let silence): .failure(.unanswered(silence))
    case .unsigned: .failure(.fault(.tokenNotSigned))
    case .refused: .failure(refusal(from: host, bundleId: bundleId))
    }
  }

  /// The meaning of an error. The HTTP status decides only without a known error code (Apple: "Error codes").
  private func refusal(from host: AppleHost, bundleId: String) -> ServerAPIRefusal {
    switch errorCode ?? 0 {
    // This environment does not know the ID; the other one may.
    case 4_040_010, 4_040_005: return .notFound
    case 4_040_001: return .accountGone
    // Invalid IDs, no UUID, no original ID; unsupported: type, app transaction, family sharing.
    case 4_000_006, 4_000_008, 4_000_047, 4_000_048, 4_000_183, 4_000_185, 4_000_187: return .malformedId
    case 4_000_005: return .revisionRefused
    // Apple no longer accepts the `paginationToken`, or the window is too old.
    case 4_000_012, 4_000_014, 4_000_017: return .windowExpired
    case 4_290_000: return .unanswered(silence(.rateLimited))
    // Apple's list of errors to retry, and 5000000, its general error.
    case 4_040_002, 4_040_004, 4_040_006, 5_000_000, 5_000_001: return .unanswered(silence(.appleError))
    case 4_040_003: return .fault(.appUnknown(bundleId: bundleId))
    // 4000000 is the request as a whole; the others are parameters, also of endpoints that are not used here.
    case 4_000_000, 4_000_002, 4_000_009...4_000_011, 4_000_013, 4_000_015, 4_000_016, 4_000_018...4_000_028,
      4_000_030...4_000_044:
      return .fault(.requestRefused(code: errorCode))
    default: break
    }
    switch httpStatus ?? 0 {
    case 401: return .fault(.tokenRefused(host))
    case 403: return .fault(.accessRefused)
    case 429: return .unanswered(silence(.rateLimited))
    default: return .unanswered(silence(.appleError))
    }
  }
}

extension JSONFields {
  /// A `revision` or `paginationToken`: opaque printable ASCII of up to 8 KiB.
  func cursor(_ key: String) -> String? {
    guard let text = document(key), !text.isEmpty, text.utf8.count <= 8_192,
      text.utf8.allSatisfy({ 0x20..<0x7F ~= $0 })
    else { return nil }
    return text
  }
}
