import AuditStore
import Reconciliation

/// Questions for Apple that an audit found and the same night can ask.
package struct OpenQuestions: Sendable {
  /// Proofs behind critical findings with evidence older than the audit.
  package private(set) var critical: Set<CheckSubject> = []
  /// The date of the oldest receipt or order that no run has queued; nil if all are queued.
  package private(set) var unknownFrom: Instant?
  package private(set) var customers: Set<CustomerHistories.Customer> = []

  package init() {}

  init(critical: Set<CheckSubject>, unknownFrom: Instant?, customers: Set<CustomerHistories.Customer> = []) {
    self.critical = critical
    self.unknownFrom = unknownFrom
    self.customers = customers
  }

  package var asksAboutChecks: Bool { !critical.isEmpty || unknownFrom != nil }

  package mutating func add(_ later: OpenQuestions) {
    critical.formUnion(later.critical)
    customers.formUnion(later.customers)
    unknownFrom = [unknownFrom, later.unknownFrom].compactMap(\.self).min()
  }

  /// True if there is a question that was not asked before. A row that is still not queued after one try will not be.
  func addsAny(to asked: OpenQuestions) -> Bool {
    !critical.isSubset(of: asked.critical) || !customers.isSubset(of: asked.customers)
      || unknownFrom != nil && asked.unknownFrom == nil
  }
}
