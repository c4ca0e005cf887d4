/// The requests behind an answer, for logs and the record of attempts.
package struct ServerAPITrail: Hashable, Sendable {
  package var asked: [AppleHost] = []
  package var httpStatus: Int?
  package var errorCode: Int?
  package var warnings: [String] = []

  // Deduplicated because a page of twenty may have the same problem twenty times.
  mutating func warn(_ text: String) {
    if !warnings.contains(text) { warnings.append(text) }
  }

  mutating func note(_ reading: ServerAPIReading, from host: AppleHost) {
    if case .unsigned = reading.meaning { return }
    asked.append(host)
    httpStatus = reading.httpStatus
    errorCode = reading.errorCode ?? errorCode
  }
}
