"""Runs night-audit, the floor in C and the program with pandas in turns over the same orders, and compares their cost.

CPU is that of client and server together: user and system time of the whole client process and of every Postgres
process.
Memory is the client's peak resident size.
"""

import argparse
import collections
import filecmp
import os
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import time
import zipfile
from datetime import datetime, timezone

from cluster import HERE, SOURCES, Cluster, die_with_parent

BUILD = os.path.join(HERE, ".build")
AS_OF = datetime(2026, 11, 20, 2, tzinfo=timezone.utc)
PERIOD = ("2026-08-22", "2026-11-20")
CSV_FILES = ["orders", "findings", "users", "amounts", "products", "refunds", "sandbox", "receipts"]
OURS, FLOOR, PANDAS = "night-audit", "floor (C)", "pandas"
# From this size on pandas' workbook is written once, because it takes as long as everything else.
ONCE_FROM = 500_000

# Smaller runs are not judged, because their fixed cost dominates.
JUDGED_FROM = 200_000
# Limits: CPU relative to the floor by kind of IDs, and relative to pandas.
TO_FLOOR = {
    "hashed": {"csv": 1.7, "xlsx": 1.35},
    "ordered": {"csv": 1.7, "xlsx": 1.35},
    "views": {"csv": 1.7, "xlsx": 1.35},
}
TO_PANDAS = {"csv": 2.5, "xlsx": 4}
# Limits of the client's CPU relative to the floor's, with CSV only: the target, and the bound for regressions.
CLIENT_AIM, CLIENT_BOUND = 2.5, 8
# The limit of wall time as a share of CPU, with two processors and CSV only, because one thread writes a workbook.
WALL_SHARE = 0.7
PEAK_MEGABYTES = 120

Run = collections.namedtuple("Run", "cpu client server wall peak")


