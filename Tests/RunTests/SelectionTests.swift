import Reconciliation
import Testing

@testable import Run

@Suite struct SelectionTests {
  /// In a shop with one app, a product, delivery or receipt without a bundle ID belongs to that app.
  @Test(arguments: [
    ("com.example.game", true, true), ("com.example.game", false, true), (nil, true, true), (nil, false, false),
    ("com.example.quiz", true, false), ("com.example.quiz", false, false),
  ]) func rowsWithoutAnAppBelongToTheOnlyApp(bundleId: String?, isOnlyApp: Bool, isListed: Bool) {
    var selection = Selection()
    selection.bundleId = "com.example.game"
    selection.isOnlyApp = isOnlyApp
    #expect(selection.includes(orderId: nil, userId: nil, productId: nil, bundleId: bundleId) == isListed)
  }
}
