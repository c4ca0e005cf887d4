#!/usr/bin/env python3
"""Runs the tests, and the programs that they start, under one of LLVM's sanitizers.

    sanitized.py address|thread [--swift SWIFT] [--filter REGEX]

Builds everything again, below .build/address or .build/thread. Exits with 1 if a test fails or the sanitizer reports a
problem in any process. The reports are beside the build.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Memory that is in use until the process ends is no leak.
OPTIONS = {
    "address": ("ASAN_OPTIONS", "detect_leaks=0:"),
    "thread": ("TSAN_OPTIONS", f"suppressions={Path(__file__).with_name('thread_sanitizer.txt')}:"),
}
# Tests of memory use would measure the sanitizer's memory, too. Preloaded test libraries cannot come before the sanitizer.
SKIPPED = [
    "HostileDataTests", "LifecycleTests", "ClockTests", "SystemCallTests", "StandardStreamsTests",
]
# Tests without threads need no thread sanitizer.
WITHOUT_THREADS = ["ReconciliationTests", "RunTests"]
# The address sanitizer only runs tests of borrowed bytes: decoders, COPY, workbooks, records.
WITH_BORROWED_BYTES = "^(AppStore|Postgres|Reconciliation|SalesStore|Spreadsheet|Streams|TieOut|Auditing)Tests\\."


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sanitizer", choices=sorted(OPTIONS))
    parser.add_argument("--swift", default="swift")
    parser.add_argument("--filter", default="", help="only these tests")
    arguments = parser.parse_args()
    place = ROOT / ".build" / arguments.sanitizer
    place.mkdir(parents=True, exist_ok=True)
    # Reuses the fetched dependencies of the main build.
    fetched = ROOT / ".build" / "repositories"
    if fetched.is_dir() and not (place / "repositories").exists():
        shutil.copytree(fetched, place / "repositories", symlinks=True)
    common = [f"--sanitize={arguments.sanitizer}", "--scratch-path", str(place)]
    built = subprocess.run(
        [arguments.swift, "build", "--build-tests", *common], cwd=ROOT, capture_output=True, text=True)
    if built.returncode != 0:
        sys.exit(f"it does not compile:\n{(built.stdout + built.stderr)[-3000:]}")
    for old in place.glob("report.*"):
        old.unlink()
    name, options = OPTIONS[arguments.sanitizer]
    environment = dict(os.environ, SWIFT_BACKTRACE="enable=no")
    environment[name] = f"{options}log_path={place / 'report'}"
    wanted = arguments.filter or (WITH_BORROWED_BYTES if arguments.sanitizer == "address" else "")
    narrowed = ["--filter", wanted] if wanted else []
    for skipped in SKIPPED + (WITHOUT_THREADS if arguments.sanitizer == "thread" else []):
        narrowed += ["--skip", skipped]
    with open(place / "log", "w") as log:
        done = subprocess.run(
            [arguments.swift, "test", "--skip-build", "--no-parallel", *common, *narrowed], cwd=ROOT, stdout=log,
            stderr=subprocess.STDOUT, env=environment)
    said = (place / "log").read_text(errors="replace")
    reports = [line for file in sorted(place.glob("report.*"))
               for line in re.findall(r"^SUMMARY: .*", file.read_text(errors="replace"), re.M) or [str(file)]]
    tests = re.findall(r"Test run with (\d+) tests.*", said)
    failures = [line for line in re.findall(r"^✘ .*", said, re.M) if not line.startswith("✘ Test run")]
    for line in (failures + reports)[:40]:
        print(line)
    print(f"{arguments.sanitizer} sanitizer: {tests[-1] if tests else 0} tests, {len(failures)} failures, {len(reports)} reports "
          f"(all that was said: {place})")
    sys.exit(0 if done.returncode == 0 and tests and not reports else 1)


if __name__ == "__main__":
    main()