class Benchmark:
    def __init__(self, cluster, night_audit, ids="hashed", troubled=100, others=(FLOOR, PANDAS)):
        self.cluster = cluster
        self.ids, self.troubled, self.others = ids, troubled, list(others)
        self.night_audit = night_audit
        self.failures = []
        self.decided = None
        self.work = os.path.join(cluster.directory, "work")
        os.mkdir(self.work)

    def contenders(self):
        return ([OURS] if self.night_audit else []) + self.others

    def fill(self, orders, users):
        """Creates a database with this many orders and users."""
        self.orders, self.database = orders, f"orders_{orders}_{users}"
        self.testers = os.path.join(self.work, "testers")
        open(self.testers, "w").close()
        self.cluster.create_database(self.database)
        self.configure("csv")
        subprocess.run(
            [self.night_audit, "init", "--config", self.config, "--with-sales-schema"],
            check=True,
            stdout=subprocess.DEVNULL,
            env=self.cluster.environment(self.database),
            cwd=self.work,
        )
        started = time.monotonic()
        self.cluster.psql(
            self.database,
            f"--set=orders={orders}",
            f"--set=users={users}",
            f"--set=ids={'hashed' if self.ids == 'hashed' else 'ordered'}",
            f"--set=troubled={self.troubled}",
            f"--set=testers={self.testers}",
            "--file",
            os.path.join(HERE, "orders.sql"),
        )
        if self.ids == "views":
            self.put_behind_views()
        print(f"\n{orders:,} orders by {users:,} users, filled in {time.monotonic() - started:.0f} s", flush=True)

    def put_behind_views(self):
        """Converts the shop to the tables of the page Views, with its views for all contenders."""
        page = open(os.path.join(SOURCES, "night-audit", "Documentation.docc", "Views.md"), encoding="utf-8").read()
        views = page.split("```sql\n")[1].split("```")[0].replace("CREATE SCHEMA sales;", "")
        tables = open(os.path.join(HERE, "integers.sql"), encoding="utf-8").read()
        self.cluster.psql(self.database, script=f"{tables}\n{views}\nVACUUM ANALYZE; CHECKPOINT")

    def fails(self, contender, status, text):
        """Records a failure. The other contenders continue, but not without the floor, the base of all comparisons."""
        print(f"{contender} ended with {status}.\n{text.strip()}", flush=True)
        self.failures.append(f"{contender} ended with {status}")
        if contender == FLOOR:
            raise SystemExit(1)
        if contender == OURS:
            self.night_audit = None

    def configure(self, formats):
        self.config = os.path.join(self.work, f"night-audit-{formats}.yaml")
        with open(self.config, "w") as file, open(self.testers) as testers:
            users = "".join(f'    - "{line.strip()}"\n' for line in testers)
            file.write("app:\n  game:\n    bundleId: com.example.game\nappstore:\n  channel: verifyReceipt\n")
            # Findings on a tenth of the orders must not hold the first night.
            file.write("audit:\n  holdShare: 1\n")
            if users:
                file.write("  testUsers:\n" + users)
            names = "[csv, xlsx]" if formats == "xlsx" else "[csv]"
            file.write(f"report:\n  formats: {names}\n  workbookOrders: {self.orders}\n")

    def command(self, contender, formats, directory):
        if contender == OURS:
            self.configure(formats)
            return [
                self.night_audit,
                "reconcile",
                "--config",
                self.config,
                "--out",
                directory,
                "--quiet",
                "--as-of",
                AS_OF.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "--since",
                PERIOD[0],
                "--until",
                PERIOD[1],
            ]
        os.mkdir(directory)
        program = [f"{BUILD}/floor"] if contender == FLOOR else [f"{BUILD}/venv/bin/python", f"{HERE}/with_pandas.py"]
        return [*program, directory, formats, str(int(AS_OF.timestamp()))]

    def run(self, contender, formats, *further):
        """Runs a contender with further options; returns the run, or None if it failed, and the directory of its files."""
        directory = os.path.join(self.work, re.sub(r"\W+", "", contender) + "-" + formats)
        shutil.rmtree(directory, ignore_errors=True)
        run, status, said = self.measure([*self.command(contender, formats, directory), *further])
        # 3: complete except for receipts that Apple was not asked about.
        if status not in ((0, 3) if contender == OURS else (0,)):
            self.fails(contender, status, said)
            return None, directory
        return run, directory

    def measure(self, command, attend=lambda child: None):
        """Returns the cost of a command, its status and its output.

        - attend: called with the running process.
        """
        log = os.path.join(self.work, "log")
        server = self.cluster.cpu_seconds()
        with open(log, "w") as output:
            started = time.monotonic()
            child = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                env=self.cluster.environment(self.database),
                cwd=self.work,
                preexec_fn=die_with_parent(signal.SIGKILL),
            )
            try:
                attend(child)
                _, status, usage = os.wait4(child.pid, 0)
            except BaseException:
                child.kill()
                child.wait()
                raise
        wall = time.monotonic() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        client = usage.ru_utime + usage.ru_stime
        server = self.cluster.cpu_seconds() - server
        run = Run(client + server, client, server, wall, usage.ru_maxrss / 1024)
        return run, child.returncode, open(log).read()

    def decide(self):
        """Loads night-audit's decisions about the orders for the other contenders, which have no rules."""
        if self.decided == self.database:
            return
        run, directory = self.run(OURS, "csv")
        if run is None:
            raise SystemExit(1)
        script = os.path.join(HERE, "decided.sql")
        self.cluster.psql(self.database, f"--set=report={directory}", "--file", script)
        self.decided = self.database

    def compare(self, formats, rounds):
        # These runs are not measured, because caches are cold.
        self.decide()
        self.run(FLOOR, "csv")
        runs = collections.defaultdict(list)
        directories = {}
        for number in range(rounds):
            for contender in self.contenders():
                is_long = contender == PANDAS and formats == "xlsx" and self.orders >= ONCE_FROM
                if number and (is_long or contender not in runs):
                    continue
                run, directory = self.run(contender, formats)
                if run is None:
                    runs.pop(contender, None)
                    directories.pop(contender, None)
                    continue
                runs[contender].append(run)
                directories[contender] = directory
                print(
                    f"  {formats} {number + 1} {contender:<12} "
                    f"{run.cpu:8.2f} CPU s {run.wall:8.1f} s {run.peak:6.0f} MB",
                    flush=True,
                )
        self.check_agreement(directories, formats)
        medians = {name: Run(*map(statistics.median, zip(*several))) for name, several in runs.items()}
        self.print_table(formats, runs, medians)
        return medians

    def print_table(self, formats, runs, medians):
        print(f"\n### {self.orders:,} orders, {'CSV and workbook' if formats == 'xlsx' else 'CSV only'}\n")
        print("| | runs | CPU s | of it client | server | wall s | peak MB | CPU / floor | client / floor | pandas / CPU |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        for name, run in medians.items():
            to_floor = run.cpu / medians[FLOOR].cpu
            to_pandas = f"{medians[PANDAS].cpu / run.cpu:.1f}" if PANDAS in medians else ""
            print(
                f"| {name} | {len(runs[name])} | {run.cpu:.2f} | {run.client:.2f} | {run.server:.2f} | {run.wall:.1f} "
                f"| {run.peak:.0f} | {to_floor:.2f} | {run.client / medians[FLOOR].client:.2f} | {to_pandas} |"
            )
        print(flush=True)

    def check_agreement(self, directories, formats):
        """Checks that all contenders wrote the same bytes in every CSV file, and as many rows on every sheet."""
        for name, directory in directories.items():
            for file in CSV_FILES:
                paths = [os.path.join(each, f"{file}.csv") for each in (directory, directories[FLOOR])]
                if not filecmp.cmp(*paths, shallow=False):
                    self.failures.append(f"{name} and the floor differ in {file}.csv")
        if formats != "xlsx":
            return
        rows = {name: sheet_rows(directory) for name, directory in directories.items()}
        for name, counts in rows.items():
            for sheet in rows[FLOOR]:
                # A sheet may have a line of sums for each currency.
                if not 0 <= counts[sheet] - rows[FLOOR][sheet] < 100:
                    self.failures.append(f"{name} has {counts[sheet]:,} rows on {sheet}, not {rows[FLOOR][sheet]:,}")

    def judge(self, formats, medians):
        if OURS not in medians:
            return
        at_most, at_least = TO_FLOOR[self.ids][formats], TO_PANDAS[formats]
        ours = medians[OURS]
        what = f"{self.orders:,} orders, {formats}, ids {self.ids}"
        self.verdict(f"{what}: CPU at most {at_most} x the floor", ours.cpu / medians[FLOOR].cpu, at_most)
        if formats == "csv":
            ratio = ours.client / medians[FLOOR].client
            self.verdict(f"{what}: the client's CPU at most {CLIENT_AIM} x that of the floor's", ratio, CLIENT_AIM)
            self.verdict(f"{what}: and never again more than {CLIENT_BOUND} x", ratio, CLIENT_BOUND)
            if len(os.sched_getaffinity(0)) > 1:
                self.verdict(f"{what}: wall time at most {WALL_SHARE} of the CPU", ours.wall / ours.cpu, WALL_SHARE)
        if PANDAS in medians:
            less = medians[PANDAS].cpu / ours.cpu
            self.verdict(f"{what}: CPU at least {at_least} x less than pandas", -less, -at_least)
        self.verdict(f"{what}: peak at most {PEAK_MEGABYTES} MB", ours.peak, PEAK_MEGABYTES)

    def verdict(self, target, value, limit):
        is_met = value <= limit
        print(f"{'met   ' if is_met else 'MISSED'}  {target}: {abs(value):.2f}", flush=True)
        if not is_met:
            self.failures.append(target)


def sheet_rows(directory):
    """The number of rows by sheet."""
    counts = collections.Counter()
    [book] = [name for name in os.listdir(directory) if name.endswith(".xlsx")]
    with zipfile.ZipFile(os.path.join(directory, book)) as archive:
        names = re.findall(rb'<sheet name="([^"]*)"', archive.read("xl/workbook.xml"))
        for number, name in enumerate(names, 1):
            with archive.open(f"xl/worksheets/sheet{number}.xml") as sheet:
                tail = b""
                while chunk := sheet.read(1 << 20):
                    counts[name.decode()] += (tail + chunk).count(b"<row ")
                    tail = chunk[-4:]
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--night-audit", required=True, help="the release build of night-audit")
    parser.add_argument("--formats", nargs="+", choices=["csv", "xlsx"], default=["csv", "xlsx"])
    parser.add_argument(
        "--ids",
        choices=["ordered", "hashed", "views"],
        default="hashed",
        help="views: integers, behind the views of the page Views",
    )
    parser.add_argument(
        "--troubled", type=int, default=100, help="hundreds in a hundred with findings: 26 make 0.1 findings an order"
    )
    parser.add_argument("--without-pandas", action="store_true", help="compare with the floor alone")
    options = parser.parse_args()
    # Restores SIGINT, which shells ignore for background processes.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
    with Cluster() as cluster:
        benchmark = Benchmark(
            cluster,
            os.path.abspath(options.night_audit),
            options.ids,
            options.troubled,
            [FLOOR] if options.without_pandas else [FLOOR, PANDAS],
        )
        peaks = {}
        for orders in options.orders:
            benchmark.fill(orders, orders // 6 + 1)
            for formats in options.formats:
                medians = benchmark.compare(formats, options.rounds)
                if orders >= JUDGED_FROM:
                    benchmark.judge(formats, medians)
                if formats == "csv" and OURS in medians:
                    peaks[orders] = medians[OURS].peak
        least, most = min(options.orders), max(options.orders)
        if benchmark.night_audit and least < most and least in peaks:
            benchmark.fill(most, least // 6 + 1)
            run, _ = benchmark.run(OURS, "csv")
            if run:
                print(
                    f"Peak with {least // 6 + 1:,} users: "
                    f"{peaks[least]:.0f} MB for {least:,} orders, {run.peak:.0f} MB for {most:,}."
                )
                benchmark.verdict(
                    "memory grows with users, not with orders: MB more for the larger", run.peak - peaks[least], 10
                )
        print(
            f"The runner's own peak, which no child's can be below: "
            f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"
        )
        for failure in benchmark.failures:
            print(f"Failed: {failure}")
        return 1 if benchmark.failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
