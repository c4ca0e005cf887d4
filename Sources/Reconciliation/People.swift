/// Which user ids belong to one person: a guest and the account made later (the relation `user_aliases`).
public struct People: Hashable, Sendable {
  /// The smallest id of each person, by every other id of theirs.
  private var smallest: [Identifier: Identifier] = [:]

  /// Everybody has one id only.
  public init() {}

  /// Pairs of ids that make the same people.
  public var aliases: [(Identifier, Identifier)] { smallest.map { ($0.key, $0.value) } }

  /// - Parameter aliases: pairs of ids of one person, in any order; what is paired with the same id is one person, too.
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

  /// The id that stands for the person behind a user id.
  public func person(_ userId: Identifier) -> Identifier { smallest.isEmpty ? userId : smallest[userId] ?? userId }

  /// All ids of the person behind a user id.
  public func ids(of userId: Identifier) -> Set<Identifier> {
    let person = person(userId)
    return Set(smallest.lazy.filter { $0.value == person }.map(\.key)).union([userId, person])
  }

  public func isSame(_ one: Identifier, _ other: Identifier) -> Bool { one == other || person(one) == person(other) }
}
