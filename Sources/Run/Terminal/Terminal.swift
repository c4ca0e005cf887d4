import CSystemCalls
import Glibc

package enum Terminal {
  package static var width: Int? {
    guard isatty(STDOUT_FILENO) == 1 else { return nil }
    var size = winsize()
    guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }

  /// Escapes characters that control a terminal, change the display order or are invisible. IDs come from customers. A
  /// carriage return before a line feed ends a line of CSV, and stays.
  package static func plain(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: isActive) else { return text }
    var plain = ""
    for character in text {
      guard character != "\r\n", character.unicodeScalars.contains(where: isActive) else {
        plain.append(character)
        continue
      }
      for scalar in character.unicodeScalars { append(scalar, to: &plain) }
    }
    return plain
  }

  private static func append(_ scalar: Unicode.Scalar, to plain: inout String) {
    guard isActive(scalar) else { return plain.unicodeScalars.append(scalar) }
    let digits = String(scalar.value, radix: 16, uppercase: true)
    plain += "\\u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
  }

  // Control characters except tab and line feed, marks and overrides of direction, line separators, and characters
  // without a glyph. Joiners stay, because words of some languages and emoji need them.
  private static func isActive(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x09, 0x0A: false
    case 0..<0x20, 0x7F..<0xA0, 0xAD, 0x061C, 0x180E, 0x200B, 0x200E, 0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF:
      true
    default: false
    }
  }

  /// Writes escaped text to standard output, also to pipes, which may end at a terminal.
  package static func print(_ text: String, terminator: String = "\n") {
    Swift.print(plain(text), terminator: terminator)
  }

  package static func complain(_ text: String) { writeError(plain(text) + "\n") }

  package static func writeError(_ text: String) {
    var text = text
    text.withUTF8 { bytes in
      bytes.withMemoryRebound(to: CChar.self) { standard_error_write($0.baseAddress, $0.count) }
    }
  }
}

package enum ProcessGuard {
  // With fewer open files the network's event loops cannot start, and trap.
  private static let fewestFiles: UInt = 128

  /// Prepares the process. Lost output becomes an error, memory stays out of core files, and the file limit is raised.
  package static func stand() {
    process_guard_memory()
    streams_guard(ExitStatus.cannotWrite.rawValue)
    let files = process_allow_files()
    guard files >= fewestFiles else {
      Terminal.complain(
        """
        night-audit: only \(files) files may be open at once (ulimit -n), and a night needs \(fewestFiles); raise the hard \
        limit: LimitNOFILE= in the unit, or nofile in /etc/security/limits.conf
        """)
      exit(ExitStatus.configuration.rawValue)
    }
  }
}
