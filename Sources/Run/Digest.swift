import Crypto
import Glibc

package enum Digest {
  package static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }

  /// SHA-256 from the current position, in lower-case hexadecimal. Nil, with `errno` set, if the file cannot be read.
  package static func sha256(descriptor: Int32) -> String? {
    var hash = SHA256()
    var buffer = [UInt8](repeating: 0, count: 1 << 18)
    while true {
      let count = read(descriptor, &buffer, buffer.count)
      if count == 0 { return hexadecimal(hash.finalize()) }
      if count < 0 {
        if errno == EINTR { continue }
        return nil
      }
      buffer.withUnsafeBytes { hash.update(bufferPointer: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    }
  }
}
