import AuditStore
import Postgres
import Publishing
import Reconciliation
import Reporting
import Run
import Streams

/// Collects the results of an audit or of one part. Joined in the order of parts, they equal those of one part. Used by
/// one thread at a time; not `Sendable`.
final class AuditCollector {
  /// nil if only the tables are wanted, and in all parts but the first.
  private var report: ReportWriter?
  private let waiting: WaitingRows?
  private(set) var totals = Totals()
  /// Of the orders of the lookback.
  private(set) var paymentTimes = PaymentTimes()
  /// Receipts of the lookback that had an order in the last complete night, and those of them with another one tonight.
  private(set) var receiptsBefore = 0
  private(set) var movedReceipts = NightFigures.Sample()
  private(set) var days: DayTotals
  private let users: UserTotals
  let findings: SpillSorter
  /// Orphan payments that the filters leave out, and findings of orders that one may pay. They share amounts at risk.
  let unlisted: SpillSorter
  let refunds: CollectedRefunds
  private var sandbox = SandboxTotals()
  /// Owners by transaction ID; nil if claims are not saved.
  let claims: SpillSorter?
  var control: [ControlTotal] = []
  let nights: OrderNights
  /// Counts of outstanding answers by the reason of their absence.
  private(set) var outstanding: [String: Int] = [:]
  /// The reason in ``outstanding`` of checks that Apple was not asked about.
  static let notAsked = "not_asked"
  private(set) var unknownFrom: Instant?
  private(set) var lookupImpossible: [String: Int] = [:]
  private(set) var agedCriticals: Set<CheckSubject> = []
  /// Transactions whose customers' histories are wanted: payments without an owner, and double charges.
  private(set) var doubtfulPayments: Set<Identifier> = []
  /// Findings on refunded renewals without an order, by the original ID of the subscription.
  private var refundedRenewals: [Identifier: [Finding]] = [:]
  /// The subscriptions with a refunded renewal and goods that were not taken back.
  private var servedSubscriptions: Set<Identifier> = []
  var openCriticals: Set<Identifier> = []
  let isExplaining: Bool
  private var record = RecordBytes()
  private let testUsers: Set<Identifier>
  let temporaryDirectory: String

  private init(
    report: consuming ReportWriter?, waiting: WaitingRows?, temporaryDirectory: String, testUsers: Set<Identifier>,
    days: [DayTotals.Day], storesClaims: Bool, comparesNights: Bool, isExplaining: Bool
  ) {
    self.isExplaining = isExplaining
    self.report = report
    self.waiting = waiting
    self.days = DayTotals(days: days)
    self.temporaryDirectory = temporaryDirectory
    users = UserTotals(directory: temporaryDirectory)
    findings = SpillSorter(directory: temporaryDirectory)
    unlisted = SpillSorter(directory: temporaryDirectory)
    refunds = CollectedRefunds(directory: temporaryDirectory)
    nights = OrderNights(isWanted: comparesNights, testUsers: testUsers, temporaryDirectory: temporaryDirectory)
    claims = storesClaims ? SpillSorter(directory: temporaryDirectory) : nil
    self.testUsers = testUsers
  }

  /// Collects for a report; nil if only the tables are wanted.
  convenience init(
    report: consuming ReportWriter?, temporaryDirectory: String, testUsers: Set<Identifier>, days: [DayTotals.Day],
    storesClaims: Bool, comparesNights: Bool = true
  ) {
    let isExplaining = report?.hasPage ?? false
    self.init(
      report: report, waiting: nil, temporaryDirectory: temporaryDirectory, testUsers: testUsers, days: days,
      storesClaims: storesClaims, comparesNights: comparesNights, isExplaining: isExplaining)
  }

  /// The collector of a later part, to be joined into `first`.
  convenience init(behind first: AuditCollector) throws {
    self.init(
      report: nil,
      waiting: first.isReporting ? try WaitingRows(in: first.temporaryDirectory, as: first.report?.rowText) : nil,
      temporaryDirectory: first.temporaryDirectory, testUsers: first.testUsers, days: first.days.days,
      storesClaims: first.claims != nil, comparesNights: first.nights.isWanted, isExplaining: first.isExplaining)
    openCriticals = first.openCriticals
  }

