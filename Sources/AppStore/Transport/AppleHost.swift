import Reconciliation

/// One of the two sides that Apple runs every interface on.
package enum AppleHost: Hashable, CaseIterable, Sendable {
  case production
  case sandbox

  /// The environment whose transactions this side knows.
  package var environment: AppleEnvironment {
    switch self {
    case .production: .production
    case .sandbox: .sandbox
    }
  }

  /// The side to ask when this one says that the other is meant.
  package var other: AppleHost {
    switch self {
    case .production: .sandbox
    case .sandbox: .production
    }
  }
}
