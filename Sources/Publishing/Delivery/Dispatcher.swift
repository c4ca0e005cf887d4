import AuditStore
import Logging
import Reconciliation
import Run
import Settings

package struct Dispatch: Hashable, Sendable, Encodable {
  package var target: String
  package var directory: String
  /// Why the delivery failed; nil if it succeeded. The next night tries again.
  package var problem: String?
}

/// Sends the owed reports of all nights at least once; only a kill before the record repeats a delivery.
package struct Dispatcher {
  package let targets: [DispatchTarget]
  package let sender: ReportSender
  /// Not the night's own session, which may end while a report is being sent.
  package let store: OpenSession
  package let logger: Logger
  package let stop: StopSignal
  package var pause = Attempts.backoff

  package init(
    targets: [DispatchTarget], sender: ReportSender, store: OpenSession, logger: Logger, stop: StopSignal
  ) {
    (self.targets, self.sender, self.store, self.logger, self.stop) = (targets, sender, store, logger, stop)
  }

  /// Returns all deliveries, also deliveries that were skipped because their target had not answered before.
  package func deliverAll(runId: String) async throws -> [Dispatch] {
    var dispatches: [Dispatch] = []
    var unreachable: [String: String] = [:]
    for owed in try await store.run({ session, _ in try await DispatchTable.owed(runId: runId, session) }) {
      guard let target = targets.first(where: { $0.name == owed.target }) else {
        try await withdraw(owed, "its place is no longer in report.deliver")
        continue
      }
      if let problem = unreachable[owed.target] {
        dispatches.append(Dispatch(target: owed.target, directory: owed.directory, problem: problem))
        continue
      }
      guard let report = ReportContents(directory: owed.directory) else {
        // A missing folder may be on a volume that is not mounted, so its report stays owed.
        let problem =
          "\(owed.directory) is missing or cannot be read; put it back, check its owner and the volume, or make the "
          + "report again"
        dispatches.append(try await keep(owed, because: problem, metadata(owed)))
        continue
      }
      let last = try await store.run { session, _ in try await DispatchTable.lastContent(owed, session) }
      if last == report.digest {
        try await store.run { session, _ in
          try await DispatchTable.withdraw(owed, problem: "has arrived before", session)
        }
        continue
      }
      if let problem = report.problem {
        dispatches.append(try await keep(owed, because: problem, metadata(owed)))
        continue
      }
      let dispatch = try await deliver(owed, report, to: target)
      unreachable[owed.target] = dispatch.problem
      dispatches.append(dispatch)
    }
    return dispatches
  }

  private func keep(
    _ owed: DispatchTable.Owed, because problem: String, attempts: Int = 0, _ metadata: Logger.Metadata
  ) async throws -> Dispatch {
    logger.error("a report could not be sent, the next night tries again: \(problem)", metadata: metadata)
    try await store.run { session, _ in
      try await DispatchTable.note(owed, problem: problem, attempts: attempts, session)
    }
    return Dispatch(target: owed.target, directory: owed.directory, problem: problem)
  }

  private func withdraw(_ owed: DispatchTable.Owed, _ problem: String) async throws {
    logger.warning("a report is not sent: \(problem)", metadata: metadata(owed))
    try await store.run { session, _ in try await DispatchTable.withdraw(owed, problem: problem, session) }
  }

  private func deliver(
    _ owed: DispatchTable.Owed, _ report: ReportContents, to target: DispatchTarget
  ) async throws -> Dispatch {
    let attempts = Attempts(
      target: target, what: "a report", metadata: metadata(owed), logger: logger, stop: stop, pause: pause)
    let ended = try await attempts.run { () async throws(ReportSender.Failure) in
      try await sender.deliver(report, to: target, at: .now)
    }
    if let problem = ended.problem {
      return try await keep(owed, because: problem, attempts: ended.count, attempts.metadata(ended.count))
    }
    let (content, count) = (report.digest, ended.count)
    try await store.run { session, _ in
      try await DispatchTable.recordDelivery(owed, content: content, attempts: count, session)
    }
    logger.info("sent the report", metadata: metadata(owed))
    return Dispatch(target: owed.target, directory: owed.directory)
  }

  private func metadata(_ owed: DispatchTable.Owed) -> Logger.Metadata {
    ["target": "\(owed.target)", "directory": "\(owed.directory)"]
  }
}
