import Foundation
import Gzip
import NIOCore
import NIOHTTP1
import Reconciliation
import Run

@testable import AppStore
@testable import NightAudit
@testable import Postgres
@testable import Settings
@testable import Spreadsheet
@testable import TieOut

/// Decoders of unsigned input: rows, reports, configurations, workbooks. Each must accept it or throw its own error.
struct FuzzReaders {
  typealias Violation = FuzzHarness.Violation

  private let record: [UInt8]
  private let parts: [(name: [UInt8], content: [UInt8])]
  private let workbook: Workbook

  init(_ corpus: FuzzCorpus) throws {
    record = corpus[.record].first ?? []
    parts = corpus[.workbookPart].compactMap(Self.part)
    workbook = try Workbook()
  }

  private static func part(_ bytes: [UInt8]) -> (name: [UInt8], content: [UInt8])? {
    bytes.firstIndex(of: 0x0A).map { (Array(bytes[..<$0]), Array(bytes[($0 + 1)...])) }
  }

  // MARK: Rows

  /// Rows from a server or a data lake. The row before is repeated, because its texts may be reused.
  func record(_ bytes: [UInt8]) throws(Violation) -> Bool {
    var rows = [bytes, record, bytes]
    var (count, isRight) = (0, true)
    do throws(PostgresError) {
      var reader = CopyReader(records: { () throws(PostgresError) in rows.popLast() })
      while try reader.advance() {
        for column in reader.columns.indices { isRight = touch(reader, column) && isRight }
        count += 1
      }
    } catch {
      guard error.kind == .unexpectedData else { throw Violation("\(error)") }
    }
    guard isRight else { throw Violation("a text that cannot be read as one") }
    return count == 3
  }

  /// Reads a field by every accessor. Returns true unless `isText` and `text` disagree.
  private func touch(_ reader: borrowing CopyReader, _ column: Int) -> Bool {
    let isText = (try? reader.isText(column)) == true && (try? reader.isNull(column)) == false
    let isRight = !isText || (try? reader.text(column)) != nil
    _ = try? reader.escapedText(column)
    _ = try? reader.withText(column) { $0.count }
    _ = try? reader.int64(column)
    _ = try? reader.optionalInt32(column)
    _ = try? reader.bool(column)
    _ = try? reader.isInfinite(column)
    _ = try? reader.representableTimestamp(column)
    _ = try? reader.timestamp(column)
    _ = (try? reader.numeric(column)).map { "\($0)" }
    return isRight
  }

  // MARK: App Store Connect

  func salesReport(_ bytes: [UInt8]) throws(Violation) -> Bool {
    try report { read in try SalesReport.read(bytes, days: nil) { row in read(row.first <= row.last) }.rows }
  }

  func financeReport(_ bytes: [UInt8]) throws(Violation) -> Bool {
    try report { read in try FinanceReport.read(bytes, period: nil) { _ in read(true) }.rows }
  }

  /// - Parameter read: reports whether each row is valid, and returns their number.
  private func report(_ read: ((Bool) -> Void) throws -> Int) throws(Violation) -> Bool {
    var (rows, isRight) = (0, true)
    do {
      let told = try read {
        rows += 1; isRight = isRight && $0
      }
      guard isRight, told == rows else { throw Violation("\(told) rows reported, \(rows) read") }
      return true
    } catch let error as Violation {
      throw error
    } catch is ReportProblem {
      return false
    } catch is GunzipError {
      return false
    } catch {
      throw Violation("\(error)")
    }
  }

  func connectAnswer(_ bytes: [UInt8]) throws(Violation) -> Bool {
    let query = ConnectQuery(
      vendor: "80012345", kind: .sales(frequency: "DAILY", version: "1_0"), reportDate: "2026-11-19")
    var isFile = false
    for status in [200, 400, 401, 403, 404, 429, 500] {
      let reply = HTTPReply(status: status, headers: HTTPHeaders(), body: ByteBuffer(bytes: bytes))
      let meaning = ConnectReading.read(.success(reply), query: query, receivedAt: Instant(seconds: 1_780_272_000))
      guard case .outcome(.file) = meaning else { continue }
      guard status == 200 else { throw Violation("a report out of HTTP \(status)") }
      isFile = true
    }
    return isFile
  }

  // MARK: The configuration

