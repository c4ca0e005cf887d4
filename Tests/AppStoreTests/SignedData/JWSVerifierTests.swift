import Crypto
import Foundation
import Reconciliation
import Synchronization
import Testing
import X509

@testable import AppStore

private typealias Authority = TestCertificateAuthority

@Suite("Signed transactions and renewal information")
struct JWSVerifierTests {
  private func verifier() throws -> JWSVerifier { JWSVerifier(roots: try Authority.transactions.roots) }

  /// The fact in a signed transaction that is accepted.
  @discardableResult
  private func accepted(_ text: String, _ roots: TrustedRoots? = nil) throws -> TransactionFact {
    let verifier = JWSVerifier(roots: try roots ?? Authority.transactions.roots)
    return try verifier.verifyTransaction(text, channel: .serverApi).get()
  }

  /// The content that a signed transaction has at least.
  private let sparse: TransactionFact = {
    var fact = TransactionFact(
      environment: .production, transactionId: "2000000123456789", productId: "gems.100", channel: .serverApi,
      signedDate: Instant(milliseconds: milliseconds(2026, 6) + 250))
    (fact.bundleId, fact.hasOffer) = ("com.example.game", false)
    (fact.revocation, fact.appAccountToken) = (.stated(nil), .stated(nil))
    return fact
  }()

  private func fact(_ change: (inout [String: any Sendable]) -> Void) throws -> TransactionFact {
    try accepted(TestJWS(payload: TestJWS.transaction(change)).text)
  }

  @Test("A signed transaction is mapped to a fact with all its fields")
  func mapsEveryField() throws {
    let fact = try fact { $0["expiresDate"] = milliseconds(2026, 7) }
    var expected = sparse
    expected.originalTransactionId = "2000000123456780"
    expected.webOrderLineItemId = "2000000000123"
    expected.productType = .consumable
    expected.quantity = 2
    expected.purchaseDate = Instant(milliseconds: milliseconds(2026, 6))
    expected.originalPurchaseDate = Instant(milliseconds: milliseconds(2026, 5))
    expected.expiresDate = Instant(milliseconds: milliseconds(2026, 7))
    (expected.priceMilliunits, expected.currency) = (1_990, "USD")
    expected.appAccountToken = .stated("F7A1B9A0-6B0C-4C0E-9B43-1D2F3C4B5A69")
    expected.ownership = .purchased
    expected.isRenewal = false
    expected.details.storefront = "USA"
    expected.details.appTransactionId = "704897469903783919"
    #expect(fact == expected)
  }

  @Test("Apple's storefront ID stands in for the country, and an offer's duration states an offer")
  func storefrontsAndOffers() throws {
    let unnamed = try fact { ($0["storefront"], $0["storefrontId"]) = (nil, "143443") }
    #expect(unnamed.details.storefront == "143443")
    #expect(try fact { $0["storefrontId"] = "143443" }.details.storefront == "USA")
    let offered = try fact { $0["offerPeriod"] = "P1M" }
    #expect(offered.offerPeriod == "P1M" && offered.hasOffer == true)
  }

  @Test(
    "A refund keeps its reason, and a percentage from 0 to 100,000",
    arguments: [(33_333, 33_333), (-1, nil), (0, 0), (100_000, 100_000), (100_001, nil)] as [(Int, Int32?)])
  func revocations(percentage: Int, expected: Int32?) throws {
    let fact = try fact {
      $0["revocationDate"] = milliseconds(2026, 6)
      ($0["revocationReason"], $0["revocationType"]) = (1, "REFUND_PRORATED")
      $0["revocationPercentage"] = percentage
    }
    let revocation = Revocation(
      date: Instant(milliseconds: milliseconds(2026, 6)), percentage: expected, type: "REFUND_PRORATED", reason: 1)
    #expect(fact.revocation == .stated(revocation))
  }

  @Test("A revocation date of zero is no revocation")
  func revocationDateOfZero() throws {
    #expect(try fact { $0["revocationDate"] = 0 }.revocation == .stated(nil))
  }

  @Test("A transaction without a reason is a restore, or a later period if it expires", arguments: [true, false])
  func noReason(expires: Bool) throws {
    let fact = try fact {
      $0["transactionReason"] = nil
      $0["expiresDate"] = expires ? milliseconds(2026, 7) : nil
    }
    #expect(fact.isRenewal == nil)
    let record = try #require(TransactionRecord.folding([fact]))
    #expect(record.isRestore == !expires && record.isLaterPeriod == expires)
  }

