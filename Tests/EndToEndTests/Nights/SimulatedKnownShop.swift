import Foundation
import Postgres
import Reconciliation

@testable import SampleWorlds

struct SimulatedKnownShop {
  let known: KnownShop
  /// Apple's IDs are digits.
  private var ids: [Identifier: String] = [:]

  init(_ known: KnownShop) {
    self.known = known
    var named = Set(known.world.transactions.map(\.transactionId))
    named.formUnion(known.world.transactions.compactMap(\.originalTransactionId))
    named.formUnion(known.world.transactions.compactMap(\.webOrderLineItemId))
    for case .valid(let order) in known.world.orders { if let id = order.transactionId { named.insert(id) } }
    for (number, id) in named.sorted().enumerated() { ids[id] = String(2_000_000_000_000 + number) }
  }

  func appleId(_ id: Identifier) -> String { ids[id] ?? "0" }

  /// Replaces Apple's IDs in a subject, such as a transaction and a user, by the IDs of the scenario.
  func storyId(_ text: String) -> Identifier {
    let words = text.split(separator: " ").map { word in ids.first { $0.value == word }.map(\.key.text) ?? String(word)
    }
    return Identifier(words.joined(separator: " "))
  }

  var transactions: [[String: Any]] { known.world.appleTransactions(name: appleId, isFinished: true) }

  // MARK: - The shop

  func statements(of world: World, payloads: [Identifier: String]) -> String {
    "TRUNCATE sales.orders, sales.receipts, sales.deliveries;\n"
      + world.salesRows(payloads: payloads) { ids[$0] ?? $0.text }
  }

  /// Client payloads, signed or forged, by receipt ID. Forged ones are made of `anotherPurchase`.
  func payloads(from shop: SignedShop, anotherPurchase: String) async throws -> [Identifier: String] {
    var payloads: [Identifier: String] = [:]
    for receipt in known.world.receipts {
      payloads[receipt.receiptId] = try await payload(of: receipt, shop, anotherPurchase: anotherPurchase)
    }
    for (copy, original) in known.world.copies { payloads[copy] = payloads[original] }
    return payloads
  }

  private func payload(of receipt: Receipt, _ shop: SignedShop, anotherPurchase: String) async throws -> String {
    let contained = known.world.transactions.filter {
      known.world.contained[receipt.receiptId]?.contains($0.key) ?? false
    }
    let time = (contained.compactMap(\.purchaseDate) + [receipt.receivedAt]).max() ?? receipt.receivedAt
    let environment = receipt.state.environment ?? .production
    let moment = Date(timeIntervalSince1970: Double(time.microseconds) / 1_000_000).ISO8601Format()
    func signed(_ form: String, _ ids: [String]) async throws -> String {
      try await shop.payload(
        form, ids, at: moment, environment: environment.rawValue, bundleId: receipt.state.bundleId ?? ShopFixture.bundle
      )
    }
    switch receipt.state.outcome {
    case .rejected:
      guard receipt.state.reason == .signatureInvalid else { return "rubbish" }
      let parts = try await shop.payload("signed", [anotherPurchase], at: moment).split(separator: ".")
      let others = try await shop.payload("signed", [anotherPurchase], at: "2026-01-02T12:00:00Z").split(separator: ".")
      return "\(parts[0]).\(parts[1]).\(others[2])"
    case .verified, .unanswered, .pending, .review, .notFound:
      let ids = contained.map { appleId($0.transactionId) }
      return try await signed(receipt.state.kind == .app || ids.isEmpty ? "app" : "signed", ids)
    }
  }
}
