import CZlib

extension Gunzip {
  /// Bytes as one gzip stream (RFC 1952) without a time in it: the same bytes give the same stream. nil when memory is
  /// short.
  package static func compressed(_ bytes: [UInt8], level: Int32 = 6) -> [UInt8]? {
    var stream = unsafe z_stream()
    return unsafe withUnsafeMutablePointer(to: &stream) { stream -> [UInt8]? in
      guard unsafe night_audit_deflate_gzip(stream, level) == Z_OK else { return nil }
      defer { unsafe deflateEnd(stream) }
      let bound = unsafe Int(deflateBound(stream, UInt(bytes.count)))
      return unsafe bytes.withUnsafeBufferPointer { input in
        unsafe [UInt8](unsafeUninitializedCapacity: bound) { output, count in
          unsafe stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
          unsafe stream.pointee.avail_in = UInt32(input.count)
          unsafe stream.pointee.next_out = output.baseAddress
          unsafe stream.pointee.avail_out = UInt32(bound)
          count = unsafe deflate(stream, Z_FINISH) == Z_STREAM_END ? bound - Int(stream.pointee.avail_out) : 0
        }
      }
    }
  }
}
