import Foundation
import Glibc
import Run
import Yams

/// The YAML file, flattened to dotted keys. Nested maps and dotted keys are equivalent.
package struct ConfigurationFile {
  enum Value: Equatable {
    case scalar(String)
    case list([String])
  }

  private(set) var values: [String: Value] = [:]
  /// Keys with nothing below them, or without a value. They set nothing, but may be misspelt.
  private(set) var emptyKeys: [String] = []

  /// Reads a file; an empty file is an empty configuration. Throws `ConfigurationError`.
  ///
  /// - Parameter isFound: true for a file found in the working directory. Its owner must be this user or root, and no
  ///   other user may write it, because it can name commands to run.
  init(path: String, isFound: Bool = false) throws {
    let file: RegularFile
    do throws(RegularFile.Failure) { file = try RegularFile(path) } catch {
      throw ConfigurationError(key: path, problem: error.problem)
    }
    if isFound, let problem = Self.permissionProblem(of: file, path: path) {
      throw ConfigurationError(key: path, problem: problem)
    }
    guard let text = String(validating: file.content, as: UTF8.self) else {
      throw ConfigurationError(key: path, problem: "is not UTF-8; save it as UTF-8")
    }
    try self.init(yaml: text, name: path)
  }

  private static func permissionProblem(of file: RegularFile, path: String) -> String? {
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
          `\(Self.shown(keys.first ?? ""))` occurs twice, first at line \(context.mark.line); put all its keys under one of \
          the two
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
    func error(_ problem: String) -> ConfigurationError {
      ConfigurationError(key: key.isEmpty ? name : Self.shown(key), problem: problem)
    }
    switch node {
    case .mapping(let mapping):
      if mapping.isEmpty, !path.isEmpty { emptyKeys.append(key) }
      for (child, value) in mapping {
        guard let word = child.string, !word.isEmpty else { throw error("has a key that is not a word") }
        try flatten(value, under: path + [word], name: name)
      }
    case .sequence(let sequence):
      let items = try sequence.map { item -> String in
        if case .scalar(let scalar) = item { return scalar.string }
        guard case .mapping(let mapping) = item, mapping["since"] != nil || mapping["until"] != nil else {
          throw error("must be a plain list of values")
        }
        guard let since = mapping["since"]?.string, let until = mapping["until"]?.string, mapping.count == 2 else {
          throw error("has a window that is not since and until: write both days, one day twice where it is one")
        }
        return "\(since)/\(until)"
      }
      try set(key, .list(items), name: name)
    case .scalar(let scalar):
      // A key without a value keeps its default.
      if node.null != nil, scalar.style == .plain {
        emptyKeys.append(key)
        return
      }
      try set(key, .scalar(scalar.string), name: name)
    case .alias: throw error("uses a YAML alias, which settings do not support")
    }
  }

  /// The position of a syntax error. The parser's message quotes the line, which may hold a password.
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

  /// The key as it may be shown. Text that is no key may be a password that lost its key, and is hidden.
  static func shown(_ key: String) -> String {
    key.wholeMatch(of: /[A-Za-z0-9_.<>-]{1,100}/) == nil ? "(a key that is not a word)" : key
  }

  private mutating func set(_ key: String, _ value: Value, name: String) throws {
    guard values.updateValue(value, forKey: key) == nil else {
      throw ConfigurationError(key: Self.shown(key), problem: "is set twice in \(name)")
    }
  }
}
