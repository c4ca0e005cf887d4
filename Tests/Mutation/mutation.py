#!/usr/bin/env python3
"""Mutates the pure core and prints the mutants that no test kills.

    mutation.py [--sample N] [--seed S] [--only 17,42] [--again LOG] [--list] [--jobs 2]

All mutants are compiled together. Each mutated place reads the number of the chosen mutant (environment variable MUTANT), so
a mutant costs a run of the tests and no build. A mutant that does not compile is left out. The copy below .build/mutation
has only Sources/Reconciliation, which includes the rule of dueness, and Tests/ReconciliationTests.

Exits with 1 if fewer than 95 % of the mutants are killed, not counting survivors that SURVIVORS.md explains. Exits at once if
that page explains a mutant that does not exist.
"""
import argparse
import concurrent.futures
import math
import os
import random
import re
import resource
import selectors
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / ".build" / "mutation"
CORE = ROOT / "Sources" / "Reconciliation"
TESTS = ROOT / "Tests" / "ReconciliationTests"
SHOPS = ROOT / "Tests" / "SampleShops"
GENERATOR = ROOT / "Tests" / "TestSupport" / "SeededGenerator.swift"
EXPLAINED = Path(__file__).with_name("SURVIVORS.md")

# With optimisation the tests take a sixth of the time, and each surviving mutant takes all of it.
OPTIMISED = ["--package-path", str(PLACE), "-c", "release", "-Xswiftc", "-enable-testing"]

# Lines without a visible effect: reserved capacity, counted steps, hashes, and explanations that are not read.
UNSEEN = re.compile(r"reserveCapacity|keepingCapacity|\b(steps|visits)\b|hasher\.combine|isWanted: false")
# Orderings of elements that are never equal, or were compared for equality before. There <= means <, so the mutant reverses
# the order.
ORDERING = re.compile(r"\.(sort|sorted|min|max|lexicographicallyPrecedes)\b *[({]|static func <|if ([\w.]+) != ([\w.]+) \{ return \2 < \3")

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
LOGIC = {"&&": "||", "||": "&&"}
ARITHMETIC = {"+": "-", "-": "+"}


def code_mask(text):
    """A byte for each character: 1 for code, 0 in comments and string literals."""
    mask = bytearray(b"\1" * len(text))
    position = 0
    while position < len(text):
        for start, end in (("//", "\n"), ("/*", "*/"), ('"""', '"""'), ('"', '"')):
            if text.startswith(start, position):
                stop = position + len(start)
                while stop < len(text) and not text.startswith(end, stop):
                    stop += 2 if text[stop] == "\\" and '"' in start else 1
                stop = min(len(text), stop + (0 if end == "\n" else len(end)))
                mask[position:stop] = bytes(stop - position)
                position = stop
                break
        else:
            if text[position] == "/" and re.match(r"/[^/ \n][^\n]*/", text[position:]) and text[position - 1] in " (":
                stop = position + re.match(r"/[^/ \n][^\n]*/", text[position:]).end()
                mask[position:stop] = bytes(stop - position)
                position = stop
            else:
                position += 1
    return mask


class Mutant:
    def __init__(self, file, line, what, edits, operator=None, other=None):
        self.file, self.line, self.what = file, line, what
        self.edits = edits  # [(start, end, text)] of the file; "{n}" stands for the number, "{o}" for the operator
        self.operator, self.other = operator, other
        self.number = 0

    @property
    def name(self):
        return f"{self.file.name}:{self.line}: {self.what}"


