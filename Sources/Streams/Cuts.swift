import Reconciliation

/// The borders between the parts of a range of ids. A part contains its lower border; a missing id is in the last part.
public struct Cuts: Hashable, Sendable {
  /// In byte order, without duplicates.
  public let places: [Identifier]

  public static let none = Cuts([])

  public init(_ places: some Sequence<Identifier>) { self.places = Set(places).sorted() }

  /// Creates borders at the quantiles of a sample of ids, for at most `count` parts of equal size.
  public init(quantilesOf sample: [Identifier], count: Int) {
    let sorted = Set(sample).sorted()
    self.init((1..<max(count, 1)).compactMap { sorted.isEmpty ? nil : sorted[$0 * sorted.count / max(count, 1)] })
  }

  public var count: Int { places.count + 1 }

  public func part(of id: Identifier?) -> Int {
    guard let id else { return places.count }
    var (low, high) = (0, places.count)
    while low < high {
      let middle = (low + high) / 2
      if places[middle] <= id { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// The first id of a part and the first after it; nil if there is no border.
  public func bounds(of part: Int) -> (from: Identifier?, before: Identifier?) {
    (part == 0 ? nil : places[part - 1], part == places.count ? nil : places[part])
  }
}
