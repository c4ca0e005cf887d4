import Testing

@testable import Reconciliation

/// All spellings of one account token have one fingerprint, so that a Bloom filter misses none.
@Suite struct AccountTokenTests {
  @Test(arguments: ["f7a1b9a0-6b0c-4c0e-9b43-1d2f3c4b5a69", "user-17", "{x}", ""])
  func spellingsShareAFingerprint(_ token: String) {
    let spellings = [token, token.uppercased(), token.filter { $0 != "-" }, "{\(token)}", "urn:uuid:\(token)"]
    for spelling in spellings where AccountToken.isSame(token, spelling) == true {
      #expect(AccountToken.fingerprint(spelling) == AccountToken.fingerprint(token), "\(spelling)")
    }
    let stored = AccountToken.spelling(token)
    #expect(AccountToken.fingerprint(stored) == AccountToken.fingerprint(token))
    #expect(AccountToken.fingerprint(token + "0") != AccountToken.fingerprint(token))
  }
}
