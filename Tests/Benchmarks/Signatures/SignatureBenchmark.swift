import AppStore
import ArgumentParser
import Crypto
import Foundation
import Reconciliation
import X509

/// Measures the share of the P-256 signature in the verification of a stored transaction.
@main
struct SignatureBenchmark: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "signature-benchmark",
    abstract: "Verify stored transactions, and as many bare P-256 signatures, in turns; print the share.")

  @Option(help: "How many transactions.")
  var transactions = 100_000

  @Option(help: "How many turns; the median of them counts.")
  var rounds = 10

  func validate() throws {
    guard transactions > 0, rounds > 0 else { throw ValidationError("Give numbers above 0.") }
  }

  func run() throws {
    let sample = try StoredTransactions(count: 1_000)
    var shares: [Double] = []
    print("round  P-256 alone, us  transaction, us  share")
    for round in 1...rounds {
      let perRound = max(1, transactions / rounds)
      let bare = try sample.verifySignatures(perRound)
      let whole = try sample.verifyTransactions(perRound)
      shares.append(bare / whole)
      let figures = [bare, whole].map { String(format: "%16.1f", $0 / Double(perRound) * 1e6) }
      print("\(String(format: "%5d", round)) \(figures.joined(separator: " "))  \(percent(bare / whole))")
    }
    print(
      "\(transactions) transactions: \(percent(shares.sorted()[shares.count / 2])) of the time is the signature itself")
  }

  private func percent(_ share: Double) -> String { String(format: "%.0f %%", share * 100) }
}

private struct StoredTransactions {
  private let texts: [String]
  private let verifier: JWSVerifier
  private let key: P256.Signing.PublicKey
  private let signed: [(content: [UInt8], signature: P256.Signing.ECDSASignature)]

  init(count: Int) throws {
    let authority = try SigningChain()
    texts = try (0..<count).map { try authority.transaction(number: $0) }
    verifier = JWSVerifier(roots: try TrustedRoots(certificates: [authority.root], pinned: false))
    key = authority.key.publicKey
    signed = try texts.map { text in
      let end = text.lastIndex(of: ".") ?? text.endIndex
      let signature = try Data(base64URL: text[end...].dropFirst())
      return (Array(text[..<end].utf8), try P256.Signing.ECDSASignature(rawRepresentation: signature))
    }
  }

  func verifyTransactions(_ count: Int) throws -> Double {
    try seconds {
      for number in 0..<count {
        _ = try verifier.verifyTransaction(texts[number % texts.count], channel: .offline).get()
      }
    }
  }

  func verifySignatures(_ count: Int) throws -> Double {
    try seconds {
      for number in 0..<count {
        let (content, signature) = signed[number % signed.count]
        guard key.isValidSignature(signature, for: content) else { throw ValidationError("a signature does not hold") }
      }
    }
  }

  private func seconds(_ body: () throws -> Void) rethrows -> Double {
    let start = Self.processorTime
    try body()
    return Self.processorTime - start
  }

  /// Processor time of this process, independent of other processes.
  private static var processorTime: Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