  @Test("Values that are unknown today are accepted")
  func acceptsUnknownWords() throws {
    let fact = try fact {
      ($0["type"], $0["inAppOwnershipType"], $0["transactionReason"]) = ("Rental", "GIFTED", "RENEWAL")
      ($0["offerDiscountType"], $0["offerType"]) = ("FREE_TRIAL", 9)
      $0["newField"] = ["nested": [1, 2, 3]]
    }
    #expect(fact.productType == nil && fact.ownership == nil && fact.isRenewal == true)
    #expect(fact.hasOffer == true && fact.details.offerType == 9)
  }

  @Test("A payload needs no fields but the IDs, the app, the environment and the date")
  func readsSparsePayload() throws {
    let wanted: Set = ["transactionId", "productId", "environment", "signedDate", "bundleId"]
    #expect(try fact { $0 = $0.filter { wanted.contains($0.key) } } == sparse)
  }

  @Test("Numbers and texts are read in several spellings")
  func toleratesForms() throws {
    let authority = Authority.transactions
    let payload = """
       { "transactionId" : 2000000123456789, "productId":"gems\\u002e100", "environment":"Sandbox", "bundleId":"b",
      "signedDate": 1780272000250.5, "purchaseDate": -62135769600000, "quantity":"3", "isUpgraded": 1,
      "price": 1.99e3, "revocationDate": null, "product\\u0049d": "gems.\\ud83d\\udc8e" }
      """
    let fact = try accepted(TestJWS.signed(header: TestJWS().headerText, payload: payload, key: authority.leaf.key))
    #expect(fact.transactionId == "2000000123456789" && fact.productId == "gems.💎" && fact.environment == .sandbox)
    #expect(fact.signedDate == Instant(microseconds: 1_780_272_000_250_500))
    #expect(fact.purchaseDate == Instant(milliseconds: -62_135_769_600_000))
    #expect(fact.quantity == 3 && fact.isUpgraded == true && fact.priceMilliunits == 1_990)
    #expect(fact.revocation == .stated(nil))
  }

  @Test("The root in the chain does not matter, and slashes may be escaped")
  func ignoresRootOfChain() throws {
    var jws = try TestJWS()
    let escaped = try jws.headerText.replacing("/", with: #"\/"#)
    try accepted(TestJWS.signed(header: escaped, payload: TestJWS.json(jws.payload), key: jws.key))
    for stranger in [try Authority().root.der, [0x30, 0x00], []] {
      jws.chain[2] = stranger
      try accepted(jws.text)
    }
  }

  @Test(
    "A signature is judged at its own date, including both ends of validity",
    arguments: [milliseconds(2025, 9), milliseconds(2027, 10), milliseconds(2027, 10) + 999])
  func acceptsEdgesOfValidity(signedDate: Int64) throws {
    _ = try fact { $0["signedDate"] = signedDate }
  }

  @Test("A transaction is refused beyond its root's validity or path length")
  func obeysRoot() throws {
    let expired = try Authority(root: .root.with { $0.notAfter = date(2026, 5) })
    let shallow = try Authority(root: .root.with { $0.pathLength = 0 })
    func answer(_ authority: Authority) throws -> Result<TransactionFact, SignedDataRefusal> {
      try JWSVerifier(roots: authority.roots).verifyTransaction(TestJWS(authority).text, channel: .offline)
    }
    #expect(try answer(expired) == .failure(.notValidAtSignedDate))
    #expect(try answer(shallow) == .failure(.intermediateNotAuthority))
  }

  @Test("A transaction is trusted under any of several roots with one name")
  func triesEveryRoot() throws {
    let other = try Authority()
    let roots = try TrustedRoots(certificates: [other.root.der, Authority.transactions.root.der], pinned: false)
    for authority in [other, .transactions] { try accepted(TestJWS(authority).text, roots) }
  }

  @Test("Only a genuine transaction makes its chain remembered")
  func forgetsForgeries() throws {
    let verifier = try verifier()
    let jws = try TestJWS()
    let stranger = Certificate.PrivateKey(P256.Signing.PrivateKey())
    for index in 0..<3 {
      let header = try jws.headerText.replacing("{", with: "{\"kid\":\"\(index)\",")
      let forged = try TestJWS.signed(header: header, payload: TestJWS.json(jws.payload), key: stranger)
      #expect(verifier.verifyTransaction(forged, channel: .offline) == .failure(.signatureMismatch))
    }
    #expect(verifier.remembered.withLock { $0.count } == 0)
    for _ in 0..<2 { _ = try verifier.verifyTransaction(jws.text, channel: .offline).get() }
    #expect(verifier.remembered.withLock { $0.count } == 1)
  }

  @Test("Transactions of more leaves than are remembered are verified")
  func forgetsOldChains() throws {
    let verifier = try verifier()
    var texts: [String] = []
    for _ in 0..<(DecodingLimits.rememberedChains + 3) {
      let leaf = try Authority.transactions.leaf(.leaf)
      var jws = try TestJWS()
      jws.chain[0] = try leaf.der
      jws.key = leaf.key
      texts.append(try jws.text)
    }
    for text in texts + texts { _ = try verifier.verifyTransaction(text, channel: .offline).get() }
  }

  @Test("Without roots, no transaction is judged, except Xcode's and malformed ones")
  func judgesWithoutRoots() throws {
    let verifier = JWSVerifier(roots: .none)
    #expect(try verifier.verifyTransaction(TestJWS().text, channel: .offline) == .failure(.noRoots))
    #expect(verifier.verifyTransaction("a.b", channel: .offline) == .failure(.notThreeParts))
    let xcode = try TestJWS(payload: TestJWS.transaction { $0["environment"] = "Xcode" }).text
    #expect(verifier.verifyTransaction(xcode, channel: .offline) == .failure(.notSignedByApple(.xcode)))
  }

  @Test("Renewal information is read, and is no transaction")
  func readsRenewalInfo() throws {
    let jws = try TestJWS(payload: TestJWS.renewalInfo)
    let info = try verifier().verifyRenewalInfo(jws.text).get()
    #expect(info.originalTransactionId == "2000000123456780" && info.environment == .production)
    #expect(info.gracePeriodExpiresDate == Instant(milliseconds: milliseconds(2026, 7)))
    #expect(info.renewalPriceMilliunits == 4_990 && info.currency == "EUR")
    let refusal = SignedDataRefusal.payloadIncomplete("transactionId")
    #expect(try verifier().verifyTransaction(jws.text, channel: .offline) == .failure(refusal))
    #expect(refusal.meaning == .undecided)
  }
}

@Suite("Signed notifications")
struct SignedNotificationTests {
  private func verify(_ payload: [String: any Sendable]) throws -> Result<SignedNotification, SignedDataRefusal> {
    try JWSVerifier(roots: Authority.transactions.roots).verifyNotification(TestJWS(payload: payload).text)
  }

