import AuditStore
import Foundation
import Logging
import Postgres

/// Finishes runs killed before their report appeared: publishes it, or records that it was not published.
package struct PublicationRecovery: Sendable {
  package let logger: Logger
  private let host: String

  package init(logger: Logger, host: String = ProcessInfo.processInfo.hostName) {
    (self.logger, self.host) = (logger, host)
  }

  /// Needs the run lock. Returns the runs whose whole report waits for its volume.
  @discardableResult
  package func finish(_ session: PostgresSession) async throws -> Set<String> {
    let unfinished = try await RunPublication.unfinished(session)
    if unfinished.isEmpty { return [] }
    let known = try await session.withConnection { connection in try KnownRuns.read(on: connection) }
    var waiting: Set<String> = []
    for run in unfinished {
      let metadata: Logger.Metadata = ["run": "\(run.runId)", "directory": "\(run.directory)"]
      let destination = PublicationRecovery.destination(of: run)
      do {
        let published = try ReportFolder.resume(
          destination, token: run.runId, asOf: run.asOf, digest: run.content, known: known)
        if let published {
          try await run.record(publishedAs: ReportFolder.absolute(published.path), session)
          logger.info("finished the publication of an earlier run", metadata: metadata)
          continue
        }
      } catch let failure as PublishingFailure {
        if failure.isOfVolume {
          waiting.insert(run.runId)
          logger.error("the publication of an earlier run must wait: \(failure)", metadata: metadata)
          continue
        }
        logger.warning("the publication of an earlier run cannot be finished: \(failure)", metadata: metadata)
      }
      guard run.host == host || ReportFolder.wasMade(destination, token: run.runId) else {
        // Another host may see a folder that this one does not.
        logger.warning("only host \(run.host) can find out whether its report is published", metadata: metadata)
        continue
      }
      try await run.recordAsNotPublished(session)
      logger.warning("an earlier run died before its report appeared", metadata: metadata)
    }
    return waiting
  }

  static func destination(of run: RunPublication) -> ReportFolder.Destination {
    let parent = (run.directory as NSString).deletingLastPathComponent
    let name = (run.directory as NSString).lastPathComponent
    if let night = run.night { return .nightly(directory: parent, date: night) }
    if (parent as NSString).lastPathComponent == "ad-hoc",
      name.wholeMatch(of: /\d{4}-\d{2}-\d{2}(_\d{4}-\d{2}-\d{2})?/) != nil
    {
      return .adHoc(directory: (parent as NSString).deletingLastPathComponent, period: name)
    }
    return .exact(run.directory)
  }
}
