import Glibc
import Mustache

enum Template {
  static let page = CompiledTemplate(PackageResources.report_mustache)
  static let mail = CompiledTemplate(PackageResources.mail_mustache)

  struct CompiledTemplate: Sendable {
    private let template: Result<MustacheTemplate, any Error>

    init(_ source: [UInt8]) {
      template = Result { try MustacheTemplate(string: String(decoding: source, as: UTF8.self)) }
    }

    func render(_ content: Any) throws(ReportError) -> [UInt8] {
      switch template {
      case .success(let template): return Array(template.render(content).utf8)
      case .failure: throw ReportError.cannotWrite(file: "template", systemError: EINVAL)
      }
    }
  }
}
