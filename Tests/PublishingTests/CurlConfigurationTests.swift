import AppStore
import Foundation
import Reconciliation
import Testing

@testable import Publishing
@testable import Run
@testable import Settings

@Suite struct CurlConfigurationTests {
  private let mail = DispatchTarget.Mail(
    account: .init(url: "smtp://mail.example.com:587", user: "auditor", passwordFile: "/x"), from: "a@example.com",
    to: ["b@example.com", "c@example.com"])

  private func message(_ text: String) -> CurlConfiguration.Message {
    CurlConfiguration.Message(
      subject: "Night audit", text: text, html: "<p>\"x\"</p>", date: "Fri, 20 Nov 2026 03:15:00 +0000",
      messageId: "<1@example.com>", attachments: ["/r/a;b\"c.xlsx"])
  }

  /// The values that curl reads: its escapes undone (curl(1), `--config`).
  private func values(_ configuration: String, of option: String) -> [String] {
    configuration.split(separator: "\n").filter { $0.hasPrefix("\(option) = \"") }.map { line in
      line.dropFirst(option.count + 4).dropLast().replacing(/\\(.)/) { match in
        match.1 == "n" ? "\n" : match.1 == "r" ? "\r" : String(match.1)
      }
    }.map(String.init)
  }

  @Test func mailPartsAreEscaped() {
    let text = CurlConfiguration.mail(
      mail, message("one\ntwo; \"three\u{301}\"\u{301}\r\nurl = \"http://evil\"\n"), password: Secret("p\"w\\"))
    // Every line is one of our options, so no text became an option of its own.
    for line in text.split(separator: "\n") { #expect(line.wholeMatch(of: /[a-z0-9-]+( = ".*")?/) != nil, "\(line)") }
    #expect(values(text, of: "url") == ["smtp://mail.example.com:587"])
    #expect(values(text, of: "user") == ["auditor:p\"w\\"])
    #expect(values(text, of: "mail-rcpt") == ["b@example.com", "c@example.com"])
    #expect(values(text, of: "header").contains("To: b@example.com,\r\n c@example.com"))
    let forms = values(text, of: "form")
    #expect(forms.first == "=(;type=multipart/alternative" && forms[3] == "=)")
    #expect(forms[4].hasPrefix("=@\"/r/a;b\\\"c.xlsx\";type=application/vnd.openxmlformats"))
    #expect(text.contains("\nssl-reqd\n"))
    #expect(values(text, of: "proto") == ["=smtp"])
  }

  @Test func encryptionIsRequiredExceptOnLoopback() {
    var here = mail
    here.account.url = "smtp://127.0.0.1:2525"
    #expect(!CurlConfiguration.mail(here, message(""), password: nil).contains("ssl-reqd"))
    here.account.url = "smtp://127.0.0.1.example.com"
    #expect(CurlConfiguration.mail(here, message(""), password: nil).contains("ssl-reqd"))
  }

  private let report = CurlConfiguration.Report(
    directory: "/r/2026-11-19", name: "2026-11-19",
    files: [("SHA256SUMS", "aa"), ("orders.csv", "bb"), ("summary.json", "cc")])

  @Test func sumsComeLastAndEveryTransferHasItsOptions() {
    let upload = DispatchTarget.Upload(
      account: .init(url: "sftp://sftp.example.com/in", user: "u", passwordFile: "/x"),
      kind: .sftp(hostKey: "SHA256:abc=", privateKeyFile: "/k"))
    let text = CurlConfiguration.upload(upload, report, password: nil)
    #expect(
      values(text, of: "url")
        == ["orders.csv", "summary.json", "SHA256SUMS"].map { "sftp://sftp.example.com/in/2026-11-19/\($0)" })
    #expect(values(text, of: "hostpubsha256") == ["abc", "abc", "abc"])
    #expect(values(text, of: "key") == ["/k", "/k", "/k"])
    #expect(text.split(separator: "\n").filter { $0 == "next" }.count == 2 && text.hasPrefix("fail-early\n"))
  }

  @Test func storageRequestsAreSignedAndOthersHaveAPasswordOrToken() {
    var upload = DispatchTarget.Upload(
      account: .init(url: "https://s3.example.com/b/", user: "AKID", passwordFile: "/x"), kind: .s3(region: "eu-1"))
    let signed = CurlConfiguration.upload(upload, report, password: Secret("s"))
    #expect(values(signed, of: "aws-sigv4").first == "aws:amz:eu-1:s3")
    #expect(
      values(signed, of: "header") == [
        "x-amz-content-sha256: bb", "x-amz-content-sha256: cc", "x-amz-content-sha256: aa",
      ])
    #expect(values(signed, of: "url").first == "https://s3.example.com/b/2026-11-19/orders.csv")
    upload.kind = .https
    #expect(values(CurlConfiguration.upload(upload, report, password: Secret("s")), of: "user").first == "AKID:s")
    upload.account.user = nil
    let token = CurlConfiguration.upload(upload, report, password: Secret("t"))
    #expect(values(token, of: "oauth2-bearer") == ["t", "t", "t"] && values(token, of: "user").isEmpty)
  }

  @Test(arguments: [
    (Int32(7), "", true), (28, "", true), (55, "MAIL failed: 451", true), (67, "Login denied", false), (60, "", false),
    (22, "curl: (22) The requested URL returned error: 503", true),
    (22, "curl: (22) The requested URL returned error: 403", false),
    (22, "curl: (22) The requested URL returned error: 429", true),
    (22, "curl: (22) The requested URL returned error: 522", true),
  ])
  func transientTransferErrorsAreRetried(_ code: Int32, _ message: String, _ isTransient: Bool) {
    #expect(ReportSender.isTransient(exitCode: code, message: message) == isTransient)
  }

  @Test func theLastLineOfAnErrorIsPrintableAndCurlsErrorComesBeforeItsAdvice() {
    let advice = "curl: (60) SSL certificate problem: self-signed certificate\nMore: https://curl.se\n\nvisit"
    #expect(ReportSender.lastLine(advice) == "curl: (60) SSL certificate problem: self-signed certificate")
    #expect(ReportSender.lastLine("first\nlast \u{1B}[31mred\n") == "last [31mred")
    #expect(ReportSender.lastLine("") == "")
    #expect(ReportSender.mailDate(Instant(seconds: 1_795_144_503)) == "Fri, 20 Nov 2026 03:15:03 +0000")
  }

  @Test func inputWaitsInAPipeAndTooMuchOfItIsRefused() throws {
    let text = String(repeating: "0123456789abcdef", count: 4_000)
    let end = try ProgramStreams.input(text)
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 8_192)
    while case let count = read(end, &buffer, buffer.count), count > 0 { bytes += buffer[..<count] }
    close(end)
    #expect(String(decoding: bytes, as: UTF8.self) == text)
    #expect(throws: (any Error).self) { try ProgramStreams.input(String(repeating: "x", count: 4 << 20)) }
  }
}
