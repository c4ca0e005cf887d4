import AuditStore
import Foundation
import Glibc
import Reconciliation
import Run

package enum VolumeProbe {
  package enum Replacement: Hashable, Sendable {
    case exchanges
    case renames(reason: String)
  }

  /// Leaves nothing, and creates no missing folder: its owner would be the user of `doctor`.
  package static func examine(_ directory: String, volume: VolumeCalls = VolumeCalls()) throws -> Replacement {
    var directory = ReportFolder.absolute(directory)
    while directory != "/", !FileManager.default.fileExists(atPath: directory) {
      directory = (directory as NSString).deletingLastPathComponent
    }
    let names = (0..<2).map { _ in
      ReportFolder.Destination.exact("\(directory)/.night-audit-probe-\(UUID().uuidString.lowercased())")
    }
    let folders = try names.map {
      try ReportFolder($0, token: UUID().uuidString.lowercased(), asOf: .now, known: KnownRuns())
    }
    defer { for folder in folders { folder.discard() } }
    for folder in folders { try folder.write(Data("night-audit\n".utf8), as: "probe") }
    let code = volume.exchange(folders[0].staging, folders[1].staging)
    if code == 0 { return .exchanges }
    guard VolumeCalls.isUnsupported(code) else { throw PublishingFailure(path: directory, code: code) }
    let aside = folders[0].staging + "-aside"
    try PublishingFailure.check(
      rename(folders[0].staging, aside) == 0 && rename(aside, folders[0].staging) == 0, directory)
    return .renames(reason: String(cString: strerror(code)))
  }
}
