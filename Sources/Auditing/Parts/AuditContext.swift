import AuditStore
import Foundation
import Reconciliation
import Run
import SalesStore
import Streams

/// The configuration, small shop relations and as-of for auditing a part elsewhere, without a database.
package struct AuditContext {
  var rules: Rules
  var period: Period
  var staleAfter: Span
  var refundWindow: Span
  var horizon: Horizon
  var hasOneSnapshot: Bool
  var days: [DayTotals.Day]
  var openCriticals: Set<Identifier>
  /// Fingerprints of purchases that more than one transaction is of, and of subscriptions with a refunded renewal.
  var sharedPurchases: Set<UInt64>

  init(
    _ plan: AuditPlan, _ horizon: Horizon, days: [DayTotals.Day], openCriticals: Set<Identifier>,
    sharedPurchases: Set<UInt64>
  ) {
    rules = plan.rules
    (period, staleAfter, refundWindow) = (plan.period, plan.staleAfter, plan.refundWindow)
    self.horizon = horizon
    hasOneSnapshot = plan.hasOneSnapshot
    self.days = days
    self.openCriticals = openCriticals
    self.sharedPurchases = sharedPurchases
  }

  /// Reads a file written by `encoded`.
  package init(path: String) throws {
    guard let content = RegularFile.content(path) else {
      throw Frame.Failure(description: "cannot read the context \(path)")
    }
    var reader = RecordReader([UInt8](content))
    do throws(RecordReader.Mismatch) { try self.init(from: &reader) } catch {
      throw Frame.Failure(description: "\(path) is not a context file of this version of night-audit")
    }
  }

  /// Parts are audited without filters.
  var plan: AuditPlan {
    var plan = AuditPlan(
      rules: rules, period: period, selection: Selection(), staleAfter: staleAfter, refundWindow: refundWindow)
    plan.isPastAudit = horizon.isPastAudit
    return plan
  }

  var sales: SalesRows {
    get throws { try SalesRows(schema: "-", bundleIds: rules.bundleIds, horizon: horizon) }
  }
}

extension AuditContext {
  /// The context as bytes, readable by the same version of the program only.
  var encoded: Data {
    var record = RecordBytes()
    record.put(Version.current)
    record.put(rules.asOf.microseconds)
    record.put(rules.lookbackStart.microseconds)
    record.put(rules.bundleIds) { $1.put($0) }
    record.put(rules.appsWithLookup.sorted()) { $1.put($0) }
    record.put(rules.salesKnownUntil.sorted { $0.key < $1.key }) {
      $1.put($0.key)
      $1.put($0.value.microseconds)
    }
    record.put(rules.testUsers.sorted()) { $1.put($0) }
    record.put(rules.people.aliases) {
      $1.put($0.0)
      $1.put($0.1)
    }
    record.put(rules.catalogue != nil)
    record.put(rules.catalogue?.rows ?? []) { product, record in
      record.put(product.productId)
      record.put(product.type?.rawValue)
      record.put(product.name)
      record.put(product.soldFrom)
      record.put(product.soldUntil)
    }
    record.put(rules.reviewWindows) {
      $1.put($0.lowerBound.microseconds)
      $1.put($0.upperBound.microseconds)
    }
    for span in spans { record.put(rules[keyPath: span].microseconds) }
    record.put(rules.amountToleranceMillionths)
    record.put(staleAfter.microseconds)
    record.put(refundWindow.microseconds)
    record.put(period.since)
    record.put(period.until)
    record.put(period.start.microseconds)
    record.put(period.end.microseconds)
    record.put(horizon.clock.microseconds)
    record.put(horizon.isPastAudit)
    record.put(hasOneSnapshot)
    record.put(days) {
      $1.put($0.name)
      $1.put($0.start.microseconds)
      $1.put($0.end.microseconds)
    }
    record.put(openCriticals.sorted()) { $1.put($0) }
    record.put(sharedPurchases.sorted()) { $1.put(Int64(bitPattern: $0)) }
    return Data(record.bytes)
  }

  private init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    guard try record.text() == Version.current else { throw RecordReader.Mismatch() }
    let (asOf, lookbackStart) = (try record.instant(), try record.instant())
    rules = Rules(
      asOf: asOf, bundleIds: try record.list { (record) throws(RecordReader.Mismatch) in try record.text() },
      lookbackStart: lookbackStart)
    rules.appsWithLookup = Set(try record.list { (record) throws(RecordReader.Mismatch) in try record.text() })
    let known = try record.list { (record) throws(RecordReader.Mismatch) in (try record.text(), try record.instant()) }
    rules.salesKnownUntil = Dictionary(known) { $1 }
    rules.testUsers = Set(try record.list { (record) throws(RecordReader.Mismatch) in try record.id() })
    rules.people = People(
      aliases: try record.list { (record) throws(RecordReader.Mismatch) in (try record.id(), try record.id()) })
    let hasCatalogue = try record.flag()
    let products = try record.list { (record) throws(RecordReader.Mismatch) in
      Catalogue.Product(
        productId: try record.id(), type: try record.optionalText().flatMap(ProductType.init),
        name: try record.optionalText(), soldFrom: try record.optionalInstant(),
        soldUntil: try record.optionalInstant())
    }
    if hasCatalogue { rules.catalogue = Catalogue(products) }
    rules.reviewWindows = try record.list { (record) throws(RecordReader.Mismatch) in
      let first = try record.instant()
      return first...(max(first, try record.instant()))
    }
    let graces = try spans.map { (_) throws(RecordReader.Mismatch) in try record.span() }
    let tolerance = try record.int()
    (staleAfter, refundWindow) = (try record.span(), try record.span())
    let (since, until) = (try record.text(), try record.text())
    period = Period(since: since, until: until, start: try record.instant(), end: try record.instant())
    horizon = Horizon(asOf: asOf, clock: try record.instant(), isPastAudit: try record.flag())
    rules.readAt = horizon.clock
    hasOneSnapshot = try record.flag()
    days = try record.list { (record) throws(RecordReader.Mismatch) in
      DayTotals.Day(name: try record.text(), start: try record.instant(), end: try record.instant())
    }
    openCriticals = Set(try record.list { (record) throws(RecordReader.Mismatch) in try record.id() })
    sharedPurchases = Set(
      try record.list { (record) throws(RecordReader.Mismatch) in UInt64(bitPattern: try record.int()) })
    for (span, grace) in zip(spans, graces) { rules[keyPath: span] = grace }
    rules.amountToleranceMillionths = tolerance
  }
}

private var spans: [WritableKeyPath<Rules, Span>] {
  [
    \.deliveryGrace, \.evidenceGrace, \.notFoundGrace, \.matchWindow, \.stuckAfter, \.subscriptionGrace, \.clockSkew,
  ]
}

extension RecordReader {
  fileprivate mutating func instant() throws(Mismatch) -> Instant { Instant(microseconds: try int()) }
  fileprivate mutating func span() throws(Mismatch) -> Span { Span(microseconds: try int()) }
}
