import Foundation
import Gzip
import NIOCore
import NIOHTTP1
import Reconciliation

/// Interprets the response to a report download. Pure: no I/O.
enum ConnectReading {
  enum Meaning: Hashable {
    case outcome(ConnectAnswer.Outcome)
    case version(String?)
    case unauthorized
    case later(Silence)
  }

  static func read(_ result: Result<HTTPReply, Silence>, query: ConnectQuery, receivedAt: Instant) -> Meaning {
    switch result {
    case .failure(let silence): return .later(silence)
    case .success(let reply):
      if reply.status == 200 { return file(reply, query: query) }
      return error(reply, receivedAt: receivedAt)
    }
  }

  private static func file(_ reply: HTTPReply, query: ConnectQuery) -> Meaning {
    let bytes = [UInt8](reply.body.readableBytesView)
    guard !bytes.isEmpty else { return .later(.appleError("an empty report")) }
    // A proxy or Apple's front end may answer 200 with a web page.
    if reply.headers.first(name: "Content-Type")?.lowercased().contains("html") == true {
      return .later(.appleError("a web page instead of a report"))
    }
    // Decompress the file once now, so that a truncated or damaged file is requested again while there is time.
    do {
      let gunzip = Gunzip()
      try bytes.withUnsafeBytes { try gunzip.push($0) { _ in } }
      try gunzip.finish { _ in }
    } catch let error as GunzipError {
      switch error {
      case .cut, .damaged: return .later(.appleError(error.description))
      // A retry would return the same file; its reader reports the error.
      case .tooLong: break
      }
    } catch {
      return .later(.appleError("\(error)"))
    }
    var asked: String?
    if case .sales(_, let version) = query.kind { asked = version }
    let name = reply.headers.first(name: "x-reports-filename")
    let statedVersion =
      reply.headers.first(name: "x-reports-download-version") ?? name.flatMap(version(inFileName:)) ?? asked
    return .outcome(.file(ConnectAnswer.File(bytes: bytes, name: name, version: asked == nil ? nil : statedVersion)))
  }

  private static func error(_ reply: HTTPReply, receivedAt: Instant) -> Meaning {
    let refusal = refusal(reply.body)
    let words = refusal.detail.lowercased()
    let after = reply.retryAfter(now: receivedAt)
    switch reply.status {
    case 400 where refusal.code.hasPrefix("PARAMETER_ERROR"):
      if words.contains("version") { return .version(version(inText: refusal.detail)) }
      return .outcome(.refused(.parameters(refusal.detail)))
    case 400: return .outcome(.refused(.parameters(refusal.detail.isEmpty ? "HTTP 400" : refusal.detail)))
    case 401: return .unauthorized
    case 403 where refusal.code.hasPrefix("FORBIDDEN.REQUIRED_AGREEMENTS"): return .outcome(.refused(.agreements))
    case 403: return .outcome(.refused(.role))
    case 404 where words.contains("no sales"): return .outcome(.noSales)
    case 404 where words.contains("available yet") || words.contains("yet available"): return .outcome(.notYet)
    case 406: return .outcome(.refused(.notAcceptable))
    case 410: return .outcome(.gone)
    case 429:
      return .later(Silence(reason: .rateLimited, detail: "HTTP 429", retryAfter: after ?? receivedAt + .seconds(60)))
    case 500...: return .later(Silence(reason: .appleError, detail: "HTTP \(reply.status)", retryAfter: after))
    default:
      // Apple documents no other status: the response proves nothing, and an immediate retry would not help.
      return .outcome(.unanswered(.appleError("HTTP \(reply.status)")))
    }
  }

  private static func refusal(_ body: ByteBuffer) -> (code: String, detail: String) {
    // A proxy may have compressed the body.
    guard body.readableBytes <= 1 << 20,
      let text = try? Gunzip.text(of: [UInt8](body.readableBytesView), limit: 1 << 20),
      let first = JSONFields(text)?.objects("errors")?.first
    else { return ("", "") }
    return (first.text("code") ?? "", first.text("detail") ?? first.text("title") ?? "")
  }

  /// The last version in a text such as “version 1_0 is invalid, the latest version is 1_4”.
  static func version(inText text: String) -> String? {
    text.split { !$0.isNumber && $0 != "_" }.last { isVersion($0) }.map(String.init)
  }

  static func version(inFileName name: String) -> String? {
    guard let mark = name.range(of: "_V", options: .backwards) else { return nil }
    let version = name[mark.upperBound...].prefix { $0.isNumber || $0 == "_" }
    return isVersion(version) ? String(version) : nil
  }

  private static func isVersion(_ text: Substring) -> Bool {
    let parts = text.split(separator: "_", omittingEmptySubsequences: false)
    return parts.count == 2
      && parts.allSatisfy { (1...2).contains($0.count) && $0.allSatisfy { $0.isASCII && $0.isNumber } }
  }
}
