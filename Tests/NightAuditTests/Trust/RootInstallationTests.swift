import Foundation
import TestSupport
import Testing

@testable import AppStore
@testable import NightAudit
@testable import Run

@Suite struct RootInstallationTests {
  /// Two self-signed test authorities; their keys were not kept.
  private static let certificates = [
    """
    MIIBeTCCAR+gAwIBAgIUXd9nW2OSHJIKCIEg8wiLgvIHTBowCgYIKoZIzj0EAwIwETEPMA0GA1UEAwwGVGVzdCAxMCAXDTI2MTEyMTA2MjQ1M1oY
    DzIwODEwODI0MDYyNDUzWjARMQ8wDQYDVQQDDAZUZXN0IDEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQZFODSgdSCmSaU9/wZ3J/+oSTy3gmT
    0nj8wpXsoqluZ9bzbFhlicGj72zyCAOAJqvB2TE1HpnKh1pk2HCDNHFPo1MwUTAdBgNVHQ4EFgQUwFr16ql4DpWdC0CDP2Njn6OpEqkwHwYDVR0j
    BBgwFoAUwFr16ql4DpWdC0CDP2Njn6OpEqkwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEA0QwVT2jIGlhQiy3jNANwAKf/yLf4
    /MFc2d0ApnayuIQCIDalQ9x5G/j4d+nFvv87a4W81UkRMAG3AsYI7a9eOWJh
    """,
    """
    MIIBejCCAR+gAwIBAgIUGEU1meiXJts31vaWdPKLXGL43JgwCgYIKoZIzj0EAwIwETEPMA0GA1UEAwwGVGVzdCAyMCAXDTI2MTEyMTA2MjQ1M1oY
    DzIwODEwODI0MDYyNDUzWjARMQ8wDQYDVQQDDAZUZXN0IDIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATNZ5IrAC2TTvrZlMMZ126UV04rsiZL
    EdwaVG7/nJGtt3zg90X2Ed7TjjLrT0QNU6MkwPl/MSeVb1eLRaKvsGWro1MwUTAdBgNVHQ4EFgQUHC4O9Uzfw61raS9EbyKSuI+7WVkwHwYDVR0j
    BBgwFoAUHC4O9Uzfw61raS9EbyKSuI+7WVkwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEAxyQ1b9dSFI1R09cmQC22aUZ+43lm
    q+UVoHogliyIHFACIQCPebpG87Wpov+oWhzkSERVlWCJuwvdDtjDce9YfqN8nQ==
    """,
  ].compactMap { Data(base64Encoded: $0, options: .ignoreUnknownCharacters).map { Array($0) } }

  private static let pins = certificates.enumerated().map { number, certificate in
    TrustedRoots.PinnedRoot(
      name: "Test \(number + 1)", fingerprint: TrustedRoots.fingerprint(certificate),
      address: "https://example.com/test-\(number + 1).cer")
  }

  private let folder: TemporaryDirectory
  private var directory: String { folder.path }

  init() throws { folder = try TemporaryDirectory() }

  private func install(
    _ contents: [[UInt8]], in directory: String
  ) async throws -> (entries: [RootInstallation.Entry], fetched: Int) {
    var fetched = 0
    let installation = RootInstallation(directory: directory, pins: Self.pins, pinned: false)
    let entries = try await installation.run { pin in
      fetched += 1
      return (contents[Self.pins.firstIndex(of: pin) ?? 0], "somewhere")
    }
    return (entries, fetched)
  }

  private func mode(_ path: String) throws -> Int? {
    (try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber)?.intValue
  }

  @Test func rootsAreInstalledOnceAndWorldReadable() async throws {
    let mask = umask(0o077)
    defer { umask(mask) }
    let roots = directory + "/deep/roots"
    let first = try await install(Self.certificates, in: roots)
    #expect(first.entries.map(\.isNew) == [true, true] && first.fetched == 2)
    #expect(try FileManager.default.contentsOfDirectory(atPath: roots).sorted() == ["test-1.cer", "test-2.cer"])
    for (entry, certificate) in zip(first.entries, Self.certificates) {
      #expect(FileManager.default.contents(atPath: entry.path) == Data(certificate))
      #expect(try mode(entry.path) == 0o644)
    }
    #expect(try mode(roots) == 0o755 && mode(directory + "/deep") == 0o755)
    #expect(try TrustedRoots(directory: roots, pinned: false).certificates.count == 2)

    let second = try await install([], in: roots)
    #expect(second.entries.map(\.isNew) == [false, false] && second.fetched == 0)
  }

  @Test func aDamagedRootIsReplaced() async throws {
    _ = try await install(Self.certificates, in: directory)
    try Data("cut".utf8).write(to: URL(fileURLWithPath: directory + "/test-2.cer"))
    let again = try await install(Self.certificates, in: directory)
    #expect(again.entries.map(\.isNew) == [false, true] && again.fetched == 1)
    #expect(FileManager.default.contents(atPath: directory + "/test-2.cer") == Data(Self.certificates[1]))
  }

  @Test func oneWrongRootPreventsTheInstallation() async throws {
    let roots = directory + "/roots"
    let error = await #expect(throws: RootInstallationError.self) {
      try await install([Self.certificates[0], Self.certificates[0]], in: roots)
    }
    #expect(error?.exitStatus == .configuration)
    let text = error.map { "\($0)" } ?? ""
    for part in ["somewhere", "Test 2", Self.pins[0].fingerprint, Self.pins[1].fingerprint, "trust --from"] {
      #expect(text.contains(part), "\(text)")
    }
    #expect(!FileManager.default.fileExists(atPath: roots))
  }

  @Test func foreignFilesBesideRootsAreAFault() async throws {
    try Data("hello".utf8).write(to: URL(fileURLWithPath: directory + "/notes.txt"))
    let error = await #expect(throws: RootInstallationError.self) {
      try await install(Self.certificates, in: directory)
    }
    #expect(error?.exitStatus == .configuration && "\(error.map { "\($0)" } ?? "")".contains("notes.txt"))
  }

  @Test func aDirectoryThatCannotBeMadeIs73() async throws {
    // A file in place of the directory stops root, too.
    try Data().write(to: URL(fileURLWithPath: directory + "/file"))
    let error = await #expect(throws: RootInstallationError.self) {
      try await install(Self.certificates, in: directory + "/file/roots")
    }
    #expect(error?.exitStatus == .cannotWrite && "\(error.map { "\($0)" } ?? "")".contains("/file/roots"))
    #expect(error.map { ExitStatus(for: $0) } == .cannotWrite)
  }

  @Test func filesFetchedByHandMayHaveAnyName() async throws {
    let files = ["a b.crt": Self.certificates[1], "x.der": Self.certificates[0], "readme": Array("hello".utf8)]
    for (name, content) in files { try Data(content).write(to: URL(fileURLWithPath: directory + "/" + name)) }
    for (pin, certificate) in zip(Self.pins, Self.certificates) {
      #expect(try CertificateFiles(directory: directory).content(of: pin).content == certificate)
    }
    #expect(throws: RootInstallationError.self) {
      try CertificateFiles(directory: directory).content(of: TrustedRoots.applePins[0])
    }
    let error = #expect(throws: RootInstallationError.self) {
      try CertificateFiles(directory: directory + "/none").content(of: Self.pins[0])
    }
    #expect("\(error.map { "\($0)" } ?? "")".contains("cannot be listed"))
  }
}
