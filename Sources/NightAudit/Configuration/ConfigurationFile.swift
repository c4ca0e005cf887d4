import Foundation
import Run
import Yams

/// The YAML file, flattened to dotted keys. Nested maps and dotted keys mean the same.
package struct ConfigurationFile {
  /// One value: a scalar as its text, or a list of scalars.
  enum Value: Equatable {
    case scalar(String)
    case list([String])
  }

  private(set) var values: [String: Value] = [:]

  /// Reads a file. An empty file is an empty configuration.
  ///
  /// - Throws: `ConfigurationError` naming the file and what is wrong with it.
  init(path: String) throws {
    let text: String
    do { text = try String(contentsOfFile: path, encoding: .utf8) } catch {
      throw ConfigurationError(key: path, problem: "cannot be read; check that it exists, is UTF-8 and may be read")
    }
    try self.init(yaml: text, name: path)
  }

  init(yaml: String, name: String) throws {
    let root: Node?
    do { root = try Yams.compose(yaml: yaml) } catch {
      throw ConfigurationError(key: name, problem: "is not valid YAML: \(error)")
    }
    guard let root else { return }
    if case .scalar(let scalar) = root, scalar.string.isEmpty { return }
    guard case .mapping = root else {
      throw ConfigurationError(key: name, problem: "must hold a map of settings at its top level")
    }
    try flatten(root, under: [], name: name)
  }

  private mutating func flatten(_ node: Node, under path: [String], name: String) throws {
    let key = path.joined(separator: ".")
    switch node {
    case .mapping(let mapping):
      for (child, value) in mapping {
        guard let word = child.string, !word.isEmpty else {
          throw ConfigurationError(key: key.isEmpty ? name : key, problem: "has a key that is not a word")
        }
        try flatten(value, under: path + [word], name: name)
      }
    case .sequence(let sequence):
      let items = try sequence.map { item -> String in
        guard case .scalar(let scalar) = item else {
          throw ConfigurationError(key: key, problem: "must be a plain list of values")
        }
        return scalar.string
      }
      try set(key, .list(items), name: name)
    case .scalar(let scalar):
      // `key:` with nothing behind it leaves the default.
      if node.null != nil, scalar.style == .plain { return }
      try set(key, .scalar(scalar.string), name: name)
    case .alias:
      throw ConfigurationError(key: key, problem: "uses a YAML alias, which settings do not support")
    }
  }

  private mutating func set(_ key: String, _ value: Value, name: String) throws {
    guard values.updateValue(value, forKey: key) == nil else {
      throw ConfigurationError(key: key, problem: "is set twice in \(name)")
    }
  }
}