def mutants_of(file):
    text = file.read_text()
    mask = code_mask(text)
    found = []

    def is_code(match):
        return all(mask[match.start() : match.end()])

    def line_of(position):
        return text.count("\n", 0, position) + 1

    def source_line(position):
        start = text.rfind("\n", 0, position) + 1
        end = text.find("\n", position)
        return text[start:end].strip()

    def add(match, what, edits, operator=None, other=None):
        line = source_line(match.start())
        if UNSEEN.search(line):
            return
        # Patterns and declarations are not expressions.
        if re.match(r"(case |default:|import |@|(public |package |private |static |fileprivate |@inlinable |@usableFromInline |mutating )*(func|enum|struct|init|subscript|extension|operator)\b)", line):
            if not ("{" in line and match.start() > text.rfind("\n", 0, match.start()) + line.find("{")) and not re.match(r"case .*: ", line):
                return
        if line.startswith("case ") and ":" in line:
            colon = text.rfind("\n", 0, match.start()) + 1 + text[text.rfind("\n", 0, match.start()) + 1 :].find(": ")
            if match.start() < colon:
                return
        found.append(Mutant(file, line_of(match.start()), f"{what}   in   {line[:100]}", edits, operator, other))

    for match in re.finditer(r"(?<=\s)(<=|>=|==|!=|&&|\|\||<|>|\+|-)(?=\s)", text):
        if not is_code(match):
            continue
        operator = match.group(1)
        other = COMPARISONS.get(operator) or LOGIC.get(operator) or ARITHMETIC[operator]
        if operator == "<" and ORDERING.search(source_line(match.start())):
            other = ">"
        add(match, f"{operator} becomes {other}", [(match.start(), match.end(), "{o}")], operator, other)
    for match in re.finditer(r"(?<![\w.$])\d[\d_]*(?![\w.])", text):
        # Only the sign of a comparison's result counts, and a list may be longer than its used part.
        around = text[max(0, match.start() - 40) : match.end() + 6]
        if re.search(r"\? (-?1 : )?-?$", text[max(0, match.start() - 10) : match.start()]) and re.search(r"-1 : 1|1 : -1", around):
            continue
        if re.search(r"repeating: [^\n]*count: [^()\n]* \+ $", text[max(0, match.start() - 90) : match.start()]):
            continue
        if is_code(match):
            value = int(match.group().replace("_", ""))
            add(match, f"{match.group()} becomes {value + 1}",
                [(match.start(), match.end(), f"mutated({{n}}, {match.group()}, {value + 1})")])
    for match in re.finditer(r"(?<!while )\b(true|false)\b", text):
        if is_code(match):
            other = "false" if match.group() == "true" else "true"
            add(match, f"{match.group()} becomes {other}",
                [(match.start(), match.end(), f"mutated({{n}}, {match.group()}, {other})")])
    for match in re.finditer(r"(?<![\w.])!(?=[a-z(])", text):
        if is_code(match):
            add(match, "a negation is dropped", [(match.start(), match.end(), "{o}")], "!")
    for match in re.finditer(r"(?<![\w.])(min|max)(?=\([^()]*(\([^()]*\)[^()]*)*,)", text):
        if is_code(match):
            other = "max" if match.group(1) == "min" else "min"
            add(match, f"{match.group(1)} becomes {other}",
                [(match.start(), match.end(), f"mutated({{n}}, {match.group(1)}Of, {other}Of)")])
    for match in re.finditer(r"(?m)^ +if ([^{}\n]+) \{", text):
        condition = match.group(1)
        if not re.search(r"\b(let|var|case)\b|, ", condition) and all(mask[match.start(1) : match.end(1)]):
            add(match, "a rule is dropped", [(match.start(1), match.start(1), "mutated({n}, "), (match.end(1), match.end(1), ", false)")])
    for match in re.finditer(r"(?m)^ +guard ([^{}\n]+) else \{", text):
        condition = match.group(1)
        if not re.search(r"\b(let|var|case)\b|, ", condition) and all(mask[match.start(1) : match.end(1)]):
            add(match, "a guard is dropped", [(match.start(1), match.start(1), "mutated({n}, "), (match.end(1), match.end(1), ", true)")])
    for match in re.finditer(r"(?m)^ +([a-z][\w.]*(?:\[[^\]\n]*\])?(?:\.[\w]+)?(?:\([^\n]*\)| [+-]?= [^\n]+[\w)\]]))$", text):
        statement = match.group(1)
        if re.match(r"(return|throw|case|let|var|self\.init|try|if|guard|for|while|switch|else|break|continue|defer)\b", statement):
            continue
        if re.fullmatch(r"self\.(\w+) = \1", statement) or statement.startswith("self = "):
            continue
        if mask[match.start(1)] and statement.count("(") == statement.count(")"):
            add(match, "a statement is dropped", [(match.start(1), match.start(1), "if mutant != {n} {{ "), (match.end(1), match.end(1), " }}")])
    for match in re.finditer(r"(?<!let )(?<!var )(?<!for )\((?:\w+: )?([a-z][\w.]*), (?:\w+: )?([a-z][\w.]*)\)", text):
        first, second = match.group(1), match.group(2)
        called = re.search(r"(\w+)$", text[: match.start()])
        if called and called.group(1) in ("min", "max", "swapAt", "isSame"):
            continue
        if is_code(match) and first != second and not {first, second} & {"nil", "true", "false"}:
            add(match, f"{first} and {second} change places", [
                (match.start(1), match.end(1), f"mutated({{n}}, {first}, {second})"),
                (match.start(2), match.end(2), f"mutated({{n}}, {second}, {first})")])
    # Repeated mutations of one line get numbers from the second on.
    counts = {}
    for mutant in sorted(found, key=lambda m: m.edits[0][0]):
        counts[mutant.name] = counts.get(mutant.name, 0) + 1
        if counts[mutant.name] > 1:
            what, line = mutant.what.split("   in   ", 1)
            mutant.what = f"{what} ({counts[mutant.name]})   in   {line}"
    return text, found


