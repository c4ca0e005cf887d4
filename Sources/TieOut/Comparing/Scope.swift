import Foundation
import Reconciliation

/// Which rows of a vendor's reports belong to which configured app.
///
/// Reports hold every app of the vendor, and nothing but the app's SKU in `Parent Identifier` says whose a product is.
/// Where no SKU is configured, the products that orders and transactions know decide: an app whose products a SKU's rows
/// name is that SKU's app.
package struct Scope: Sendable {
  package struct App: Hashable, Sendable {
    package var name: String
    package var bundleId: String
    package var sku: String?

    package init(name: String, bundleId: String, sku: String?) {
      self.name = name
      self.bundleId = bundleId
      self.sku = sku
    }
  }

  /// A product as reports name it.
  package struct Product: Hashable, Sendable {
    package var parent: Identifier
    package var productId: Identifier

    package init(parent: Identifier, productId: Identifier) {
      self.parent = parent
      self.productId = productId
    }
  }

  private let bySKU: [Identifier: String]
  private let learned: [Identifier: String]
  private let owners: [Identifier: Set<String>]
  /// Products that two apps sell and no SKU tells apart; they are compared together.
  package private(set) var ambiguous: [Identifier] = []

  /// - Parameters:
  ///   - known: the products that orders and transactions here ever had, by bundle id.
  ///   - reported: the products that reports name.
  package init(apps: [App], known: [String: Set<Identifier>], reported: Set<Product>) {
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

  /// Reported products of which transactions do not say whose they all are: an app that Apple is silent about has orders
  /// alone.
  /// - Parameter known: the products that transactions ever had, by bundle id.
  package static func open(
    _ reported: Set<Product>, of apps: [App], known: [String: Set<Identifier>]
  ) -> Set<Identifier> {
    let products = Set(reported.filter { !$0.parent.isEmpty }.map(\.productId))
    let byApp = apps.map { known[$0.bundleId] ?? [] }
    // Where every row names its app, it is enough that somebody here ever had the product.
    let isToldBySKU = apps.allSatisfy { $0.sku != nil }
    return products.filter { product in
      isToldBySKU
        ? !byApp.contains { $0.contains(product) }
        : !byApp.allSatisfy { $0.contains(product) }
    }
  }

  /// The app, or the apps that are compared together, whose row this is; nil: none of the configured ones.
  package func app(of product: Product) -> String? {
    if let joint = owner(joint: product.productId) { return joint }
    if let name = bySKU[product.parent] ?? learned[product.parent] { return name }
    // Without a parent or with one that nothing is known about, only the product id is left.
    guard bySKU.isEmpty || product.parent.isEmpty else { return nil }
    return owners[product.productId].flatMap { $0.count == 1 ? $0.first : nil }
  }

  /// The app whose transaction this is, named as `app(of:)` names it.
  package func app(named name: String, productId: Identifier) -> String { owner(joint: productId) ?? name }

  /// Whether any order or transaction here ever had the product.
  package func isKnown(_ productId: Identifier) -> Bool { owners[productId] != nil }

  /// Apps whose SKU no report has though they have sold something, as sentences: all that Apple counts of them is taken for
  /// another app's.
  /// - Parameters:
  ///   - reported: the products that reports name; those without a parent are apps.
  ///   - sold: the names of apps that sold something on days that are reported.
  package static func unseen(_ apps: [App], reported: Set<Product>, sold: Set<String>) -> [String] {
    let seen = Set(reported.map { $0.parent.isEmpty ? $0.productId : $0.parent })
    return apps.compactMap { app in
      guard let sku = app.sku, sold.contains(app.name), !seen.contains(Identifier(sku)) else { return nil }
      return """
        app.\(app.name).sku is \(sku), which no report has though \(app.name) has sold something: compare it with the app's \
        SKU in App Store Connect
        """
    }
  }

  /// The names of apps that sell the same product id, when not all of them have a SKU.
  private func owner(joint productId: Identifier) -> String? {
    guard let names = owners[productId], names.count > 1 else { return nil }
    let told = Set(bySKU.values)
    return names.isSubset(of: told) ? nil : names.sorted().joined(separator: Self.joint)
  }

  private static let joint = "+"

  /// Whether an app is the one of this name, or one of those that are compared together under it.
  package static func name(_ name: String, includes app: String) -> Bool {
    name == app || name.components(separatedBy: joint).contains(app)
  }
}
