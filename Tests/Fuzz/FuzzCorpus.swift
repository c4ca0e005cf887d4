import Foundation

/// Genuine inputs in Apple's formats, signed by test authorities. They are files, so that a seed gives the same
/// mutations on every machine, and libFuzzer can start from them.
struct FuzzCorpus {
  static let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Corpus")

  struct Failure: Error, CustomStringConvertible { var description: String }

  /// Keyed by decoder, without the letter, in order of file names.
  private let inputs: [FuzzDecoder: [[UInt8]]]

  init(directory: URL = Self.directory) throws {
    var inputs: [FuzzDecoder: [[UInt8]]] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted() {
      let content = Array(try Data(contentsOf: directory.appendingPathComponent(name)))
      guard let decoder = content.first.flatMap(FuzzDecoder.init) else {
        throw Failure(description: "\(name) does not begin with a decoder's letter")
      }
      inputs[decoder, default: []].append(Array(content.dropFirst()))
    }
    for decoder in FuzzDecoder.allCases where inputs[decoder] == nil {
      throw Failure(description: "the corpus has nothing for \(decoder)")
    }
    self.inputs = inputs
  }

  subscript(decoder: FuzzDecoder) -> [[UInt8]] { inputs[decoder] ?? [] }
}
