import Reconciliation

/// One of the two environments in which Apple runs every endpoint.
package enum AppleHost: Hashable, CaseIterable, Sendable {
  case production
  case sandbox

  package var environment: AppleEnvironment { self == .production ? .production : .sandbox }
  package var other: AppleHost { self == .production ? .sandbox : .production }
}
