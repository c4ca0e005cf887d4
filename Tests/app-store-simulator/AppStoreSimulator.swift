import ArgumentParser
import Foundation

/// Simulates Apple's server APIs on loopback, from a world file, with faults on request.
@main
struct AppStoreSimulator: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "app-store-simulator",
    abstract: "Apple's server interfaces on loopback, for rehearsals and tests.",
    subcommands: [Serve.self, SampleShopCommand.self], defaultSubcommand: Serve.self)
}

struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Serve the interfaces of a world file.",
    discussion: """
      Serves /production/verifyReceipt and /sandbox/verifyReceipt, the App Store Server API under /production/inApps \
      and /sandbox/inApps, and the reports of App Store Connect under /v1/salesReports and /v1/financeReports. It signs \
      with certificates of its own, made anew at each start, and checks tokens when the world has keys.

      Under /simulator: POST faults and POST world change both at run time, POST clock ({"now":MS}, {"advance":MS} or \
      {} for the machine's clock) sets the time of day, GET requests tells what was asked, GET health says that it is \
      there, POST payload makes what clients send, signed: {"form": "signed", "app", "transaction", "notification", \
      "renewalInfo" or "appTransaction", "transactions": [ID], "environment", "bundleId", "signedDate", "type", \
      "damage": what transport did to it}.

      The fields of a world file and of a fault are the properties of World and Disturbance, in \
      Tests/app-store-simulator/World; dates are milliseconds since the epoch. Beside them a world file may have \
      "outages", faults with HTTP status 503.
      """)

  @Option(help: ArgumentHelp("The world: apps, transactions and receipts, as JSON.", valueName: "file"))
  var world: String

  @Option(help: "The port to listen on; 0 picks a free one.")
  var port = 0

  @Option(help: ArgumentHelp("Write the port to this file when ready.", valueName: "file"))
  var portFile: String?

  @Option(help: "How long each answer takes, such as 4s or 250ms.")
  var latency = Latency(milliseconds: 0)

  @Option(help: "The share by which the latency varies to either side, 0 to 1.")
  var latencyJitter = 0.0

  @Option(help: "The share of requests that get an error from Apple, 0 to 1.")
  var errorRate = 0.0

  @Option(help: "The share of answers that are damaged, 0 to 1.")
  var garbageRate = 0.0

  @Option(help: ArgumentHelp("Append one JSON line for each request to this file.", valueName: "file"))
  var log: String?

  @Option(help: ArgumentHelp("Write the root certificate of what is signed to this file, as PEM.", valueName: "file"))
  var rootCertificate: String?

  @Option(
    help: ArgumentHelp(
      "Write the root certificate of the receipts that POST payload makes to this file, as PEM.", valueName: "file"))
  var receiptRootCertificate: String?

  @Option(help: ArgumentHelp("Answer 429 beyond so many requests a second and interface.", valueName: "rate"))
  var enforceLimits: Double?

  @Option(help: "The seed of the faults: equal seeds give equal faults for a receipt.")
  var seed: UInt64 = 1

  func validate() throws {
    guard (0...65_535).contains(port) else { throw ValidationError("--port must be between 0 and 65535.") }
    if let enforceLimits, !(enforceLimits > 0 && enforceLimits <= 1e6) {
      throw ValidationError("--enforce-limits must be above 0.")
    }
    for (name, share) in [
      ("--latency-jitter", latencyJitter), ("--error-rate", errorRate), ("--garbage-rate", garbageRate),
    ] where !(0...1).contains(share) {
      throw ValidationError("\(name) must be between 0 and 1.")
    }
  }

  func run() async throws {
    let settings = FaultSettings(
      latency: latency, latencyJitter: latencyJitter, errorRate: errorRate, garbageRate: garbageRate)
    let simulator = Simulator(
      world: try readWorld(), faults: Faults(settings: settings, seed: seed), log: try RequestLog(path: log),
      serverAPI: try serverAPI())
    if let receiptRootCertificate {
      let pem = try simulator.receiptAuthority.get().chain.rootPEM
      try Data(pem.utf8).write(to: URL(fileURLWithPath: receiptRootCertificate), options: .atomic)
    }
    try await SimulatorServer(simulator: simulator, port: port).run { port in
      if let portFile {
        try Data("\(port)\n".utf8).write(to: URL(fileURLWithPath: portFile), options: .atomic)
      }
      try FileHandle.standardOutput.write(contentsOf: Data("listening on http://127.0.0.1:\(port)\n".utf8))
    }
  }

  private func serverAPI() throws -> ServerAPIInterface {
    let authority = try SigningAuthority()
    if let rootCertificate {
      try Data(authority.chain.rootPEM.utf8).write(to: URL(fileURLWithPath: rootCertificate), options: .atomic)
    }
    return ServerAPIInterface(authority: authority, limits: RateLimits(rate: enforceLimits))
  }

  private func readWorld() throws -> World {
    do {
      return try World(json: Data(contentsOf: URL(fileURLWithPath: world)))
    } catch {
      throw ValidationError("\(world) cannot be read as a world: \(error)")
    }
  }
}

extension Latency: ExpressibleByArgument {
  init?(argument: String) { self.init(argument) }
}
