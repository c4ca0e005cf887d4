import Crypto
import Foundation
import Reconciliation

/// `report.html`: the summary, the trend and the worst findings in one self-contained file. The template escapes every
/// text. A content security policy permits only the program's style and script, by hash, so that no text of a database
/// can run.
struct ReportPage {
  static let fileName = "report.html"
  /// Limit of listed findings; `findings.csv` has all.
  static let shownFindings = 2_000

  /// The template's values by name. A section looks up a name that it lacks in the values around it.
  private typealias Values = [String: Any]

  private var rows: [Values] = []
  private let options: ReportOptions
  private var clock: LocalClock

  init(_ options: ReportOptions) {
    self.options = options
    clock = LocalClock(timeZone: options.timeZone)
  }

  mutating func add(_ finding: FindingLine) {
    guard rows.count < ReportPage.shownFindings else { return }
    let row = values(finding)
    rows.append(row)
  }

  func encoded(totals: Totals, summary: SummaryFacts, control: [ControlTotal]) throws(ReportError) -> [UInt8] {
    var page = frame(summary)
    for part in [
      work(totals, summary), money(totals, summary), movement(summary), kinds(summary.findings), tieOut(summary),
      controls(control, summary), list(summary.findings),
    ] {
      page.merge(part) { value, _ in value }
    }
    return try Template.page.render(page)
  }

  private func frame(_ summary: SummaryFacts) -> Values {
    func hash(_ content: [UInt8]) -> String { "sha256-\(Data(SHA256.hash(data: content)).base64EncodedString())" }
    var clock = clock
    return [
      "title": "App Store night audit \(summary.period.days)", "days": summary.period.days,
      "timeZone": summary.timeZone,
      "style": String(decoding: PackageResources.page_css, as: UTF8.self),
      "script": String(decoding: PackageResources.page_js, as: UTF8.self),
      "styleHash": hash(PackageResources.page_css), "scriptHash": hash(PackageResources.page_js),
      "apps": options.apps.joined(separator: " · "), "asOf": clock.text(options.asOf),
      "asOfTexts": summary.asOfText.map { [$0] } ?? [],
      "bannerClass": summary.state.isFinal ? "complete" : "incomplete", "state": summary.state.heading,
      "stateText": "All control totals balance. \(summary.state.text)", "reasons": summary.incompleteReasons,
      "unusual": summary.unusual.map(\.words),
    ]
  }

  private func work(_ totals: Totals, _ summary: SummaryFacts) -> Values {
    let first = summary.first.map { reported -> Values in
      let all = [reported.place, reported.stakeText, reported.owner, reported.due.map { "due \($0)" }]
      return [
        "kind": reported.finding.kind.title, "severity": reported.finding.severity.rawValue,
        "facts": all.compactMap(\.self).filter { !$0.isEmpty }.joined(separator: " · "),
        "action": reported.finding.suggestedAction,
      ]
    }
    let owners = summary.findings.shownOwners.map { name, line -> Values in
      ["name": name, "open": shown(line.open), "critical": shown(line.critical), "overdue": shown(line.overdue)]
    }
    var values: Values = [
      "tiles": summary.tiles(totals).map { tile -> Values in
        ["label": tile.label, "value": grouped(tile.count), "tone": tile.isBad ? "bad" : ""]
      },
      "changes": summary.changes.lines, "first": first, "ownerRows": owners,
    ]
    values["requests"] = summary.refundRequests.words(in: options.timeZone, named: options.zoneName)
    if summary.changes.since != nil {
      values["changeCounts"] = summary.changes.countsText
      values["decisions"] = summary.decisions.words
    }
    return values
  }

