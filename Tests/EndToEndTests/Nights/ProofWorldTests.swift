import Foundation
import TestSupport
import Testing

/// Every kind of payload in any order of arrival, for two apps. No night accuses a paid order.
@Suite struct ProofWorldTests {
  private struct Entry {
    var order: String
    var bundle: String?
    var named: String?
    var payload: String?
    var created = ProofWorldTests.sold
    var truth: String
  }

  private static let second = SignedShop.App(name: "second", bundleId: "com.example.second")
  private static let sold = "2026-11-18T12:00:00Z"
  private static let mendable = [
    "spaceForPlus", "otherAlphabet", "lostPadding", "lines", "quotes", "json", "bytea", "percent",
  ]

  /// All at once; and over three nights, the first one without Apple.
  @Test(arguments: [(1, false, 1), (3, true, 3)] as [(Int, Bool, UInt64)])
  func eachOrderHasItsTrueDisposition(nights: Int, isAppleDownFirst: Bool, seed: UInt64) async throws {
    let transactions =
      (1_001...1_099).map { SignedShop.gems("\($0)", purchased: Self.sold) }
      + (2_001...2_009).map { SignedShop.gems("\($0)", app: Self.second, purchased: Self.sold) }
    let shop = try await SignedShop(
      apps: [SignedShop.game, Self.second], transactions: transactions, signsReceipts: true)
    try await shop.execute("ALTER TABLE sales.receipts ALTER payload DROP NOT NULL")
    let entries = try await Self.entries(shop)
    #expect(entries.count > 60 && Set(entries.map(\.order)).count == entries.count)

    var random = SeededGenerator(seed: seed)
    var rows = entries.flatMap(Self.rows).shuffled(using: &random)
    let truly = Dictionary(uniqueKeysWithValues: entries.map { ($0.order, $0.truth) })
    for night in 1...nights {
      let share = rows.prefix((rows.count + nights - night) / (nights - night + 1))
      rows.removeFirst(share.count)
      try await shop.execute(share.joined(separator: "\n"))
      let isDown = isAppleDownFirst && night == 1
      try await shop.control("faults", #"{"outage":\#(isDown)}"#)
      let asOf = night == nights ? SignedShop.asOf : "2026-11-19T0\(night):00:00Z"
      let said = try await (isDown ? shop.night(asOf: asOf, "--max-duration", "1s") : shop.night(asOf: asOf))
      #expect([0, 3].contains(said.result.status), "\(said.result.errors)")
      let accused = said.findings.filter { Self.accusing.contains($0["kind"] ?? "") }
      for finding in accused where truly[finding["order_id"] ?? ""] == "paid" {
        // An order without ID and proof is unpaid for now.
        let isBare = said.payments[finding["order_id"] ?? ""] == "unpaid no_evidence"
        #expect(night < nights && isBare, "\(finding), night \(night)")
      }
      guard night == nights else { continue }
      #expect(said.result.status == 0, "\(said.result.errors)")
      for entry in entries {
        #expect(said.payments[entry.order] == entry.truth, "\(entry.order)")
        let isPaid = entry.truth == "paid"
        if isPaid { #expect(said.dispositions[entry.order] == "settled", "\(entry.order)") }
      }
      let innocent = accused.compactMap { $0["order_id"] }.filter { truly[$0] == "paid" }
      #expect(innocent.isEmpty, "\(innocent)")
    }
  }

  /// Restores that clients send like purchases. In StoreKit 1 they have new IDs, or the date of the restore.
  @Test func restoresAreNoSales() async throws {
    func bought(_ id: String, original: String? = nil, first: String) -> [String: Any] {
      var transaction = SignedShop.gems(id, purchased: Self.sold)
      transaction["type"] = "Non-Consumable"
      transaction["originalTransactionId"] = original ?? id
      transaction["originalPurchaseDate"] = SignedShop.milliseconds(first)
      return transaction
    }
    let (summer, morning) = ("2026-08-01T12:00:00Z", "2026-11-18T09:00:00Z")
    let shop = try await SignedShop(
      transactions: [
        bought("501", original: "401", first: summer), bought("502", original: "402", first: summer),
        bought("503", first: summer), bought("504", first: morning), SignedShop.gems("505", purchased: summer),
      ], signsReceipts: true)
    try shop.configure {
      $0.replacing(
        "appstore:\n",
        with: """
          appstore:
            channel: verifyReceipt
            verifyReceiptUrl: http://127.0.0.1:\(shop.port)/production/verifyReceipt

          """)
    }
    for (order, form, id, name) in [
      ("another id, old receipt", "transaction", "501", nil), ("another id, named", "app", "502", "502"),
      ("one id, of summer", "transaction", "503", nil), ("one id, of that morning", "app", "504", nil),
      ("bought in summer, named", "app", "505", "505"), ("bought in summer", "app", "505", nil),
    ] as [(String, String, String, String?)] {
      try await shop.order(order, transaction: name)
      try await shop.receipt(shop.payload(form, [id], at: Self.sold), for: order)
    }
    let night = try await shop.night(exits: 0)
    #expect(
      night.payments == [
        "another id, old receipt": "unpaid restored", "another id, named": "unpaid restored",
        "one id, of summer": "unpaid restored", "one id, of that morning": "paid", "bought in summer, named": "paid",
        "bought in summer": "unconfirmed not_in_receipt",
      ])
    let found = Set(night.findings.map { "\($0["kind"] ?? "") \($0["order_id"] ?? "")" })
    #expect(
      found == [
        "restored_as_sale another id, old receipt", "restored_as_sale another id, named",
        "restored_as_sale one id, of summer", "status_mismatch another id, old receipt",
        "status_mismatch another id, named", "status_mismatch one id, of summer",
        "purchase_predates_order bought in summer, named",
        "orphan_payment ",
      ])
    let paidAt = night.findings.first { $0["kind"] == "purchase_predates_order" }?["paid_at"]
    #expect(paidAt == summer)
  }