def operator_name(number):
    return chr(0x2200 + number // 200) + chr(0x2200 + number % 200)


def declaration(mutant):
    name, number, operator = operator_name(mutant.number), mutant.number, mutant.operator
    if operator == "!":
        return f"prefix operator {name}\nprefix func {name} (value: Bool) -> Bool {{ mutant == {number} ? value : !value }}\n"
    if operator in LOGIC:
        level = "LogicalConjunctionPrecedence" if operator == "&&" else "LogicalDisjunctionPrecedence"
        other = LOGIC[operator]
        return (f"infix operator {name}: {level}\nfunc {name} <E: Error>(left: Bool, right: @autoclosure () throws(E) -> Bool) throws(E) -> Bool "
                f"{{ if mutant == {number} {{ return {'left ? true : try right()' if other == '||' else 'left ? try right() : false'} }}; "
                f"return {'left ? try right() : false' if other == '||' else 'left ? true : try right()'} }}\n")
    if operator in ARITHMETIC:
        other = ARITHMETIC[operator]
        text = f"infix operator {name}: AdditionPrecedence\n"
        body = f"{{ mutant == {number} ? left {other} right : left {operator} right }}"
        text += f"func {name} <T: Numeric>(left: T, right: T) -> T {body}\n"
        text += f"func {name} (left: Instant, right: Span) -> Instant {body}\n"
        return text
    other, limit = mutant.other, "Equatable" if operator in ("==", "!=") else "Comparable"
    body = f"{{ mutant == {number} ? left {other} right : left {operator} right }}"
    text = f"infix operator {name}: ComparisonPrecedence\nfunc {name} <T: {limit}>(left: T, right: T) -> Bool {body}\n"
    for size in (2, 3, 4):
        types = [f"T{i}" for i in range(size)]
        tuple_type = f"({', '.join(types)})"
        text += f"func {name} <{', '.join(f'{t}: {limit}' for t in types)}>(left: {tuple_type}, right: {tuple_type}) -> Bool {body}\n"
    if limit == "Equatable":
        text += f"func {name} <T>(left: T?, right: _OptionalNilComparisonType) -> Bool {body}\n"
    return text


PREAMBLE = """import Glibc

/// The number of the chosen mutant; 0: none.
let mutant = getenv("MUTANT").flatMap { Int(String(cString: $0)) } ?? 0
func mutated<T>(_ number: Int, _ value: T, _ other: T) -> T { mutant == number ? other : value }
func minOf<T: Comparable>(_ first: T, _ second: T) -> T { first < second ? first : second }
func maxOf<T: Comparable>(_ first: T, _ second: T) -> T { first < second ? second : first }
"""


def write_package(swift):
    PLACE.mkdir(parents=True, exist_ok=True)
    manifest = (ROOT / "Package.swift").read_text()
    checkout = ROOT / ".build" / "checkouts" / "swift-collections"
    version = re.search(r'swift-collections", exact: "([^"]+)"', manifest).group(1)
    source = f'path: "{checkout}"' if checkout.is_dir() else f'url: "https://github.com/apple/swift-collections", exact: "{version}"'
    (PLACE / "Package.swift").write_text(f"""// swift-tools-version: 6.2
import PackageDescription
let settings: [SwiftSetting] = [.enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility")]
let package = Package(
  name: "mutation", dependencies: [.package({source})],
  targets: [
    .target(name: "Reconciliation", dependencies: [.product(name: "HeapModule", package: "swift-collections")],
      path: "Core", swiftSettings: settings),
    .target(name: "TestSupport", path: "Support", swiftSettings: settings),
    .target(name: "SampleShops", dependencies: ["Reconciliation"], path: "Shops", swiftSettings: settings),
    .target(
      name: "SampleWorlds", dependencies: ["Reconciliation", "SampleShops", "TestSupport"], path: "Tests/Support",
      swiftSettings: settings),
    .testTarget(
      name: "ReconciliationTests", dependencies: ["Reconciliation", "SampleWorlds", "TestSupport"], path: "Tests",
      exclude: ["Support"], swiftSettings: settings),
  ])
""")
    # These tests need only the generator of TestSupport.
    (PLACE / "Support").mkdir(exist_ok=True)
    for target, link in ((TESTS, PLACE / "Tests"), (SHOPS, PLACE / "Shops"), (GENERATOR, PLACE / "Support" / GENERATOR.name)):
        if not link.is_symlink():
            link.symlink_to(target)


def write_core(sources, mutants):
    core = PLACE / "Core"
    shutil.rmtree(core, ignore_errors=True)
    core.mkdir()
    for number, mutant in enumerate(mutants, 1):
        mutant.number = number
    for file, text in sources.items():
        edits = []
        for mutant in (m for m in mutants if m.file == file):
            for start, end, new in mutant.edits:
                new = new.replace("{n}", str(mutant.number)).replace("{o}", operator_name(mutant.number))
                edits.append((start, end, new.replace("{{", "{").replace("}}", "}"), mutant.number))
        # Edits are applied from the end. Of two edits at one place, the closing one of the inner mutant comes first.
        for start, end, new, _ in sorted(edits, key=lambda e: (e[0], e[1], -e[3]), reverse=True):
            text = text[:start] + new + text[end:]
        (core / file.name).write_text(text)
    (core / "Mutants.swift").write_text(PREAMBLE + "".join(declaration(m) for m in mutants if m.operator))


def overlapping(mutants):
    """Leaves out mutants whose edits overlap those of an earlier one."""
    kept, taken = [], {}
    for mutant in mutants:
        spans = taken.setdefault(mutant.file, [])
        clash = any(start < e and s < end for start, end, _ in mutant.edits if end > start for s, e in spans)
        if not clash:
            kept.append(mutant)
            spans.extend((s, e) for s, e, _ in mutant.edits if e > s)
    return kept


def build(swift, sources, mutants):
    """Compiles all mutants, leaving out those that do not compile."""
    while True:
        write_core(sources, mutants)
        began = time.time()
        done = subprocess.run([swift, "build", "--build-tests", *OPTIMISED], capture_output=True, text=True)
        if done.returncode == 0:
            print(f"{len(mutants)} mutants compiled in {time.time() - began:.0f} s", flush=True)
            return mutants
        lines = set(re.findall(r"Core/([\w+]+\.swift):(\d+):\d+: error", done.stdout + done.stderr))
        bad = [m for m in mutants if (m.file.name, str(m.line)) in lines]
        if not bad:
            # The compiler reports an uninitialized property at the end of its initializer.
            unset = set(re.findall(r"'(?:self\.)?(\w+)' (?:not initialized|used before being)", done.stdout + done.stderr))
            bad = [m for m in mutants if m.what.startswith("a statement is dropped")
                   and re.match(r"(self\.)?(" + "|".join(unset | {"-"}) + r")\b", m.what.split("   in   ")[1].strip())]
        if not bad:
            # The compiler reports an error in a long statement at its first line.
            near = {(name, str(int(line) + offset)) for name, line in lines for offset in range(-3, 4)}
            bad = [m for m in mutants if (m.file.name, str(m.line)) in near]
        if not bad:
            # The error is at the end of a path without the dropped statement, so the statement is before it in the function.
            bad = [m for m in mutants if m.what.startswith("a statement is dropped")
                   and any(m.file.name == name and 0 <= int(line) - m.line <= 40 for name, line in lines)]
        if not bad:
            sys.exit(f"the core does not compile, but not because of a mutant:\n{(done.stdout + done.stderr)[-3000:]}")
        with (PLACE / "left-out").open("a") as file:
            file.writelines(f"{m.name}\n" for m in bad)
        print(f"{len(bad)} cannot be compiled and are left out ({time.time() - began:.0f} s)", flush=True)
        mutants = [m for m in mutants if m not in bad]


def test(binary, number, limit):
    """Runs the tests until the first failure; returns 'killed' or 'survived'.

    Endless tests are killed after `limit` seconds of processor time, or after 60 times as many seconds.
    """
    environment = dict(os.environ, MUTANT=str(number), SWIFT_BACKTRACE="enable=no", TEST_SEED="1")
    environment.pop("LD_PRELOAD", None)
    process = subprocess.Popen(binary, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, start_new_session=True,
                               preexec_fn=lambda: (os.nice(15), resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))))
    selector = selectors.DefaultSelector()
    selector.register(process.stdout, selectors.EVENT_READ)
    deadline, verdict = time.time() + 60 * limit, None
    while verdict is None:
        if time.time() > deadline:
            verdict = "killed"
            break
        if not selector.select(timeout=1):
            continue
        chunk = os.read(process.stdout.fileno(), 65536)
        if not chunk:
            verdict = "survived" if process.wait() == 0 else "killed"
        elif b"recorded an issue" in chunk or "✘".encode() in chunk:
            verdict = "killed"
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    process.stdout.close()
    return verdict


