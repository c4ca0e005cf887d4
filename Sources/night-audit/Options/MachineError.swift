import ArgumentParser
import NightAudit
import Run

/// The output of `--json` for a command that fails without any other output.
enum MachineError {
  struct Document: Encodable {
    struct Fault: Encodable {
      var status: Int32
      var message: String
    }

    var error: Fault
  }

  /// Read from the raw arguments, because an invalid command line has no options.
  private static var isWanted: Bool { CommandLine.arguments.dropFirst().prefix { $0 != "--" }.contains("--json") }

  /// Prints the error if `--json` is given.
  static func report(_ message: String, status: Int32) {
    guard isWanted, let text = try? MachineText.json(Document(error: .init(status: status, message: message))) else {
      return
    }
    print(text)
  }
}
