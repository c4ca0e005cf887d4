import Foundation
import Glibc
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
  /// - Parameter isFound: whether the file was found in the working directory and not named: commands of somebody else's file
  ///   would run, so its owner must be this user or root, and no other user may write it.
  /// - Throws: `ConfigurationError` naming the file and what is wrong with it.
  init(path: String, isFound: Bool = false) throws {
    let file: RegularFile
    do throws(RegularFile.Failure) { file = try RegularFile(path) } catch {
      throw ConfigurationError(key: path, problem: error.problem)
    }
    if isFound, let problem = Self.distrust(of: file, path: path) {
      throw ConfigurationError(key: path, problem: problem)
    }
    guard let text = String(validating: file.content, as: UTF8.self) else {
      throw ConfigurationError(key: path, problem: "is not UTF-8; save it as UTF-8")
    }
    try self.init(yaml: text, name: path)
  }

  /// Why a file in the working directory is not believed, and the remedy; nil for a file that only this user or root writes.
  private static func distrust(of file: RegularFile, path: String) -> String? {
    let remedy = "or name the file with --config if you trust it"
    if file.owner != geteuid(), file.owner != 0 {
      return "is not read: it belongs to another user (\(file.owner)); take it over with chown, \(remedy)"
    }
    if file.mode & 0o022 != 0 {
      return "is not read: other users may write it; run: chmod go-w \(path), \(remedy)"
    }
    return nil
  }

  init(yaml: String, name: String) throws {
    let root: Node?
    do { root = try Yams.compose(yaml: yaml) } catch YamlError.duplicatedKeysInMapping(let keys, let context) {
      throw ConfigurationError(
        key: name,
        problem: """
          `\(Self.shown(keys.first ?? ""))` stands twice, first at line \(context.mark.line); put what belongs to it under \
          one of the two
          """)
    } catch {
      throw ConfigurationError(key: name, problem: "is not valid YAML\(Self.place(of: error)); \(Self.hint)")
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
          throw ConfigurationError(key: key.isEmpty ? name : Self.shown(key), problem: "has a key that is not a word")
        }
        try flatten(value, under: path + [word], name: name)
      }
    case .sequence(let sequence):
      let items = try sequence.map { item -> String in
        if case .scalar(let scalar) = item { return scalar.string }
        guard case .mapping(let mapping) = item, mapping["since"] != nil || mapping["until"] != nil else {
          throw ConfigurationError(key: Self.shown(key), problem: "must be a plain list of values")
        }
        guard let since = mapping["since"]?.string, let until = mapping["until"]?.string, mapping.count == 2 else {
          throw ConfigurationError(
            key: Self.shown(key),
            problem: "has a window that is not just since and until: write both days, one day twice where it is one")
        }
        return "\(since)/\(until)"
      }
      try set(key, .list(items), name: name)
    case .scalar(let scalar):
      // `key:` with nothing behind it leaves the default.
      if node.null != nil, scalar.style == .plain { return }
      try set(key, .scalar(scalar.string), name: name)
    case .alias:
      throw ConfigurationError(key: Self.shown(key), problem: "uses a YAML alias, which settings do not support")
    }
  }

  /// Where a parser stopped. Its own words quote the line, and lines hold passwords.
  private static func place(of error: any Error) -> String {
    let mark: Mark? =
      switch error as? YamlError {
      case .scanner(_, _, let mark, _), .parser(_, _, let mark, _), .composer(_, _, let mark, _): mark
      default: nil
      }
    return mark.map { " at line \($0.line), column \($0.column)" } ?? ""
  }

  private static let hint = """
    a value with a colon, a # or quotes in it goes into single quotes, and lines are indented with blanks
    """

  /// A key as it may be shown: what is no word may be a value that lost its key.
  static func shown(_ key: String) -> String {
    key.wholeMatch(of: /[A-Za-z0-9_.<>-]{1,100}/) == nil ? "(a key that is no word)" : key
  }

  private mutating func set(_ key: String, _ value: Value, name: String) throws {
    guard values.updateValue(value, forKey: key) == nil else {
      throw ConfigurationError(key: Self.shown(key), problem: "is set twice in \(name)")
    }
  }
}