  private static let accusing: Set<String> = [
    "delivered_not_paid", "duplicate_claim", "wrong_user", "product_mismatch", "wrong_bundle", "signature_invalid",
    "sandbox_delivered", "restored_as_sale", "family_shared_sale", "lapsed_still_served",
  ]

  private static func entries(_ shop: SignedShop) async throws -> [Entry] {
    var next = 1_000
    func id() -> String {
      next += 1
      return "\(next)"
    }
    var entries: [Entry] = []
    func add(
      _ order: String, _ payload: String?, named: String? = nil, bundle: String? = SignedShop.game.bundleId,
      created: String = sold, _ truth: String
    ) {
      entries.append(
        Entry(order: order, bundle: bundle, named: named, payload: payload, created: created, truth: truth))
    }
    /// An order with a payload of its own purchase.
    func sell(
      _ order: String, _ form: String, damage: String? = nil, isNamed: Bool = false, _ truth: String = "paid"
    ) async throws {
      let bought = id()
      let payload = try await shop.payload(form, [bought], at: sold, damage: damage)
      add(order, payload, named: isNamed ? bought : nil, truth)
    }
    for (name, isNamed) in [("", false), (", named", true)] {
      for form in ["app", "transaction", "signed"] {
        for damage in mendable {
          try await sell("\(form) \(damage)\(name)", form, damage: damage, isNamed: isNamed)
        }
        let truth = isNamed ? "paid" : "unpaid malformed"
        try await sell("\(form) cut off\(name)", form, damage: "truncated", isNamed: isNamed, truth)
      }
      try await sell("a notification\(name)", "notification", isNamed: isNamed)
    }
    for (order, payload) in [("NULL", nil), ("junk", "not a receipt"), ("empty object", "{}")] as [(String, String?)] {
      add("\(order), named", payload, named: id(), "paid")
    }
    // A forged, foreign or meaningless proof with the stated ID of another customer's purchase.
    let genuine = try await shop.payload("signed", [id()], at: sold)
    let other = try await shop.payload("signed", [id()], at: sold)
    let parts = genuine.split(separator: ".").dropLast() + other.split(separator: ".").suffix(1)
    for (thief, payload, truth) in [
      ("forged", parts.joined(separator: "."), "unpaid signature_invalid"),
      ("junk", "not a receipt", "unconfirmed unreadable"),
    ] {
      let paid = id()
      add("payer beside \(thief)", try await shop.payload("signed", [paid], at: sold), "paid")
      add("a thief, \(thief)", payload, named: paid, truth)
    }
    let victim = id()
    add("payer beside foreign", try await shop.payload("app", [victim], at: sold), named: victim, "paid")
    // Two orders that state one ID, neither with a proof of this one purchase: the nearer one owns it.
    add(
      "a thief, foreign", try await shop.payload("signed", ["2001"], at: sold), named: victim,
      created: "2026-11-18T12:05:00Z", "unpaid id_mismatch")
    add("of the other app", try await shop.payload("signed", ["2002"], at: sold), "unpaid wrong_bundle")
    add("in the other app", try await shop.payload("signed", ["2003"], at: sold), bundle: second.bundleId, "paid")
    add("in the other app, named", nil, named: "2004", bundle: second.bundleId, "paid")
    add("of no app", try await shop.payload("signed", [id()], at: sold), bundle: nil, "")
    return entries
  }

  private static func rows(_ entry: Entry) -> [String] {
    func sql(_ text: String?) -> String { text.map { "'\($0.replacing("'", with: "''"))'" } ?? "NULL" }
    let (id, user) = (sql(entry.order), sql("user of \(entry.order)"))
    return [
      """
      INSERT INTO sales.orders VALUES (\(id), \(user), \(sql(entry.bundle)), 'gems.100', 1, 9.90, 'USD', 'verified',
        \(sql(entry.named)), NULL, '\(entry.created)', '\(entry.created)', '\(entry.created)');
      """,
      "INSERT INTO sales.deliveries VALUES (\(id), \(id), \(user), 'gems.100', 1, '\(sold)', NULL);",
      """
      INSERT INTO sales.receipts VALUES (\(id), \(id), \(user), \(sql(entry.payload)), NULL, 'timeout', NULL, '\(sold)');
      """,
    ]
  }
}
