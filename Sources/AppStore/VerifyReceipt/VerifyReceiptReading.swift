import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Reconciliation

/// Interprets one response of verifyReceipt. Pure: no I/O.
struct VerifyReceiptReading: Hashable {
  enum Step: Hashable {
    case finish(ReceiptAnswer.Outcome)
    /// The receipt belongs to the other environment.
    case ask(AppleHost)
  }

  var step: Step
  var appleStatus: Int?
  var httpStatus: Int?
  var warnings: [String] = []

  /// - Parameter maySwitch: false for the second request, because two environments that name each other would loop for
  ///   ever.
  static func read(
    _ result: Result<HTTPReply, Silence>, from host: AppleHost, maySwitch: Bool, receivedAt: Instant
  ) -> VerifyReceiptReading {
    switch result {
    case .failure(let silence): silent(silence)
    case .success(let reply): read(reply, from: host, maySwitch: maySwitch, receivedAt: receivedAt)
    }
  }

  private static func silent(_ silence: Silence) -> Self { Self(step: .finish(.unanswered(silence))) }

  private static func read(
    _ reply: HTTPReply, from host: AppleHost, maySwitch: Bool, receivedAt: Instant
  ) -> Self {
    var reading =
      reply.status == 200
      ? read(body: reply.body, from: host, maySwitch: maySwitch, receivedAt: receivedAt)
      : silent(
        Silence(
          reason: reply.status == 429 ? .rateLimited : .appleError, detail: "HTTP \(reply.status)",
          retryAfter: reply.retryAfter(now: receivedAt)))
    reading.httpStatus = reply.status
    reading.warnings += announcements(reply.headers, from: host)
    return reading
  }

  private static func read(
    body: ByteBuffer, from host: AppleHost, maySwitch: Bool, receivedAt: Instant
  ) -> Self {
    guard body.readableBytes > 0 else { return silent(.appleError("empty answer")) }
    guard let answer = JSONFields(Array(body.readableBytesView)) else {
      return silent(.appleError("answer is no JSON object"))
    }
    // Apple's codes have five digits, and the tables hold 32 bits.
    guard let status = answer.integer32("status").map(Int.init) else {
      return silent(.appleError("answer without a status"))
    }
    let isRetryable = answer.flag("is_retryable") ?? answer.flag("is-retryable")
    var reading: Self
    // Apple: App Store Receipts, "status".
    switch status {
    // 21006 also means that the receipt's subscription has expired.
    case 0, 21006: reading = genuine(answer, status: status, host: host, receivedAt: receivedAt)
    case 21007: reading = switching(to: .sandbox, from: host, maySwitch: maySwitch, status: status)
    case 21008: reading = switching(to: .production, from: host, maySwitch: maySwitch, status: status)
    case 21003: reading = Self(step: .finish(.rejected))
    case 21010: reading = Self(step: .finish(.accountGone))
    case 21004: reading = Self(step: .finish(.fault(.sharedSecretRefused)))
    case 21000: reading = Self(step: .finish(.fault(.requestRefused(code: status))))
    // Apple no longer sends this status.
    case 21001: reading = Self(step: .finish(.review(status: status)))
    // The field is defined for these statuses only; if it is missing, as in older answers, the receipt is retried.
    case 21100...21199 where isRetryable == false: reading = Self(step: .finish(.review(status: status)))
    // An error at Apple's side, or an answer from a proxy. In outages every receipt received 21002, which also means
    // "the service experienced a temporary issue".
    default: reading = silent(.appleError("status \(status)"))
    }
    reading.appleStatus = status
    return reading
  }

  private static func genuine(_ answer: JSONFields, status: Int, host: AppleHost, receivedAt: Instant) -> Self {
    let receipt: VerifiedReceipt
    do throws(Silence) {
      receipt = try VerifiedReceipt.decode(answer, status: status, host: host, receivedAt: receivedAt)
    } catch {
      return silent(error)
    }
    var reading = Self(step: .finish(.verified(receipt)))
    reading.warnings += receipt.contradictions.map { "verifyReceipt's answer contradicts itself: \($0)" }
    return reading
  }

  private static func switching(to other: AppleHost, from host: AppleHost, maySwitch: Bool, status: Int) -> Self {
    guard other != host, maySwitch else {
      return silent(.appleError("status \(status) from the \(host) side, though asked where it points to"))
    }
    return Self(step: .ask(other))
  }

  // Apple deprecates verifyReceipt; these headers would announce its end (RFC 8594, RFC 9745).
  private static func announcements(_ headers: HTTPHeaders, from host: AppleHost) -> [String] {
    ["Sunset", "Deprecation"].flatMap { name in
      headers[name].map { value in
        let printable = value.unicodeScalars.filter { $0.isASCII && $0.value >= 0x20 && $0.value < 0x7F }
        return "verifyReceipt (\(host)) announces \(name): \(String(String.UnicodeScalarView(printable)).prefix(200))"
      }
    }
  }
}
