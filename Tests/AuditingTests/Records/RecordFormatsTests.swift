import Foundation
import AuditStore
import Reconciliation
import Reporting
import Testing

@testable import Auditing
@testable import Streams

@Suite struct RecordFormatsTests {
  private func back<Value>(
    _ write: (inout RecordBytes) -> Void, _ read: (inout RecordReader) throws -> Value
  ) throws -> Value {
    var record = RecordBytes()
    write(&record)
    var reader = RecordReader(record.bytes)
    let value = try read(&reader)
    #expect(throws: RecordReader.Mismatch.self, "every byte was read") { try reader.byte() }
    return value
  }

  /// Every field has a distinct value.
  private static let everything: TransactionRecord.Contents = {
    var contents = TransactionRecord.Contents(
      environment: .sandbox, transactionId: "2000000123456789012345678", productId: "com.example.game.gems.14000")
    contents.originalTransactionId = "1"
    contents.webOrderLineItemId = "web"
    contents.bundleId = "com.example.game"
    contents.productType = .autoRenewable
    contents.quantity = 3
    contents.purchaseDate = Instant(seconds: 1)
    contents.originalPurchaseDate = Instant(seconds: 2)
    contents.expiresDate = Instant(seconds: 3)
    contents.subscriptionExpiresDate = Instant(seconds: 4)
    contents.subscriptionStatus = .gracePeriod
    contents.subscriptionStatusDate = Instant(seconds: 10)
    contents.renewalDate = Instant(seconds: 11)
    contents.revocation = Revocation(
      date: Instant(seconds: 5), percentage: 70_000, type: "REFUND_PRORATED", reason: 1, coversSomeItemsOnly: true)
    contents.revocationStatedDate = Instant(seconds: 12)
    contents.revocationWithdrawnDate = Instant(microseconds: -6)
    contents.priceMilliunits = 9_990
    contents.currency = "KWD"
    contents.appAccountToken = .stated("7f3c")
    contents.ownership = .familyShared
    contents.isRenewal = true
    contents.hasOffer = false
    contents.isUpgraded = true
    contents.refundRequest = RefundRequest(
      date: Instant(seconds: 6), reason: "FULFILLMENT_ISSUE", declinedDate: Instant(seconds: 7))
    contents.details.storefront = "DEU"
    contents.details.appTransactionId = "app"
    contents.details.offerType = 2
    contents.details.offerIdentifier = "spring"
    contents.details.subscriptionGroupIdentifier = "group"
    contents.details.commitmentInfo = "{}"
    contents.details.billingPlanType = "MONTHLY"
    contents.details.previousOriginalTransactionId = "previous"
    contents.isContradictory = true
    contents.channel = .notification
    contents.signedDate = Instant(seconds: 7)
    contents.firstSignedDate = Instant(seconds: 6)
    contents.notifiedDate = Instant(seconds: 13)
    contents.checkedAt = Instant(seconds: 8)
    contents.otherIds = ["T2"]
    return contents
  }()

  private static let whole = TransactionRecord(everything)
  private static let bare = TransactionRecord(environment: .production, transactionId: "T", productId: "gems.100")

  @Test func transactionRecords() throws {
    var told = Self.bare
    told.appAccountToken = .stated(nil)
    for record in [Self.whole, Self.bare, told] {
      #expect(try back({ record.write(to: &$0) }, { try TransactionRecord(from: &$0) }) == record)
    }
  }

  /// Ensures that the test above compares new fields: a field without a value there would not be compared.
  @Test func recordsKeepEveryField() {
    let bare = Mirror(
      reflecting: TransactionRecord.Contents(environment: .production, transactionId: "T", productId: "gems.100"))
    let whole = Mirror(reflecting: Self.everything)
    for (one, other) in zip(bare.children, whole.children) {
      #expect("\(one.value)" != "\(other.value)", "\(one.label ?? "")")
    }
  }

