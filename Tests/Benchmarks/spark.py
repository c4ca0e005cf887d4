"""Compares a night on a Spark cluster with the same night in one process: the bytes, the CPU and the memory.

The cluster is a standalone master and two workers of one core each, on this machine. CPU is that of all processes
started for the night, including the server. Memory is the peak of one process, by kind. The benchmark fails if a process
that an executor starts exceeds its bound.
"""

import argparse
import contextlib
import ctypes
import filecmp
import json
import math
import os
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time

from cluster import HERE, Cluster
from run import AS_OF, OURS, PERIOD, Benchmark

PR_SET_CHILD_SUBREAPER = 36
# The kinds of processes, by a text in their command lines.
KINDS = {"CoarseGrainedExecutorBackend": "executor", "pyspark.daemon": "Python", "audit-part": "audit-part"}
MASTER, WORKER = ("org.apache.spark.deploy." + name for name in ("master.Master", "worker.Worker"))
# audit-part reads from disk, so its memory must hardly grow with a part: 53 MB at 25,000 orders, 63 MB at 250,000, 73 MB
# at 312,500.
AUDIT_PART_MEGABYTES = 90
# Spark sorts up to 512 MB in memory (spark.python.worker.memory); Python itself takes 75 MB.
PYTHON_MEGABYTES = 600
AS_OF_TEXT = AS_OF.strftime("%Y-%m-%dT%H:%M:%SZ")


def free_port():
    with contextlib.closing(socket.socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def kind_of(process):
    """The kind of a process by its command line; None for other processes."""
    words = open(f"/proc/{process}/cmdline", "rb").read().decode(errors="replace")
    return next((kind for text, kind in KINDS.items() if text in words), None)


def status_of(process, field):
    """A number from the status of a process; 0 if the process has just ended."""
    lines = (line for line in open(f"/proc/{process}/status") if line.startswith(field + ":"))
    return int(next(lines, "none 0").split()[1])


class Peaks(threading.Thread):
    """Measures the peak memory of executors and the processes that they start, by kind."""

    def __init__(self):
        super().__init__(daemon=True)
        self.megabytes, self._ended = {}, threading.Event()

    def run(self):
        while not self._ended.wait(0.2):
            for process in filter(str.isdigit, os.listdir("/proc")):
                with contextlib.suppress(OSError, ProcessLookupError):
                    kind = kind_of(process)
                    if kind and self._is_executors(process):
                        held = status_of(process, "VmHWM") / 1024
                        self.megabytes[kind] = max(self.megabytes.get(kind, 0), held)

    @staticmethod
    def _is_executors(process):
        """True for an executor of our cluster and its descendants. Another cluster may run on this machine, and the driver's
        memory has the results of all parts."""
        is_executors = False
        while (process := int(process)) > 1:
            if process == os.getpid():
                return is_executors
            is_executors = is_executors or kind_of(process) == "executor"
            process = status_of(process, "PPid")
        return False

    def end(self):
        self._ended.set()
        self.join()


class Spark:
    """A Spark cluster of a master and two workers."""

    def __init__(self, python, directory, server):
        self.python, self.directory, self.server = python, directory, server
        where = subprocess.run(
            [python, "-c", "import os, pyspark; print(os.path.dirname(pyspark.__file__))"],
            check=True, capture_output=True, text=True)
        self.home, self.processes = where.stdout.strip(), []
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PG", "SPARK_", "NIGHT_AUDIT_"))},
            "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": directory, "PYTHONPATH": os.path.join(HERE, "..", "..", "Sources", "night-audit-spark"),
        }

    def __enter__(self):
        port = free_port()
        self.master = f"spark://127.0.0.1:{port}"
        listens = ["--host", "127.0.0.1", "--webui-port", "0"]
        self._start("master", "New state: ALIVE", MASTER, *listens, "--port", str(port))
        for name in ("first", "second"):
            work = os.path.join(self.directory, name)
            self._start(
                name, "Successfully registered", WORKER, *listens, "--cores", "1", "--memory", "1g", "--work-dir", work,
                self.master)
        return self

    def _start(self, name, ready, *words):
        log = os.path.join(self.directory, name + ".log")
        with open(log, "w") as output:
            process = subprocess.Popen(
                [os.path.join(self.home, "bin", "spark-class"), *words], stdout=output, stderr=output, env=self.environment)
        self.processes.append(process)
        while ready not in open(log).read():
            if process.poll() is not None:
                raise SystemExit(open(log).read())
            time.sleep(0.1)

    def __exit__(self, *unused):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()
        # Reaps orphans (PR_SET_CHILD_SUBREAPER), so that their CPU time is counted.
        for orphan in open(f"/proc/self/task/{os.getpid()}/children").read().split():
            if int(orphan) != self.server:
                os.waitpid(int(orphan), 0)

    def audit(self, night_audit, config, period, parts, *options):
        shutil.rmtree(parts, ignore_errors=True)
        log = parts + ".log"
        command = [self.python, "-m", "night_audit_spark", "--master", self.master, "--config", config, *period]
        with open(log, "w") as output:
            done = subprocess.run(
                [*command, "--parts", parts, "--binary", night_audit, *options], stdout=output, stderr=output,
                env=self.environment)
        if done.returncode:
            raise SystemExit(f"The job ended with {done.returncode}.\n{open(log).read()[-4000:]}")

    def lake(self, url, relations, directory):
        """Copies relations of a database into Parquet."""
        script = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master(sys.argv[1]).config("spark.jars", "/usr/share/java/postgresql.jar").getOrCreate()
