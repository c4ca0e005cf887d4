import Reconciliation

/// When a receipt that Apple did not answer for is due again, across runs.
package enum RetrySchedule {
  /// The time from a failed attempt until the next: 5 minutes, 1 hour, 6 hours, then 20 hours each time, so that what
  /// failed one night is due the next.
  /// - Parameter attempt: which failure this was, from 1.
  package static func span(afterAttempt attempt: Int) -> Span {
    switch attempt {
    case ...1: .minutes(5)
    case 2: .hours(1)
    case 3: .hours(6)
    default: .hours(20)
    }
  }
}