  /// The collector of a part audited in another process: all its rows wait.
  convenience init(waitingIn temporaryDirectory: String, days: [DayTotals.Day], storesClaims: Bool) throws {
    self.init(
      report: nil, waiting: try WaitingRows(in: temporaryDirectory, as: nil), temporaryDirectory: temporaryDirectory,
      testUsers: [], days: days, storesClaims: storesClaims, comparesNights: true, isExplaining: true)
  }

  func join(_ next: AuditCollector) throws {
    totals.join(next.totals)
    paymentTimes.join(next.paymentTimes)
    receiptsBefore += next.receiptsBefore
    movedReceipts.join(next.movedReceipts)
    try users.join(next.users)
    try users.takeIfMany(from: &totals)
    days.join(next.days)
    try findings.absorb(next.findings)
    try unlisted.absorb(next.unlisted)
    try refunds.join(next.refunds)
    try nights.join(next.nights)
    if let theirs = next.claims { try claims?.absorb(theirs) }
    sandbox.join(next.sandbox)
    for (reason, count) in next.outstanding { outstanding[reason, default: 0] += count }
    for (bundleId, count) in next.lookupImpossible { lookupImpossible[bundleId, default: 0] += count }
    agedCriticals.formUnion(next.agedCriticals)
    doubtfulPayments.formUnion(next.doubtfulPayments)
    refundedRenewals.merge(next.refundedRenewals) { $0 + $1 }
    servedSubscriptions.formUnion(next.servedSubscriptions)
    if let theirs = next.unknownFrom { note(unknownFrom: theirs) }
    try next.waiting?.passOrders(made: { try report?.write(madeOrder: $0) }) { try list($0) }
  }

  /// Joins the listed receipts of the next part. Receipts of all parts precede the first order.
  func joinReceipts(_ next: AuditCollector) throws {
    try next.waiting?.passReceipts(made: { try report?.write(madeReceipt: $0) }) { try list($0) }
  }

  func takeReport() -> ReportWriter? { report.take() }

  private var isReporting: Bool { report != nil || waiting != nil }

  // MARK: - Frames

  /// Writes all results as frames for another process. Must not follow a call that takes results out.
  func write(to writer: inout AuditFrameWriter) throws {
    try waiting?.write(to: &writer)
    try writer.write(.finding, all: findings)
    try writer.write(.refund, all: refunds.rows)
    try writer.write(.refundRequest, all: refunds.requests.requests)
    try writer.write(.personRefund, all: refunds.requests.refunds)
    if let claims { try writer.write(.claim, all: claims) }
    try nights.write(to: writer)
    try sandbox.write(to: &writer)
    for (reason, count) in outstanding { try writer.write(.outstanding, Identifier(reason)) { $0.put(Int64(count)) } }
    for (bundleId, count) in lookupImpossible {
      try writer.write(.lookupImpossible, Identifier(bundleId)) { $0.put(Int64(count)) }
    }
    for (subscription, findings) in refundedRenewals {
      for finding in findings { try writer.write(.refundedRenewal, subscription) { finding.write(to: &$0) } }
    }
    for subscription in servedSubscriptions { try writer.write(.servedSubscription, subscription) { _ in } }
    for subject in agedCriticals { try writer.write(.agedCritical, subject.id) { subject.write(to: &$0) } }
    let (totals, paymentTimes, receiptsBefore, movedReceipts) = (totals, paymentTimes, receiptsBefore, movedReceipts)
    try writer.write(.totals, nil) { record in
      record.put(Int64(totals.ordersRead))
      record.put(totals.ordersByDisposition) { $1.put(Int64($0)) }
      record.put(totals.ordersByCurrency) { $1.put($0) }
      record.put(totals.amountByDisposition) { $1.put($0) }
      record.put(totals.ordered)
      record.put(totals.ordersByKind) { $1.put(Int64($0)) }
      record.put(Int64(paymentTimes.orders))
      record.put(Int64(paymentTimes.late))
      record.put(paymentTimes.examples) {
        $1.put($0.orderId)
        $1.put($0.createdAt.microseconds)
        $1.put($0.paidAt.microseconds)
      }
      record.put(Int64(receiptsBefore))
      record.put(Int64(movedReceipts.count))
      record.put(movedReceipts.examples) { $1.put($0) }
    }
    try users.passAll(with: &self.totals) { key, line in
      try writer.write(.userLine, key.userId) {
        $0.put(key.currency.code)
        $0.put(line)
      }
    }
    for (key, line) in totals.pricePoints {
      try writer.write(.pricePoint, key.productId) {
        $0.put(key.currency.code)
        $0.put(key.minorUnits)
        $0.put(key.bundleId)
        $0.put(line)
      }
    }
    for (key, line) in totals.products {
      try writer.write(.productLine, key.productId) {
        $0.put(key.bundleId)
        $0.put(key.country?.code)
        $0.put(key.currency.code)
        $0.put(line)
      }
    }
    for (day, buckets) in days.sums.enumerated() {
      for (bucket, sum) in buckets {
        try writer.write(.day, nil) {
          $0.put(Int64(day))
          $0.put(bucket.currency.code)
          $0.put(UInt8(bucket.disposition.index))
          $0.put(Int64(sum.orders))
          $0.put(sum.minorUnits)
        }
      }
    }
  }