for relation in sys.argv[4:]:
    rows = spark.read.jdbc(sys.argv[2], f"sales.{relation}", properties={"driver": "org.postgresql.Driver", "fetchsize": "5000"})
    rows.write.parquet(f"{sys.argv[3]}/{relation}")
"""
        done = subprocess.run(
            [self.python, "-c", script, self.master, url, directory, *relations], env=self.environment,
            capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr[-4000:])


class Nights(Benchmark):
    def __init__(self, cluster, options):
        super().__init__(cluster, os.path.abspath(options.night_audit), "ordered", 26, [])
        self.python, self.partitions = os.path.abspath(options.python), str(options.partitions)
        self.period = ["--as-of", AS_OF_TEXT, "--since", PERIOD[0], "--until", PERIOD[1]]

    def configure(self, formats):
        super().configure(formats)
        with open(self.config, "a") as file:
            file.write(f'database:\n  url: "postgresql://benchmark@127.0.0.1:{self.cluster.port}/{self.database}"\n')

    def program(self, *words):
        done = subprocess.run([self.night_audit, *words], capture_output=True, text=True, cwd=self.work)
        if done.returncode not in (0, 3):
            raise SystemExit(f"night-audit {words[0]} ended with {done.returncode}.\n{done.stderr}")

    def spread(self, name, alone, *options):
        """Runs the night on the cluster, and compares its files byte by byte with those of one process."""
        parts, joined = (os.path.join(self.work, name + end) for end in ("-parts", "-joined"))
        before, server = resource.getrusage(resource.RUSAGE_CHILDREN), self.cluster.cpu_seconds()
        started, peaks = time.monotonic(), Peaks()
        peaks.start()
        with Spark(self.python, self.work, self.cluster.process.pid) as spark:
            spark.audit(self.night_audit, self.config, self.period, parts, "--partitions", self.partitions, *options)
        audited = time.monotonic() - started
        shutil.rmtree(joined, ignore_errors=True)
        self.program("run", "--quiet", "--config", self.config, *self.period, "--parts", parts, "--out", joined)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        server = self.cluster.cpu_seconds() - server
        peaks.end()
        print(
            f"  {name}: {cpu:.1f} CPU s and {server:.1f} of the server, {audited:.0f} s and "
            f"{time.monotonic() - started - audited:.0f} s to join; "
            + ", ".join(f"{kind} {most:.0f} MB" for kind, most in sorted(peaks.megabytes.items())),
            flush=True)
        for kind, most in (("audit-part", AUDIT_PART_MEGABYTES), ("Python", PYTHON_MEGABYTES)):
            # A kind without any process fails the limit.
            self.verdict(f"{name}: an executor's {kind} in MB, at most {most}", peaks.megabytes.get(kind, math.inf), most)
        self.compare_folders(name, alone, joined)
        return cpu + server

    def spread_from_both(self, prefix, alone):
        """Runs the night over JDBC, and from a copy of the shop in Parquet."""
        over_jdbc = self.spread(prefix + "jdbc", alone)
        lake = os.path.join(self.work, "lake")
        shutil.rmtree(lake, ignore_errors=True)
        with Spark(self.python, self.work, self.cluster.process.pid) as spark:
            url = f"jdbc:postgresql://127.0.0.1:{self.cluster.port}/{self.database}?user=benchmark"
            spark.lake(url, ("orders", "receipts", "deliveries"), lake)
        return over_jdbc, self.spread(prefix + "parquet", alone, "--sales", lake)

    def compare_folders(self, name, alone, joined):
        names = sorted({*os.listdir(alone), *os.listdir(joined)} - {"run.json"})
        _, different, missing = filecmp.cmpfiles(alone, joined, names, shallow=False)
        print(f"  {name}: {len(names)} files, {len(different + missing)} differ", flush=True)
        if different or missing:
            self.failures.append(f"{name}: other bytes than of one process in {', '.join(different + missing)}")

    def night(self, orders):
        """Audits the shop of orders.sql in one process, on the cluster over JDBC, and from Parquet."""
        self.fill(orders, orders // 6 + 1)
        run, alone = self.run(OURS, "csv")
        print(f"  one process: {run.cpu:.1f} CPU s, {run.wall:.0f} s, {run.peak:.0f} MB", flush=True)
        over_jdbc, over_lake = self.spread_from_both("", alone)
        print(
            f"  one process costs 1, the cluster {over_jdbc / run.cpu:.1f} over JDBC and {over_lake / run.cpu:.1f} over "
            f"Parquet: more than so many cores, and it is done earlier", flush=True)

    def world(self, simulator, seed):
        """Audits a sample shop with answers in one process, on the cluster over JDBC, and from Parquet."""
        shop, ports = os.path.join(self.work, f"shop-{seed}"), os.path.join(self.work, f"port-{seed}")
        as_of = "2026-11-20T03:00:00Z"
        subprocess.run(
            [simulator, "sample-shop", "--directory", shop, "--orders", "500", "--as-of", as_of, "--seed", str(seed)],
            check=True, capture_output=True)
        apps = json.load(open(os.path.join(shop, "world.json")))["apps"]
        users = open(os.path.join(shop, "test-users.txt")).read().split()
        self.database, self.config = f"world_{seed}", os.path.join(self.work, f"world-{seed}.yaml")
        self.cluster.create_database(self.database)
        apple = subprocess.Popen(
            [simulator, "serve", "--world", os.path.join(shop, "world.json"), "--port-file", ports],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while not os.path.exists(ports):
                time.sleep(0.05)
            url = f"http://127.0.0.1:{open(ports).read().strip()}"
            with open(self.config, "w") as file:
                json.dump({
                    "database": {"url": f"postgresql://benchmark@127.0.0.1:{self.cluster.port}/{self.database}"},
                    "app": {"game": {"bundleId": apps[0]["bundleId"], "sharedSecretFile": f"{shop}/shared-secret"}},
                    "appstore": {
                        "channel": "verifyReceipt", "requestsPerSecond": 0,
                        "verifyReceiptUrl": f"{url}/production/verifyReceipt",
                        "verifyReceiptSandboxUrl": f"{url}/sandbox/verifyReceipt", "rootCertificates": f"{shop}/no-roots",
                    },
                    "audit": {"testUsers": users, "holdShare": 1}, "report": {"formats": ["csv"]},
                }, file)
            self.program("init", "--config", self.config, "--with-sales-schema")
            for table in ("orders", "receipts", "deliveries"):
                self.cluster.psql(self.database, "--command", f"\\copy sales.{table} FROM '{shop}/{table}.csv' CSV HEADER")
            self.program("recheck", "--quiet", "--config", self.config, "--as-of", as_of)
        finally:
            apple.terminate()
            apple.wait()
        self.period = ["--as-of", as_of, "--since", "2026-09-20", "--until", "2026-11-20"]
        alone = os.path.join(self.work, f"alone-{seed}")
        self.program("reconcile", "--quiet", "--config", self.config, *self.period, "--out", alone)
        self.spread_from_both(f"seed-{seed}-", alone)
        self.cluster.psql("postgres", script=f"DROP DATABASE {self.database}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--seeds", type=int, nargs="*", default=[], help="sample shops of these seeds besides")
    parser.add_argument("--partitions", type=int, default=4, help="parts at most")
    parser.add_argument("--night-audit", required=True, help="the release build of night-audit")
    parser.add_argument("--python", required=True, help="a Python that has pyspark")
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with Cluster(port=free_port()) as cluster:
        nights = Nights(cluster, options)
        for orders in options.orders:
            nights.night(orders)
            cluster.psql("postgres", script=f"DROP DATABASE {nights.database}")
        for seed in options.seeds:
            nights.world(os.path.join(os.path.dirname(nights.night_audit), "app-store-simulator"), seed)
        for failure in nights.failures:
            print(f"Failed: {failure}")
        return 1 if nights.failures else 0


if __name__ == "__main__":
    sys.exit(main())
