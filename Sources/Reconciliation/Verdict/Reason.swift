/// A sentence that marks the IDs of users, so that pseudonyms can replace them.
public struct Reason: Hashable, Sendable {
  public enum Part: Hashable, Sendable {
    case words(String)
    case user(Identifier)
  }

  public private(set) var parts: [Part]

  public init(_ parts: [Part]) { self.parts = parts }

  public init(_ words: String) { parts = words.isEmpty ? [] : [.words(words)] }

  public var text: String { text(naming: \.text) }

  /// The sentence with a name for each user.
  public func text(naming name: (Identifier) -> String) -> String {
    parts.reduce(into: "") { text, part in
      switch part {
      case .words(let words): text += words
      case .user(let id): text += name(id)
      }
    }
  }

  public var users: [Identifier] {
    parts.compactMap { part -> Identifier? in
      switch part {
      case .words: nil
      case .user(let id): id
      }
    }
  }
}

extension Reason: CustomStringConvertible {
  public var description: String { text }
}

// `\(user: id)` marks a user in a string literal.
extension Reason: ExpressibleByStringInterpolation {
  public init(stringLiteral words: String) { self.init(words) }

  public init(stringInterpolation pieces: StringInterpolation) { parts = pieces.parts }

  public struct StringInterpolation: StringInterpolationProtocol {
    fileprivate private(set) var parts: [Part] = []

    public init(literalCapacity: Int, interpolationCount: Int) {}

    public mutating func appendLiteral(_ literal: String) {
      if literal.isEmpty { return }
      // Adjacent words are joined, so that equal sentences have equal parts.
      if case .words(let words) = parts.last {
        parts[parts.count - 1] = .words(words + literal)
      } else {
        parts.append(.words(literal))
      }
    }

    public mutating func appendInterpolation(_ value: some CustomStringConvertible) { appendLiteral(value.description) }

    public mutating func appendInterpolation(user id: Identifier) { parts.append(.user(id)) }

    public mutating func appendInterpolation(_ clause: Reason) {
      for part in clause.parts {
        switch part {
        case .words(let words): appendLiteral(words)
        case .user(let id): appendInterpolation(user: id)
        }
      }
    }
  }
}

extension Reason {
  /// The count of attempts ends at three, because a sentence that changes every night is a nightly event of the finding.
  static func unconfirmed(since date: Instant, attempts: Int64, _ why: String) -> Reason {
    let count = attempts < 3 ? String(attempts) : "3 or more"
    let asked = attempts == 0 ? ", never asked" : " after \(count) \(attempts == 1 ? "attempt" : "attempts")"
    return "Unconfirmed since \(date.text)\(asked): \(why)."
  }
}
