/// The user IDs of each person, such as a guest and a later account (relation `user_aliases`).
public struct People: Hashable, Sendable {
  private var smallest: [Identifier: Identifier] = [:]

  public init() {}

  public var aliases: [(Identifier, Identifier)] { smallest.map { ($0.key, $0.value) } }

  /// - Parameter aliases: pairs of IDs of one person, in any sequence. Pairs may form chains.
  public init(aliases: some Sequence<(Identifier, Identifier)>) {
    var parents: [Identifier: Identifier] = [:]
    func root(_ id: Identifier) -> Identifier {
      var id = id
      while let parent = parents[id] { id = parent }
      return id
    }
    for (one, other) in aliases {
      let roots = (root(one), root(other))
      if roots.0 != roots.1 { parents[max(roots.0, roots.1)] = min(roots.0, roots.1) }
    }
    for id in parents.keys { smallest[id] = root(id) }
  }

  public func person(_ userId: Identifier) -> Identifier { smallest.isEmpty ? userId : smallest[userId] ?? userId }

  public func ids(of userId: Identifier) -> Set<Identifier> {
    let person = person(userId)
    return Set(smallest.lazy.filter { $0.value == person }.map(\.key)).union([userId, person])
  }

  public func isSame(_ one: Identifier, _ other: Identifier) -> Bool { one == other || person(one) == person(other) }
}
