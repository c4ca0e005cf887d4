import Foundation
import TestSupport

/// A proxy to the simulated Apple with transport faults, mixed-up answers and wrong certificates.
final class FaultyApple {
  enum Way: String, Sendable {
    case forward
    /// Reads the request and never answers.
    case hang
    case drip
    /// Resets the connection after the request.
    case reset
    /// Resets the connection within the answer.
    case cut
    /// 5 MB that decompress to 1 GiB.
    case bomb
    case endless
    case headers
    case nonsense
    /// Redirects to the correct answer.
    case redirect
    /// A captive portal's page with status 200.
    case page
    /// Each answer twice, so that the second one is read for the next request.
    case echo
    /// The first answer for every request of a kind.
    case another
    case duplicates
    case reversed
  }

  enum Certificate: String, Sendable {
    case none
    case trusted
    case expired
    case otherHost
    case foreign
  }

  private let directory: TemporaryDirectory
  private let running: Program.Running
  private let port: Int
  private let certificate: Certificate

  init(before simulator: Int, _ way: Way, certificate: Certificate = .none) async throws {
    directory = try TemporaryDirectory()
    self.certificate = certificate
    if certificate != .none { try await Self.certify(certificate, in: directory) }
    running = try Program.python.start([
      Program.script("faulty_apple"), "\(simulator)", way.rawValue, directory.file("port"),
      certificate == .none ? "" : directory.file("chain.pem"),
    ])
    port = try await running.port(in: directory.file("port"))
  }

  deinit { running.kill() }

  var environment: [String: String] {
    let address = certificate == .none ? "http://127.0.0.1:\(port)" : "https://localhost:\(port)"
    var environment = [
      "NIGHT_AUDIT_APPSTORE_PRODUCTION_URL": "\(address)/production",
      "NIGHT_AUDIT_APPSTORE_SANDBOX_URL": "\(address)/sandbox",
      "NIGHT_AUDIT_APPSTORE_VERIFY_RECEIPT_URL": "\(address)/production/verifyReceipt",
      "NIGHT_AUDIT_APPSTORE_VERIFY_RECEIPT_SANDBOX_URL": "\(address)/sandbox/verifyReceipt",
    ]
    if certificate != .none {
      environment["LD_PRELOAD"] = directory.file("roots.so")
      environment["TRUSTED_ROOTS"] = directory.file("trusted.pem")
    }
    return environment
  }

  /// Creates a trusted and an untrusted root, and the server's certificate. The preloaded library replaces the system's
  /// roots.
  private static func certify(_ certificate: Certificate, in directory: TemporaryDirectory) async throws {
    let name = certificate == .otherHost ? "elsewhere.example.com" : "localhost"
    let days = certificate == .expired ? "-1" : "1"
    let root = certificate == .foreign ? "unknown" : "trusted"
    let script = """
      set -e
      cd "$1"
      for root in trusted unknown; do
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$root" \
          -keyout $root.key -out $root.pem
      done
      openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=\(name) -keyout leaf.key -out leaf.csr
      printf 'subjectAltName=DNS:\(name)\\n' > names
      python3 - <<END > times
      import datetime
      now = datetime.datetime.now(datetime.timezone.utc)
      for day in -2, \(days):
          print((now + datetime.timedelta(days=day)).strftime("%Y%m%d%H%M%SZ"))
      END
      printf '[ca]\\ndefault_ca=d\\n[d]\\ndatabase=index\\nserial=serial\\nnew_certs_dir=.\\ndefault_md=sha256\\npolicy=p\\n' > ca
      printf '[p]\\ncommonName=supplied\\n' >> ca
      : > index
      echo 01 > serial
      openssl ca -batch -config ca -cert \(root).pem -keyfile \(root).key -in leaf.csr -out leaf.pem -notext \
        -extfile names -startdate "$(sed -n 1p times)" -enddate "$(sed -n 2p times)"
      cat leaf.pem leaf.key > chain.pem
      """
    let made = try await Program(path: "/bin/sh").run(["-c", script, "sh", directory.url.path])
    guard made.status == 0 else { throw Program.Failure(made.errors) }
    _ = try await TestLibrary("roots", in: directory)
  }
}