def explanations():
    """The explained mutants of SURVIVORS.md: (file, line of the list)."""
    found, file = set(), None
    for line in EXPLAINED.read_text().splitlines():
        if line.startswith("## "):
            file = line[3:].strip()
        elif line.startswith("- "):
            found.add((file, line))
    return found


def explanation(mutant):
    what, line = mutant.what.split("   in   ", 1)
    return mutant.file.name, f"- `{line.strip()}`: {what}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--swift", default="swift")
    parser.add_argument("--sample", type=int, default=0, help="the number of mutants to try, drawn from the seed; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="numbers of mutants, as printed by a full run")
    parser.add_argument("--again", type=Path, help="the output of an earlier run: try only its survivors")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    arguments = parser.parse_args()

    sources, mutants = {}, []
    for file in sorted(CORE.rglob("*.swift")):
        sources[file], found = mutants_of(file)
        mutants += found
    mutants = overlapping(mutants)
    print(f"{len(mutants)} mutants of {len(sources)} files", flush=True)
    explained = explanations()
    stale = explained - {explanation(m) for m in mutants}
    if stale:
        sys.exit("\n".join(f"{EXPLAINED.name} explains a mutant that does not exist: {file} {line}" for file, line in sorted(stale)))
    if arguments.list:
        for mutant in mutants:
            print(mutant.name)
        return
    write_package(arguments.swift)
    # Mutants that did not compile in the last run, if their lines are unchanged.
    known = PLACE / "left-out"
    left_out = set(known.read_text().splitlines()) if known.exists() else set()
    mutants = [m for m in mutants if m.name not in left_out]
    mutants = build(arguments.swift, sources, mutants)
    place = subprocess.run([arguments.swift, "build", *OPTIMISED, "--show-bin-path"], capture_output=True, text=True)
    binary = [f"{place.stdout.strip()}/mutationPackageTests.xctest", "--testing-library", "swift-testing"]
    def work():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = work()
    if test(binary, 0, 1800) != "survived":
        sys.exit("the tests fail without a mutant")
    calm = math.ceil(work() - before)
    print(f"the tests take {calm} s of work without a mutant", flush=True)
    chosen = list(mutants)
    if arguments.only:
        wanted = {int(number) for number in arguments.only.split(",")}
        chosen = [m for m in mutants if m.number in wanted]
    elif arguments.again:
        # Mutants are identified by mutation and text of the line, because line numbers change.
        names = {line.split(": ", 1)[1] for line in arguments.again.read_text().splitlines() if line.startswith("survived ")}
        wanted = {re.sub(r":\d+:", ":", name, count=1) for name in names}
        chosen = [m for m in mutants if re.sub(r":\d+:", ":", m.name, count=1) in wanted]
    elif arguments.sample:
        # The sample keeps its random order, so its first mutants are a random sample, too.
        chosen = random.Random(arguments.seed).sample(mutants, min(arguments.sample, len(mutants)))
    counts, survivors = {"killed": 0, "survived": 0, "explained": 0}, []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for mutant, verdict in zip(chosen, pool.map(lambda m: test(binary, m.number, 10 + 3 * calm), chosen)):
            if (count := sum(counts.values())) and count % 50 == 0:
                print(f"{count} tried", flush=True)
            if verdict != "survived":
                counts["killed"] += 1
                continue
            is_explained = explanation(mutant) in explained
            counts["explained" if is_explained else "survived"] += 1
            if not is_explained:
                survivors.append(mutant)
                print(f"survived {mutant.number}: {mutant.name}", flush=True)
    counted = counts["killed"] + counts["survived"]
    share = 100 * counts["killed"] / max(1, counted)
    print(f"mutants tried: {len(chosen)}, killed: {counts['killed']}, explained: {counts['explained']}, "
          f"survived: {counts['survived']} ({share:.1f} % killed)")
    sys.exit(0 if share >= 95 else 1)


if __name__ == "__main__":
    main()
