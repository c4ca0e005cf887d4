import Foundation
import Glibc

/// Metrics in the text format of Prometheus (exposition format 0.0.4), as node_exporter's textfile collector reads them.
///
/// Not swift-metrics: its exporters serve a page, or send, for as long as a process lives; a night is over when it is known
/// what it came to, and most of its numbers are read from the database once.
package struct MetricsFile: Sendable {
  /// One metric with its values.
  package struct Metric: Sendable {
    package enum Kind: String, Sendable { case gauge, counter, histogram }

    /// One line: what stands behind the name, its labels, its value.
    package struct Sample: Sendable {
      var suffix = ""
      var labels: [(String, String)]
      var value: String
    }

    var name: String
    var kind: Kind
    var help: String
    var samples: [Sample]

    package init(
      _ name: String, _ kind: Kind = .gauge, help: String, _ samples: [(labels: [(String, String)], value: String)]
    ) {
      self.name = name
      self.kind = kind
      self.help = help
      self.samples = samples.map { Sample(labels: $0.labels, value: $0.value) }
    }

    /// A histogram: how many were at most so much, how many there were, and what they came to.
    package init(
      _ name: String, help: String, buckets: [(bound: Double, atMost: Int)], count: Int, sum: Double
    ) {
      self.init(name, .histogram, help: help, [])
      guard count > 0 else { return }
      samples = buckets.map { Sample(suffix: "_bucket", labels: [("le", String($0.bound))], value: String($0.atMost)) }
      samples.append(Sample(suffix: "_bucket", labels: [("le", "+Inf")], value: String(count)))
      samples.append(Sample(suffix: "_sum", labels: [], value: String(sum)))
      samples.append(Sample(suffix: "_count", labels: [], value: String(count)))
    }

    package init(_ name: String, help: String, value: String) {
      self.init(name, help: help, [(labels: [], value: value)])
    }

    /// The same metric with the values that a file has which was written before.
    package func valued(asIn path: String) -> Metric {
      var metric = self
      metric.samples = MetricsFile.samples(of: name, in: path)
      return metric
    }
  }

  package var metrics: [Metric]

  package init(_ metrics: [Metric]) { self.metrics = metrics }

  package var text: String {
    var text = ""
    for metric in metrics where !metric.samples.isEmpty {
      text += "# HELP \(metric.name) \(metric.help)\n# TYPE \(metric.name) \(metric.kind.rawValue)\n"
      for sample in metric.samples {
        let labels = sample.labels.map { "\($0.0)=\"\(MetricsFile.escaped($0.1))\"" }
        text +=
          metric.name + sample.suffix + (labels.isEmpty ? "" : "{\(labels.joined(separator: ","))}")
          + " \(sample.value)\n"
      }
    }
    return text
  }

  private static func escaped(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "") { result, scalar in
      switch scalar {
      case "\\": result += "\\\\"
      case "\"": result += "\\\""
      case "\n": result += "\\n"
      default: result.unicodeScalars.append(scalar)
      }
    }
  }

  /// Whether there is a file that holds something else than metrics of night-audit's.
  package static func isOthers(_ path: String) -> Bool {
    let place = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    guard let content = FileManager.default.contents(atPath: place) else { return false }
    return !String(decoding: content, as: UTF8.self).split(separator: "\n").allSatisfy { line in
      ["# HELP night_audit_", "# TYPE night_audit_", "night_audit_"].contains { line.hasPrefix($0) }
    }
  }

  /// The value of a metric without labels in a file that was written before; nil when there is none.
  package static func value(_ name: String, in path: String) -> String? {
    samples(of: name, in: path).first { $0.suffix.isEmpty }?.value
  }

  /// The values of a metric in a file that was written before, labels and all in their suffixes.
  fileprivate static func samples(of name: String, in path: String) -> [Metric.Sample] {
    let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    return text.split(separator: "\n").compactMap { line in
      guard line.hasPrefix(name), let value = line.lastIndex(of: " ") else { return nil }
      let suffix = line[..<value].dropFirst(name.count)
      guard suffix.isEmpty || suffix.hasPrefix("{") else { return nil }
      return Metric.Sample(suffix: String(suffix), labels: [], value: String(line[line.index(after: value)...]))
    }
  }

  /// Replaces the file in one step: its reader never sees half of it. Throws where another program's file is in its place.
  package func write(to path: String) throws(PublishingFailure) {
    let place = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    if MetricsFile.isOthers(path) {
      throw PublishingFailure(path: path, problem: "what is there is no metrics of night-audit's; name another file")
    }
    do {
      try WholeFile(path: place).write(Array(text.utf8))
    } catch {
      throw PublishingFailure(path: error.path, code: error.code)
    }
  }
}
