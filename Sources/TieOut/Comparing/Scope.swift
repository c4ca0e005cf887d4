import Foundation
import Reconciliation
import Settings

/// Assigns rows of a vendor's reports to configured apps. Only `Parent Identifier`, the app's SKU, names the app of a
/// product. Without a configured SKU, known products of orders and transactions decide which app a SKU is.
package struct Scope: Sendable {
  package struct Product: Hashable, Sendable {
    package var parent: Identifier
    package var productId: Identifier
  }

  private let bySKU: [Identifier: String]
  private let learned: [Identifier: String]
  private let owners: [Identifier: Set<String>]
  /// Products of two apps that no SKU distinguishes. They are compared together.
  package private(set) var ambiguous: [Identifier] = []

  /// - Parameter known: products of orders and transactions, by bundle ID.
  package init(apps: [Settings.App], known: [String: Set<Identifier>], reported: Set<Product>) {
    bySKU = Dictionary(apps.compactMap { app in app.sku.map { (Identifier($0), app.name) } }) { first, _ in first }
    var owners: [Identifier: Set<String>] = [:]
    for app in apps { for product in known[app.bundleId] ?? [] { owners[product, default: []].insert(app.name) } }
    let withoutSKU = Set(apps.filter { $0.sku == nil }.map(\.name))
    var candidates: [Identifier: Set<String>] = [:]
    for product in reported where !product.parent.isEmpty && bySKU[product.parent] == nil {
      let names = (owners[product.productId] ?? []).intersection(withoutSKU)
      if names.count == 1 { candidates[product.parent, default: []].formUnion(names) }
    }
    learned = candidates.compactMapValues { $0.count == 1 ? $0.first : nil }
    self.owners = owners
    ambiguous = owners.keys.filter { owner(joint: $0) != nil }.sorted()
  }

  /// Reported products whose app the transactions do not decide. An app without answers from Apple has only orders.
  package static func open(
    _ reported: Set<Product>, of apps: [Settings.App], known: [String: Set<Identifier>]
  ) -> Set<Identifier> {
    let products = Set(reported.filter { !$0.parent.isEmpty }.map(\.productId))
    let byApp = apps.map { known[$0.bundleId] ?? [] }
    // If every app has a SKU, it is enough that any app had the product.
    let isIdentifiedBySKU = apps.allSatisfy { $0.sku != nil }
    return products.filter { product in
      isIdentifiedBySKU ? !byApp.contains { $0.contains(product) } : !byApp.allSatisfy { $0.contains(product) }
    }
  }

  /// The app of this row, or the apps compared together; nil: none of the configured ones.
  package func app(of product: Product) -> String? {
    if let joint = owner(joint: product.productId) { return joint }
    if let name = bySKU[product.parent] ?? learned[product.parent] { return name }
    // Without a known parent, only the product ID is left.
    guard bySKU.isEmpty || product.parent.isEmpty else { return nil }
    return owners[product.productId].flatMap { $0.count == 1 ? $0.first : nil }
  }

  package func app(named name: String, productId: Identifier) -> String { owner(joint: productId) ?? name }

  package func isKnown(_ productId: Identifier) -> Bool { owners[productId] != nil }

  /// Sentences about apps with sales whose SKU is in no report: their units would count as another app's.
  package static func unseen(_ apps: [Settings.App], reported: Set<Product>, sold: Set<String>) -> [String] {
    let seen = Set(reported.map { $0.parent.isEmpty ? $0.productId : $0.parent })
    return apps.compactMap { app in
      guard let sku = app.sku, sold.contains(app.name), !seen.contains(Identifier(sku)) else { return nil }
      return """
        app.\(app.name).sku is \(sku), which is in no report, although \(app.name) has sales: compare it with the app's \
        SKU in App Store Connect
        """
    }
  }

  /// The joined names of apps that sell the product ID, unless all have a SKU.
  private func owner(joint productId: Identifier) -> String? {
    guard let names = owners[productId], names.count > 1 else { return nil }
    let withSKU = Set(bySKU.values)
    return names.isSubset(of: withSKU) ? nil : names.sorted().joined(separator: Self.joint)
  }

  private static let joint = "+"

  /// True if `name` is the app, or apps compared together that include it.
  package static func name(_ name: String, includes app: String) -> Bool {
    name == app || name.components(separatedBy: joint).contains(app)
  }
}
