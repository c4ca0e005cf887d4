/// The sample shop while it is made.
struct ShopBuilder {
  var random: SampleRandom
  let timeline: Timeline
  private(set) var customers: Customers
  private(set) var orders: [OrderRow] = []
  private(set) var receipts: [ReceiptRow] = []
  private(set) var deliveries: [DeliveryRow] = []
  private(set) var world: SampleWorld
  private(set) var expectations: [String: Expectation] = [:]
  /// What stands on no order, by the id of the transaction, receipt or delivery.
  private(set) var unowned: [String: String] = [:]
  /// Honest sales that frauds can lean on, by age.
  private var donors: [Sale] = []
  /// What a user's app receipts list for good, by position of the user.
  private var permanent: [Int: [SampleTransaction]] = [:]
  private var serial: Int64 = 0
  /// The second app, if there is one.
  var quiz: QuizApp?

  init(seed: UInt64, timeline: Timeline) {
    random = SampleRandom(seed: seed)
    self.timeline = timeline
    customers = Customers(&random)
    let secret = random.bytes(16).map { String($0 >> 4, radix: 16) + String($0 & 0x0F, radix: 16) }.joined()
    world = SampleWorld(apps: [
      .init(bundleId: Catalogue.bundleId, appAppleId: Catalogue.appAppleId, sharedSecret: secret),
      .init(bundleId: Catalogue.foreignBundleId, appAppleId: 1_234_567_891),
    ])
  }

  // MARK: - Ids of 16 to 19 digits, which spreadsheets round unless they are text

  private mutating func nextSerial() -> Int64 {
    serial += 1
    return serial
  }

  /// The shop changed its numbering half-way: from day and serial number to an instant with a serial number in its last
  /// 22 bits.
  private mutating func orderId(at instant: Int64) -> String {
    guard instant < timeline.start + Int64(timeline.days) * Timeline.day / 2 else {
      return String(instant << 22 | nextSerial() & 0x3F_FFFF)
    }
    let day = Timeline.text(instant).prefix(10).filter { $0 != "-" }
    let number = String(nextSerial())
    return day + String(repeating: "0", count: max(0, 8 - number.count)) + number
  }

  /// An id that Apple might have given, and has given to nobody.
  mutating func transactionId() -> String {
    String(2_000_000_500_000_000 + nextSerial() * 7_919 + random.whole(0...7_000))
  }
  private mutating func receiptId() -> String { String(30_000_000_000_000_000 + nextSerial() * 37) }
  mutating func deliveryId() -> String { String(500_000_000_000_000_000 + nextSerial() * 41) }

  // MARK: - Making

  /// An honest sale: ordered, paid, verified and delivered within a minute or two.
  mutating func sale(to user: Int, of product: SampleProduct, quantity: Int64 = 1, at createdAt: Int64) -> Sale {
    let customer = customers.all[user]
    let purchasedAt = createdAt + random.whole(5_000...90_000)
    let verifiedAt = purchasedAt + random.whole(900...6_500)
    let purchase = transaction(for: user, of: product, quantity: quantity, at: purchasedAt)
    let orderId = orderId(at: createdAt)
    let delivery = DeliveryRow(
      deliveryId: deliveryId(), orderId: orderId, userId: customer.userId, productId: product.productId,
      quantity: quantity, deliveredAt: verifiedAt + random.whole(200...9_000))
    let order = OrderRow(
      orderId: orderId, userId: customer.userId, productId: product.productId, quantity: quantity,
      amount: customer.currency.text(minorUnits: product.price(customer.currency) * quantity),
      currency: customer.currency.code, status: "verified", transactionId: purchase.transactionId,
      accountToken: customer.accountToken, createdAt: createdAt, verifiedAt: verifiedAt,
      updatedAt: delivery.deliveredAt)
    return Sale(user: user, order: order, transaction: purchase, proof: Sale.Proof(), deliveries: [delivery])
  }

  mutating func transaction(
    for user: Int, of product: SampleProduct, quantity: Int64 = 1, at instant: Int64
  ) -> SampleTransaction {
    let (customer, id) = (customers.all[user], transactionId())
    var purchase = SampleTransaction(
      transactionId: id, originalTransactionId: id, productId: product.productId, type: product.kind,
      quantity: quantity, purchaseDate: instant, originalPurchaseDate: instant,
      price: customer.currency.milliunits(minorUnits: product.price(customer.currency) * quantity),
      currency: customer.currency.code, appAccountToken: customer.accountToken)
    if product.kind == .autoRenewable {
      purchase.expiresDate = instant + Catalogue.vipPeriod
      purchase.webOrderLineItemId = transactionId()
    }
    return purchase
  }

