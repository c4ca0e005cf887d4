import Reconciliation
import Run
import Streams

extension AuditPass {
  /// Passes the owners of the other periods to each order that owns a period of a subscription.
  /// - Parameter periods: owned periods, by original transaction ID.
  func compareOwners(ofPeriods periods: SpillSorter, into transactionsByOrder: Exchange.RecordSink) throws {
    var writer = OrderTransactionWriter(transactionsByOrder)
    var reading = try SpillCursor(periods) { record in
      var reader = RecordReader(record.content)
      return try OwnedPeriod(from: &reader)
    }
    while let subscription = reading.head?.subscription {
      try endIfStopped()
      var ofOne: [OwnedPeriod] = []
      while let period = reading.head, period.subscription == subscription {
        ofOne.append(period)
        try reading.advance()
      }
      for (orderId, neighbors) in SubscriptionOwners(ofOne, people: plan.rules.people).neighbors {
        try writer.write(.neighbors(subscription: subscription, neighbors), for: orderId)
      }
    }
  }
}

extension OwnedPeriod {
  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    self.init(
      subscription: try record.id(), orderId: try record.id(), userId: try record.id(),
      date: Instant(microseconds: try record.int()), distance: Span(microseconds: try record.int()),
      isFinal: try record.flag())
  }

  func write(to record: inout RecordBytes) {
    record.put(subscription)
    record.put(orderId)
    record.put(userId)
    record.put(date.microseconds)
    record.put(distance.microseconds)
    record.put(isFinal)
  }
}
