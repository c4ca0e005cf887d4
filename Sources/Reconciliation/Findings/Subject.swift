/// The record that a finding is about. IDs are unique within one kind only.
public struct Subject: Hashable, Comparable, Sendable {
  public enum Kind: String, OrderedCases, Sendable {
    case order, delivery, receipt, transaction
    case productWeek = "product_week"
  }

  public var kind: Kind
  public var id: Identifier

  public init(_ kind: Kind, _ id: Identifier) {
    self.kind = kind
    self.id = id
  }

  public static func order(_ id: Identifier) -> Subject { Subject(.order, id) }
  public static func delivery(_ id: Identifier) -> Subject { Subject(.delivery, id) }
  public static func receipt(_ id: Identifier) -> Subject { Subject(.receipt, id) }
  public static func transaction(_ id: Identifier) -> Subject { Subject(.transaction, id) }

  /// A product in the week that begins on a day, `2026-11-16`.
  public static func product(_ id: Identifier, weekOf day: String) -> Subject {
    Subject(.productWeek, Identifier("\(id.text) \(day)"))
  }

  /// A row of the shop. Without an ID, its other IDs name it, which stay the same from night to night.
  static func row(
    _ kind: Kind, _ id: Identifier, orderId: Identifier? = nil, userId: Identifier?, productId: Identifier? = nil
  ) -> Subject {
    guard id.isEmpty else { return Subject(kind, id) }
    let words = [("order", orderId), ("user", userId), ("product", productId)].compactMap { word, id in
      id.flatMap { $0.isEmpty ? nil : ", \(word) \($0.text)" }
    }
    return Subject(kind, words.isEmpty ? id : Identifier("without an id" + words.joined()))
  }

  public static func < (left: Subject, right: Subject) -> Bool {
    (left.id, left.kind) < (right.id, right.kind)
  }
}
