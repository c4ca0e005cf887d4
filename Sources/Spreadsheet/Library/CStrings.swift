import Glibc

/// C strings for one call of the library, which copies what it keeps.
@safe
struct CStrings: ~Copyable {
  private var copies: [UnsafeMutablePointer<CChar>] = unsafe []

  deinit { unsafe copies.forEach { copy in unsafe free(copy) } }

  mutating func copy(_ text: String?) -> UnsafeMutablePointer<CChar>? {
    guard let text, let copy = unsafe strdup(text) else { return nil }
    unsafe copies.append(copy)
    return unsafe copy
  }
}
