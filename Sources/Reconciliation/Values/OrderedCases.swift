/// An enumeration of words whose cases are indexed, compared and hashed by the sequence of their declaration.
public protocol OrderedCases: RawRepresentable, CaseIterable, Hashable, Comparable where RawValue == String {}

extension OrderedCases {
  public var index: Int {
    // A case without values is one byte, its place among the cases.
    withUnsafeBytes(of: self) { Int($0[0]) }
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(index) }

  public static func < (left: Self, right: Self) -> Bool { left.index < right.index }
}