  func take(_ frame: AuditFrame, _ content: Frame) throws {
    var reader = RecordReader(content.content)
    let key = Array(content.key.dropFirst())
    let id = key.withUnsafeBytes { Identifier(utf8: $0) }
    switch frame {
    case .orderLine: try list(try OrderLine(from: &reader))
    case .receiptLine: try list(try Receipt(from: &reader))
    case .finding: try findings.add(key: key, content: content.content)
    case .refund: try refunds.rows.add(key: key, content: content.content)
    case .refundRequest: try refunds.requests.requests.add(key: key, content: content.content)
    case .personRefund: try refunds.requests.refunds.add(key: key, content: content.content)
    case .claim: try claims?.add(key: key, content: content.content)
    case .night: try nights.take(key: key, content: content.content)
    case .sandbox: try sandbox.take(id, from: &reader)
    case .outstanding: outstanding[id.text, default: 0] += Int(try reader.int())
    case .lookupImpossible: lookupImpossible[id.text, default: 0] += Int(try reader.int())
    case .refundedRenewal: refundedRenewals[id, default: []].append(try Finding(from: &reader))
    case .servedSubscription: servedSubscriptions.insert(id)
    case .agedCritical: agedCriticals.insert(try CheckSubject(from: &reader))
    case .totals:
      let read = Int(try reader.int())
      let orders = try reader.list { (reader) throws(RecordReader.Mismatch) in Int(try reader.int()) }
      let counts = try reader.list { (reader) throws(RecordReader.Mismatch) in try reader.counts() }
      let amounts = try reader.list { (reader) throws(RecordReader.Mismatch) in try reader.money() }
      totals.join(
        Totals(
          ordersRead: read, ordersByDisposition: orders, ordersByCurrency: counts, amountByDisposition: amounts,
          ordered: try reader.money(),
          ordersByKind: try reader.list { (reader) throws(RecordReader.Mismatch) in Int(try reader.int()) }))
      paymentTimes.join(
        PaymentTimes(
          orders: Int(try reader.int()), late: Int(try reader.int()),
          examples: try reader.list { (reader) throws(RecordReader.Mismatch) in
            PaymentTimes.LatePayment(
              orderId: try reader.id(), createdAt: Instant(microseconds: try reader.int()),
              paidAt: Instant(microseconds: try reader.int()))
          }))
      receiptsBefore += Int(try reader.int())
      movedReceipts.join(
        NightFigures.Sample(
          count: Int(try reader.int()),
          examples: try reader.list { (reader) throws(RecordReader.Mismatch) in try reader.text() }))
    case .userLine:
      let userKey = Totals.UserKey(userId: id, currency: try reader.currency())
      totals.join(try reader.totalsLine(), of: userKey)
      try users.takeIfMany(from: &totals)
    case .pricePoint:
      let currency = try reader.currency()
      let point = Totals.PricePoint(
        currency: currency, minorUnits: try reader.int(), productId: id, bundleId: try reader.optionalId())
      totals.join(try reader.totalsLine(), of: point)
    case .productLine:
      let bundleId = try reader.optionalId()
      let country = Country(code: try reader.optionalText())
      let product = Totals.ProductKey(
        bundleId: bundleId, productId: id, country: country, currency: try reader.currency())
      totals.join(try reader.totalsLine(), of: product)
    case .day:
      let (day, currency) = (Int(try reader.int()), try reader.currency())
      let disposition = Int(try reader.byte())
      guard Disposition.allCases.indices.contains(disposition), days.days.indices.contains(day) else {
        throw RecordReader.Mismatch()
      }
      let bucket = DayTotals.Bucket(currency: currency, disposition: Disposition.allCases[disposition])
      let orders = Int(try reader.int())
      days.join(DayTotals.Sum(orders: orders, minorUnits: try reader.int128()), of: bucket, dayAt: day)
    case .salesTotal, .proof, .reference, .group, .orderTransaction, .contested, .contestedOrder, .linkQuestion,
      .linkableOrder, .openPerson, .matched, .purchase, .boughtTwice, .delivery, .repeatedDelivery, .ownedPeriod:
      throw RecordReader.Mismatch()
    }
  }

