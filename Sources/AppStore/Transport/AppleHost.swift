import Reconciliation

/// One of the two environments in which Apple runs every endpoint.
package enum AppleHost: Hashable, CaseIterable, Sendable {
  case production
  case sandbox

  package var environment: AppleEnvironment {
    switch self {
    case .production: .production
    case .sandbox: .sandbox
    }
  }

  package var other: AppleHost {
    switch self {
    case .production: .sandbox
    case .sandbox: .production
    }
  }
}
