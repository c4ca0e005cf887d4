import Reconciliation
import Testing

@testable import Publishing

/// When a night is held.
@Suite struct PlausibilityTests {
  private static let fifth = Share(millionths: 200_000)
  private static let before = Plausibility.Precedent(orders: 1_000, deliveries: 900)
  private static let usual = NightFigures(
    orders: 1_000, deliveries: 900, accused: 300, newlyAccused: 5, badRows: 3, openBefore: 400, closing: 10)

  private static func night(_ change: (inout NightFigures) -> Void) -> NightFigures {
    var night = usual
    change(&night)
    return night
  }

  @Test(
    arguments: [
      (usual, []),
      (night { $0.orders = 500 }, []),
      (night { $0.orders = 499 }, [.fewerOrders(now: 499, before: 1_000)]),
      (night { $0.deliveries = 450 }, []),
      (night { $0.deliveries = 449 }, [.fewerDeliveries(now: 449, before: 900)]),
      (night { $0.newlyAccused = 200 }, []),
      (night { $0.newlyAccused = 201 }, [.accusations(201, of: 1_000)]),
      // However many there are, they were known.
      (night { $0.accused = 900 }, []),
      (night { $0.closing = 80 }, []),
      (night { $0.closing = 81 }, [.closings(81, of: 400)]),
      (night { $0.badRows = 200 }, []),
      (night { $0.badRows = 201 }, [.badRows(201, of: 1_000)]),
      (
        night {
          $0.deliveries = 0
          $0.newlyAccused = 700
        }, [.fewerDeliveries(now: 0, before: 900), .accusations(700, of: 1_000)]
      ),
      (
        NightFigures(orders: 0, deliveries: 0, openBefore: 400, closing: 400),
        [.fewerOrders(now: 0, before: 1_000), .fewerDeliveries(now: 0, before: 900), .closings(400, of: 400)]
      ),
    ] as [(NightFigures, [HoldCause])])
  func aNightIsComparedWithTheLastCompleteOne(_ night: NightFigures, _ causes: [HoldCause]) {
    #expect(Plausibility(share: Self.fifth, precedent: Self.before).causes(night) == causes)
    #expect(Plausibility(share: .whole, precedent: Self.before).causes(night) == [])
  }

  @Test func theShareItselfIsNotMoreThanIt() {
    let before = Plausibility.Precedent(orders: 100, deliveries: 100)
    for (accused, isHeld) in [(29, false), (30, true)] {
      let night = NightFigures(orders: 100, deliveries: 100, accused: accused, newlyAccused: accused)
      let causes = Plausibility(share: Share(millionths: 290_000), precedent: before).causes(night)
      #expect(causes.isEmpty != isHeld)
    }
  }

  @Test func fewerThanTwentyAreNoShare() {
    let before = Plausibility.Precedent(orders: 20, deliveries: 20)
    var night = NightFigures(
      orders: 20, deliveries: 20, accused: 19, newlyAccused: 19, badRows: 19, openBefore: 19, closing: 19)
    #expect(Plausibility(share: Self.fifth, precedent: before).causes(night) == [])
    night.newlyAccused = 20
    #expect(Plausibility(share: Self.fifth, precedent: before).causes(night) == [.accusations(20, of: 20)])
  }

  @Test(arguments: [
    (NightFigures(orders: 0, deliveries: 0), false), (NightFigures(orders: 2, deliveries: 0, accused: 1), false),
    (NightFigures(orders: 3, deliveries: 0, accused: 1, badRows: 1), true),
    (NightFigures(orders: 1_000, deliveries: 0, newlyAccused: 900, badRows: 500), false),
    (NightFigures(orders: 1_000, deliveries: 0, accused: 501), true),
  ])
  func aFirstNightIsHeldWhenMostOfItIsOdd(_ night: NightFigures, _ isHeld: Bool) {
    #expect(Plausibility(share: Self.fifth, precedent: nil).causes(night).isEmpty == !isHeld)
    #expect(Plausibility(share: .whole, precedent: nil).causes(night) == [])
  }

  @Test func eachCauseHasItsSentenceAndRemedy() {
    let causes: [HoldCause] = [
      .fewerOrders(now: 1, before: 2), .fewerDeliveries(now: 1, before: 2), .accusations(1, of: 2),
      .closings(1, of: 2), .badRows(1, of: 2), .withoutPrecedent(1, of: 2),
    ]
    #expect(Set(causes.map(\.description)).count == causes.count)
    for cause in causes { #expect(cause.description.contains(": look"), "\(cause)") }
    // There may have been nights before, incomplete ones.
    #expect(
      causes.last?.description.hasPrefix("No night was complete yet, so that there is none to compare with") == true)
  }
}
