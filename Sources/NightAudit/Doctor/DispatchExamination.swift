import Foundation
import Publishing
import Run
import Subprocess
import SystemPackage

extension Doctor {
  /// Whether every place of `report.deliver` can be gone to. Nobody is called: what is checked is on this machine.
  package func dispatches() async -> [Diagnosis] {
    var found: [Diagnosis] = []
    let protocols = await curlProtocols()
    for target in settings.deliver {
      found += target.secretFiles.flatMap { KeyFile(path: $0.path, key: $0.key).examine() }
      if let path = target.account?.caFile, !FileManager.default.isReadableFile(atPath: path) {
        found.append(
          Diagnosis(
            subject: "deliver.\(target.name).caFile \(SecretFile.shown(path))",
            problem: "cannot be read; name a PEM file"))
      }
      var diagnosis = Diagnosis(subject: "deliver.\(target.name)")
      switch target.means {
      case .command(let command):
        if !FileManager.default.isExecutableFile(atPath: command[0]) {
          diagnosis.problem = "\(command[0]) cannot be run; check that it exists and is executable"
        }
      case .mail, .upload:
        let scheme = target.account.flatMap { URLComponents(string: $0.url)?.scheme?.lowercased() } ?? ""
        diagnosis.subject += " \(target.account.map { ShownURL.delivery($0.url) } ?? "")"
        if protocols.isEmpty {
          diagnosis.problem = "needs the program curl; install it (Debian: apt-get install curl)"
        } else if !protocols.contains(scheme) {
          diagnosis.problem = "this curl does not speak \(scheme); install one that does (curl --version lists them)"
        }
      }
      found.append(diagnosis)
    }
    return found
  }

  /// What curl says that it speaks; empty without a curl.
  private func curlProtocols() async -> Set<String> {
    guard settings.deliver.contains(where: { $0.account != nil }), let curl = ReportSender.curl,
      let result = try? await Subprocess.run(
        .path(FilePath(curl)), arguments: ["--disable", "--version"], output: .string(limit: 1 << 16)),
      let line = result.standardOutput.split(separator: "\n").first(where: { $0.hasPrefix("Protocols:") })
    else { return [] }
    return Set(line.split(separator: " ").dropFirst().map(String.init))
  }
}
