import Foundation

func rows(_ data: Data) -> [[String: String]] {
  var records: [[String]] = [[]]
  var field: [UInt8] = []
  var isQuoted = false
  var bytes = Array(data)[...]
  func end() { records[records.count - 1].append(String(decoding: field, as: UTF8.self)); field = [] }
  while let byte = bytes.popFirst() {
    switch (byte, isQuoted) {
    case (0x22, true):
      if bytes.first == 0x22 { field.append(bytes.removeFirst()) } else { isQuoted = false }
    case (0x22, false): isQuoted = true
    case (0x2C, false): end()
    case (0x0D, false): continue
    case (0x0A, false):
      end()
      records.append([])
    default: field.append(byte)
    }
  }
  let header = records[0]
  return records.dropFirst().filter { $0.count == header.count }.map {
    Dictionary(uniqueKeysWithValues: zip(header, $0))
  }
}
