import Foundation

/// The relationships of one part of a workbook (ECMA-376 part 2, 6.5).
final class Relationships: XMLHandler {
  private(set) var targets: [(id: String, type: String, target: String)] = []
  private let base: String

  init(base: String) { self.base = base }

  func start(_ name: String, _ attributes: borrowing XMLAttributes) {
    guard name == "Relationship", attributes["TargetMode"] != "External", let id = attributes["Id"],
      let type = attributes["Type"], let target = attributes["Target"]
    else { return }
    targets.append((id, type, path(target)))
  }

  // Compares the end of the type, because the strict and the transitional format differ before the last slash.
  func part(ofType suffix: String) -> String? { targets.first { $0.type.hasSuffix("/" + suffix) }?.target }

  func part(id: String) -> String? { targets.first { $0.id == id }?.target }

  private func path(_ target: String) -> String {
    var steps = target.hasPrefix("/") ? [] : base.split(separator: "/")
    for step in target.split(separator: "/") where step != "." {
      if step == ".." { _ = steps.popLast() } else { steps.append(step) }
    }
    return steps.joined(separator: "/")
  }
}

final class SheetList: XMLHandler {
  private(set) var sheets: [(name: String, relationship: String)] = []

  func start(_ name: String, _ attributes: borrowing XMLAttributes) {
    guard name == "sheet", let title = attributes["name"], let id = attributes["id"] else { return }
    sheets.append((title, id))
  }
}

/// The creation date in the core properties (ECMA-376 part 2, 8.3.4).
final class CoreProperties: XMLHandler {
  private var isCreated = false
  private var content: [UInt8] = []

  /// Seconds since 1970; nil if missing.
  var created: Int64? {
    let text = String(decoding: content, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    // Some programs add fractions of a second.
    for style in [Date.ISO8601FormatStyle(), Date.ISO8601FormatStyle(includingFractionalSeconds: true)] {
      if let date = try? Date(text, strategy: style) { return Int64(date.timeIntervalSince1970.rounded(.down)) }
    }
    return nil
  }

  func start(_ name: String, _ attributes: borrowing XMLAttributes) { isCreated = name == "created" }

  func text(_ bytes: UnsafeBufferPointer<UInt8>) {
    if isCreated, content.count < 64 { unsafe content.append(contentsOf: bytes.prefix(64)) }
  }

  func end(_ name: String) { isCreated = false }
}
