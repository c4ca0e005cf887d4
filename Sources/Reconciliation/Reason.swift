/// Why something was found: a sentence that knows which of its words are ids of users, so that pseudonyms can take their
/// places without anybody searching for them.
public struct Reason: Hashable, Sendable {
  /// A piece of the sentence.
  public enum Part: Hashable, Sendable {
    case words(String)
    case user(Identifier)
  }

  /// In the order in which they are read.
  public private(set) var parts: [Part]

  /// From pieces that another reason has.
  public init(_ parts: [Part]) { self.parts = parts }

  /// A sentence that names no user.
  public init(_ words: String) { parts = words.isEmpty ? [] : [.words(words)] }

  /// The sentence, users by their own ids.
  public var text: String { text(naming: \.text) }

  /// The sentence.
  ///
  /// - Parameter name: what stands for a user.
  public func text(naming name: (Identifier) -> String) -> String {
    parts.reduce(into: "") { text, part in
      switch part {
      case .words(let words): text += words
      case .user(let id): text += name(id)
      }
    }
  }

  /// The users whom it names.
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

// A sentence is written as any text is; a user is `\(user: id)` in it.
extension Reason: ExpressibleByStringInterpolation {
  public init(stringLiteral words: String) { self.init(words) }

  public init(stringInterpolation pieces: StringInterpolation) { parts = pieces.parts }

  /// Takes a sentence piece by piece.
  public struct StringInterpolation: StringInterpolationProtocol {
    fileprivate private(set) var parts: [Part] = []

    public init(literalCapacity: Int, interpolationCount: Int) {}

    public mutating func appendLiteral(_ literal: String) {
      if literal.isEmpty { return }
      // One sentence has one form, however it was put together.
      if case .words(let words) = parts.last {
        parts[parts.count - 1] = .words(words + literal)
      } else {
        parts.append(.words(literal))
      }
    }

    public mutating func appendInterpolation<Value>(_ value: Value) { appendLiteral("\(value)") }

    /// A user's id.
    public mutating func appendInterpolation(user id: Identifier) { parts.append(.user(id)) }

    /// A clause that may name users itself.
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
  /// That nobody has known for so long.
  ///
  /// - Parameters:
  ///   - attempts: how often Apple was asked.
  ///   - why: a clause.
  static func unconfirmed(for age: Span, attempts: Int64, _ why: String) -> Reason {
    let asked = attempts == 0 ? ", never asked" : " after \(attempts) \(attempts == 1 ? "attempt" : "attempts")"
    return "Unconfirmed for \(age.words)\(asked): \(why)."
  }
}
