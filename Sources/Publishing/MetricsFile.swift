import Foundation
import Glibc
import Run

/// Metrics in Prometheus' text format (0.0.4) for node_exporter's textfile collector.
///
/// Not swift-metrics, whose exporters serve or push while a process lives; a night ends with its numbers.
package struct MetricsFile: Sendable {
  package struct Metric: Sendable {
    package enum Kind: String, Sendable { case gauge, counter, histogram }

    package struct Sample: Sendable {
      var suffix = ""
      var labels: [(String, String)]
      var value: String

      var key: String {
        let labels = labels.map { "\($0.0)=\"\(MetricsFile.escaped($0.1))\"" }
        return suffix + (labels.isEmpty ? "" : "{\(labels.joined(separator: ","))}")
      }
    }

    var name: String
    var kind: Kind
    var help: String
    var samples: [Sample]

    package init(
      _ name: String, _ kind: Kind = .gauge, help: String, _ samples: [(labels: [(String, String)], value: String)]
    ) {
      (self.name, self.kind, self.help) = (name, kind, help)
      self.samples = samples.map { Sample(labels: $0.labels, value: $0.value) }
    }

    package init(_ name: String, help: String, buckets: [(bound: Double, atMost: Int)], count: Int, sum: Double) {
      self.init(name, .histogram, help: help, [])
      guard count > 0 else { return }
      samples = buckets.map { Sample(suffix: "_bucket", labels: [("le", String($0.bound))], value: String($0.atMost)) }
      samples.append(Sample(suffix: "_bucket", labels: [("le", "+Inf")], value: String(count)))
      samples.append(Sample(suffix: "_sum", labels: [], value: String(sum)))
      samples.append(Sample(suffix: "_count", labels: [], value: String(count)))
    }

    /// The counts added to those in the file of the night before; an invalid count there starts again.
    package func accumulated(from path: String) -> Metric {
      var metric = self
      let before = MetricsFile.samples(of: name, in: path).filter { (Double($0.value) ?? -1) >= 0 }
      let earlier = Dictionary(before.map { ($0.key, $0.value) }) { first, _ in first }
      metric.samples = samples.map { sample in
        var sum = sample
        if let value = earlier[sample.key] { sum.value = MetricsFile.sum(sample.value, value) }
        return sum
      }
      let counted = Set(samples.map(\.key))
      // A histogram is written whole, because partial buckets contradict each other.
      if kind == .counter || samples.isEmpty { metric.samples += before.filter { !counted.contains($0.key) } }
      return metric
    }

    package init(_ name: String, help: String, value: String) {
      self.init(name, help: help, [(labels: [], value: value)])
    }

    /// The metric with the values of the previous file.
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
      for sample in metric.samples { text += "\(metric.name)\(sample.key) \(sample.value)\n" }
    }
    return text
  }

  fileprivate static func escaped(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "") { result, scalar in
      switch scalar {
      case "\\": result += "\\\\"
      case "\"": result += "\\\""
      case "\n": result += "\\n"
      default: result.unicodeScalars.append(scalar)
      }
    }
  }

  /// True if the file exists and does not contain only metrics of night-audit.
  package static func isOthers(_ path: String) -> Bool {
    let place = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    guard access(place, F_OK) == 0 else { return false }
    guard let content = RegularFile.content(place) else { return true }
    return !String(decoding: content, as: UTF8.self).split(separator: "\n").allSatisfy { line in
      ["# HELP night_audit_", "# TYPE night_audit_", "night_audit_"].contains { line.hasPrefix($0) }
    }
  }

  package static func value(_ name: String, in path: String) -> String? {
    samples(of: name, in: path).first { $0.suffix.isEmpty }?.value
  }

  fileprivate static func samples(of name: String, in path: String) -> [Metric.Sample] {
    (RegularFile.text(path) ?? "").split(separator: "\n").compactMap { line in
      guard line.hasPrefix(name),
        let match = line.dropFirst(name.count).wholeMatch(
          of: /((?:_bucket|_sum|_count)?(?:\{[a-z_]+="(?:[^"\\]|\\.)*"(?:,[a-z_]+="(?:[^"\\]|\\.)*")*\})?) (\S+)/),
        Double(match.2)?.isFinite == true
      else { return nil }
      return Metric.Sample(suffix: String(match.1), labels: [], value: String(match.2))
    }
  }

  private static func sum(_ left: String, _ right: String) -> String {
    if let left = Int(left), let right = Int(right) {
      let (sum, isTooLarge) = left.addingReportingOverflow(right)
      if !isTooLarge { return String(sum) }
    }
    return String((Double(left) ?? 0) + (Double(right) ?? 0))
  }

  /// Replaces the file atomically. Throws if it belongs to another program.
  package func write(to path: String) throws(PublishingFailure) {
    let place = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    if MetricsFile.isOthers(path) {
      throw PublishingFailure(path: path, problem: "the file holds no metrics of night-audit; name another file")
    }
    do {
      try WholeFile(path: place).write(Array(text.utf8))
    } catch {
      throw PublishingFailure(path: error.path, code: error.code)
    }
  }
}
