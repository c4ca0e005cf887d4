#!/usr/bin/env python3
"""Puts known faults back one by one, and checks that the tests find each of them.

usage: known_faults.py [--swift SWIFT] [--only NUMBER ...]

Needs a tree without changes. Each fault is put back, built and tested, and the correct code is restored in any case. Prints
the tests that found each fault; exits with 1 if a fault was not found.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
NIGHTS = "DeterministicNightsTests"

# The fault, its file, the correct code, the faulty code, and the tests that detect it.
FAULTS = [
    ("the result of a night depends on the order of answers",
     "Sources/Reconciliation/Evidence/TransactionRecord.swift", "facts.sorted(by: isStatedBefore)", "facts", NIGHTS),
    ("a question without an answer makes an order unpaid",
     "Sources/Reconciliation/Verdict/VerdictRule.swift",
     'because.noting(.unconfirmed(reason), "The look-up has', 'because.noting(.unpaid(.notFound, nil), "The look-up has',
     NIGHTS),
    ("the passing of time proves that Apple does not know an ID",
     "Sources/Reconciliation/Verdict/VerdictRule.swift", "min(proof.answeredAt ?? rules.asOf, rules.asOf)", "rules.asOf", NIGHTS),
    ("an ID that Apple did not know is never asked about again",
     "Sources/Reconciliation/Dueness/CheckHistory.swift", "outcome == .notFound, reason == .notFound,", "outcome == .notFound,",
     "DuenessTests"),
    ("an answered check is asked about again in the same night",
     "Sources/Reconciliation/Dueness/Dueness.swift", "let stale = (check.answeredAt ?? check.knownSince) + policy.staleAfter",
     "let stale = check.dated + policy.staleAfter", NIGHTS),
    ("a partial refund revokes the whole purchase",
     "Sources/Reconciliation/Evidence/Revocation.swift", "case .some(let milliPercent): milliPercent >= 100_000",
     "case .some(let milliPercent): milliPercent >= 0", NIGHTS),
    ("a sandbox transaction pays an order", "Sources/Reconciliation/Evidence/TransactionRecord.swift",
     "self.environment == .production && !isReversed", "!isReversed", NIGHTS),
    ("control totals omit the rows that the parts read",
     "Sources/Auditing/Pass/AuditStages.swift", "      totals.join(reading.totals)\n", "", NIGHTS),
    ("open questions of one part are unknown to the others",
     "Sources/Auditing/Pass/AuditStages.swift", "      open.join(reading.open)\n", "", NIGHTS),
    ("a bad receipt row counts as a proof", "Sources/Reconciliation/Findings/FindingRules+Payment.swift", "facts.validReceipts.map", "facts.receipts.map",
     NIGHTS),
    ("a user who may create functions can replace those of the server", "Sources/Postgres/Connections/SessionProfile.swift",
     '("search_path", "pg_catalog, pg_temp"), ', "", "SessionProfileTests"),
    ("one refused question ends the night of its app",
     "Sources/Reconciliation/Failures/FailurePolicyCredentials.swift",
     "if isAccepted { return .park }\n    refused[kind, default: []].insert(id)\n"
     "    return refused[kind, default: []].count >= Self.idsNeeded ? .endApp : .park",
     "return .endApp", "FailureSizeTests"),
    ("an order is judged by the look-up of an ID that it no longer states",
     "Sources/Auditing/Records/OrderGroup.swift", ", lookup.subjectId == row.question(rules)?.id", "", "AuditInputTests"),
    ("an alias with an empty user ID joins unrelated users to one person",
     "Sources/SalesStore/SalesCatalogue.swift", ",\n        !userId.isEmpty, !sameAs.isEmpty\n", "\n",
     "HostileDataTests/hostileTextAffectsOnlyItsOwnRow"),
    ("a purchase and its restore pay two orders",
     "Sources/Auditing/Audit.swift", "let sharedPurchases = try TransactionTable.sharedPurchases(on: stores.rows.own)",
     "let sharedPurchases: Set<UInt64> = []", "ClaimNightsTests"),
    ("the proof of one subscription contains the customer's other subscriptions",
     "Sources/Asking/Answers/AnswerWriter.swift", "facts.append((nil, fact)) }", "facts.append((result.subject, fact)) }",
     "AnswerWriterTests"),
    ("a later receipt overrides the purchase date and product that Apple signed",
     "Sources/Reconciliation/Evidence/TransactionRecord.swift", "for fact in ordered where !fact.isSigned { foldPurchase(fact) }\n    "
     "for fact in signed { foldPurchase(fact) }",
     "for fact in ordered { foldPurchase(fact) }", "FoldingTests"),
    ("the server's order decides which row of a repeated receipt counts",
     "Sources/SalesStore/Rows/SalesRows.swift",
     "row.receivedAt == other.receivedAt ? texts(row) < texts(other) : row", "row",
     "repeatedIDsAreBadRows"),
    ("repeated refusals count towards the share of first answers",
     "Sources/Reconciliation/Failures/FailurePolicyShare.swift", "case .refused(let before) where refusal == before:",
     "case .refused(let before) where refusal == before && false:", "FailurePolicyTests"),
    ("the second of two concurrent decisions overwrites the first",
     "Sources/AuditStore/Findings/FindingsEditor.swift", "case .readWrite: try Trail.lockForDecision(on: connection)",
     "case .readWrite: break", "twoAtOnce|undoWaitsForOngoingChanges"),
    ("a sweep that ended early is not tried again in its night",
     "Sources/NightAudit/NightRun+Asking.swift", "if swept?.isUnfinished ?? false,", "if swept == nil,",
     "aNightThatCouldNotSweepTriesAgain"),
    ("a late receipt is checked only in a later night",
     "Sources/Asking/Queue/QueueIntake.swift", "min(unknownFrom ?? seen, isAll ? horizon : seen)", "(isAll ? horizon : seen)",
     "lateRowsAreChecked"),
    ("an unverified receipt takes a payment from its owner",
     "Sources/Auditing/Records/TransactionReference.swift", "isGenuine: receipt.state.isProof", "isGenuine: receipt.state.outcome != .rejected",
     "ClaimNightsTests"),
    ("an order is a duplicate before its own proof was answered",
     "Sources/Reconciliation/Verdict/VerdictRule.swift", "if awaitsAnswer {", "if false {", "OpenClaimsTests"),
    ("an accusation by one answer of Apple's is never asked about again",
     "Sources/Reconciliation/Dueness/Dueness.swift",
     "return check.isOffline ? nil : accusation(check, policy)", "return nil", "DuenessTests"),
    ("a refund decides an order although an unread proof may show another payment",
     "Sources/Reconciliation/Verdict/VerdictRule.swift", "if transaction.isReversed, facts.awaitsPayment(rules) {", "if false, facts.awaitsPayment(rules) {",
     "WithheldAnswerTests"),
    ("`verify` accepts a finding whose status was edited in the database",
     "Sources/AuditStore/Trail/TrailVerification.swift",
     "    verification.checks.append(try FindingsTrail.prove(by: contents, on: connection))\n", "", "TrailTests"),
    ("a question waiting for an unresponsive app blocks the questions of other apps",
     "Sources/Asking/Loop/AskingLoop.swift", "      inProgress -= 1\n",
     "      if case .waits = ending {} else { inProgress -= 1 }\n", "anOutageOfOneApp|checksOfASilentAppWaitAside"),
    ("requests queue at a rate gate that another worker has closed",
     "Sources/AppStore/Policy/RateGate.swift",
     "return state.turns.first.map { $0 - now > max(Self.longestTurn, interval * 20) } ?? false", "return false",
     "RateGateTests"),
    ("an outage during a sweep ends the sweep",
     "Sources/Asking/Sweep/FeedStage+Notifications.swift", " && values.failing[app.name] == [type]", "", "NotificationFeedTests"),
]


def run(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--swift", default="swift")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of faults, from 1")
    arguments = parser.parse_args()
    if run("git", "status", "--porcelain", "--", "Sources")[1].strip():
        sys.exit("known_faults: Sources has changes; commit them first, because files are changed and put back")
    missed = 0
    for number, (seen, name, mend, fault, finder) in enumerate(FAULTS, 1):
        if arguments.only and number not in arguments.only:
            continue
        file = ROOT / name
        text = file.read_text()
        if text.count(mend) != 1:
            sys.exit(f"known_faults: {name} holds this {text.count(mend)} times, not once: {mend}")
        try:
            file.write_text(text.replace(mend, fault))
            code, output = run(arguments.swift, "build", "--build-tests")
            if code:
                sys.exit(f"known_faults: number {number} does not compile\n{output}")
            code, output = run("env", "SWIFT_BACKTRACE=enable=no", "TEST_EFFORT=4", arguments.swift, "test",
                               "--skip-build", "--no-parallel", "--filter", finder)
        finally:
            file.write_text(text)
        words = [line.lstrip("↳ ") for line in output.splitlines() if line.startswith("↳") and "///" not in line
                 and "Version" not in line and "Platform" not in line]
        if not re.search(r"Test run with [1-9]", output):
            sys.exit(f"known_faults: number {number}: no test matches {finder}, or the tests crashed\n{output[-2000:]}")
        found = code != 0
        missed += not found
        print(f"{number:2} {'found by ' + finder if found else 'NOT FOUND by ' + finder}: {seen}", flush=True)
        if found and words:
            print(f"   {words[0][:160]}", flush=True)
    run(arguments.swift, "build", "--build-tests")
    print(f"faults put back: {len(arguments.only or FAULTS)}; not found: {missed}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
