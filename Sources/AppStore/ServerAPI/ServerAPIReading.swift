import NIOCore
import NIOHTTP1
import Reconciliation

/// Interprets one response of the App Store Server API. Pure: no I/O.
struct ServerAPIReading {
  enum Meaning {
    case answer(JSONFields)
    case refused(ServerAPIErrorClass)
    /// No request was sent, because signing the token failed.
    case unsigned
    case silent(Silence)
  }

  /// The limit of Apple's own Swift client. Twenty transactions have some 150 KB.
  static let maximumBodyBytes = 1 << 20

  var meaning: Meaning
  var httpStatus: Int?
  var errorCode: Int?
  var errorMessage: String?
  var retryAfter: Instant?

  static func read(_ result: Result<HTTPReply, HTTPFailure>, receivedAt: Instant) -> ServerAPIReading {
    switch result {
    case .failure(.unreachable(let detail)): silent(.unreachable, detail)
    case .failure(.unreadable(let detail)): silent(.appleError, detail)
    case .success(let reply): read(reply, receivedAt: receivedAt)
    }
  }

  static var unsigned: Self { Self(meaning: .unsigned) }

  private static func silent(_ reason: Silence.Reason, _ detail: String, httpStatus: Int? = nil) -> Self {
    Self(meaning: .silent(Silence(reason: reason, detail: detail)), httpStatus: httpStatus)
  }

  private static func read(_ reply: HTTPReply, receivedAt: Instant) -> Self {
    let isReadable = reply.body.readableBytes <= maximumBodyBytes
    // Apple answers a refused token in plain text.
    let fields = isReadable ? JSONFields(Array(reply.body.readableBytesView)) : nil
    guard reply.status != 200 else {
      guard isReadable else { return silent(.appleError, "answer longer than 1 MiB", httpStatus: 200) }
      guard let fields else { return silent(.appleError, "answer is no JSON object", httpStatus: 200) }
      return Self(meaning: .answer(fields), httpStatus: 200)
    }
    let errorCode = fields?.integer32("errorCode").map(Int.init)
    return Self(
      meaning: .refused(.classify(httpStatus: reply.status, errorCode: errorCode)), httpStatus: reply.status,
      errorCode: errorCode, errorMessage: fields?.text("errorMessage"),
      retryAfter: reply.headers.first(name: "Retry-After").flatMap { RetryAfter.parse($0, now: receivedAt) })
  }

  func silence(_ reason: Silence.Reason) -> Silence {
    let status = "HTTP \(httpStatus.map(String.init) ?? "none")"
    return Silence(
      reason: reason, detail: errorCode.map { "\(status), error \($0)" } ?? status, retryAfter: retryAfter)
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
    case .refused(let errorClass): .failure(refusal(errorClass, from: host, bundleId: bundleId))
    }
  }

  private func refusal(_ errorClass: ServerAPIErrorClass, from host: AppleHost, bundleId: String) -> ServerAPIRefusal {
    switch errorClass {
    case .transactionNotFound: .notFound
    case .accountGone: .accountGone
    case .badIdentifier: .malformedId
    case .revisionRefused: .revisionRefused
    case .windowExpired: .windowExpired
    case .rateLimited: .unanswered(silence(.rateLimited))
    case .retry: .unanswered(silence(.appleError))
    case .tokenRefused: .fault(.tokenRefused(host))
    case .accessRefused: .fault(.accessRefused)
    case .appUnknown: .fault(.appUnknown(bundleId: bundleId))
    case .requestRefused: .fault(.requestRefused(code: errorCode))
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
