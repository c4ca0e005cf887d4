import AuditStore
import Postgres
import Reconciliation
import Reporting
import Run
import Streams

/// Gathers what an audit says, or a part of it: totals, findings, refunds and the rows of the report's files as they come.
/// What parts have gathered is joined in their order, and is then as if one had gathered all of it.
///
/// Used by one thread at a time; not `Sendable`.
final class AuditCollector {
  /// Rows of a part that wait until the parts before it have theirs in the report.
  private struct WaitingRows {
    let orders: SpillFile
    let receipts: SpillFile
  }

  /// The report that is being written; nil when only the table is wanted, and in the parts behind the first.
  private var report: ReportWriter?
  private let waiting: WaitingRows?
  private(set) var totals = Totals()
  /// By the day of the orders, for comparing with what earlier nights reported.
  private(set) var days: DayTotals
  /// Findings by the bytes of their stable id.
  let findings: SpillSorter
  private let refunds: SpillSorter
  private var sandbox: [SandboxKey: (orders: Int, minorUnits: Int128)] = [:]
  /// Who owns what, by transaction id; nil where nobody keeps it.
  let claims: SpillSorter?
  /// Whether everything was read that there is.
  var control: [ControlTotal] = []
  /// What is decided about each order, for comparing with other nights.
  let nights: OrderNights
  private(set) var outstanding: [String: Int] = [:]
  /// What critical findings rest on whose evidence is older than the audit.
  private(set) var agedCriticals: Set<CheckSubject> = []
  /// The identities of those that earlier runs have reported.
  var openCriticals: Set<String> = []
  private var record = RecordBytes()
  private let testUsers: Set<Identifier>
  let temporaryDirectory: String

  private struct SandboxKey: Hashable, Comparable {
    var userId: Identifier
    var productId: Identifier
    var currency: Currency

    static func < (left: SandboxKey, right: SandboxKey) -> Bool {
      (left.userId, left.productId, left.currency) < (right.userId, right.productId, right.currency)
    }
  }

  /// - Parameter report: where the rows of all parts go in the end; nil when only the table is wanted.
  init(
    report: consuming ReportWriter?, temporaryDirectory: String, testUsers: Set<Identifier>, days: [DayTotals.Day],
    keepsClaims: Bool
  ) {
    self.report = report
    waiting = nil
    self.days = DayTotals(days: days)
    self.temporaryDirectory = temporaryDirectory
    findings = SpillSorter(directory: temporaryDirectory)
    refunds = SpillSorter(directory: temporaryDirectory, budget: 1 << 20)
    nights = OrderNights(temporaryDirectory: temporaryDirectory)
    claims = keepsClaims ? SpillSorter(directory: temporaryDirectory) : nil
    self.testUsers = testUsers
  }

  /// For a part behind the first one, which `first` gathers.
  init(behind first: AuditCollector) throws {
    report = nil
    waiting =
      first.isReporting
      ? WaitingRows(
        orders: try SpillFile(directory: first.temporaryDirectory),
        receipts: try SpillFile(directory: first.temporaryDirectory))
      : nil
    days = DayTotals(days: first.days.days)
    temporaryDirectory = first.temporaryDirectory
    findings = SpillSorter(directory: temporaryDirectory)
    refunds = SpillSorter(directory: temporaryDirectory, budget: 1 << 20)
    nights = OrderNights(temporaryDirectory: temporaryDirectory)
    claims = first.claims == nil ? nil : SpillSorter(directory: temporaryDirectory)
    testUsers = first.testUsers
    openCriticals = first.openCriticals
  }

  /// Takes over what the part behind has gathered.
  func join(_ next: AuditCollector) throws {
    totals.join(next.totals)
    days.join(next.days)
    try findings.absorb(next.findings)
    try refunds.absorb(next.refunds)
    try nights.join(next.nights)
    if let theirs = next.claims { try claims?.absorb(theirs) }
    for (key, sum) in next.sandbox { add(sum, to: key) }
    for (reason, count) in next.outstanding { outstanding[reason, default: 0] += count }
    agedCriticals.formUnion(next.agedCriticals)
    guard let orders = next.waiting?.orders else { return }
    try orders.restart()
    while let content = try orders.next() {
      var reader = RecordReader(content)
      try list(try OrderLine(from: &reader))
    }
  }

  /// Takes over the listed receipts of the part behind: those of all parts come before the first order.
  func joinReceipts(_ next: AuditCollector) throws {
    guard let receipts = next.waiting?.receipts else { return }
    try receipts.restart()
    while let content = try receipts.next() {
      var reader = RecordReader(content)
      try list(try Receipt(from: &reader))
    }
  }

  /// Takes the report out to finish it.
  func takeReport() -> ReportWriter? { report.take() }

  /// Whether rows are wanted at all.
  private var isReporting: Bool { report != nil || waiting != nil }

  // MARK: - Receipts

  func list(_ receipt: Receipt) throws {
    try report?.write(receipt: receipt)
    guard let waiting else { return }
    record.clear()
    receipt.write(to: &record)
    try waiting.receipts.add(record.bytes)
  }

  /// An answer that Apple still owes.
  func countOutstanding(_ state: ProofState) {
    let reason = state.outcome == .verified ? "stale" : (state.reason ?? .neverChecked).rawValue
    outstanding[reason, default: 0] += 1
  }

  /// Answers that are owed because critical findings rest on older ones.
  func countOutstanding(behindCriticals count: Int) {
    if count > 0 { outstanding["critical findings rest on older answers", default: 0] += count }
  }

