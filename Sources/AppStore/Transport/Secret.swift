/// A text that may be sent to Apple and must never be seen: shared secrets, private keys.
///
/// Printing, dumping or reflecting it shows a placeholder, so it cannot slip into a log or a report through a value that
/// holds it.
package struct Secret: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  private let text: String

  package init(_ text: String) { self.text = text }

  /// The secret itself, for the request that needs it.
  package func reveal() -> String { text }

  package var description: String { "<secret>" }
  package var debugDescription: String { "<secret>" }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