  @Test func findings() throws {
    var finding = Finding(
      kind: .deliveredNotPaid, subject: .order("o1"), reason: "Goods are with user \(user: "u2"): \(2) units.")
    (finding.severity, finding.action, finding.goodsHolder) = (.minor, .look, "u2")
    (finding.orderId, finding.userId, finding.deliveryId) = ("o1", "u1", "d1")
    finding.units = Units(ordered: 2, delivered: 5)
    finding.refundToBook = Money(minorUnits: 33, currency: try #require(Currency(code: "USD")))
    let read = try back({ finding.write(to: &$0) }, { try Finding(from: &$0) })
    #expect(read == finding && read.reason.users == ["u2"])
  }

  /// Earlier versions stored further transactions of the answer as contained in the look-up.
  @Test func aLookupContainsTheRequestedTransaction() throws {
    let receipt = Receipt(
      receiptId: "r", orderId: "o", userId: nil, claimedEnvironment: nil, receivedAt: Instant(seconds: 9),
      state: .neverChecked, defect: nil)
    var order = Order(
      orderId: "o", userId: "u", productId: "p",
      amount: Money(minorUnits: 1, currency: try #require(Currency(code: "USD"))),
      status: .verified, createdAt: Instant(seconds: 5))
    order.transactionId = "T"
    let rules = Rules(asOf: Instant(seconds: 9), bundleIds: ["app"], lookbackStart: Instant(seconds: 0))
    var group = OrderGroup(row: .valid(order))
    group.take(
      LookedUp(subjectId: "app/T", state: receipt.state, contained: [Self.whole.key, Self.bare.key]), rules: rules)
    #expect(group.lookup?.contained == [Self.bare.key])
    order.transactionId = "T2"
    group = OrderGroup(row: .valid(order))
    group.take(LookedUp(subjectId: "app/T", state: receipt.state, contained: [Self.bare.key]), rules: rules)
    #expect(group.lookup == nil)
  }

  @Test("An orphan payment stated by an order of another app belongs to the user of its account token")
  func presumedUsers() throws {
    var order = Order(
      orderId: "o", userId: "stranger", productId: "p",
      amount: Money(minorUnits: 1, currency: try #require(Currency(code: "USD"))), status: .pending,
      createdAt: Instant(seconds: 5))
    var record = TransactionRecord(environment: .production, transactionId: "T", productId: "p")
    (record.bundleId, record.appAccountToken) = ("app", .stated("A1"))
    var transactions = OrderTransactions()
    transactions.take(.transaction(record, isClaimable: true, newestProof: nil))
    transactions.take(.tokenUser(token: AccountToken.spelling("A1"), userId: "victim"))
    let rules = Rules(asOf: Instant(seconds: 9), bundleIds: ["app", "other"], lookbackStart: Instant(seconds: 0))
    for (bundleId, user) in [("other", "victim"), ("app", "stranger")] as [(String, Identifier)] {
      order.bundleId = bundleId
      let unshared = transactions.unshared(by: OrderGroup(row: .valid(order)), rules: rules)
      #expect(unshared.map { $0.userId } == [user])
    }
  }

  @Test func recordsWaitingForTheirOrderSurviveEncoding() throws {
    var owning = OrderClaims()
    owning.owned = [Self.whole, Self.bare]
    owning.lost = [LostClaim(transaction: Self.bare, ownerOrderId: "o", ownerUserId: "u", isFinal: true)]
    var refused = OrderClaims()
    refused.refused = RefusedClaim(transaction: Self.whole, reason: .wrongBundle)
    var contradictory = OrderClaims()
    contradictory.contradictory = Self.bare
    var receipt = Receipt(
      receiptId: "r", orderId: "o", userId: nil, claimedEnvironment: "Sandbox", receivedAt: Instant(seconds: 9),
      state: .neverChecked, defect: "no status")
    receipt.state.signedTransactionId = "T"
    receipt.state.appleStatus = 21_007
    receipt.isUndated = true
    let group = OrderGroup(
      row: .valid(
        Order(
          orderId: "an order with an id that is longer than most", userId: "u", productId: "p",
          amount: Money(minorUnits: 1, currency: try #require(Currency(code: "USD"))), status: .failed,
          createdAt: Instant(seconds: 5))),
      proofs: [Proof(receipt: receipt, contained: [Self.bare.key])],
      lookup: LookedUp(subjectId: "app/T", state: receipt.state, contained: [Self.whole.key]))
    var broken = BadOrder(
      orderId: "", userId: "u", bundleId: "b", productId: "p", quantity: nil, amountText: "NaN", currencyText: "?",
      statusText: "", transactionId: "T", createdAt: Instant(seconds: 5), defect: "everything")
    broken.isUndated = true
    let bad = OrderGroup(row: .bad(broken), isRepeated: true)
    for group in [group, bad] {
      #expect(try back({ group.write(to: &$0) }, { try OrderGroup(from: &$0) }) == group)
      for reference in group.references {
        let read = try back(
          { reference.write(to: &$0) }, { try TransactionReference(reference.transactionId, from: &$0) })
        #expect(fields(of: read) == fields(of: reference))
      }
    }
    for claims in [OrderClaims(), owning, refused, contradictory] {
      let matched = Matched(
        orderId: group.row.orderId, contested: [Self.bare, Self.whole], claims: claims,
        newestProofs: [Self.bare.key: CheckSubject(kind: .receipt, id: "r")])
      let read = try back({ matched.write(to: &$0) }, { try Matched(from: &$0) })
      #expect(read.orderId == matched.orderId && read.newestProofs == matched.newestProofs)
      #expect(read.contested == matched.contested && read.claims == matched.claims)
    }
  }

  @Test("Borrowed records are read and written like the decoded values")
  func plainRecords() throws {
    var order = Order(
      orderId: "an order with an id that is longer than most", userId: "u", productId: "p", quantity: 3,
      amount: Money(minorUnits: 1, currency: try #require(Currency(code: "USD"))), status: .refunded,
      createdAt: Instant(seconds: 5))
    var receipt = Receipt(
      receiptId: "r", orderId: order.orderId, userId: "u", claimedEnvironment: "Sandbox",
      receivedAt: Instant(seconds: 9), state: .neverChecked)
    receipt.state.outcome = .verified
    receipt.state.environment = .sandbox
    receipt.state.signedTransactionId = "T"
    receipt.state.lastAttempt = Instant(seconds: 3)
    receipt.state.due = Dueness(from: Instant(seconds: 4), until: nil, rank: .open)
    let proof = Proof(receipt: receipt, contained: [Self.bare.key, Self.whole.key])
    for isNamed in [true, false] {
      order.transactionId = isNamed ? "T" : nil
      order.appAccountToken = isNamed ? nil : "a token"
      order.verifiedAt = isNamed ? nil : Instant(seconds: 6)
      (order.isChangedAfterAsOf, order.refundBookedBy) = (isNamed, isNamed ? Instant(seconds: 7) : nil)
      var row = RecordBytes()
      var waiting = RecordBytes()
      OrderRow.valid(order).write(to: &row)
      proof.write(to: &waiting)
      waiting.put("behind it")
      var rowReader = RecordReader(row.content)
      var proofReader = RecordReader(waiting.content)
      let plain = try #require(try BorrowedOrder?(from: &rowReader))
      var again = RecordBytes()
      Optional(plain).write(to: &again)
      #expect(again.bytes == row.bytes)
      let read = try WaitingProof(&proofReader)
      #expect(try proofReader.text() == "behind it")
      #expect(
        read.receipt.state.lastAttempt == receipt.state.lastAttempt && read.receipt.state.environment == .sandbox)
      #expect(read.receipt.claimedEnvironment?.text == "Sandbox" && read.receipt.defect == nil && read.isAnswered)
      let containsTransactionID = try Self.whole.transactionId.withUTF8 { id in
        try read.containsTransactionID(BorrowedText(id), in: Self.whole.environment)
      }
      #expect(containsTransactionID)
      #expect(try !read.containsTransactionID(plain.orderId, in: .production))
      var references: [[UInt8]] = []
      try read.forEachContained { environment, id in
        let reference = BorrowedTransactionReference(
          transactionId: id, order: BorrowedTransactionReference.OrderSide(plain), isNamed: id == plain.transactionId,
          referenceSource: BorrowedTransactionReference.ReferenceSource(environment, containedIn: read.receipt))
        references.append(RecordBytes.bytes(reference.write(to:)))
      }
      #expect(
        references
          == OrderGroup(row: .valid(order), proofs: [proof]).references.map { reference in
            var record = RecordBytes()
            reference.write(to: &record)
            return record.bytes
          })
    }
  }

  @Test("Bad rows are read back unchanged, and the reader continues after them")
  func brokenRecords() throws {
    var read = WaitingProof()
    for isUndated in [true, false] {
      var receipt = Receipt(
        receiptId: "r", orderId: "o", userId: "u", receivedAt: Instant(seconds: 9), state: .neverChecked,
        defect: "received_at is infinite")
      receipt.isUndated = isUndated
      let proof = Proof(receipt: receipt, contained: [Self.bare.key])
      var waiting = RecordBytes()
      proof.write(to: &waiting)
      waiting.put("behind it")
      var reader = RecordReader(waiting.content)
      try read.read(&reader)
      #expect(read.receipt.defect != nil && read.receipt.isUndated == isUndated)
      #expect(try reader.text() == "behind it")
      var delivery = Delivery(
        deliveryId: "d", orderId: "o", userId: "u", productId: "p", deliveredAt: Instant(seconds: 9),
        defect: "delivered_at is infinite")
      delivery.isUndated = isUndated
      #expect(try back({ delivery.write(to: &$0) }, { try Delivery(from: &$0) }) == delivery)
    }
  }

  @Test func plainPayments() throws {
    var (whole, told) = (Self.whole, Self.bare)
    told.appAccountToken = .stated(nil)
    // Purchases with a refund request or several IDs are left to the rules.
    (whole.refundRequest, whole.otherIds) = (nil, [])
    // One value reads all, so that no field of one is left in the next.
    var plain = BorrowedTransaction.blank
    for record in [whole, Self.bare, told] {
      var bytes = RecordBytes()
      OrderTransaction.transaction(record, isClaimable: true, newestProof: nil).write(to: &bytes)
      var reader = RecordReader(bytes.content)
      #expect(try plain.read(orderTransaction: &reader))
      #expect(plain.transactionId.id == record.transactionId && plain.bundleId?.text == record.bundleId)
      #expect((plain.revocation == nil) == (record.revocation == nil))
      #expect(RecordBytes.bytes(plain.write(to:)) == RecordBytes.bytes(record.write(to:)))
      bytes.clear()
      OrderTransaction.transaction(record, isClaimable: false, newestProof: nil).write(to: &bytes)
      var other = RecordReader(bytes.content)
      #expect(try !plain.read(orderTransaction: &other))
    }
  }

  private func fields(of reference: TransactionReference) -> [String] {
    let order = reference.order.map { Mirror(reflecting: $0).children.map { "\($0)" } }
    return Mirror(reflecting: reference).children.filter { $0.label != "order" }.map { "\($0)" } + (order ?? ["none"])
  }

  @Test func postponedRowsSurviveEncoding() throws {
    let currency = try #require(Currency(code: "KWD"))
    var line = OrderLine(
      orderId: "o", userId: "u", productId: "p", quantity: 7,
      amount: .money(Money(minorUnits: 1_250, currency: currency)), status: "verified",
      disposition: .refundedStillDelivered, createdAt: Instant(seconds: 1))
    #expect(try back({ line.write(to: &$0) }, { try OrderLine(from: &$0) }) == line)
    line.amount = .text("NaN", currency: "?")
    line.payment = "unpaid"
    line.paymentReason = .duplicate
    line.transactionId = "T"
    line.environment = .sandbox
    line.paidAt = Instant(seconds: 2)
    line.deliveredAt = Instant(seconds: 3)
    line.refundedAt = Instant(seconds: 4)
    line.checkedAt = Instant(seconds: 5)
    line.findings = "duplicate_claim"
    line.bundleId = "com.example.game"
    line.country = Country(storefront: "DEU")
    #expect(try back({ line.write(to: &$0) }, { try OrderLine(from: &$0) }) == line)
    // The report sets these fields, not the parts.
    let written = ["app", "businessDay"]
    for child in Mirror(reflecting: line).children where !written.contains(child.label ?? "") {
      #expect("\(child.value)" != "nil", "\(child.label ?? "")")
    }
  }
}