  private static let secret = "s3cr3t-marker"

  private static let keysOfSecrets: Set = ["database.url", "notify.pingUrl"]

  func configuration(_ bytes: [UInt8]) throws(Violation) -> Bool {
    var mayBeShown = false
    do {
      let file = try ConfigurationFile(yaml: String(decoding: bytes, as: UTF8.self), name: "test.yaml")
      // Elsewhere the marker is not a secret but a key or value that must be shown.
      mayBeShown = file.values.contains { key, value in
        "\(key) \(Self.keysOfSecrets.contains(key) ? "" : "\(value)")".contains(Self.secret)
      }
      _ = try SettingsLoader(file: file, name: "test.yaml", environment: [:]).load()
      return true
    } catch let error as ConfigurationError {
      guard mayBeShown || !"\(error)".contains(Self.secret) else { throw Violation("shown: \(error)") }
      return false
    } catch {
      throw Violation("\(error)")
    }
  }

  // MARK: Workbooks

  func workbook(_ bytes: [UInt8]) throws(Violation) -> Bool { try workbook.isRead(bytes) }

  // Changes one part and builds a new archive, because a change of the archive mostly breaks only a checksum.
  func workbookPart(_ bytes: [UInt8]) throws(Violation) -> Bool {
    guard let changed = Self.part(bytes), parts.contains(where: { $0.name == changed.name }) else { return false }
    return try workbook.isRead(Self.archive(parts.map { $0.name == changed.name ? changed : $0 }))
  }

  private final class Workbook {
    private let descriptor: CInt

    init() throws {
      let path = FileManager.default.temporaryDirectory.appending(path: "night-audit-fuzz-\(UUID().uuidString)").path
      descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
      guard descriptor >= 0, unlink(path) == 0 else { throw Violation("\(path): \(String(cString: strerror(errno)))") }
    }

    deinit { close(descriptor) }

    func isRead(_ bytes: [UInt8]) throws(Violation) -> Bool {
      guard ftruncate(descriptor, 0) == 0, pwrite(descriptor, bytes, bytes.count, 0) == bytes.count else {
        throw Violation("the workbook cannot be written")
      }
      do {
        let reader = try WorkbookReader(path: "/proc/self/fd/\(descriptor)")
        var numbers: [Int] = []
        try reader.rows(of: "Findings", columns: ["Finding id", "Owner"], key: "Finding id") {
          numbers.append($0.number)
        }
        guard numbers.allSatisfy((1...1_048_576).contains) else { throw Violation("rows \(numbers)") }
        return true
      } catch is WorkbookReadError {
        return false
      } catch {
        throw error as? Violation ?? Violation("\(error)")
      }
    }
  }

  /// A ZIP archive of uncompressed entries (PKWARE, APPNOTE.TXT).
  private static func archive(_ entries: [(name: [UInt8], content: [UInt8])]) -> [UInt8] {
    var (bytes, directory): ([UInt8], [UInt8]) = ([], [])
    for (name, content) in entries {
      let size = little(UInt32(content.count))
      let described =
        [20, 0, 0, 0, 0, 0, 0, 0, 33, 0] + little(checksum(content)) + size + size + little(UInt16(name.count)) + [
          0, 0,
        ]
      directory += Array("PK\u{01}\u{02}".utf8) + [20, 0] + described + Array(repeating: 0, count: 10)
      directory += little(UInt32(bytes.count)) + name
      bytes += Array("PK\u{03}\u{04}".utf8) + described + name + content
    }
    let count = little(UInt16(entries.count))
    let end = [0, 0, 0, 0] + count + count + little(UInt32(directory.count)) + little(UInt32(bytes.count)) + [0, 0]
    return bytes + directory + Array("PK\u{05}\u{06}".utf8) + end
  }

  private static func little<Value: FixedWidthInteger>(_ value: Value) -> [UInt8] {
    withUnsafeBytes(of: value.littleEndian) { Array($0) }
  }

  private static func checksum(_ bytes: [UInt8]) -> UInt32 {
    ~bytes.reduce(~0) { sum, byte in
      (0..<8).reduce(sum ^ UInt32(byte)) { rest, _ in rest & 1 == 1 ? rest >> 1 ^ 0xEDB8_8320 : rest >> 1 }
    }
  }
}
