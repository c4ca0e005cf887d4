import ArgumentParser
import Run

/// A word in place of a command, with the command that was probably meant.
struct CommandSlip: CustomStringConvertible {
  private let word: String
  /// The parent commands.
  private let path: [String]
  /// nil if no command is similar.
  private let meant: String?

  /// nil if all words are commands, or may be something else.
  init?(_ arguments: some Sequence<String>) {
    let arguments = Array(arguments)
    var command: any ParsableCommand.Type = NightAuditCommand.self
    var path = [NightAuditCommand._commandName]
    for (index, argument) in arguments.enumerated() {
      let commands = command.configuration.subcommands
      if commands.isEmpty || argument == "help" { return nil }
      if argument.hasPrefix("-") {
        // Options of a subcommand stand before its name. Each of the other words may be the value of one.
        let words = arguments[index...].filter { !$0.hasPrefix("-") }
        let names = commands.map { $0._commandName } + ["help"]
        guard command.configuration.defaultSubcommand == nil, !words.contains(where: names.contains) else { return nil }
        for word in words {
          guard let meant = Self.nearest(to: word, among: names) else { continue }
          (self.word, self.path, self.meant) = (word, path, meant)
          return
        }
        return nil
      }
      if let next = commands.first(where: { $0._commandName == argument }) {
        command = next
        path.append(argument)
        continue
      }
      // An argument of the default subcommand, such as the first digits of a finding's ID.
      if command.configuration.defaultSubcommand != nil, argument.allSatisfy(\.isHexDigit) { return nil }
      let meant = Self.nearest(to: argument, among: commands.map { $0._commandName })
      if meant == nil, command.configuration.defaultSubcommand != nil { return nil }
      (word, self.path, self.meant) = (argument, path, meant)
      return
    }
    return nil
  }

  var description: String {
    let parent = path.joined(separator: " ")
    return "Unknown command '\(word)'. "
      + (meant.map { "Did you mean '\(parent) \($0)'?" } ?? "'\(parent) help' lists the commands.")
  }

  /// The most similar name; nil if none is similar.
  private static func nearest(to word: String, among names: [String]) -> String? {
    let word = word.lowercased()
    if let near = Spelling.nearest(to: word, among: names) { return near }
    let begun = names.filter { word.count > 1 && $0.hasPrefix(word) }
    return begun.count == 1 ? begun[0] : nil
  }
}
