import Reconciliation

/// Where a range of ids is cut into parts. A part holds the ids from one cut, included, up to the next; what has no id comes
/// last, as in every stream.
public struct Cuts: Hashable, Sendable {
  /// In byte order, each once.
  public let places: [Identifier]

  /// All of it in one part.
  public static let none = Cuts([])

  /// - Parameter places: in any order; they need not be ids that exist.
  public init(_ places: some Sequence<Identifier>) { self.places = Set(places).sorted() }

  /// At the quantiles of a sample of ids, so that as many of them lie in each part.
  ///
  /// - Parameters:
  ///   - sample: in any order; an empty one is cut nowhere.
  ///   - count: parts at most.
  public init(quantilesOf sample: [Identifier], count: Int) {
    let sorted = Set(sample).sorted()
    self.init((1..<max(count, 1)).compactMap { sorted.isEmpty ? nil : sorted[$0 * sorted.count / max(count, 1)] })
  }

  /// How many parts there are.
  public var count: Int { places.count + 1 }

  /// The part that an id lies in.
  public func part(of id: Identifier?) -> Int {
    guard let id else { return places.count }
    var (low, high) = (0, places.count)
    while low < high {
      let middle = (low + high) / 2
      if places[middle] <= id { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// The first id of a part and the first behind it; nil where there is no cut.
  public func bounds(of part: Int) -> (from: Identifier?, before: Identifier?) {
    (part == 0 ? nil : places[part - 1], part == places.count ? nil : places[part])
  }
}
