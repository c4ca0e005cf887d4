import Foundation

struct Answer: Sendable {
  var httpStatus = 200
  var headers: [String: String] = ["Content-Type": "application/json"]
  var body: Data
  var appleStatus: Int?
  /// True if the connection ends in the middle of the body.
  var isCutOff = false
  var compression: Compression?
  var report: ConnectReportText?

  static func json(_ fields: [String: Any], httpStatus: Int = 200) -> Answer {
    let body = try? JSONSerialization.data(withJSONObject: fields, options: [.sortedKeys, .withoutEscapingSlashes])
    return Answer(httpStatus: httpStatus, body: body ?? Data(), appleStatus: fields["status"] as? Int)
  }

  static func encoding(_ value: some Encodable) throws -> Answer {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return Answer(body: try encoder.encode(value))
  }

  /// Apple's plain-text answer to a rejected token.
  static let unauthenticated = Answer(
    httpStatus: 401, headers: ["Content-Type": "text/plain"], body: Data("Unauthenticated\n".utf8))

  /// An error of the App Store Connect API.
  static func failure(_ status: Int, _ code: String, _ detail: String) -> Answer {
    .json(
      ["errors": [["id": "simulated", "status": "\(status)", "code": code, "title": "Error", "detail": detail]]],
      httpStatus: status)
  }

  /// Apple's HTML error page, which its servers also send to programs.
  static func page(httpStatus: Int) -> Answer {
    let text = "<html><head><title>\(httpStatus)</title></head><body><h1>\(httpStatus)</h1></body></html>\n"
    return Answer(httpStatus: httpStatus, headers: ["Content-Type": "text/html"], body: Data(text.utf8))
  }

  /// Applies a fault. `authority` signs changed payloads again.
  func disturbed(by disturbance: Disturbance, authority: SigningAuthority) throws -> Answer {
    var answer = self
    if let connect = disturbance.connect { answer = answer.disturbed(by: connect) }
    if let status = disturbance.status {
      var fields: [String: Any] = ["status": status, "environment": "Production"]
      if let isRetryable = disturbance.isRetryable { fields["is_retryable"] = isRetryable }
      answer = .json(fields)
    }
    if let errorCode = disturbance.errorCode {
      answer = ServerAPIError.answer(code: errorCode, httpStatus: disturbance.httpStatus)
    } else if let httpStatus = disturbance.httpStatus {
      switch httpStatus {
      case 200: break
      case 401: answer = .unauthenticated
      default: answer = .page(httpStatus: httpStatus)
      }
    }
    if let fields = disturbance.fields { answer = answer.with(fields) }
    if let shape = disturbance.receipt { answer = answer.shaped(shape) }
    if disturbance.payload != nil || disturbance.stranger == true {
      let signer = disturbance.stranger == true ? try SigningAuthority.stranger.get() : authority
      answer = try answer.signedAnew(by: signer, changing: disturbance.payload ?? [:])
    }
    if disturbance.badSignature == true { answer = answer.withSpoiltSignatures() }
    if let damage = disturbance.body { answer = answer.damaged(damage) }
    if let retryAfter = disturbance.retryAfter {
      answer.headers["Retry-After"] = "\(SimulatedClock.wall + retryAfter)"
    }
    answer.headers.merge(disturbance.headers ?? [:]) { $1 }
    answer.compression = disturbance.compression
    return answer
  }

  private func disturbed(by disturbance: ConnectDisturbance) -> Answer {
    if let failure = disturbance.failure {
      return Answer.failure(failure.status, failure.code, failure.detail)
    }
    guard let report else { return self }
    if let version = disturbance.version, version != report.version {
      return Answer.failure(
        400, "PARAMETER_ERROR.INVALID",
        "The version parameter is invalid. The latest version for this report is \(version).")
    }
    return report.answer(disturbance)
  }

  private func damaged(_ damage: Damage) -> Answer {
    var answer = self
    answer.appleStatus = nil
    switch damage {
    case .empty: answer.body = Data()
    case .html:
      let page = Answer.page(httpStatus: httpStatus)
      answer.body = page.body
      answer.headers["Content-Type"] = "text/html"
    case .truncated: answer.body = body.prefix(body.count / 2)
    case .wrongType: answer.body = Data(#"{"receipt":[],"status":{"code":0}}"#.utf8)
    case .huge:
      answer.body = Data(#"{"status":0,"receipt":{"padding":""#.utf8) + Data(repeating: 0x78, count: 17 << 20)
      answer.body += Data(#""}}"#.utf8)
    case .closed: answer.isCutOff = true
    }
    return answer
  }
}
