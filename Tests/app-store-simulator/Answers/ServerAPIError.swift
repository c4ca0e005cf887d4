/// Errors of the App Store Server API ("Error codes").
enum ServerAPIError: Int, Sendable {
  case requestInvalid = 4_000_000
  case revisionInvalid = 4_000_005
  case transactionIdInvalid = 4_000_006
  case startDateTooOld = 4_000_012
  case startDateAfterEnd = 4_000_013
  case paginationTokenInvalid = 4_000_014
  case startDateInvalid = 4_000_015
  case endDateInvalid = 4_000_016
  case severalFilters = 4_000_019
  case appNotFound = 4_040_003
  case originalTransactionNotFound = 4_040_005
  case transactionNotFound = 4_040_010
  case rateLimitExceeded = 4_290_000

  var answer: Answer { Self.answer(code: rawValue) }

  static func answer(code: Int, httpStatus: Int? = nil) -> Answer {
    var answer = Answer.json(
      ["errorCode": code, "errorMessage": "Simulated error \(code)."], httpStatus: httpStatus ?? code / 10_000)
    answer.appleStatus = code
    return answer
  }
}
