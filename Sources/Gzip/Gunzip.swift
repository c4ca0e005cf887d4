import CZlib

/// Why compressed bytes are no text.
package enum GunzipError: Error, Hashable, CustomStringConvertible {
  /// The bytes are no gzip (RFC 1952), or their checksum is another one.
  case damaged
  /// The end is missing.
  case cut
  /// More than `limit` bytes come out.
  case tooLong(limit: Int)

  package var description: String {
    switch self {
    case .damaged: "the compressed data are damaged"
    case .cut: "the compressed data end before their end"
    case .tooLong(let limit): "more than \(limit >> 20) MiB come out of the compressed data"
    }
  }
}

/// Decompresses a gzip stream, at most twice, because an HTTP layer may have compressed it once more. Uncompressed bytes
/// pass unchanged. Memory does not grow with the output. `finish` throws for a truncated stream, whose beginning has
/// been handed on by then: a caller may use its results only after `finish` has returned.
package final class Gunzip {
  /// The largest output of one report: 1 GiB.
  package static let usualLimit = 1 << 30

  private let limit: Int
  private var layers: [Layer]
  private var produced = 0

  /// - Parameters:
  ///   - limit: the most bytes that may come out.
  ///   - layers: how often it may be compressed.
  package init(limit: Int = Gunzip.usualLimit, layers: Int = 2) {
    self.limit = limit
    self.layers = (0..<layers).map { _ in Layer() }
  }

  /// Takes further bytes, and hands on their decompressed form.
  package func push(
    _ bytes: UnsafeRawBufferPointer, to body: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    try unsafe push(bytes, through: 0, to: body)
  }

  /// To be called after the last byte. Throws when more should have come.
  package func finish(to body: (UnsafeRawBufferPointer) throws -> Void) throws {
    for index in layers.indices {
      // A text of one byte is still in its layer, as it may have been the beginning of the magic.
      if let first = layers[index].release() {
        try unsafe [first].withUnsafeBytes { try unsafe push($0, through: index + 1, to: body) }
      }
      guard layers[index].isComplete else { throw GunzipError.cut }
    }
  }

  /// All at once, for texts that are known to be short.
  package static func text(of bytes: [UInt8], limit: Int = Gunzip.usualLimit) throws -> [UInt8] {
    var text: [UInt8] = []
    let gunzip = Gunzip(limit: limit)
    try unsafe bytes.withUnsafeBytes { try unsafe gunzip.push($0) { unsafe text.append(contentsOf: $0) } }
    try unsafe gunzip.finish { unsafe text.append(contentsOf: $0) }
    return text
  }

  private func push(
    _ bytes: UnsafeRawBufferPointer, through index: Int, to body: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    guard index < layers.count else {
      produced += bytes.count
      guard produced <= limit else { throw GunzipError.tooLong(limit: limit) }
      return try unsafe body(bytes)
    }
    try unsafe layers[index].push(bytes) { try unsafe push($0, through: index + 1, to: body) }
  }
}

extension Gunzip {
  /// One compression, or none.
  fileprivate final class Layer {
    private enum Mode {
      /// Not enough bytes to tell.
      case undecided(first: UInt8?)
      case plain
      case inflating(Inflater)
    }

    private var mode = Mode.undecided(first: nil)

    var isComplete: Bool {
      switch mode {
      case .undecided, .plain: true
      case .inflating(let inflater): inflater.isAtEnd
      }
    }

    /// The byte that waits for the next one, after which nothing came.
    func release() -> UInt8? {
      guard case .undecided(let first?) = mode else { return nil }
      mode = .plain
      return first
    }

    func push(_ bytes: UnsafeRawBufferPointer, to body: (UnsafeRawBufferPointer) throws -> Void) throws {
      if unsafe bytes.isEmpty { return }
      switch mode {
      case .plain: try unsafe body(bytes)
      case .inflating(let inflater): try unsafe inflater.push(bytes, to: body)
      case .undecided(let first):
        let start = unsafe [first].compactMap(\.self) + bytes.prefix(2)
        guard start.count >= 2 else {
          mode = .undecided(first: start.first)
          return
        }
        mode = start[0] == 0x1F && start[1] == 0x8B ? .inflating(try Inflater()) : .plain
        if let first { try unsafe [first].withUnsafeBytes { try unsafe push($0, to: body) } }
        try unsafe push(bytes, to: body)
      }
    }
  }
}

/// One gzip stream of zlib's, or several in a row, which are one to gzip.
@safe private final class Inflater {
  // zlib points back at it, so it must not move.
  private let stream: UnsafeMutablePointer<z_stream>
  private let output = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
  private(set) var isAtEnd = false

  init() throws {
    unsafe stream = .allocate(capacity: 1)
    unsafe stream.initialize(to: z_stream())
    guard unsafe night_audit_inflate_gzip(stream) == Z_OK else { throw GunzipError.damaged }
  }

  deinit {
    unsafe inflateEnd(stream)
    unsafe stream.deallocate()
    unsafe output.deallocate()
  }

  func push(_ bytes: UnsafeRawBufferPointer, to body: (UnsafeRawBufferPointer) throws -> Void) throws {
    unsafe stream.pointee.next_in = UnsafeMutablePointer(
      mutating: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self))
    unsafe stream.pointee.avail_in = UInt32(bytes.count)
    while true {
      if isAtEnd {
        // Some writers fill the end up with zeros.
        while unsafe stream.pointee.avail_in > 0 && stream.pointee.next_in.pointee == 0 { skipByte() }
        guard unsafe stream.pointee.avail_in > 0 else { return }
        guard unsafe inflateReset(stream) == Z_OK else { throw GunzipError.damaged }
        isAtEnd = false
      }
      unsafe stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
      unsafe stream.pointee.avail_out = UInt32(output.count)
      let status = unsafe inflate(stream, Z_NO_FLUSH)
      let count = unsafe output.count - Int(stream.pointee.avail_out)
      if count > 0 { try unsafe body(UnsafeRawBufferPointer(rebasing: output[..<count])) }
      switch status {
      case Z_STREAM_END: isAtEnd = true
      case Z_OK: if unsafe stream.pointee.avail_in == 0 && count < output.count { return }
      case Z_BUF_ERROR: return
      default: throw GunzipError.damaged
      }
    }
  }

  private func skipByte() {
    unsafe stream.pointee.next_in += 1
    unsafe stream.pointee.avail_in -= 1
  }
}
