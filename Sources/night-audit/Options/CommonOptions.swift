import ArgumentParser
import AuditStore
import Foundation
import Logging
import NightAudit
import Postgres
import Reconciliation
import Run
import Settings

struct CommonOptions: ParsableArguments {
  @Option(help: "Configuration file. Default: ./night-audit.yaml, else /etc/night-audit/night-audit.yaml.")
  var config: String?

  @Flag(
    help:
      "Print nothing on success, with status 2 too: only errors, and why a night is incomplete or held. Lists, status, config show and explain are always printed."
  )
  var quiet = false

  @Flag(help: "Log more details.") var verbose = false

  @Option(help: "How the log is written to standard error: text, logfmt or json.") var logFormat = LogFormat.text

  @Flag(help: "Print JSON.") var json = false

  func validate() throws {
    if quiet, verbose { throw ValidationError("--quiet and --verbose contradict each other; give one of them.") }
  }

  var logger: Logger { logFormat.logger(quiet ? .error : (verbose ? .debug : .info)) { Terminal.writeError($0) } }

  /// Prints a document with `--json`, else a text; nil prints nothing.
  func show(_ document: some Encodable, _ text: @autoclosure () -> String?) throws {
    if json { print(try MachineText.json(document)) } else if let text = text() { print(text) }
  }

  /// Loads the settings, and logs their warnings.
  func settings() throws -> Settings {
    let logger = logger
    PostgresNotice.listen { notice in
      logger.log(
        level: notice.severity == "WARNING" ? .warning : .debug, "notice of the database: \(notice.message)",
        metadata: ["connection": "\(notice.connection)", "sqlstate": "\(notice.sqlState)"])
    }
    let settings = try loader().load()
    // Also with `--quiet`, because cron's mail may be all that people read.
    var heard = logger
    heard.logLevel = min(heard.logLevel, .warning)
    for warning in settings.warnings { heard.warning("\(warning)") }
    return settings
  }

  func loader() throws -> SettingsLoader {
    let file = try EnvironmentFile.adopt()
    return try SettingsLoader(path: config, environment: ProcessInfo.processInfo.environment, environmentFile: file)
  }

  /// Runs a command's body with the settings; an error becomes a line on stderr and an exit status.
  func reporting(run: String? = nil, _ body: (Settings, Logger) async throws -> ExitStatus) async throws {
    var logger = logger
    logger[metadataKey: "run"] = run.map { "\($0)" }
    try await concluding(logger) { try await body(try settings(), logger) }
  }

  /// Runs a command's body; an error becomes a line on stderr and an exit status.
  func concluding(_ body: () async throws -> ExitStatus) async throws { try await concluding(logger, body) }

  private func concluding(_ logger: Logger, _ body: () async throws -> ExitStatus) async throws {
    let status: ExitStatus
    do {
      status = try await body()
    } catch let stopped as StopSignal.Stopped {
      throw reported("stopped by a signal", stopped.reason.rawValue, logger)
    } catch {
      throw reported("\(error)", (error is ValidationError ? .usage : ExitStatus(for: error)).rawValue, logger)
    }
    if status != .complete { throw ExitCode(status.rawValue) }
  }

  /// Reports why a command ended early, in the log where machines read that.
  private func reported(_ why: String, _ status: Int32, _ logger: Logger) -> ExitCode {
    switch logFormat {
    case .text: Terminal.complain("night-audit: \(why)")
    case .logfmt, .json: logger.error("\(why)")
    }
    MachineError.report(why, status: status)
    return ExitCode(status)
  }
}

extension CommonOptions {
  /// As `reporting`, for a night that stops at SIGINT and SIGTERM and shows its progress.
  func listening(_ body: (Settings, NightRun) async throws -> ExitStatus) async throws {
    let runId = UUID().uuidString.lowercased()
    try await reporting(run: runId) { settings, logger in
      let stop = StopSignal()
      let progress = WorkProgress(logger: logger, isQuiet: quiet)
      do {
        let night = NightRun(settings: settings, logger: logger, stop: stop, progress: progress, runId: runId)
        return try await Signals.stopping(stop) { try await body(settings, night) }
      } catch {
        // A cancellation error does not contain the reason of the stop.
        try stop.check()
        throw error
      }
    }
  }
}

/// A command that needs the settings. It ends with the returned status, and with that of an error.
protocol SettingsCommand: AsyncParsableCommand {
  var common: CommonOptions { get }
  func run(_ settings: Settings) async throws -> ExitStatus
}

extension SettingsCommand {
  func run() async throws { try await common.reporting { settings, _ in try await run(settings) } }
}

/// Options of run, recheck and reconcile.
struct AuditOptions: ParsableArguments {
  @Option(help: ArgumentHelp("One day, in report.timeZone, or today, or yesterday.", valueName: "day"))
  var date: String?
  @Option(help: ArgumentHelp("First day of the period.", valueName: "day")) var since: String?
  @Option(help: ArgumentHelp("Last day of the period, included.", valueName: "day")) var until: String?

  @Option(
    help: ArgumentHelp("List this order only, if it was created in the period: see --date.", valueName: "order-id"))
  var order: String?

  @Option(help: ArgumentHelp("List this user's orders of the period only: see --since.", valueName: "user-id"))
  var user: String?

