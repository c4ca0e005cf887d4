import Foundation
import Reconciliation

/// Measures the matching of one user's orders, where one receipt lists all purchases.
@main
struct MatchingBenchmark {
  private static let sizes = [400, 2_000, 5_000]
  private static let rounds = 5
  private static let start = Instant(seconds: 1_780_272_000)

  static func main() {
    print("milliseconds, the best of \(rounds); in brackets how often that of \(sizes[0]) orders")
    print("orders are \(sizes.map { "\(Double($0) / Double(sizes[0]))" }.joined(separator: ", ")) times as many")
    for (name, names, pace) in [
      ("without names, one a minute", false, Span.minutes(1)), ("without names, one an hour", false, .hours(1)),
      ("named, one a minute", true, .minutes(1)),
    ] {
      let times = sizes.map { best(orders: $0, names: names, pace: pace) }
      let cells = times.map { "\(milliseconds($0)) (\(($0 / times[0] * 10).rounded() / 10))" }
      print("\(name): \(cells.joined(separator: ", "))")
    }
  }

  private static func milliseconds(_ seconds: Double) -> Double { (seconds * 10_000).rounded() / 10 }

  private static func best(orders count: Int, names: Bool, pace: Span) -> Double {
    guard let currency = Currency(code: "USD") else { return 0 }
    let list = VerifiedTransactions(
      (0..<(count - 2)).map { number in
        var contents = TransactionRecord.Contents(
          environment: .production, transactionId: Identifier("T\(10_000 + number)"), productId: "gems.100")
        contents.bundleId = "com.example.game"
        contents.purchaseDate = start + Span(microseconds: pace.microseconds * Int64(number)) + .minutes(1)
        return TransactionRecord(contents)
      })
    let claimants = (0..<count).map { number in
      var order = Order(
        orderId: Identifier("o\(10_000 + number)"), userId: "bot", productId: "gems.100",
        amount: Money(minorUnits: 990, currency: currency), status: .verified,
        createdAt: start + Span(microseconds: pace.microseconds * Int64(number)))
      if names, number < count - 2 { order.transactionId = Identifier("T\(10_000 + number)") }
      return Claimant(order: order, proven: list)
    }
    let rules = Rules(
      asOf: start + .days(300), bundleIds: ["com.example.game"], lookbackStart: start - .days(1))
    var best = Double.infinity
    for _ in 0..<rounds {
      var owned = 0
      let elapsed = ContinuousClock().measure {
        owned = Matching(of: claimants, rules: rules).claims.values.reduce(0) { $0 + $1.owned.count }
      }
      precondition(owned == count - 2, "each purchase has one owner")
      best = min(best, Double(elapsed.components.attoseconds) / 1e18 + Double(elapsed.components.seconds))
    }
    return best
  }
}
