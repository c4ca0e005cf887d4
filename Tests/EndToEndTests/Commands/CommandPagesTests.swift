import Foundation
import TestSupport
import Testing

/// The pages, man pages and completions cover every command in `--help`.
@Suite struct CommandPagesTests {
  private static let allCommands = Task { try await commands(below: []) }

  private static func commands(below command: [String]) async throws -> [[String]] {
    let help = try await Program.nightAudit.run(["help"] + command)
    #expect(help.status == 0, "\(help.errors)")
    guard let list = help.output.components(separatedBy: "\nSUBCOMMANDS:\n").dropFirst().first else { return [] }
    let names = list.split(separator: "\n", omittingEmptySubsequences: false).prefix { !$0.isEmpty }
      .compactMap { $0.firstMatch(of: /^  ([a-z][a-z-]*)/).map { String($0.1) } }
    var found: [[String]] = []
    for name in names {
      let below = try await commands(below: command + [name])
      found += below.isEmpty ? [command + [name]] : below
    }
    return found
  }

  @Test(
    "a misspelt command gets a suggestion",
    arguments: [
      ("findngs", "night-audit findings"), ("doctro --quiet", "night-audit doctor"), ("recon", "night-audit reconcile"),
      ("findings lst --csv", "night-audit findings list"),
      ("findings acknowlege 4f2a91c3", "night-audit findings acknowledge"),
      ("runs dif latest", "night-audit runs diff"), ("config shwo", "night-audit config show"),
      ("--config x findngs", "night-audit findings"), ("--config=x findngs list", "night-audit findings"),
      ("--json rnu", "night-audit run"), ("rnu --json", "night-audit run"),
    ])
  func unknownCommand(_ line: String, meant: String) async throws {
    let result = try await Program.nightAudit.run(line.split(separator: " ").map(String.init))
    #expect(result.status == 64)
    #expect(result.errors.contains("Did you mean '\(meant)'?"), "\(result.errors)")
  }

  @Test(
    "finding IDs and words unlike any command get no suggestion",
    arguments: ["findings 4f2a", "zzzz"])
  func noSuggestion(_ line: String) async throws {
    let result = try await Program.nightAudit.run(line.split(separator: " ").map(String.init))
    #expect(result.status != 0 && !result.errors.contains("Did you mean"), "\(result.errors)")
  }

  @Test func aWordUnlikeAnyCommandIsNamedAlsoBeforeOptions() async throws {
    for options in [[], ["--json"]] {
      let result = try await Program.nightAudit.run(["zzzz"] + options)
      #expect(result.status == 64)
      #expect(result.errors.contains("Unknown command 'zzzz'. 'night-audit help' lists the commands."), "\(result)")
    }
  }

  @Test func theOperationsPageListsEveryCommand() async throws {
    let page = try String(
      contentsOf: Repository.root.appending(path: "Sources/night-audit/Documentation.docc/Operations.md"),
      encoding: .utf8)
    let table = page.split(separator: "\n").filter { $0.hasPrefix("| `night-audit ") }
    let told = Set(
      table.flatMap {
        $0.split(separator: "|")[0].matches(of: /`night-audit ([a-z -]+?)(?: [A-Z-].*?)?`/).map { String($0.1) }
      })
    let all = Set(try await Self.allCommands.value.map { $0.joined(separator: " ") })
    #expect(all.count > 20)
    #expect(told == all, "\(told.symmetricDifference(all).sorted())")
  }

  @Test(arguments: ["bash", "zsh", "fish"]) func completionsKnowEveryCommand(_ shell: String) async throws {
    let script = try await Program.nightAudit.run(["--generate-completion-script", shell])
    #expect(script.status == 0)
    for command in try await Self.allCommands.value {
      #expect(script.output.contains(command.last ?? ""), "\(command)")
    }
  }

  @Test("no line of an example is wrapped on a terminal of 80 columns, and no paragraph is broken into lines")
  func helpFitsTerminals() async throws {
    let dump = try await Program.nightAudit.run(["--experimental-dump-help"])
    let document = try dump.json()
    var examples = 0
    func examine(_ command: [String: Any]) {
      let name = command["commandName"] as? String ?? ""
      let lines = (command["discussion"] as? String ?? "").split(separator: "\n", omittingEmptySubsequences: false)
      for line in lines where line.hasPrefix("  ") {
        examples += 1
        #expect(line.count < 80, "\(name): \(line)")
      }
      for (line, next) in zip(lines, lines.dropFirst()) where !line.isEmpty && !line.hasPrefix("  ") {
        #expect(next.isEmpty || next.hasPrefix("  "), "\(name): \(line)")
      }
      for child in command["subcommands"] as? [[String: Any]] ?? [] { examine(child) }
    }
    examine(try #require(document["command"] as? [String: Any]))
    #expect(examples > 40)
  }

  @Test func everyCommandHasAManPage() async throws {
    let directory = try TemporaryDirectory()
    let made = try await Program(path: "/usr/bin/python3").run([
      Repository.root.appending(path: "cron/debian/manual.py").path, Program.nightAudit.executable.path,
      directory.url.path,
      Repository.root.appending(path: "Sources/night-audit/Documentation.docc/Configuration.md").path,
    ])
    #expect(made.status == 0, "\(made.errors)")
    let pages = try FileManager.default.contentsOfDirectory(atPath: directory.url.path + "/man1")
    let run = try await Program(path: "/bin/zcat").run([directory.file("man1/night-audit-run.1.gz")]).output
    #expect(run.contains("night\\-audit\\-run \\- Ask Apple about receipts, reconcile, and write the report"))
    #expect(run.contains("\nnight\\-audit run \\-\\-dry\\-run\n"), "\(run)")
    let yaml = try await Program(path: "/bin/zcat").run([directory.file("man5/night-audit.yaml.5.gz")]).output
    for key in ["audit.lookback", "report.directory", "notify.pingUrl"] {
      #expect(yaml.contains("\\fB\(key)"), "\(key)")
    }
    for command in try await Self.allCommands.value {
      #expect(pages.contains("night-audit-\(command.joined(separator: "-")).1.gz"), "\(command): \(pages)")
    }
    #expect(pages.contains("night-audit.1.gz"))
  }
}