  @Option(help: ArgumentHelp("List orders of this product only.", valueName: "product-id")) var product: String?

  @Option(
    help: ArgumentHelp(
      "List orders of this app only: its name in the configuration, or its bundle ID.", valueName: "app"))
  var app: String?

  @Option(
    help: ArgumentHelp(
      "The instant that the audit describes, such as 2026-11-20T03:00:00Z. Default: now.", valueName: "instant"),
    transform: OptionValue.instant)
  var asOf: Instant?

  @Option(help: ArgumentHelp("Write the report into this directory.", valueName: "dir")) var out: String?

  @Flag(help: "Do not ask Apple, change nothing, and print whether the night would be held.") var dryRun = false

  @Flag(help: "Do not ask Apple; judge receipts offline where that is possible.") var offline = false

  @Option(
    help: ArgumentHelp("Stop asking Apple after this long, such as 30m.", valueName: "duration"),
    transform: OptionValue.duration)
  var maxDuration: Reconciliation.Span?

  @Option(
    help: ArgumentHelp(
      "Number of parts of the orders that are read in parallel, each on three connections. The report is the same. Default: the processors, at most 8.",
      valueName: "count"))
  var readers: Int?

  @Flag(help: "Publish an implausible night, after a person has checked the held report.") var accept = false

  @OptionGroup var threshold: ThresholdOptions

  func validate() throws {
    if date != nil, since != nil || until != nil {
      throw ValidationError("--date is one day; give either --date or --since and --until.")
    }
    if let readers, !(1...64).contains(readers) { throw ValidationError("--readers \(readers) is not from 1 to 64.") }
  }

  func request(_ settings: Settings, command: String) throws -> NightRequest {
    var request = NightRequest(asOf: asOf)
    request.command = command
    request.isAccepted = accept
    request.threshold = try threshold.threshold
    let zone = settings.timeZone
    let usual = Period.dayBefore(request.asOf, in: zone)
    func day(_ text: String) -> String {
      switch text {
      case "today": Period.dayText(of: request.asOf, in: zone)
      case "yesterday": usual.since
      case let day: day
      }
    }
    let (since, until) = (self.since.map(day), self.until.map(day))
    if let date = date.map(day) {
      request.period = try Period(since: date, until: date, in: zone)
    } else if since != nil || until != nil {
      request.isOneNight = false
      // A missing end of the period is that of the business day before the as-of.
      request.period = try Period(
        since: since ?? min(usual.since, until ?? usual.since), until: until ?? usual.until, in: zone)
    }
    request.selection.orderId = order.map { Identifier($0) }
    request.selection.userId = user.map { Identifier($0) }
    request.selection.productId = product.map { Identifier($0) }
    if let app {
      guard let known = settings.apps.first(where: { $0.name == app || $0.bundleId == app }) else {
        let names = settings.apps.map(\.name).joined(separator: ", ")
        throw ValidationError("--app \(app) is not configured; the apps are: \(names).")
      }
      request.selection.bundleId = known.bundleId
      request.selection.isOnlyApp = settings.apps.count == 1
    }
    request.out = out
    request.isOffline = offline
    request.readers = readers
    request.maxDuration = maxDuration
    return request
  }
}

/// Parses the values of options.
enum OptionValue {
  /// RFC 3339, such as `2026-11-20T03:00:00Z` or with an offset.
  @Sendable static func instant(_ text: String) throws -> Instant {
    if let instant = Instant(asOf: text) { return instant }
    throw ValidationError(
      "not an instant from 1970 on; write 2026-11-20T03:00:00Z, or an offset such as +01:00 for the Z.")
  }

  @Sendable static func duration(_ text: String) throws -> Reconciliation.Span {
    if let span = DurationText.parse(text) { return span }
    throw ValidationError("not a duration of at most 365000d; write a number and s, m, h or d, such as 30m.")
  }

  @Sendable static func amount(_ text: String) throws -> String {
    if FindingsFilter.isAmount(text) { return text }
    throw ValidationError("not an amount of 0 or more; write major units with a point, such as 4.99.")
  }

  @Sendable static func currency(_ text: String) throws -> Currency {
    if let currency = Currency(code: text.uppercased()) { return currency }
    throw ValidationError("not a currency of ISO 4217; write a code such as USD.")
  }
}

extension LogFormat: ExpressibleByArgument {}

/// The findings that make a complete night end with 2.
struct ThresholdOptions: ParsableArguments {
  @Flag(help: "End with status 2 when critical findings are open.") var failOnFindings = false

  @Option(
    help: ArgumentHelp(
      "End with status 2 when more critical findings than this are open, or put more money at risk: 25, or 500USD. May be repeated.",
      valueName: "count-or-amount"))
  var failAbove: [String] = []

  func validate() throws { _ = try threshold }

  var threshold: FindingsThreshold? {
    get throws {
      if !failOnFindings, failAbove.isEmpty { return nil }
      var threshold = failOnFindings ? FindingsThreshold.any : FindingsThreshold()
      for text in failAbove where !threshold.add(text) {
        throw ValidationError("--fail-above \(text) is neither a count nor an amount; write 25, or 500USD.")
      }
      return threshold
    }
  }
}
