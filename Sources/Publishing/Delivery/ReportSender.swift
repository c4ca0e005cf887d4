import AppStore
import AuditStore
import Foundation
import Glibc
import Reconciliation
import Reporting
import Run
import Settings
import Subprocess
import SystemPackage

package struct ReportSender: Sendable {
  /// A failed delivery. The message is safe to log, because it contains no configuration.
  package struct Failure: Error, CustomStringConvertible {
    package var description: String
    /// True if a retry in the same night can help.
    var isTransient: Bool
  }

  private let passwords: [String: Secret]
  private let stop: StopSignal
  /// The URL under which the report directory can be opened.
  private let link: String?

  private static let commandLimit = Duration.seconds(600)
  /// Limit for all transfers to one target; curl's configuration limits each of them.
  private static let transferLimit = Duration.seconds(3 * 3_600)
  /// Mail servers commonly refuse more than 25 MB, and base64 adds a third.
  static let largestAttachment = 18_000_000

  /// Reads the secrets of all targets, before a run starts. Throws `ConfigurationError`.
  package init(_ targets: [DispatchTarget], link: String? = nil, stop: StopSignal) throws {
    self.link = link
    var passwords: [String: Secret] = [:]
    for target in targets {
      for (key, path) in target.secretFiles {
        let secret = try SecretFile.read(path, key: key)
        if path == target.account?.passwordFile { passwords[target.name] = secret }
      }
    }
    if targets.contains(where: { $0.account != nil }), ReportSender.curl == nil {
      throw ConfigurationError(
        key: "report.deliver", problem: "needs the program curl; install it (Debian: apt-get install curl)")
    }
    (self.passwords, self.stop) = (passwords, stop)
  }

  package static var curl: String? {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
    return path.split(separator: ":").map { "\($0)/curl" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// Sends the report. Returns when the receiver has accepted it.
  package func deliver(_ report: ReportContents, to target: DispatchTarget, at now: Instant) async throws(Failure) {
    switch target.means {
    case .mail(let mail):
      let message = try message(report, from: mail.from, to: target, at: now)
      try await runCurl(CurlConfiguration.mail(mail, message, password: passwords[target.name]))
    case .upload(let upload):
      let sent = CurlConfiguration.Report(directory: report.directory, name: report.name, files: report.files)
      try await runCurl(CurlConfiguration.upload(upload, sent, password: passwords[target.name]))
    case .command(let command): try await run(command, report)
    }
  }

  /// Mails a notice. Targets other than mail ignore it.
  package func send(_ notice: NightNotice, to target: DispatchTarget, at now: Instant) async throws(Failure) {
    guard case .mail(let mail) = target.means else { return }
    let message = CurlConfiguration.Message(
      subject: notice.subject, text: notice.body.text, html: notice.body.html, date: ReportSender.mailDate(now),
      messageId: ReportSender.messageId(notice.record.runId, from: mail.from, to: target), attachments: [])
    try await runCurl(CurlConfiguration.mail(mail, message, password: passwords[target.name]))
  }

  private static func messageId(_ content: String, from: String, to target: DispatchTarget) -> String {
    "<night-audit.\(content).\(target.name)@\(from.split(separator: "@").last ?? "localhost")>"
  }

  private func message(
    _ report: ReportContents, from: String, to target: DispatchTarget, at now: Instant
  ) throws(Failure) -> CurlConfiguration.Message {
    guard let summary = report.content(of: "summary.json").flatMap(SummaryDocument.init(json:)) else {
      throw Failure(description: "\(report.directory)/summary.json cannot be read", isTransient: false)
    }
    let workbook = report.workbook.flatMap { name in
      (report.size(of: name) ?? .max) <= ReportSender.largestAttachment ? name : nil
    }
    let place = "\(ProcessInfo.processInfo.hostName):\(report.directory)"
    let folder = report.directory.split(separator: "/").last.map(String.init) ?? ""
    let mail = SummaryMail(
      summary, folder: place, attachment: workbook, link: link.map { "\($0)\($0.hasSuffix("/") ? "" : "/")\(folder)/" })
    return CurlConfiguration.Message(
      subject: mail.subject, text: mail.body.text, html: mail.body.html, date: ReportSender.mailDate(now),
      messageId: ReportSender.messageId(String(report.digest.prefix(32)), from: from, to: target),
      attachments: workbook.map { ["\(report.directory)/\($0)"] } ?? [])
  }

  /// RFC 5322, 3.3, in UTC: `Fri, 20 Nov 2026 03:15:00 +0000`.
  static func mailDate(_ instant: Instant) -> String {
    let day = CivilTime(seconds: instant.seconds).day
    let date = CivilDate(daysSince1970: day)
    // 1970-01-01 was a Thursday.
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][Int((day % 7 + 7) % 7)]
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    let time = instant.text.drop { $0 != "T" }.dropFirst().dropLast()
    return "\(weekday), \(date.day) \(months[Int(date.month) - 1]) \(date.year) \(time) +0000"
  }

  // MARK: - Programs

  private func runCurl(_ configuration: String) async throws(Failure) {
    guard let curl = ReportSender.curl else {
      throw Failure(description: "curl is not in the path; install it", isTransient: false)
    }
    // `--disable` comes first, because curl would otherwise read ~/.curlrc.
    let ended = try await run(
      curl, ["--disable", "--config", "-"], input: configuration, within: ReportSender.transferLimit)
    if ended.status.isSuccess {
      guard let odd = ended.replies.first(where: { !(200...299).contains($0) }) else { return }
      throw Failure(
        description: "the server stored nothing and answered HTTP \(odd); check the address, and the region of S3",
        isTransient: false)
    }
    guard case .exited(let code) = ended.status else {
      throw Failure(description: "curl ended with \(ReportSender.words(ended.status))", isTransient: true)
    }
    // RFC 5321, 3.3: RCPT names one recipient. curl then sends the mail to none.
    let remedy = ended.message.contains("RCPT failed") ? "; nobody has the mail: check each address in to" : ""
    throw Failure(
      description: ended.message.isEmpty ? "curl ended with status \(code)" : ended.message + remedy,
      isTransient: ReportSender.isTransient(exitCode: code, message: ended.message))
  }

  /// True if a retry in the same night can help, by curl's exit code (curl(1)).
  static func isTransient(exitCode: Int32, message: String) -> Bool {
    switch exitCode {
    // Proxy, host or connection; unexpected greeting, partial file, timeout, TLS handshake, empty answer, sending,
    // receiving, HTTP/2 framing.
    case 5, 6, 7, 8, 16, 18, 28, 35, 52, 55, 56, 92: true
    // Server errors and rate limits; other refusals are permanent.
    case 22: [" 429", " 408", " 5"].contains { message.contains($0) }
    default: false
    }
  }

  private func run(_ command: [String], _ report: ReportContents) async throws(Failure) {
    let ended = try await run(
      command[0], Array(command.dropFirst()) + [report.directory], input: "", within: ReportSender.commandLimit)
    if ended.status.isSuccess { return }
    let output = ended.message.isEmpty ? "" : ": \(ended.message)"
    let program = DispatchTarget.shownProgram(command[0])
    throw Failure(description: "\(program) ended with \(ReportSender.words(ended.status))\(output)", isTransient: true)
  }

  private struct Ended: Sendable {
    var status: TerminationStatus
    var message: String
    var replies: [Int]

    init(status: TerminationStatus, errors: String) {
      let lines = errors.split(whereSeparator: \.isNewline)
      self.status = status
      replies = lines.compactMap { Int($0) }
      message = ReportSender.lastLine(lines.filter { Int($0) == nil }.joined(separator: "\n"))
    }
  }

  private func run(
    _ program: String, _ arguments: [String], input: String, within limit: Duration
  ) async throws(Failure) -> Ended {
    var options = PlatformOptions()
    options.teardownSequence = [.gracefulShutDown(toProcessGroup: true, allowedDurationToNextStep: .seconds(5))]
    // A process group of its own, so that Ctrl-C reaches the program once, through us, and its children end with it.
    options.processGroupID = 0
    // Removes our settings, with the database password, from the program's environment.
    let environment = Environment.custom(
      ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("NIGHT_AUDIT_") && !$0.key.hasPrefix("PG") }
        .map { Array("\($0.key)=\($0.value)\0".utf8) })
    let (stdin, stderr): (Int32, Int32)
    do {
      stdin = try ProgramStreams.input(input)
      stderr = try ProgramStreams.errors()
    } catch {
      throw Failure(description: "\(program) cannot be given its input: \(error)", isTransient: true)
    }
    defer { for stream in [stdin, stderr] { close(stream) } }
    let late = Failure(description: "\(program) took more than \(limit) and was ended", isTransient: false)
    do {
      return try await withThrowingTaskGroup(of: Ended.self) { [options, stop] group in
        group.addTask {
          let result = try await Subprocess.run(
            .path(FilePath(program)), arguments: Arguments(arguments), environment: environment,
            platformOptions: options,
            input: .fileDescriptor(FileDescriptor(rawValue: stdin), closeAfterSpawningProcess: false),
            output: .discarded,
            error: .fileDescriptor(FileDescriptor(rawValue: stderr), closeAfterSpawningProcess: false))
          return Ended(status: result.terminationStatus, errors: ProgramStreams.tail(of: stderr))
        }
        group.addTask {
          try await stop.wait()
          throw Failure(description: "stopped by a signal", isTransient: false)
        }
        group.addTask {
          // The time limit of the transfer; cancelled if the transfer ends sooner.
          try await Task.sleep(for: limit)
          throw late
        }
        defer { group.cancelAll() }
        guard let ended = try await group.next() else { throw late }
        return ended
      }
    } catch let failure as Failure {
      throw failure
    } catch {
      throw Failure(description: "\(program) cannot be run: \(error)", isTransient: false)
    }
  }

  private static func words(_ status: TerminationStatus) -> String {
    switch status {
    case .exited(let code): "status \(code)"
    case .signaled(let signal): "signal \(signal)"
    }
  }

  /// The last error of curl, which advice of several lines may follow, else the last line. Without control characters.
  static func lastLine(_ text: String) -> String {
    let lines = text.split(whereSeparator: \.isNewline)
    let line = String(lines.last { $0.hasPrefix("curl: (") } ?? lines.last ?? "")
    let printable = line.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7F }
    return String(String(String.UnicodeScalarView(printable)).prefix(300))
  }
}
