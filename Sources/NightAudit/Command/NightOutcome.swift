import Asking
import Auditing
import Publishing
import Reconciliation

/// The result of a night: that of its audit, and of the steps around it.
@dynamicMemberLookup
package struct NightOutcome: Sendable {
  var audit: AuditOutcome
  package var asOf: Instant
  package var isRehearsal = false
  package var recheck: RecheckSummary?
  package var dispatches: [Dispatch] = []

  package subscript<Value>(dynamicMember path: WritableKeyPath<AuditOutcome, Value>) -> Value {
    get { audit[keyPath: path] }
    set { audit[keyPath: path] = newValue }
  }
}
