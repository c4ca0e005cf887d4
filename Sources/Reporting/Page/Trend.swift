import Reconciliation

/// The amount at risk in one currency over the nights, as the points of a chart.
struct Trend {
  var currency: String
  var now: String
  var description: String
  var points: String
  var area: String
  var lastX: Int
  var lastY: Int
  var from: String
  var to: String

  private static let (width, height, margin) = (320, 96, 6)

  /// One trend for each currency; empty with fewer than two nights.
  static func all(_ history: [Night]) -> [Trend] {
    guard history.count > 1 else { return [] }
    return history.reduce(into: Set()) { $0.formUnion($1.atStake.minorUnits.keys) }.sorted().map { Trend($0, history) }
  }

  private init(_ currency: Currency, _ history: [Night]) {
    let amounts = history.map { $0.atStake.minorUnits[currency] ?? 0 }
    let most = max(1, amounts.max() ?? 1)
    let places = amounts.enumerated().map { index, amount in
      (
        x: Trend.margin + (Trend.width - 2 * Trend.margin) * index / (amounts.count - 1),
        // Whole points, so that the same numbers give the same chart on every platform.
        y: Trend.height - Trend.margin - Int(max(0, amount) * Int128(Trend.height - 2 * Trend.margin) / most)
      )
    }
    func text(_ units: Int128) -> String { currency.shown(units) }
    self.currency = currency.code
    now = text(amounts[amounts.count - 1])
    points = places.map { "\($0.x),\($0.y)" }.joined(separator: " ")
    let bottom = Trend.height - Trend.margin
    area =
      "M\(Trend.margin),\(bottom) " + places.map { "L\($0.x),\($0.y)" }.joined(separator: " ")
      + " L\(Trend.width - Trend.margin),\(bottom) Z"
    (lastX, lastY) = (places[places.count - 1].x, places[places.count - 1].y)
    from = history[0].date
    to = history[history.count - 1].date
    description =
      "Amount at risk in \(currency) at the end of each of \(history.count) nights: from \(text(amounts[0])) on \(from) to "
      + "\(now) on \(to), at most \(text(amounts.max() ?? 0))."
  }
}
