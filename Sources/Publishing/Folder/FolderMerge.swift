import Foundation
import Glibc

/// A file that people had added to a report folder or had edited, and its new place.
package struct KeptFile: Hashable, Sendable, Encodable {
  package var was: String
  package var now: String
}

/// Dissolves a replaced report folder: unedited files are removed, others move to its successor.
struct FolderMerge {
  let volume: VolumeCalls

  /// - Parameter target: the successor; nil for none, and files of people then stay.
  func dissolve(_ old: String, into target: String?) throws -> [KeptFile] {
    guard try FileKind.isThere(old) else { return [] }
    guard let folder = OpenDirectory(old) else { throw PublishingFailure(path: old, code: errno) }
    let contents = ReportContents(directory: old)
    let place = target.flatMap { OpenDirectory($0) }
    var kept: [KeptFile] = []
    for name in try folder.names() {
      // `SHA256SUMS` goes last, because a second attempt needs it to recognise the report's files.
      if contents != nil, name.text == ReportContents.sums { continue }
      try volume.step("take \(name.text) out of what was replaced")
      if contents?.owns(name, in: folder) == true || isIdenticalCopy(name, folder, place) {
        try folder.unlink(name)
      } else if let place {
        kept.append(try move(name, from: folder, to: place))
      }
    }
    try place?.synchronize()
    let sums = OpenDirectory.Name(ReportContents.sums)
    if try folder.names() == [sums] { try folder.unlink(sums) }
    if try folder.names().isEmpty { try PublishingFailure.check(rmdir(old) == 0, old) }
    return kept
  }

  private func isIdenticalCopy(_ name: OpenDirectory.Name, _ folder: OpenDirectory, _ place: OpenDirectory?) -> Bool {
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

  /// A free name beside a taken one: `orders.edited.csv`, then `orders.edited-2.csv`.
  static func editedName(_ name: String, _ number: Int) -> String {
    let mark = number == 1 ? "edited" : "edited-\(number)"
    guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return "\(name).\(mark)" }
    return "\(name[..<dot]).\(mark)\(name[dot...])"
  }
}
