import Foundation
import Reconciliation

struct OpenRefundRequests {
  private var count = 0
  private var passed = 0
  private var next: Instant?

  mutating func add(_ request: RefundRequest, asOf: Instant) {
    count += 1
    if request.deadline < asOf { passed += 1 } else { next = min(next ?? request.deadline, request.deadline) }
  }

  /// The requests and the next deadline in the zone; nil without a request.
  func words(in timeZone: TimeZone, named zone: String) -> String? {
    if count == 0 { return nil }
    var clock = LocalClock(timeZone: timeZone)
    var sentences = [count == 1 ? "1 refund request is open." : "\(grouped(count)) refund requests are open."]
    if let next { sentences.append("The next answer to Apple is due by \(clock.text(next)) (\(zone)).") }
    if passed > 0 { sentences.append("The deadline of \(grouped(passed)) has passed.") }
    return sentences.joined(separator: " ")
  }
}
