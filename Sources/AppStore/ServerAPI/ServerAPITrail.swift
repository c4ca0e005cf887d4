import Reconciliation

/// How an answer of the App Store Server API came about, for logs and the record of attempts.
package struct ServerAPITrail: Hashable, Sendable {
  /// The sides that were asked, in order, once for each request.
  package var asked: [AppleHost] = []
  /// The HTTP status of the last exchange; nil when it brought no reply.
  package var httpStatus: Int?
  /// The `errorCode` of the last exchange that had one.
  package var errorCode: Int?
  /// The `errorMessage` beside it, whether or not a rule knows the code.
  package var errorMessage: String?
  /// For the operator: what was not believed or not understood.
  package var warnings: [String] = []

  package init() {}

  /// A page of twenty may have one and the same trouble twenty times.
  mutating func warn(_ text: String) {
    if !warnings.contains(text) { warnings.append(text) }
  }

  mutating func note(_ reading: ServerAPIReading, from host: AppleHost) {
    if case .unsigned = reading.meaning { return }
    asked.append(host)
    httpStatus = reading.httpStatus
    guard let code = reading.errorCode else { return }
    errorCode = code
    errorMessage = reading.errorMessage
  }
}

extension CircuitBreaker.CallResult {
  /// What an exchange that ended in this silence, or in none, says about the health of Apple's side. Rate limiting is
  /// not an illness: the gate deals with it.
  init(_ silence: Silence?) {
    switch silence?.reason {
    case nil: self = .success
    case .unreachable, .appleError: self = .failure
    case .rateLimited: self = .abandoned
    }
  }
}
