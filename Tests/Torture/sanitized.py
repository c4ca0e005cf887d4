#!/usr/bin/env python3
"""Runs the tests of what touches memory by hand, and of what has threads, under a sanitizer of LLVM's.

    sanitized.py address|thread [--swift SWIFT] [--filter REGEX]

Builds libpq's and the workbook's wrappers, decompression and the streams with their tests alone, as a package of its own
below .build/address or .build/thread: the rest of the program is not built anew. Ends with 1 when a test fails or the
sanitizer reports anything.
"""
import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ["CLibPQ", "CXLSXWriter", "CMiniZip", "CExpat", "CZlib", "Postgres", "Spreadsheet", "Gzip", "Reconciliation", "Streams"]
TESTS = ["TestSupport", "PostgresTests", "SpreadsheetTests", "StreamsTests"]

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
    return ",\n    ".join(found)


def write(place):
    manifest = (ROOT / "Package.swift").read_text()
    settings = re.search(r"let strict.*?\n\]\n", manifest, re.S)
    version = re.search(r'swift-collections", exact: "([^"]+)"', manifest).group(1)
    checkout = ROOT / ".build" / "checkouts" / "swift-collections"
    source = f'path: "{checkout}"' if checkout.is_dir() else f'url: "https://github.com/apple/swift-collections", exact: "{version}"'
    place.mkdir(parents=True, exist_ok=True)
    head = re.match(r"// swift-tools-version.*\n", manifest).group()
    (place / "Package.swift").write_text(
        f'{head}import PackageDescription\n\n{settings.group() if settings else ""}\n'
        f'let package = Package(\n  name: "sanitized", dependencies: [.package({source})],\n  targets: [\n    {targets(manifest)}\n  ])\n')
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