  // MARK: - Receipts

  func list(_ receipt: Receipt) throws {
    try report?.write(receipt: receipt)
    try waiting?.add(receipt)
  }

  func list(_ receipt: BorrowedReceipt, _ record: borrowing RecordBytes) throws {
    let content = record.content
    try report?.write(receipt: receipt) {
      var reader = RecordReader(content)
      return try Receipt(from: &reader)
    }
    try waiting?.add(receipt, record)
  }

  func countReceipt(isMoved: Bool, _ words: @autoclosure () -> String) {
    receiptsBefore += 1
    if isMoved { movedReceipts.add(words()) }
  }

  func countOutstanding(_ state: ProofState, asOf: Instant) {
    // An attempt without a usable answer moves the due date, so that a check that is still due was not asked about.
    let isAsked = state.due.map { asOf < $0.from } ?? false
    let reason = state.outcome == .verified ? "stale" : (state.reason ?? .neverChecked).rawValue
    outstanding[isAsked ? reason : Self.notAsked, default: 0] += 1
  }

  func note(unknownFrom time: Instant) { unknownFrom = min(unknownFrom ?? time, time) }

  func countImpossibleLookup(ofApp bundleId: String) { lookupImpossible[bundleId, default: 0] += 1 }

  // MARK: - Orders

  /// Adds an order to totals and files if created in the period, and its findings if in the lookback.
  func add(
    _ judgement: Judgement, subjects: [CheckSubject], explanation: [String] = [], plan: AuditPlan
  ) throws {
    if plan.keepsFindings(judgement.row.createdAt) {
      for finding in judgement.findings {
        try keep(finding, subjects, finding.severity == .critical ? explanation : [], asOf: plan.asOf)
      }
      // An order for a whole subscription may own a period long after it was placed.
      if judgement.renewals.isEmpty, let paidAt = judgement.paidAt, case .valid(let order) = judgement.row {
        paymentTimes.add(paidAt, after: order.createdAt) { order.orderId }
      }
    }
    days.add(judgement)
    try nights.add(judgement)
    guard plan.period.contains(judgement.row.createdAt) else { return }
    totals.read(judgement.row)
    totals.add(judgement)
    try users.takeIfMany(from: &totals)
    if isReporting { try list(OrderLine(judgement)) }
    if judgement.environment == .sandbox, case .valid(let order) = judgement.row { sandbox.add(order) }
  }

