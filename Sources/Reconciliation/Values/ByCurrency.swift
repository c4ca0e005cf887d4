/// A value per currency, in alphabetical order. Few entries cost less to search than to hash.
public struct ByCurrency<Value: Sendable>: Sendable {
  public private(set) var sorted: [(currency: Currency, value: Value)] = []

  public init() {}

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

  public var dictionary: [Currency: Value] {
    Dictionary(uniqueKeysWithValues: sorted.lazy.map { ($0.currency, $0.value) })
  }

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