  /// A user who may buy this; everybody owns everything only in shops too small to be made.
  mutating func buyer(of product: SampleProduct) -> Int {
    customers.buyer(of: product, &random) ?? customers.anyone(&random)
  }

  mutating func tester() -> Int { random.pick(customers.testers) }

  // MARK: - Recording

  mutating func record(_ sale: Sale) {
    orders.append(sale.order)
    deliveries += sale.deliveries
    if sale.proof?.isGenuine ?? true, let purchase = sale.transaction { world.transactions.append(purchase) }
    _ = sendReceipt(of: sale)
    var expected = sale.expected
    if expected.disposition == "unconfirmed", timeline.asOf - sale.order.createdAt > 48 * Timeline.hour {
      expected.findings.append("stuck_unconfirmed")
    }
    expected.findings.sort()
    expectations[sale.order.orderId] = expected
  }

  /// Stores the sale's receipt and tells Apple of it.
  /// - Parameter isLost: whether the receipt has lost its order.
  /// - Returns: the payload.
  mutating func sendReceipt(of sale: Sale, isLost: Bool = false) -> String? {
    guard let proof = sale.proof else { return nil }
    let listed = proof.others + [sale.transaction].compactMap(\.self)
    let payload = proof.payload ?? payload(kind: proof.kind, listing: listed)
    let sentAt = (sale.transaction?.purchaseDate ?? sale.order.createdAt) + 700
    let isChecked = proof.shopStatus != "unverified"
    receipts.append(
      ReceiptRow(
        receiptId: receiptId(), orderId: isLost ? nil : sale.order.orderId, userId: sale.order.userId,
        payload: payload, environment: proof.claimedEnvironment.rawValue, status: proof.shopStatus,
        checkedAt: isChecked ? sentAt + 1_900 : nil, receivedAt: sentAt))
    if proof.isGenuine, proof.payload == nil {
      let own = sale.transaction ?? proof.others.first
      world.receipts.append(
        SampleReceipt(
          payload: payload, kind: proof.kind, environment: own?.environment ?? .production,
          bundleId: own?.bundleId ?? Catalogue.bundleId, transactions: listed.map(\.transactionId),
          status: proof.forcedStatus))
    }
    return payload
  }

  private mutating func payload(kind: SampleReceipt.Kind, listing listed: [SampleTransaction]) -> String {
    switch kind {
    case .transaction:
      if let purchase = listed.last {
        return ReceiptPayload.transaction(purchase, signature: random.bytes(96))
      }
      return ReceiptPayload.app(content: random.bytes(64))
    case .app: return ReceiptPayload.app(content: random.bytes(64 + 12 * listed.count))
    }
  }

  /// An honest sale on which frauds can lean, and which later receipts of the user list if it stays.
  mutating func recordHonest(_ sale: Sale) {
    var sale = sale
    if let purchase = sale.transaction, purchase.type != .consumable {
      permanent[sale.user, default: []].append(purchase)
    }
    let position = receipts.count
    record(sale)
    if sale.transaction?.type == .consumable, sale.order.transactionId != nil, sale.proof?.others.isEmpty == true {
      sale.proof?.payload = receipts[position].payload
      donors.append(sale)
    }
  }

  mutating func add(_ purchase: SampleTransaction) { world.transactions.append(purchase) }
  mutating func add(_ delivery: DeliveryRow) { deliveries.append(delivery) }
  mutating func add(_ receipt: ReceiptRow) { receipts.append(receipt) }
  /// An order of the second app: as it should be.
  mutating func add(_ order: OrderRow) {
    orders.append(order)
    expectations[order.orderId] = .settled
  }
  mutating func expect(_ finding: String, on subject: String) { unowned[subject] = finding }

  /// Lets transport change a share of the payloads, each in a way that can be undone.
  mutating func damagePayloads(share: Double) {
    guard share > 0 else { return }
    for index in receipts.indices where random.chance(share) {
      receipts[index].payload = random.pick(TransportDamage.mendable).applied(to: receipts[index].payload)
    }
  }

  // MARK: - Looking back

  /// What the app receipts of a user list besides the newest purchase.
  func permanentPurchases(of user: Int, before instant: Int64) -> [SampleTransaction] {
    permanent[user, default: []].filter { $0.purchaseDate < instant }
  }

  /// An honest sale of at least a day before, with a receipt of this kind if one is asked for.
  mutating func donor(before instant: Int64, kind: SampleReceipt.Kind? = nil) -> Sale? {
    let older = donors.filter {
      $0.order.createdAt < instant - Timeline.day && (kind == nil || $0.proof?.kind == kind)
    }
    return older.isEmpty ? nil : random.pick(older)
  }
}
