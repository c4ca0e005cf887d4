/// The meaning of an error. The HTTP status decides only without a known error code (Apple: "Error codes").
package enum ServerAPIErrorClass: String, Hashable, CaseIterable, Sendable {
  /// This environment does not know the ID; the other one may.
  case transactionNotFound
  /// The customer's account no longer exists, so a retry is useless.
  case accountGone
  /// The ID is no Apple ID, or of a kind that the endpoint does not accept.
  case badIdentifier
  /// Apple no longer knows the `revision`; read from the start.
  case revisionRefused
  /// Apple no longer accepts the `paginationToken`, or the window is too old; start a new window.
  case windowExpired
  case rateLimited
  /// An error at Apple's side or an unknown error; it says nothing about the ID.
  case retry
  /// The token is refused: key, clock, or an app that was never released.
  case tokenRefused
  case accessRefused
  /// The bundle ID does not belong to the key's account.
  case appUnknown
  case requestRefused

  package static func classify(httpStatus: Int, errorCode: Int?) -> ServerAPIErrorClass {
    errorCode.flatMap(classify(errorCode:)) ?? classify(httpStatus: httpStatus)
  }

  private static func classify(errorCode: Int) -> ServerAPIErrorClass? {
    switch errorCode {
    case 4_040_010, 4_040_005: .transactionNotFound
    case 4_040_001: .accountGone
    // Invalid IDs, no UUID, no original ID; unsupported: type, app transaction, family sharing.
    case 4_000_006, 4_000_008, 4_000_047, 4_000_048, 4_000_183, 4_000_185, 4_000_187: .badIdentifier
    case 4_000_005: .revisionRefused
    case 4_000_012, 4_000_014, 4_000_017: .windowExpired
    case 4_290_000: .rateLimited
    // Apple's list of errors to retry, and 5000000, its general error.
    case 4_040_002, 4_040_004, 4_040_006, 5_000_000, 5_000_001: .retry
    case 4_040_003: .appUnknown
    // 4000000 is the request as a whole; the others are parameters, also of endpoints that are not used here.
    case 4_000_000, 4_000_002, 4_000_009...4_000_011, 4_000_013, 4_000_015, 4_000_016, 4_000_018...4_000_028,
      4_000_030...4_000_044:
      .requestRefused
    default: nil
    }
  }

  private static func classify(httpStatus: Int) -> ServerAPIErrorClass {
    switch httpStatus {
    case 401: .tokenRefused
    case 403: .accessRefused
    case 429: .rateLimited
    default: .retry
    }
  }
}
