import AppStore
import Foundation
import Run
import Settings

/// A delivery's curl configuration (curl(1), `--config`), on standard input to hide it from `ps`.
struct CurlConfiguration {
  struct Report {
    var directory: String
    var name: String
    var files: [(name: String, sha256: String)]
  }

  struct Message {
    var subject: String
    var text: String
    var html: String
    /// RFC 5322, 3.3.
    var date: String
    /// The same for every attempt, so that a receiver recognises a repetition.
    var messageId: String
    var attachments: [String]
  }

  private(set) var text = ""

  static func mail(_ mail: DispatchTarget.Mail, _ message: Message, password: Secret?) -> String {
    var configuration = CurlConfiguration()
    configuration.begin(mail.account, password: password)
    configuration.add("url", mail.account.url)
    configuration.add("mail-from", mail.from)
    for address in mail.to { configuration.add("mail-rcpt", address) }
    configuration.add("header", "Date: \(message.date)")
    configuration.add("header", "From: \(mail.from)")
    // RFC 5322, 2.1.1: a line of a mail has at most 998 bytes, and a folded one continues after a blank.
    configuration.add("header", "To: \(mail.to.joined(separator: ",\r\n "))")
    configuration.add("header", "Subject: \(message.subject)")
    configuration.add("header", "Message-ID: \(message.messageId)")
    // RFC 3834: suppresses automatic replies.
    configuration.add("header", "Auto-Submitted: auto-generated")
    configuration.add("form", "=(;type=multipart/alternative")
    for (content, type) in [(message.text, "plain"), (message.html, "html")] {
      // RFC 5322, 2.3: lines of a mail end with CR and LF.
      let lines = escaped(content) { $0 == UInt8(ascii: "\n") ? "\r\n" : nil }
      configuration.add("form", "=\(quoted(lines));type=text/\(type);charset=utf-8;encoder=quoted-printable")
    }
    configuration.add("form", "=)")
    for path in message.attachments {
      configuration.add(
        "form",
        "=@\(quoted(path));type=application/vnd.openxmlformats-officedocument.spreadsheetml.sheet;encoder=base64")
    }
    return configuration.text
  }

  /// Uploads files into a folder with the report's name. `SHA256SUMS` comes last and marks a whole report.
  static func upload(_ upload: DispatchTarget.Upload, _ report: Report, password: Secret?) -> String {
    var configuration = CurlConfiguration()
    configuration.add("fail-early")
    let base = upload.account.url.hasSuffix("/") ? upload.account.url : upload.account.url + "/"
    let files = report.files.filter { $0.name != "SHA256SUMS" } + report.files.filter { $0.name == "SHA256SUMS" }
    for (position, file) in files.enumerated() {
      if position > 0 { configuration.add("next") }
      configuration.begin(upload.account, password: password)
      configuration.add("url", "\(base)\(report.name)/\(file.name)")
      configuration.add("upload-file", "\(report.directory)/\(file.name)")
      switch upload.kind {
      case .https:
        configuration.addReply()
        if upload.account.user == nil, let password { configuration.add("oauth2-bearer", password.reveal()) }
      case .s3(let region):
        configuration.addReply()
        configuration.add("aws-sigv4", "aws:amz:\(region):s3")
        configuration.add("header", "x-amz-content-sha256: \(file.sha256)")
      case .sftp(let hostKey, let privateKeyFile):
        configuration.add("ftp-create-dirs")
        configuration.add("hostpubsha256", String(hostKey.dropFirst("SHA256:".count).prefix { $0 != "=" }))
        if let privateKeyFile { configuration.add("key", privateKeyFile) }
      }
    }
    return configuration.text
  }

  private mutating func begin(_ account: DispatchTarget.Account, password: Secret?) {
    let parts = URLComponents(string: account.url)
    let scheme = parts?.scheme?.lowercased() ?? "https"
    for flag in ["silent", "show-error", "globoff"] { add(flag) }
    add("proto", "=\(scheme)")
    add("connect-timeout", "30")
    // A peer that stalls for two minutes is treated as gone.
    add("speed-limit", "1")
    add("speed-time", "120")
    add("max-time", "1800")
    if scheme == "smtp", !EndpointURL.isLoopback(parts?.host ?? "") { add("ssl-reqd") }
    if let caFile = account.caFile { add("cacert", caFile) }
    if let user = account.user { add("user", "\(user):\(password?.reveal() ?? "")") }
  }

  /// HTTP errors fail the transfer. The status is printed, because curl treats a redirection as success.
  private mutating func addReply() {
    add("fail")
    add("write-out", "%{stderr}%{http_code}\n")
  }

  private mutating func add(_ flag: String) { text += flag + "\n" }

  private mutating func add(_ option: String, _ value: String) {
    // A line end in a value would start another option.
    let line = CurlConfiguration.escaped(CurlConfiguration.quoted(value)) { byte in
      switch byte {
      case UInt8(ascii: "\r"): "\\r"
      case UInt8(ascii: "\n"): "\\n"
      default: nil
      }
    }
    text += "\(option) = \(line)\n"
  }

  private static func quoted(_ text: String) -> String {
    let content = escaped(text) { byte in
      switch byte {
      case UInt8(ascii: "\\"): "\\\\"
      case UInt8(ascii: "\""): "\\\""
      default: nil
      }
    }
    return "\"\(content)\""
  }

  /// By bytes, because CR LF is one `Character`, and so is a quotation mark with an accent.
  private static func escaped(_ text: String, _ replacement: (UInt8) -> String?) -> String {
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      if let text = replacement(byte) { bytes += text.utf8 } else { bytes.append(byte) }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