  /// Adds a listed order that owns its one purchase, with the same result as adding its judgement.
  func add(_ sale: SettledSale, plan: AuditPlan) throws {
    let createdAt = sale.order.createdAt
    if plan.keepsFindings(createdAt) { paymentTimes.add(sale.paidAt, after: createdAt) { sale.order.orderId.id } }
    days.add(sale)
    try nights.add(sale)
    guard plan.period.contains(createdAt) else { return }
    totals.read(sale.order)
    totals.add(sale)
    try users.takeIfMany(from: &totals)
    try report?.write(settled: sale)
    try waiting?.add(OrderLine(sale), settled: sale)
  }

  private func list(_ line: OrderLine) throws {
    try report?.write(order: line)
    try waiting?.add(line)
  }

  /// Adds a finding without an order if the filters include it.
  func add(_ finding: Finding, subjects: [CheckSubject], plan: AuditPlan) throws {
    guard plan.selection.includes(finding) else { return try add(unlisted: finding) }
    if let date = finding.occurredAt, plan.period.contains(date) { totals.count(withoutOrder: finding.kind) }
    try keep(finding, subjects, [], asOf: plan.asOf)
  }

  /// Adds a finding that the filters leave out, if it may share an amount at risk with a listed one.
  func add(unlisted finding: Finding) throws {
    guard finding.atStake != nil, finding.kind == .orphanPayment || finding.kind.has(.mayBePaidByOrphan) else { return }
    record.clear()
    finding.write(to: &record)
    try unlisted.add(key: finding.digest, content: record.content)
  }

  /// Adds a finding that holds if goods of a subscription were not taken back. Orders are judged later.
  func add(_ finding: Finding, ifServed subscription: Identifier, plan: AuditPlan) throws {
    if plan.selection.includes(finding) { refundedRenewals[subscription, default: []].append(finding) }
  }

  func note(served subscription: Identifier) { servedSubscriptions.insert(subscription) }

  /// Adds the findings on refunded renewals of subscriptions that are still served, when all orders are judged.
  func addServedRenewals(asOf: Instant) throws {
    for (subscription, findings) in refundedRenewals where servedSubscriptions.contains(subscription) {
      for finding in findings { try keep(finding, [], [], asOf: asOf) }
    }
  }

  private func keep(_ finding: Finding, _ subjects: [CheckSubject], _ explanation: [String], asOf: Instant) throws {
    if !subjects.isEmpty, CriticalEvidence.isAged(behind: finding, asOf: asOf),
      !openCriticals.contains(Identifier(finding.identity))
    {
      agedCriticals.formUnion(subjects)
    }
    switch finding.kind {
    case .orphanPayment, .chargedTwice:
      if finding.environment == .production, let id = finding.transactionId { doubtfulPayments.insert(id) }
    default: break
    }
    record.clear()
    finding.write(to: &record)
    record.put(explanation) { $1.put($0) }
    try findings.add(key: finding.digest, content: record.content)
  }

  func note(owner orderId: Identifier, of key: TransactionKey) throws {
    guard let claims else { return }
    record.clear()
    ClaimsTable.Claim(key: key, orderId: orderId).write(to: &record)
    try claims.add(key.transactionId, record)
  }

  // MARK: - The end of the pass

  func writeRemainder(_ reported: ReportedRefunds, on own: borrowing BlockingConnection) throws {
    try users.passAll(with: &totals) { try report?.write(user: $0, $1) }
    try refunds.passReported(reported, on: own) { row in
      totals.refunds += 1
      try report?.write(refund: row)
    }
    try refunds.requests.passRows { try report?.write(refundRequest: $0) }
    for row in sandbox.rows(testUsers: testUsers) { try report?.write(sandbox: row) }
  }

  func write(finding: ReportedFinding) throws { try report?.write(finding: finding) }

  func write(change: ChangeRow) throws { try report?.write(change: change) }

  func writeToSheet(finding: ReportedFinding) throws { try report?.writeToSheet(finding: finding) }

  var hasSheets: Bool { report?.hasSheets ?? false }
}
