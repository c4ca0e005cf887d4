/// A value for each of few currencies, in their alphabetical order. A shop has few: to look through them costs less than to
/// hash one, several times for each order.
public struct ByCurrency<Value: Sendable>: Sendable {
  /// The currencies that have a value, each with it.
  public private(set) var sorted: [(currency: Currency, value: Value)] = []

  /// Without any.
  public init() {}

  /// The value of a currency, where there is none a first one.
  public subscript(currency: Currency, default first: @autoclosure () -> Value) -> Value {
    get {
      let place = place(of: currency)
      return isThere(currency, at: place) ? sorted[place].value : first()
    }
    _modify {
      let place = place(of: currency)
      if !isThere(currency, at: place) { sorted.insert((currency: currency, value: first()), at: place) }
      yield &sorted[place].value
    }
  }

  /// The values by their currencies, in no order.
  public var dictionary: [Currency: Value] {
    Dictionary(uniqueKeysWithValues: sorted.lazy.map { ($0.currency, $0.value) })
  }

  /// Where it stands, or would stand.
  private func place(of currency: Currency) -> Int {
    var place = 0
    while place < sorted.count, sorted[place].currency < currency { place += 1 }
    return place
  }

  private func isThere(_ currency: Currency, at place: Int) -> Bool {
    place < sorted.count && sorted[place].currency == currency
  }
}

extension ByCurrency: Equatable where Value: Equatable {
  public static func == (left: ByCurrency, right: ByCurrency) -> Bool {
    left.sorted.elementsEqual(right.sorted, by: ==)
  }
}
