import AppStore
import Reconciliation

/// One request to Apple about a check.
package struct Question: Hashable, Sendable {
  package enum QuestionTarget: Hashable, Sendable {
    /// A receipt, by its payload. Never logged.
    case receipt(payload: String)
    case transaction(id: String)
  }

  package var matter: QuestionTarget
  package var first: AppleHost

  package init(_ matter: QuestionTarget, first: AppleHost) {
    (self.matter, self.first) = (matter, first)
  }

  var carriesPayload: Bool {
    switch matter {
    case .receipt: true
    case .transaction: false
    }
  }

  /// Production, unless the proof is known to be from the sandbox.
  package static func side(of environment: AppleEnvironment?) -> AppleHost {
    environment == .sandbox ? .sandbox : .production
  }
}
