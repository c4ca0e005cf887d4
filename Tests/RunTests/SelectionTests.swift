import Reconciliation
import Testing

@testable import Run

/// What filters list.
@Suite struct SelectionTests {
  /// A product, a delivery or a receipt without an order may name no app: in a shop with one app it is that one's.
  @Test(arguments: [
    ("com.example.game", true, true), ("com.example.game", false, true), (nil, true, true), (nil, false, false),
    ("com.example.quiz", true, false), ("com.example.quiz", false, false),
  ])
  func whatNamesNoAppIsOfTheOnlyOne(bundleId: String?, isOnlyApp: Bool, isListed: Bool) {
    var selection = Selection()
    selection.bundleId = "com.example.game"
    selection.isOnlyApp = isOnlyApp
    #expect(selection.includes(orderId: nil, userId: nil, productId: nil, bundleId: bundleId) == isListed)
  }
}
