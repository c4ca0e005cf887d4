import CSystemCalls
import Glibc
import Reconciliation

package enum Terminal {
  package static var width: Int? {
    guard isatty(STDOUT_FILENO) == 1 else { return nil }
    var size = winsize()
    guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }

  /// Writes escaped text to standard output, also to pipes, which may end at a terminal.
  package static func print(_ text: String, terminator: String = "\n") {
    Swift.print(text.escapedForDisplay, terminator: terminator)
  }

  package static func complain(_ text: String) { writeError(text.escapedForDisplay + "\n") }

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