  // MARK: - Orders

  /// Adds a judged and listed order: to the totals and files when it is of the period, its findings always.
  ///
  /// - Parameters:
  ///   - subjects: the proofs that its findings rest on.
  ///   - explanation: what was considered, for the critical ones of its findings.
  func add(
    _ judgement: Judgement, subjects: [CheckSubject], explanation: [String] = [], plan: AuditPlan
  ) throws {
    for finding in judgement.findings {
      try keep(finding, subjects, finding.severity == .critical ? explanation : [], asOf: plan.asOf)
    }
    days.add(judgement)
    try nights.add(judgement)
    guard plan.period.contains(judgement.row.createdAt) else { return }
    totals.read(judgement.row)
    totals.add(judgement)
    if isReporting { try list(OrderLine(judgement)) }
    if judgement.environment == .sandbox, case .valid(let order) = judgement.row {
      let key = SandboxKey(userId: order.userId, productId: order.productId, currency: order.amount.currency)
      add((1, Int128(order.amount.minorUnits)), to: key)
    }
  }

  private func add(_ sum: (orders: Int, minorUnits: Int128), to key: SandboxKey) {
    let known = sandbox[key] ?? (orders: 0, minorUnits: 0)
    sandbox[key] = (known.orders + sum.orders, known.minorUnits + sum.minorUnits)
  }

  private func list(_ line: OrderLine) throws {
    try report?.write(order: line)
    guard let waiting else { return }
    record.clear()
    line.write(to: &record)
    try waiting.orders.add(record.bytes)
  }

  /// Adds a finding that stands on no order, if the filters list it.
  ///
  /// - Parameter subjects: the proofs that it rests on.
  func add(_ finding: Finding, subjects: [CheckSubject], plan: AuditPlan) throws {
    if plan.selection.includes(finding) { try keep(finding, subjects, [], asOf: plan.asOf) }
  }

  private func keep(_ finding: Finding, _ subjects: [CheckSubject], _ explanation: [String], asOf: Instant) throws {
    if !subjects.isEmpty, CriticalEvidence.isAged(behind: finding, asOf: asOf),
      !openCriticals.contains(finding.identity)
    {
      agedCriticals.formUnion(subjects)
    }
    record.clear()
    finding.write(to: &record)
    record.put(explanation) { $1.put($0) }
    try findings.add(key: finding.digest, content: record.bytes)
  }

  /// Notes who owns a transaction.
  func note(owner orderId: Identifier, of key: TransactionKey) throws {
    guard let claims else { return }
    record.clear()
    ClaimsTable.Claim(key: key, orderId: orderId).write(to: &record)
    try claims.add(key: key.transactionId.bytes, content: record.bytes)
  }

  // MARK: - Refunds

  func addRefunds(
    of owned: [TransactionRecord], order: Order, judgement: Judgement, plan: AuditPlan, isListed: Bool
  ) throws {
    guard isListed else { return }
    for place in owned.indices where owned[place].revocation != nil {
      try addRefund(of: owned[place], order: order, judgement: judgement, plan: plan)
    }
  }

  /// Adds a reversal that is dated in the period, whenever its order was. Sandbox money is no money.
  func addRefund(of transaction: TransactionRecord, order: Order?, judgement: Judgement?, plan: AuditPlan) throws {
    guard isReporting, transaction.environment == .production, let revocation = transaction.revocation,
      plan.period.contains(revocation.date), !transaction.isFamilyShared
    else { return }
    if order == nil {
      guard let bundle = transaction.bundleId, plan.rules.bundleIds.contains(bundle),
        plan.selection.includes(
          orderId: nil, userId: nil, productId: transaction.productId, bundleId: transaction.bundleId)
      else { return }
    }
    guard let row = RefundRow(transaction, order: order, disposition: judgement?.disposition) else { return }
    record.clear()
    row.write(to: &record)
    try refunds.add(key: transaction.transactionId.bytes, content: record.bytes)
  }

  // MARK: - The end of the pass

  /// Writes what could only be ordered at the end: refunds and the sandbox.
  func writeRemainder() throws {
    // The file is in the order of ids, the sheet in that of the refunds.
    let byDate = SpillSorter(directory: temporaryDirectory)
    while let refund = try refunds.next() {
      var reader = RecordReader(refund.content)
      let row = try RefundRow(from: &reader)
      try report?.write(refund: row)
      if hasSheets { try byDate.add(key: row.refundedAt.sortingBytes + refund.key, content: refund.content) }
    }
    while let refund = try byDate.next() {
      var reader = RecordReader(refund.content)
      try report?.writeToSheet(refund: try RefundRow(from: &reader))
    }
    for (key, sum) in sandbox.sorted(by: { $0.key < $1.key }) {
      try report?.write(
        sandbox: SandboxRow(
          userId: key.userId, productId: key.productId, currency: key.currency, orders: sum.orders,
          minorUnits: sum.minorUnits, isAllowed: testUsers.contains(key.userId)))
    }
  }

  func write(finding: ReportedFinding) throws { try report?.write(finding: finding) }

  func write(change: ChangeRow) throws { try report?.write(change: change) }

  func writeToSheet(change: ChangeRow) throws { try report?.writeToSheet(change: change) }

  func writeToSheet(finding: ReportedFinding) throws { try report?.writeToSheet(finding: finding) }

  /// Whether findings are wanted worst first, too.
  var hasSheets: Bool { report?.hasSheets ?? false }
}
