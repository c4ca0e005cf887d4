"""Asks a slow Apple about many receipts, and compares the time with the ideal.

The App Store simulator answers each request after --latency seconds; night-audit has --in-flight concurrent requests and
no rate limit. The ideal is receipts x latency / in flight: nothing else takes time, no receipt is asked about twice, and
the last round is as full as the others. --rate limits the requests per second, and the ideal with them.

The benchmark also counts the waits for the database, from the first statement to the last.

With --workers, several processes, as on several hosts, share the work and are compared with one process. They then repeat
the work, and one of them is killed in the middle.
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
# The limit for fifty answers a second (Apple's limit) or more.
MOST_WAITS = 100
AS_OF = "2026-11-20T03:00:00Z"
# Two workers may take this share of the time of one worker; the limit for more workers is proportional.
SHARE_OF_TWO = 0.6
# A rate is measured over this many seconds, because requests and answers are counted at different times.
RATE_WINDOW = 10


def wait_for(path, process):
    while not os.path.exists(path):
        if process.poll() is not None:
            raise SystemExit("The simulator did not start.")
        time.sleep(0.05)
    return open(path).read().strip()


class Simulator:
    """A simulated Apple on loopback that answers each request after `latency` seconds."""

    def __init__(self, program, directory, world, latency=0):
        self.command = [program, "serve", "--world", world, "--latency", f"{latency}s"]
        self.port_file = os.path.join(directory, "port")
        self.log = os.path.join(directory, "simulator.log")

    def __enter__(self):
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [*self.command, "--port-file", self.port_file],
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent(signal.SIGKILL),
            )
        try:
            self.url = f"http://127.0.0.1:{wait_for(self.port_file, self.process)}"
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *unused):
        self.process.terminate()
        self.process.wait()
        if os.path.exists(self.port_file):
            os.remove(self.port_file)

    def asked(self):
        """The numbers of requests so far."""
        with urllib.request.urlopen(f"{self.url}/simulator/requests?last=0") as answer:
            return json.load(answer)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--receipts", type=int, default=10_000)
    parser.add_argument("--latency", type=float, default=4)
    parser.add_argument("--in-flight", type=int, default=256)
    parser.add_argument("--rate", type=float, default=0, help="requests a second; 0: as many as there are answers")
    parser.add_argument("--workers", type=int, default=1, help="how many processes share the work")
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
        # More orders than receipts, because some orders have no due receipt.
        orders = str(options.receipts * 102 // 100)
        subprocess.run([simulator, "sample-shop", "--directory", shop, "--orders", orders], check=True)
        with Simulator(simulator, cluster.directory, f"{shop}/world.json", options.latency) as apple:
            asking = Asking(options, cluster, shop, night_audit, apple)
            return asking.together() if options.workers > 1 else asking.alone()


class Asking:
    """Asks about the receipts of one shop, in a new database each time."""

    def __init__(self, options, cluster, shop, night_audit, apple):
        self.options, self.cluster, self.shop, self.night_audit, self.apple = options, cluster, shop, night_audit, apple
        self.are_met = True
        self.config = os.path.join(cluster.directory, "night-audit.yaml")
        with open(self.config, "w") as file:
            file.write(
                f"app:\n  game:\n    bundleId: com.example.game\n    sharedSecretFile: {shop}/shared-secret\n"
                f"appstore:\n  channel: verifyReceipt\n  requestsPerSecond: {options.rate:g}\n"
                f"  concurrency: {options.in_flight}\n"
                f"  verifyReceiptUrl: {apple.url}/production/verifyReceipt\n"
                f"  verifyReceiptSandboxUrl: {apple.url}/sandbox/verifyReceipt\n"
            )
        self.command = [night_audit, "recheck", "--config", self.config, "--as-of", AS_OF, "--quiet"]

    def fill(self, database):
        self.cluster.create_database(database)
        environment = self.cluster.environment(database)
        initialize = [self.night_audit, "init", "--with-sales-schema", "--config", self.config]
        subprocess.run(initialize, check=True, stdout=subprocess.DEVNULL, env=environment)
        for table in ["orders", "receipts", "deliveries"]:
            self.cluster.psql(database, script=f"\\copy sales.{table} from '{self.shop}/{table}.csv' csv header")
        return environment

    def receipts(self):
        with open(f"{self.shop}/receipts.csv", newline="", encoding="utf-8") as file:
            csv.field_size_limit(sys.maxsize)
            return sum(1 for _ in csv.DictReader(file))

    def verdict(self, what, value, limit, digits=3):
        is_met = value <= limit
        print(f"{'met   ' if is_met else 'MISSED'}  {what}: {value:.{digits}f}", flush=True)
        self.are_met = self.are_met and is_met

    def alone(self):
        options = self.options
        environment = self.fill("shop")
        receipts = self.receipts()
        relay = CountingRelay(os.path.join(self.cluster.directory, "relay"), self.cluster.directory)
        environment["PGHOST"] = relay.directory
        started = time.monotonic()
        done = subprocess.run(self.command, env=environment, capture_output=True)
        wall = time.monotonic() - started
        if done.returncode not in (0, 3):
            raise SystemExit(f"night-audit ended with {done.returncode}.\n{done.stderr.decode()}")
        asked = self.apple.asked()
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        ideal = receipts * options.latency / options.in_flight
        if options.rate:
            ideal = max(ideal, asked["total"] / options.rate + options.latency)
        print(f"{receipts:,} receipts, {asked['total']:,} requests, at most {asked['peakInFlight']} of them under way")
        print(f"{wall:.1f} s, ideal {ideal:.1f} s; peak of the largest process {usage.ru_maxrss / 1024:.0f} MB")
        self.verdict(f"at most {AT_MOST} x the ideal", wall / ideal, AT_MOST)
        self.verdict(
            f"at most {MOST_WAITS} waits for the database per 1,000 checks", 1_000 * relay.ready / receipts, MOST_WAITS, 0
        )
        return 0 if self.are_met else 1

    def together(self):
        workers, rate = self.options.workers, self.options.rate
        print(f"{self.receipts():,} receipts", flush=True)
        one = self.share("one", 1)
        several = self.share("several", workers)
        bereaved = self.share("bereaved", workers, killed_at=one.requests // 2)
        if rate:
            for name, work in [("one worker", one), (f"{workers} workers", several), ("one of them killed", bereaved)]:
                self.verdict(
                    f"{name}: in no {RATE_WINDOW} s more than 1.1 x the common rate of {rate:g} a second",
                    work.fastest / rate, 1.1,
                )
        else:
            at_most = SHARE_OF_TWO * 2 / workers
            self.verdict(f"{workers} workers: at most {at_most:g} of the time of one", several.wall / one.wall, at_most)
        self.verdict(f"{workers} workers: at most 1.01 x the requests of one", several.requests / one.requests, 1.01)
        # The requests in progress, and as many with answers that were not stored yet.
        again = 2 * self.options.in_flight
        self.verdict(f"one of them killed: at most {again} requests more", bereaved.requests - one.requests, again, 0)
        for name, work in [(f"{workers} workers", several), ("one of them killed", bereaved)]:
            self.verdict(
                f"{name}: checks that came out otherwise than by one, or not at all", len(work.known ^ one.known), 0, 0
            )
            self.verdict(f"{name}: checks that a worker that has ended still leases", work.leased, 0, 0)
        return 0 if self.are_met else 1

    def share(self, database, workers, killed_at=None):
        """Runs concurrent workers over a new database; kills the first one after `killed_at` requests."""
        environment = self.fill(database)
        return SharedWork(self, database, environment, workers, killed_at)

    def rows(self, database, sql):
        return subprocess.run(
            [f"{self.cluster.programs}/psql", "-qAtX", "-c", sql],
            check=True, capture_output=True, text=True, env=self.cluster.environment(database),
        ).stdout.splitlines()


class SharedWork:
    """The joint work of several workers: its time, requests, rate and results."""

    def __init__(self, asking, database, environment, workers, killed_at):
        self.apple = asking.apple
        before = self.apple.asked()
        self.samples = []
        started = time.monotonic()
        processes = [
            subprocess.Popen(
                asking.command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                preexec_fn=die_with_parent(signal.SIGKILL),
            )
            for _ in range(workers)
        ]
        killed = None
        try:
            while any(process.poll() is None for process in processes):
                now = self.apple.asked()
                self.samples.append((time.monotonic(), now["byPath"]))
                if killed_at and not killed and now["total"] - before["total"] >= killed_at:
                    killed = processes[0]
                    killed.kill()
                time.sleep(0.1)
        finally:
            for process in processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        self.wall = time.monotonic() - started
        if killed_at and (not killed or killed.returncode != -signal.SIGKILL):
            raise SystemExit("The worker that was to be killed in the middle was at its end.")
        for process in processes:
            said = process.stderr.read()
            if process is not killed and process.returncode not in (0, 3):
                raise SystemExit(f"night-audit ended with {process.returncode}.\n{said}")
        self.requests = self.apple.asked()["total"] - before["total"]
        # A check without an answer has another outcome, and a check lost with its worker is still leased.
        self.known = set(asking.rows(database, """
          SELECT subject_kind, subject_id, outcome, reason, environment, brought_count, due_from
          FROM night_audit.receipt_checks"""))
        self.known.update(asking.rows(database, "SELECT environment, transaction_id FROM night_audit.transactions"))
        [self.leased] = map(int, asking.rows(
            database, "SELECT count(*) FROM night_audit.receipt_checks WHERE worker IS NOT NULL"))
        end = ", one of them killed" if killed else ""
        print(f"{workers} at once{end}: {self.requests:,} requests in {self.wall:.1f} s", flush=True)

    @property
    def fastest(self):
        """The highest rate of requests to one of Apple's environments within the window; each has its own rate limit."""
        most, first = 0, 0
        for at, counts in self.samples:
            while at - self.samples[first][0] > RATE_WINDOW:
                since, earlier = self.samples[first]
                most = max(most, *((counts[path] - earlier.get(path, 0)) / (at - since) for path in counts))
                first += 1
        if not most:
            raise SystemExit(f"All was asked within {RATE_WINDOW} s, which is too soon to see a rate: take more --receipts.")
        return most


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