  private func payload(_ data: [String: any Sendable]) -> [String: any Sendable] {
    [
      "notificationType": "REFUND", "subtype": "NEW_SUBTYPE",
      "notificationUUID": "0191b2c0-0000-7000-8000-000000000001",
      "version": "2.0", "signedDate": milliseconds(2026, 6), "data": data,
    ]
  }

  @Test("A notification contains its transaction and renewal information, each verified")
  func readsNestedDocuments() throws {
    let notification = try verify(
      payload([
        "bundleId": "com.example.game", "environment": "Production", "appAppleId": 1_234_567_890,
        "signedTransactionInfo": try TestJWS().text,
        "signedRenewalInfo": try TestJWS(payload: TestJWS.renewalInfo).text,
      ])
    ).get()
    #expect(notification.notificationType == "REFUND" && notification.subtype == "NEW_SUBTYPE")
    #expect(notification.notificationUUID == "0191b2c0-0000-7000-8000-000000000001")
    #expect(notification.signedDate == Instant(milliseconds: milliseconds(2026, 6)))
    #expect(notification.bundleId == "com.example.game" && notification.environment == .production)
    #expect(notification.appAppleId == 1_234_567_890)
    let fact = try #require(try notification.transaction?.get())
    #expect(fact.channel == .notification && fact.transactionId == "2000000123456789")
    #expect(fact.renewalPriceMilliunits == 4_990 && fact.renewalCurrency == "EUR")
    // The price of the next period is no price of this one.
    #expect(fact.priceMilliunits == 1_990 && fact.currency == "USD")
  }

  @Test("A genuine notification does not make a forged transaction in it genuine")
  func refusesForgedTransaction() throws {
    let forged = try TestJWS(Authority()).text
    let data: [String: any Sendable] = ["environment": "Sandbox", "signedTransactionInfo": forged]
    let notification = try verify(payload(data)).get()
    #expect(notification.transaction == .failure(.chainNotTrusted))
  }

  @Test("A notification of another shape has no data, and one from Xcode or without its fields is refused")
  func otherNotifications() throws {
    var summary = payload([:])
    (summary["data"], summary["summary"]) = (nil, ["requestIdentifier": "1"])
    let notification = try verify(summary).get()
    #expect(notification.environment == nil && notification.transaction == nil)
    #expect(try verify(payload(["environment": "Xcode"])) == .failure(.notSignedByApple(.xcode)))
    #expect(try verify(payload([:])) == .failure(.payloadIncomplete("environment")))
    for field in ["notificationType", "notificationUUID"] {
      var broken = payload(["environment": "Production"])
      broken[field] = nil
      #expect(try verify(broken) == .failure(.payloadIncomplete(field)))
    }
  }
}
