"""Asks a slow Apple about many receipts, and compares how long that takes with the least that it can take.

The App Store simulator answers each request after --latency seconds; night-audit has --in-flight requests under way at a
time and no rate limit. The ideal is receipts x latency / in flight: nothing else takes any time, no receipt is asked about
twice, and the last round is as full as the others. With --rate so many are asked for a second at most, and that bounds the
ideal as well.

Counted on the way is how often the database was waited for, from the first statement to the last.
"""

import argparse
import csv
import json
import os
import resource
import signal
import subprocess
import sys
import time
import urllib.request

from cluster import Cluster, die_with_parent
from counting_relay import CountingRelay

AT_MOST = 1.15
# At fifty answers a second, Apple's limit, or more.
MOST_WAITS = 100
AS_OF = "2026-11-20T03:00:00Z"


def wait_for(path, process):
    while not os.path.exists(path):
        if process.poll() is not None:
            raise SystemExit("The simulator did not start.")
        time.sleep(0.05)
    return open(path).read().strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--receipts", type=int, default=10_000)
    parser.add_argument("--latency", type=float, default=4)
    parser.add_argument("--in-flight", type=int, default=256)
    parser.add_argument("--rate", type=float, default=0, help="requests a second; 0: as many as there are answers")
    parser.add_argument("--binaries", required=True, help="the folder of the release build")
    options = parser.parse_args()
    night_audit = os.path.abspath(os.path.join(options.binaries, "night-audit"))
    simulator = os.path.abspath(os.path.join(options.binaries, "app-store-simulator"))
    for program in [night_audit, simulator]:
        if not os.access(program, os.X_OK):
            raise SystemExit(f"There is no {program}: swift build -c release makes it.")
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
    with Cluster() as cluster:
        shop = os.path.join(cluster.directory, "shop")
        # Not every order of the sample shop has a receipt that is due.
        orders = str(options.receipts * 102 // 100)
        subprocess.run([simulator, "sample-shop", "--directory", shop, "--orders", orders], check=True)
        port_file = os.path.join(cluster.directory, "port")
        with open(os.path.join(cluster.directory, "simulator.log"), "w") as log:
            apple = subprocess.Popen(
                [simulator, "serve", "--world", f"{shop}/world.json", "--port-file", port_file]
                + ["--latency", f"{options.latency}s"],
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent(signal.SIGKILL),
            )
        try:
            return compare(options, cluster, shop, night_audit, wait_for(port_file, apple))
        finally:
            apple.terminate()
            apple.wait()


def compare(options, cluster, shop, night_audit, port):
    url = f"http://127.0.0.1:{port}"
    config = os.path.join(cluster.directory, "night-audit.yaml")
    with open(config, "w") as file:
        file.write(
            f"app:\n  game:\n    bundleId: com.example.game\n    sharedSecretFile: {shop}/shared-secret\n"
            f"appstore:\n  channel: verifyReceipt\n  requestsPerSecond: {options.rate:g}\n  concurrency: {options.in_flight}\n"
            f"  verifyReceiptUrl: {url}/production/verifyReceipt\n"
            f"  verifyReceiptSandboxUrl: {url}/sandbox/verifyReceipt\n"
        )
    cluster.create_database("shop")
    environment = cluster.environment("shop")
    subprocess.run([night_audit, "init", "--with-sales-schema", "--config", config], check=True, env=environment)
    for table in ["orders", "receipts", "deliveries"]:
        cluster.psql("shop", script=f"\\copy sales.{table} from '{shop}/{table}.csv' csv header")
    with open(f"{shop}/receipts.csv", newline="", encoding="utf-8") as file:
        csv.field_size_limit(sys.maxsize)
        receipts = sum(1 for _ in csv.DictReader(file))

    relay = CountingRelay(os.path.join(cluster.directory, "relay"), cluster.directory)
    environment["PGHOST"] = relay.directory
    started = time.monotonic()
    done = subprocess.run(
        [night_audit, "recheck", "--config", config, "--as-of", AS_OF, "--quiet"], env=environment, capture_output=True
    )
    wall = time.monotonic() - started
    if done.returncode not in (0, 3):
        raise SystemExit(f"night-audit ended with {done.returncode}.\n{done.stderr.decode()}")
    with urllib.request.urlopen(f"{url}/simulator/requests?last=0") as answer:
        asked = json.load(answer)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    ideal = receipts * options.latency / options.in_flight
    if options.rate:
        ideal = max(ideal, asked["total"] / options.rate + options.latency)
    print(f"{receipts:,} receipts, {asked['total']:,} requests, at most {asked['peakInFlight']} of them under way")
    print(f"{wall:.1f} s, ideal {ideal:.1f} s; peak of the largest process {usage.ru_maxrss / 1024:.0f} MB")
    is_met = wall <= AT_MOST * ideal
    print(f"{'met   ' if is_met else 'MISSED'}  at most {AT_MOST} x the ideal: {wall / ideal:.3f}")
    waits = 1_000 * relay.ready / receipts
    has_few = waits <= MOST_WAITS
    print(f"{'met   ' if has_few else 'MISSED'}  at most {MOST_WAITS} waits for the database per 1,000 checks: {waits:.0f}")
    return 0 if is_met and has_few else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
