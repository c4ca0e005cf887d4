import Foundation
import Glibc
import Publishing
import Run
import Settings
import Subprocess
import SystemPackage

extension Doctor {
  /// Checks programs, files and host names of `report.deliver`, and the host of `notify.pingUrl`. Makes no connection.
  package func dispatches() async -> [Diagnosis] {
    var found: [Diagnosis] = []
    let protocols = await curlProtocols()
    for target in settings.deliver {
      found += target.secretFiles.map { Diagnosis.keyFile($0.path, key: $0.key) }
      if let path = target.account?.caFile, !FileManager.default.isReadableFile(atPath: path) {
        found.append(
          .problem(
            "deliver.\(target.name).caFile \(SecretFile.shown(path))", "cannot be read; set it to a readable PEM file"))
      }
      var diagnosis = Diagnosis(subject: "deliver.\(target.name)")
      switch target.means {
      case .command(let command):
        if !FileManager.default.isExecutableFile(atPath: command[0]) {
          diagnosis.problem = """
            \(DispatchTarget.shownProgram(command[0])) cannot be run; check that it exists and is executable, and write \
            the program and its arguments as a list
            """
        }
      case .mail, .upload:
        let scheme = target.account.flatMap { URLComponents(string: $0.url)?.scheme?.lowercased() } ?? ""
        diagnosis.subject += " \(target.account.map { ShownURL.delivery($0.url) } ?? "")"
        if protocols.isEmpty {
          diagnosis.problem = "needs the program curl; install it (Debian: apt-get install curl)"
        } else if !protocols.contains(scheme) {
          diagnosis.problem = "this curl does not speak \(scheme); install one that does (curl --version lists them)"
        } else if let host = target.account.flatMap({ URLComponents(string: $0.url)?.host }), !isProxied(scheme) {
          switch await fault(of: host, key: "url") {
          case nil: break
          case (let problem, true)?: (diagnosis.problem, diagnosis.status) = (problem, .cannotWrite)
          case (let warning, false)?: diagnosis.warning = warning
          }
        }
      }
      found.append(diagnosis)
    }
    return found + [await monitor()].compactMap(\.self)
  }

  /// A host without an address is a warning, because a night without its monitor is complete.
  private func monitor() async -> Diagnosis? {
    guard let url = settings.pingURL, let parts = URLComponents(string: url), let host = parts.host,
      !isProxied(parts.scheme?.lowercased() ?? "")
    else { return nil }
    let subject = "notify.pingUrl \(ShownURL.host(url))"
    return await fault(of: host, key: "notify.pingUrl").map { .warning(subject, $0.text) } ?? .fine(subject)
  }

  /// The fault of a host without an address, and whether the name server confirmed it; nil for a host with an address.
  private func fault(of host: String, key: String) async -> (text: String, isConfirmed: Bool)? {
    switch await resolve(host) {
    case .found: nil
    case .unknown: ("the host \(host) has no address; correct the host in \(key)", true)
    case .unanswered:
      ("the name server gave no answer for \(host); check the host in \(key), and DNS on this machine", false)
    }
  }

  /// True if curl uses a proxy for the scheme; the proxy then resolves host names.
  private func isProxied(_ scheme: String) -> Bool {
    let names: [String] = ["\(scheme)_proxy", "all_proxy"]
    return names.contains { name in getenv(name) != nil || getenv(name.uppercased()) != nil }
  }

  private func curlProtocols() async -> Set<String> {
    guard settings.deliver.contains(where: { $0.account != nil }), let curl = ReportSender.curl,
      let result = try? await Subprocess.run(
        .path(FilePath(curl)), arguments: ["--disable", "--version"], output: .string(limit: 1 << 16)),
      let line = result.standardOutput.split(separator: "\n").first(where: { $0.hasPrefix("Protocols:") })
    else { return [] }
    return Set(line.split(separator: " ").dropFirst().map(String.init))
  }
}

enum HostLookup: Sendable {
  case found, unknown, unanswered

  /// Runs on a thread of its own, because the resolver blocks for seconds without a name server.
  static func ask(_ host: String) async -> HostLookup {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        var addresses: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, nil, nil, &addresses)
        if let addresses { freeaddrinfo(addresses) }
        let answer: HostLookup =
          switch code {
          case 0: .found
          case EAI_NONAME, EAI_FAIL: .unknown
          default: .unanswered
          }
        continuation.resume(returning: answer)
      }
    }
  }
}
