import AppStore
import Testing

struct AppleFaultTests {
  private static let faults: [AppleFault] = [
    .tokenRefused(.production), .accessRefused, .appUnknown(bundleId: "com.example.game"), .sharedSecretRefused,
    .requestRefused(code: 4_000_000), .requestRefused(code: 21_000), .requestRefused(code: nil), .tokenNotSigned,
    .rootMissing,
  ]

  @Test func everyFaultStatesItsRemedy() {
    #expect(Set(Self.faults.map(\.message)).count == Self.faults.count)
    #expect(Self.faults[2].message.contains("com.example.game") && Self.faults[4].message.contains("4000000"))
    #expect(Self.faults[5].message.contains("status 21000"))
  }

  @Test func refusalsAreGroupedByKindAndCredential() {
    #expect(AppleFault.tokenRefused(.production).kind == AppleFault.tokenRefused(.sandbox).kind)
    #expect(Set(Self.faults.map(\.kind)) == Set(AppleFault.Kind.allCases))
    #expect(
      Self.faults.map(\.credential) == [
        .serverAPIKey, .serverAPIKey, .serverAPIKey, .sharedSecret, nil, nil, nil, .serverAPIKey, .rootCertificates,
      ])
  }
}
