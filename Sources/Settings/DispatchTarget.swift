/// A target of `report.deliver`, to which finished reports are sent.
package struct DispatchTarget: Hashable, Sendable {
  /// The section's name in the configuration.
  package var name: String
  package var means: DeliveryMethod
  package var attempts = 3

  package enum DeliveryMethod: Hashable, Sendable {
    /// The workbook as attachment, the summary as body.
    case mail(Mail)
    /// All files, in a folder named after the night.
    case upload(Upload)
    /// A local program with arguments, to which the folder's path is appended.
    case command([String])
  }

  /// The program of a command. Masks what follows white space: arguments, if the command was written as one text.
  package static func shownProgram(_ program: String) -> String {
    program.firstIndex(where: \.isWhitespace).map { "\(program[..<$0]) …" } ?? program
  }

  /// The parameters of a transfer by curl.
  package struct Account: Hashable, Sendable {
    /// Without user and password.
    package var url: String
    package var user: String?
    package var passwordFile: String?
    /// Certificates (PEM) to trust instead of the system's.
    package var caFile: String?
  }

  package struct Mail: Hashable, Sendable {
    package var account: Account
    package var from: String
    package var to: [String]
  }

  package struct Upload: Hashable, Sendable {
    package var account: Account
    package var kind: Kind

    package enum Kind: Hashable, Sendable {
      case https
      case s3(region: String)
      /// The host key is `SHA256:…`, as `ssh-keygen -l` prints it.
      case sftp(hostKey: String, privateKeyFile: String?)
    }
  }

  /// True if people receive it. Other targets receive every night.
  package var isSentToPeople: Bool {
    switch means {
    case .mail: true
    case .upload, .command: false
    }
  }

  package var account: Account? {
    switch means {
    case .mail(let mail): mail.account
    case .upload(let upload): upload.account
    case .command: nil
    }
  }

  package var secretFiles: [(key: String, path: String)] {
    var files: [(key: String, path: String)] = []
    if let path = account?.passwordFile { files.append(("deliver.\(name).passwordFile", path)) }
    if case .upload(let upload) = means, case .sftp(_, let path?) = upload.kind {
      files.append(("deliver.\(name).privateKeyFile", path))
    }
    return files
  }
}
