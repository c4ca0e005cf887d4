import CLibPQ

/// Parameters for `PQsendQueryParams`: one block of bytes with the offset of each value.
struct ParameterList {
  private var types: [Oid] = []
  private var offsets: [Int?] = []
  private var lengths: [Int32] = []
  // Starts with an unused byte, so that even an empty value has an address.
  private var bytes: [UInt8] = [0]

  init(_ values: [PostgresValue]) throws(PostgresError) {
    for (index, value) in values.enumerated() {
      let start = bytes.count
      do { offsets.append(try value.encode(into: &bytes) ? start : nil) } catch {
        throw PostgresError(error.kind, "parameter $\(index + 1): \(error.message)")
      }
      guard let length = Int32(exactly: bytes.count - start) else {
        throw PostgresError(.usage, "parameter $\(index + 1) is larger than 2 GB")
      }
      lengths.append(length)
      types.append(value.type.rawValue)
    }
  }

  func send(_ sql: String, on connection: OpaquePointer) -> Int32 {
    let formats = [Int32](repeating: 1, count: types.count)
    return unsafe bytes.withUnsafeBytes { bytes in
      let values = unsafe offsets.map { offset in
        unsafe offset.flatMap { offset in
          unsafe bytes.baseAddress.map { unsafe ($0 + offset).assumingMemoryBound(to: CChar.self) }
        }
      }
      return unsafe PQsendQueryParams(connection, sql, Int32(clamping: types.count), types, values, lengths, formats, 1)
    }
  }
}
