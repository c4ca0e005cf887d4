import Foundation
import Glibc

/// What people had put beside a report's files, or had edited, and where it is now.
package struct KeptFile: Hashable, Sendable, Encodable {
  package var was: String
  package var now: String
}

/// Takes apart a folder that a newer one has replaced: what is ours by hash goes, everything else moves to the newer one.
struct FolderMerge {
  let volume: VolumeCalls

  /// - Parameters:
  ///   - old: the folder that was replaced. Nothing is left of it, unless somebody puts something there meanwhile.
  ///   - target: the folder in its place; nil where there is none, and what is not ours stays.
  /// - Returns: what was moved.
  func dissolve(_ old: String, into target: String?) throws -> [KeptFile] {
    guard try FileKind.isThere(old) else { return [] }
    guard let folder = OpenDirectory(old) else { throw PublishingFailure(path: old, code: errno) }
    let contents = ReportContents(directory: old)
    let place = target.flatMap { OpenDirectory($0) }
    var kept: [KeptFile] = []
    for name in try folder.names() {
      // The sums come last: without them a second attempt would not know what is ours.
      if contents != nil, name.text == ReportContents.sums { continue }
      try volume.step("take \(name.text) out of what was replaced")
      if contents?.owns(name, in: folder) == true || isTwin(name, folder, place) {
        try check(folder.unlink(name), "\(old)/\(name.text)")
      } else if let place {
        kept.append(try move(name, from: folder, to: place))
      }
    }
    if let place { try check(place.synchronize(), place.path) }
    let sums = OpenDirectory.Name(ReportContents.sums)
    if try folder.names() == [sums] { try check(folder.unlink(sums), "\(old)/\(sums.text)") }
    if try folder.names().isEmpty { try check(rmdir(old) == 0 ? 0 : errno, old) }
    return kept
  }

  /// Whether the newer folder has the same content under that name: nothing is lost with this one.
  private func isTwin(_ name: OpenDirectory.Name, _ folder: OpenDirectory, _ place: OpenDirectory?) -> Bool {
    guard let place, let sum = folder.sha256(name) else { return false }
    return place.sha256(name) == sum
  }

  private func move(
    _ name: OpenDirectory.Name, from folder: OpenDirectory, to place: OpenDirectory
  ) throws(PublishingFailure) -> KeptFile {
    for number in 0... {
      let newName = number == 0 ? name : OpenDirectory.Name(FolderMerge.editedName(name.text, number))
      let code = folder.move(name, to: place, as: newName)
      if code == 0 { return KeptFile(was: name.text, now: newName.text) }
      guard code == EEXIST || code == ENOTEMPTY else {
        throw PublishingFailure(path: "\(place.path)/\(newName.text)", code: code)
      }
    }
    return KeptFile(was: name.text, now: name.text)
  }

  private func check(_ code: Int32, _ path: String) throws(PublishingFailure) {
    if code != 0 { throw PublishingFailure(path: path, code: code) }
  }

  /// The name under which a file stays whose own is taken: `orders.csv` becomes `orders.edited.csv`, then
  /// `orders.edited-2.csv`.
  static func editedName(_ name: String, _ number: Int) -> String {
    let mark = number == 1 ? "edited" : "edited-\(number)"
    guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return "\(name).\(mark)" }
    return "\(name[..<dot]).\(mark)\(name[dot...])"
  }
}