  private func money(_ totals: Totals, _ summary: SummaryFacts) -> Values {
    let currencies = totals.ordered.currencies(with: summary.findings.atStake)
    func amounts(_ sums: MoneyByCurrency) -> [String] { currencies.map { $0.shown(sums.minorUnits[$0] ?? 0) } }
    let dispositions = Disposition.allCases.compactMap { disposition -> Values? in
      let orders = totals.ordersByDisposition[disposition.index]
      if orders == 0 { return nil }
      let inTotals = Disposition.inMoneyTotals.contains(disposition)
      return [
        "name": disposition.title, "orders": grouped(orders),
        "meaning": "Orders \(disposition.clause)\(inTotals ? "" : " (excluded from totals)")",
        "amounts": inTotals ? amounts(totals.amountByDisposition[disposition.index]) : currencies.map { _ in "" },
      ]
    }
    let sales = SalesLine.all(totals, summary).map { line -> Values in
      func text(_ units: Int128) -> String {
        units == 0 ? "–" : Money.grouped(Money.decimalText(units, digits: line.digits))
      }
      let proceeds = [line.proceeds?.proceedsEarned, line.proceeds?.proceedsPaid]
        .map { $0?.shown(digits: line.digits) ?? "" }
      let cells = [text(line.ordered), text(line.refunded)] + proceeds + [text(line.owed.reduce(0, +))]
      return ["currency": line.code, "cells": cells + line.owed.map(text)]
    }
    func rate(_ rate: RefundRate) -> Values {
      [
        "name": rate.name, "currency": rate.currency.code, "ordered": rate.currency.shown(rate.ordered),
        "refunded": rate.currency.shown(rate.refunded), "rate": rate.words,
      ]
    }
    let orders = Disposition.inMoneyTotals.reduce(0) { $0 + totals.ordersByDisposition[$1.index] }
    let (products, users) = summary.refundRates
    return [
      "currencies": currencies.map(\.code), "dispositions": dispositions, "totalOrders": shown(orders),
      "totalAmounts": amounts(totals.ordered), "stakeTitle": MoneyTable.atStakeTitle,
      "stakeAmounts": amounts(summary.findings.atStake), "salesTitle": SalesLine.title,
      "salesNote": SalesLine.note(summary), "salesHeaders": SalesLine.headers(summary), "sales": sales,
      "ratesTitle": RefundRate.title, "ratesNote": RefundRate.note, "productRates": products.map(rate),
      "userRates": users.map(rate),
    ]
  }

  private func movement(_ summary: SummaryFacts) -> Values {
    let (findings, roll) = (summary.findings, summary.findings.rollForward)
    let counts: Values = [
      "name": "Findings", "opening": shown(findings.opening), "new": shown(findings.new),
      "closed": shown(findings.closed), "changed": "", "closing": shown(findings.closing),
    ]
    let amounts = roll.currencies(with: findings.atStake).map { currency -> Values in
      func text(_ money: MoneyByCurrency) -> String { currency.shown(money.minorUnits[currency] ?? 0) }
      return [
        "name": currency.code, "opening": text(roll.opening), "new": text(roll.new), "closed": text(roll.closed),
        "changed": text(roll.changed), "closing": currency.shown(roll.closing(currency)),
      ]
    }
    var values: Values = [
      "movement": RollForwardTitles(summary, options), "roll": [counts] + amounts, "trends": Trend.all(summary.history),
    ]
    if findings.open.unknown > 0 { values["unknown"] = grouped(findings.open.unknown) }
    return values
  }

  private func kinds(_ findings: FindingsSummary) -> Values {
    let kinds = findings.openKinds.map { kind -> Values in
      let stake = findings.byKind[kind] ?? RiskTotal()
      return [
        "word": kind.rawValue, "name": kind.title, "count": grouped(stake.findings),
        "severity": findings.severityText(of: kind), "money": stake.shown,
      ]
    }
    let ages = findings.ageing.buckets.map { bucket -> Values in
      [
        "name": bucket.title, "findings": shown(findings.ageing[bucket].findings),
        "money": findings.ageing[bucket].shown, "known": shown(findings.ageing.known(bucket)),
      ]
    }
    return ["kinds": kinds, "ages": ages]
  }

