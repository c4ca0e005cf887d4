import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Settings

extension Rules {
  /// These rules with the reading time, how far Apple's notifications are known, and the optional relations of the
  /// shop: aliases and catalogue.
  func completed(
    _ sales: SalesRows, settings: Settings, shop: borrowing BlockingConnection, own: borrowing BlockingConnection
  ) throws(PostgresError) -> Rules {
    func exists(_ relation: String) throws(PostgresError) -> Bool {
      try shop.execute("SELECT to_regclass($1) IS NOT NULL", [.text("\(sales.schema).\(relation)")]).single().bool(0)
    }
    var rules = self
    rules.readAt = sales.horizon?.clock
    for app in settings.sweptApps {
      rules.salesKnownUntil[app.bundleId] = try SweepTable(bundleId: app.bundleId).salesKnownUntil(own)
    }
    if try exists("user_aliases") { rules.people = People(aliases: try sales.aliases(shop)) }
    if try exists("products") {
      rules.catalogue = Catalogue(
        try sales.products(shop).map { product in
          Catalogue.Product(
            productId: product.productId, type: product.type.flatMap(ProductType.init), name: product.name,
            soldFrom: product.soldFrom, soldUntil: product.soldUntil)
        })
    }
    return rules
  }
}
