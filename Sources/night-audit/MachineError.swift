import ArgumentParser
import NightAudit
import Run

/// What `--json` prints on standard output where a command has nothing else to print: why, and the exit status.
enum MachineError {
  private struct Document: Encodable {
    struct Fault: Encodable {
      var status: Int32
      var message: String
    }

    var error: Fault
  }

  /// Asked of the words themselves, because a command line that cannot be understood has no options.
  private static var isWanted: Bool { CommandLine.arguments.dropFirst().prefix { $0 != "--" }.contains("--json") }

  /// Says nothing unless machines are listening.
  static func tell(_ message: String, status: Int32) {
    guard isWanted, let text = try? MachineText.json(Document(error: .init(status: status, message: message))) else {
      return
    }
    print(text)
  }
}
