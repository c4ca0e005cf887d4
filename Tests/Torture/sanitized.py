#!/usr/bin/env python3
"""Runs the tests of what touches memory by hand, and of what has threads, under a sanitizer of LLVM's.

    sanitized.py address|thread [--swift SWIFT] [--filter REGEX]

Builds libpq's and the workbook's wrappers, decompression, the streams, and what decodes Apple's data and talks to Apple with
their tests and the fuzzer's alone, as a package of its own below .build/address or .build/thread: the rest of the program is
not built anew. Ends with 1 when a test fails or the sanitizer reports anything.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    "CLibPQ", "CXLSXWriter", "CMiniZip", "CExpat", "CZlib", "Postgres", "Spreadsheet", "Gzip", "Reconciliation", "Streams", "AppStore",
]
TESTS = ["TestSupport", "PostgresTests", "SpreadsheetTests", "StreamsTests", "AppStoreTests", "FuzzTests"]
# Of the last but one, what needs the simulator, which is another program.
NEED_MORE = [
    "RealParts", "Simulator", "Connect/ConnectSimulatorTests.swift", "Receipt/OfflineJudgeTests.swift",
    "ServerAPI/ServerAPISimulatorTests.swift",
]

# What is kept until the process ends is no leak.
OPTIONS = {"address": {"ASAN_OPTIONS": "detect_leaks=0"}, "thread": {}}


def block(manifest, start):
    """The whole call that begins there."""
    depth, end = 0, start
    while True:
        depth += {"(": 1, ")": -1}.get(manifest[end], 0)
        end += 1
        if depth == 0 and manifest[end - 1] == ")":
            return manifest[start:end]


def targets(manifest):
    """As the manifest has them, so that they are built with the same settings."""
    found = []
    for name in SOURCES + TESTS:
        match = re.search(r'\.(target|testTarget|systemLibrary)\(\s*name: "%s"' % re.escape(name), manifest)
        found.append(block(manifest, match.start()))
        if name == "AppStoreTests":
            left_out = ", ".join(f'"{path}"' for path in NEED_MORE)
            found[-1] = re.sub(r'"TieOut", |"app-store-simulator",', "", found[-1])
            found[-1] = re.sub(r"exclude: \[[^]]*\]", f"exclude: [{left_out}]", found[-1])
    return ",\n    ".join(found)


def write(place):
    manifest = (ROOT / "Package.swift").read_text()
    settings = re.search(r"let strict.*?\n\]\n", manifest, re.S).group()
    fuzzed = re.search(r"let fuzzedModules.*?\n\]\n", manifest, re.S).group()
    body = targets(manifest)
    named = set(re.findall(r'package: "([^"]+)"', fuzzed + body))
    packages = [line.strip() for line in re.findall(r"\n( +\.package\(url: .*\),)", manifest)
                if re.search(r'/([\w-]+)"', line).group(1) in named]
    place.mkdir(parents=True, exist_ok=True)
    # What has been fetched for the whole program need not be fetched again.
    fetched = ROOT / ".build" / "repositories"
    if fetched.is_dir() and not (place / ".build" / "repositories").exists():
        shutil.copytree(fetched, place / ".build" / "repositories", symlinks=True)
    head = re.match(r"// swift-tools-version.*\n", manifest).group()
    (place / "Package.swift").write_text(
        f"{head}import PackageDescription\n\n{settings}\n{fuzzed}\n"
        f'let package = Package(\n  name: "sanitized",\n  dependencies: [\n    {" ".join(packages)}\n  ],\n'
        f"  targets: [\n    {body}\n  ])\n")
    for folder in ("Sources", "Tests"):
        link = place / folder
        if not link.is_symlink():
            link.symlink_to(ROOT / folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sanitizer", choices=sorted(OPTIONS))
    parser.add_argument("--swift", default="swift")
    parser.add_argument("--filter", default="")
    arguments = parser.parse_args()
    place = ROOT / ".build" / arguments.sanitizer
    write(place)
    environment = dict(os.environ, SWIFT_BACKTRACE="enable=no", **OPTIONS[arguments.sanitizer])
    common = ["--package-path", str(place), f"--sanitize={arguments.sanitizer}"]
    built = subprocess.run([arguments.swift, "build", "--build-tests", *common], capture_output=True, text=True)
    if built.returncode != 0:
        sys.exit(f"it does not compile:\n{(built.stdout + built.stderr)[-3000:]}")
    narrowed = ["--filter", arguments.filter] if arguments.filter else []
    done = subprocess.run(
        [arguments.swift, "test", "--skip-build", "--no-parallel", *common, *narrowed], capture_output=True, text=True,
        env=environment)
    said = done.stdout + done.stderr
    reports = re.findall(r"^(?:==\d+==ERROR: |WARNING: ThreadSanitizer: ).*", said, re.M)
    tests = re.findall(r"Test run with (\d+) tests.*", said)
    failures = re.findall(r"^✘ .*", said, re.M)
    for line in (failures + reports)[:40]:
        print(line)
    (place / "log").write_text(said)
    print(f"{arguments.sanitizer} sanitizer: {tests[-1] if tests else 0} tests, {len(failures)} failures, {len(reports)} reports "
          f"(all that was said: {place / 'log'})")
    sys.exit(0 if done.returncode == 0 and tests and not reports else 1)


if __name__ == "__main__":
    main()
