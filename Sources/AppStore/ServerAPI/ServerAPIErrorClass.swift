/// What follows from an App Store Server API answer that is none.
///
/// The error code decides and the HTTP status only where there is no code or an unknown one (Apple: "Error codes").
package enum ServerAPIErrorClass: String, Hashable, CaseIterable, Sendable {
  /// This side does not know the id; the other one may.
  case transactionNotFound
  /// The customer's account is gone. Nothing more will ever be learnt this way.
  case accountGone
  /// What was asked about is no id of Apple's, or one of a kind that the interface does not take.
  case badIdentifier
  /// Apple does not know the `revision` any more: start without one.
  case revisionRefused
  /// Apple does not know the `paginationToken` any more, or the window has become too old: start a window again.
  case windowExpired
  /// We ask too fast.
  case rateLimited
  /// Apple's trouble, or an error that no rule knows: says nothing about the id.
  case retry
  /// The token: key, clock, or an app that was never released.
  case tokenRefused
  /// The key may not do this.
  case accessRefused
  /// The bundle id is none of the key's account.
  case appUnknown
  /// Our request is wrong.
  case requestRefused

  /// The class of an answer that is not HTTP 200.
  /// - Parameter errorCode: the body's `errorCode`; nil when it has none.
  package static func classify(httpStatus: Int, errorCode: Int?) -> ServerAPIErrorClass {
    errorCode.flatMap(classify(errorCode:)) ?? classify(httpStatus: httpStatus)
  }

  private static func classify(errorCode: Int) -> ServerAPIErrorClass? {
    switch errorCode {
    case 4_040_010, 4_040_005: .transactionNotFound
    case 4_040_001: .accountGone
    // Transaction id, original transaction id; type, app transaction, family sharing not supported; no UUID; no original.
    case 4_000_006, 4_000_008, 4_000_047, 4_000_048, 4_000_183, 4_000_185, 4_000_187: .badIdentifier
    case 4_000_005: .revisionRefused
    case 4_000_012, 4_000_014, 4_000_017: .windowExpired
    case 4_290_000: .rateLimited
    // All but 5000000 are Apple's list of errors to retry; that one is its list of troubles of its own.
    case 4_040_002, 4_040_004, 4_040_006, 5_000_000, 5_000_001: .retry
    case 4_040_003: .appUnknown
    // 4000000 the request as a whole; the rest are its parameters, those of interfaces that are not used here included.
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
