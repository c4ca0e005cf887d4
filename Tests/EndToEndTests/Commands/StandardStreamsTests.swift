import Foundation
import Testing

@Suite struct StandardStreamsTests {
  /// Runs a shell with the program as `$0`; the output ends with the exit status.
  private func shell(_ command: String, _ shop: Rehearsal? = nil) async throws -> String {
    let result = try await Program(path: "/bin/sh").run(
      ["-c", "\(command); echo status=$?", Program.nightAudit.executable.path],
      environment: [
        "CONFIG": shop?.configurationFile ?? "", "NIGHT_AUDIT_AUDIT_CLOCK_SKEW": "3650d", "ASOF": Rehearsal.asOf,
      ])
    return result.errors + result.output
  }

  private static let config = "--config /nonexistent.yaml"
  private static let usable = "NIGHT_AUDIT_APP_APP_BUNDLE_ID=com.example.game $0 config show"

  @Test(
    "lost output is an error, never a crash",
    arguments: [
      ("$0 --version > /dev/full", 73), ("$0 --help > /dev/full", 73), ("$0 --version >&-", 73),
      ("\(usable) > /dev/full", 73), ("\(usable) --json >&-", 73), ("\(usable) > /dev/null", 0),
      ("$0 config show 2> /dev/null > /dev/null", 78),
      ("$0 --version < /dev/null > /dev/null", 0),
      ("$0 --version 2>&- > /dev/null", 0), ("$0 config show --config /nonexistent 2> /dev/full", 78),
      ("$0 config show --config /nonexistent 2>&-", 78), ("$0 doctor --config /nonexistent --json > /dev/full", 78),
      ("ulimit -n 12; $0 --version", 78), ("ulimit -n 10; $0 config show", 78),
      ("$0 nonsense 2>&-", 64), ("$0 config show --config /nonexistent >&- 2>&- <&-", 78),
    ])
  func lost(_ command: String, status: Int) async throws {
    let said = try await shell(command)
    #expect(said.hasSuffix("status=\(status)\n"), "\(command): \(said)")
  }

  @Test(
    "a closed pipe ends a command without a message and with its usual status",
    arguments: [("--version", 0), ("--help", 0), ("config show", 0), ("nonsense", 64)])
  func closedPipe(_ command: String, status: Int) async throws {
    // The reading end is closed before the program starts.
    let said = try await shell(
      """
      export NIGHT_AUDIT_APP_APP_BUNDLE_ID=com.example.game; pipe=/tmp/closed-$$; mkfifo $pipe; exec 3<>$pipe 4>$pipe 3<&-
      rm $pipe; $0 \(command) >&4
      """)
    #expect(said.hasSuffix("status=\(status)\n"), "\(said)")
    #expect(status != 0 || said == "status=0\n", "\(said)")
    let both = try await shell(
      """
      export NIGHT_AUDIT_APP_APP_BUNDLE_ID=com.example.game; pipe=/tmp/closed-$$; mkfifo $pipe; exec 3<>$pipe 4>$pipe 3<&-
      rm $pipe; $0 \(command) >&4 2>&4
      """)
    #expect(both == "status=\(status)\n", "\(both)")
  }

  @Test("control characters are escaped in all output", arguments: ["", " --json"])
  func controlCharacters(_ option: String) async throws {
    let said = try await shell(
      "NIGHT_AUDIT_REPORT_DIRECTORY=\"$(printf 'a\\033[31m\\302\\205b')\" \(Self.usable)\(option)")
    #expect(said.hasSuffix("status=0\n"), "\(said)")
    #expect(!said.unicodeScalars.contains { $0 == "\u{1B}" || $0 == "\u{85}" }, "\(said)")
    #expect(said.contains("[31m"), "\(said)")
  }

  @Test("a night with an unwritable log publishes its report, and a command with unwritable output fails")
  func nights() async throws {
    let shop = try await Rehearsal.sampleShop(isSmall: true)
    for (command, status) in [
      ("$0 run --quiet --config $CONFIG --as-of $ASOF 2>/dev/full >/dev/null", 3),
      ("$0 run --verbose --config $CONFIG --as-of $ASOF 2>&- >/dev/null", 73),
      ("$0 run --verbose --config $CONFIG --as-of $ASOF 2>/dev/full >/dev/null", 73),
    ] {
      let said = try await shell(command, shop)
      #expect(said.hasSuffix("status=\(status)\n"), "\(command): \(said)")
    }
    #expect(FileManager.default.fileExists(atPath: shop.reports + "/2026-11-19/SHA256SUMS"))
    for command in ["findings list --csv", "findings list --json", "status", "runs", "verify --run latest"] {
      let said = try await shell("$0 \(command) --config $CONFIG >/dev/full", shop)
      #expect(said.hasSuffix("status=73\n") && said.contains("was not written"), "\(command): \(said)")
      #expect(try await shell("$0 \(command) --config $CONFIG >&-", shop).hasSuffix("status=73\n"))
    }
    #expect(try await shell("$0 findings list --csv --config $CONFIG | head -n 1", shop).hasSuffix("status=0\n"))
  }

  @Test("doctor --json reports a missing configuration in JSON")
  func doctorWithoutConfiguration() async throws {
    let said = try await shell("$0 doctor --json \(Self.config)")
    #expect(said.hasSuffix("status=78\n"))
    let json = try JSONSerialization.jsonObject(with: Data(said.split(separator: "status=")[0].utf8))
    let list = try #require((json as? [String: Any])?["diagnoses"] as? [[String: Any]])
    #expect(list.first?["subject"] as? String == "/nonexistent.yaml")
    #expect(list.first?["ok"] as? Bool == false)
  }

  @Test("the process disables core files")
  func coreFiles() async throws {
    // The kernel shows the limit of a running process. The program waits for its configuration from a FIFO, and the
    // shell keeps both ends of it open.
    let said = try await shell(
      "ulimit -c unlimited; mkfifo /tmp/core-$$; exec 3<>/tmp/core-$$; $0 config show --config /tmp/core-$$ 3>&- & p=$!; "
        + "while ! grep 'core file size *0 *0' /proc/$p/limits; do kill -0 $p || break; done; "
        + "kill -KILL $p; rm /tmp/core-$$; wait $p")
    #expect(said.contains(/Max core file size\s+0\s+0/), "\(said)")
  }
}