  private func tieOut(_ summary: SummaryFacts) -> Values {
    func line(_ name: String, _ day: String, _ currency: Currency, _ figures: [String]) -> Values {
      ["name": name, "day": day, "currency": currency.code, "figures": figures]
    }
    let adjustments = summary.adjustments.prefix(60).map { adjustment in
      let (currency, reported, now) = (adjustment.bucket.currency, adjustment.reported, adjustment.now)
      let counts = [reported.orders, now.orders, now.orders - reported.orders].map { shown($0) }
      let amounts = [reported.minorUnits, now.minorUnits, now.minorUnits - reported.minorUnits]
      return line(
        adjustment.bucket.disposition.title, adjustment.day, currency, counts + amounts.map { currency.shown($0) })
    }
    let net = summary.adjustments.net.map { currency, units in
      let blank = Array(repeating: "", count: Adjustment.titles.count - 1)
      return line(Adjustment.netTitle, "", currency, blank + [currency.shown(units)])
    }
    let settlement = (summary.tieOut?.proceeds ?? []).map { line -> Values in
      [
        "period": line.period, "currency": line.currency,
        "figures": line.figures.map { $0?.shown(digits: line.digits) ?? "" },
      ]
    }
    var values: Values = [
      "adjustmentHeaders": Adjustment.titles, "adjustments": adjustments, "adjustmentsNet": net,
      "settlementHeaders": SettlementLine.titles + SettlementLine.grossTitles, "settlement": settlement,
    ]
    values["adjustmentsNote"] = summary.adjustmentsNote
    guard let facts = summary.tieOut else { return values }
    let rows: [(String, String)] =
      [
        ("Apple counts", facts.own.shown()), ("Known here", facts.ourUnits.shown()),
        ("Difference", facts.difference.shown()),
      ] + facts.classes.map { ($0.name.displayText, $0.units.shown()) }
    values["tieOut"] =
      [
        "days": "\(facts.firstDay) to \(facts.lastDay)", "sentence": facts.sentence,
        "reasons": facts.incompleteReasons + facts.revisions.map(\.words) + facts.remarks,
        "rows": rows.map { ["name": $0, "units": $1] }, "unexplained": facts.unexplained.shown(),
      ] as Values
    return values
  }

  private func controls(_ control: [ControlTotal], _ summary: SummaryFacts) -> Values {
    let lines = control.map {
      [
        "name": $0.title, "left": Money.shown($0.left), "right": Money.shown($0.right),
        "result": $0.isBalanced ? "balanced" : "NOT BALANCED",
      ]
    }
    return [
      "controlText": "\(grouped(control.count)) control totals of the program agree.", "controls": lines,
      "notChecked": summary.uncheckedTexts + summary.uncheckedOrderTexts,
    ]
  }

  /// The listed findings and the choices of their filters.
  private func list(_ open: FindingsSummary) -> Values {
    func words(_ name: String) -> Set<String> { Set(rows.compactMap { $0[name] as? String }).subtracting([""]) }
    let shownText =
      open.closing > rows.count
      ? "The worst \(grouped(rows.count)) of \(openFindings(open.closing)); all are "
        + (options.hasFiles ? "in findings.csv." : "on the sheet Findings.")
      : "\(openFindings(open.closing)), worst first."
    return [
      "findings": rows, "shownText": shownText,
      "severities": Severity.allCases.map(\.rawValue).filter(words("severity").contains),
      "statuses": FindingStatus.allCases.map(\.rawValue).filter(words("status").contains),
      "owners": words("owner").sorted(), "stakeCurrencies": words("currency").sorted(),
    ]
  }

  private mutating func values(_ line: FindingLine) -> Values {
    let (reported, finding) = (line.reported, line.reported.finding)
    func local(_ instant: Instant?) -> String? { instant.map { clock.text($0) } }
    let facts: [(String, String?)] = [
      ("Meaning", finding.kind.definition.meaning), ("Product", finding.productId?.text),
      ("Transaction", finding.transactionId?.text), ("Receipt", finding.receiptId?.text),
      ("Delivery", finding.deliveryId?.text), ("Environment", finding.environment?.rawValue),
      ("Amount", finding.amount?.text), ("Date", local(finding.occurredAt)), ("Paid", local(finding.paidAt)),
      ("Delivered", local(finding.deliveredAt)), ("First seen", local(reported.firstSeen)),
      ("Remark", reported.remark), ("Finding", reported.findingId),
    ]
    return [
      "severity": finding.severity.rawValue, "severityRank": finding.severity.index,
      "kind": finding.kind.rawValue, "kindName": finding.kind.title, "order": finding.orderId?.text ?? "",
      "user": finding.userId.map { options.pseudonyms?.pseudonym(of: $0) ?? $0.text } ?? "",
      "currency": finding.currency?.code ?? "", "stake": reported.stakeText,
      "stakeNumber": finding.atStake?.decimalText ?? "",
      "days": finding.occurredAt.map { String(max(0, (line.asOf - $0).wholeDays)) } ?? "",
      "status": reported.status, "owner": reported.owner ?? "", "due": reported.due ?? "",
      "isNew": reported.firstSeen >= line.asOf, "reason": clock.localTimes(in: finding.reason.text),
      "action": finding.suggestedAction, "explanation": reported.explanation.map { clock.localTimes(in: $0) },
      "facts": facts.compactMap { name, value -> [String: String]? in value.map { ["name": name, "value": $0] } },
      "hasDetails": finding.severity == .critical,
    ]
  }
}
