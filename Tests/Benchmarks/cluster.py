"""A private Postgres cluster for the time of a benchmark, and its CPU time."""

import ctypes
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "..", "..", "Sources")
PR_SET_PDEATHSIG = 1
TICKS = os.sysconf("SC_CLK_TCK")

# Crash safety is off because the data is discarded; autovacuum is off because it would run during some measurements only.
SETTINGS = {
    "listen_addresses": "",
    "max_wal_size": "8GB",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}
# Usual settings of a small server with SSDs.
TUNING = {"shared_buffers": "1GB", "effective_cache_size": "4GB", "random_page_cost": "1.1"}


def die_with_parent(sent):
    """A function for a child's start: the child gets the signal when this process ends for any reason."""
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(PR_SET_PDEATHSIG, sent)


def server_programs():
    found = (
        [os.environ["PGBIN"]]
        if "PGBIN" in os.environ
        else sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: float(path.split("/")[-2]))
    )
    if not found and shutil.which("initdb"):
        found = [os.path.dirname(shutil.which("initdb"))]
    if not found:
        raise SystemExit("No Postgres server programs. Install postgresql, or name their folder in PGBIN.")
    return found[-1]


class Cluster:
    """A cluster with a socket in its directory, and on loopback if it has a port."""

    def __init__(self, port=None, is_tuned=True):
        self.port = port
        self.settings = {**SETTINGS, **(TUNING if is_tuned else {})}
        self.programs = server_programs()
        self.process = None
        # Postgres refuses to run as root.
        names = {entry.pw_name for entry in pwd.getpwall()}
        self.user = ("postgres" if "postgres" in names else "nobody") if os.geteuid() == 0 else None

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="night-audit-bench-")
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        if self.user:
            os.chown(self.directory, pwd.getpwnam(self.user).pw_uid, -1)
        data = os.path.join(self.directory, "data")
        subprocess.run(
            [
                f"{self.programs}/initdb",
                "--no-sync",
                "--auth=trust",
                "--username=benchmark",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "--pgdata",
                data,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            user=self.user,
            cwd="/",
        )
        reached = {"listen_addresses": "127.0.0.1", "port": self.port} if self.port else {}
        settings = [word for name, value in {**self.settings, **reached}.items() for word in ("-c", f"{name}={value}")]
        with open(os.path.join(self.directory, "log"), "w") as log:
            self.process = subprocess.Popen(
                [f"{self.programs}/postgres", "-D", data, "-k", self.directory, *settings],
                stdout=log,
                stderr=log,
                user=self.user,
                cwd="/",
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGQUIT),
            )
        while subprocess.run([f"{self.programs}/pg_isready", "--quiet"], env=self.environment("postgres")).returncode:
            if self.process.poll() is not None:
                raise SystemExit(open(log.name).read())
            time.sleep(0.1)

    def __exit__(self, *unused):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)  # Fast shutdown.
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGQUIT)
                self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def environment(self, database):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "NIGHT_AUDIT_"))}
        port = {"PGPORT": str(self.port)} if self.port else {}
        return {**kept, **port, "PGHOST": self.directory, "PGUSER": "benchmark", "PGDATABASE": database}

    def psql(self, database, *arguments, script=None):
        subprocess.run(
            [f"{self.programs}/psql", "--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", *arguments],
            check=True,
            input=script,
            text=True,
            env={**self.environment(database), "PGOPTIONS": "-c client_min_messages=warning"},
        )

    def create_database(self, name):
        self.psql("postgres", script=f"DROP DATABASE IF EXISTS {name}; CREATE DATABASE {name};")

    def cpu_seconds(self):
        """Waits until all backends have ended, because only then their CPU is counted; returns the server's CPU so far."""
        have_ended = False
        for _ in range(600):
            processes = self.processes()
            had_ended, have_ended = have_ended, not any(
                mark in name for name, _ in processes for mark in (b"[local]", b"127.0.0.1(", b"parallel worker")
            )
            # A backend that ended during the reading may be in no figure, so the figures are read twice.
            if had_ended and have_ended:
                return sum(ticks for _, ticks in processes) / TICKS
            time.sleep(0.05)
        raise SystemExit("A connection to the server was not closed.")

    def processes(self):
        """Title and CPU ticks of the postmaster and its children; the postmaster's include children that have ended."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                stat = open(f"/proc/{name}/stat").read().rpartition(")")[2].split()
                title = open(f"/proc/{name}/cmdline", "rb").read()
            except OSError:
                continue
            # Fields of proc(5), from the third on: parent 4, utime 14, stime 15, cutime 16, cstime 17.
            own, ended = int(stat[11]) + int(stat[12]), int(stat[13]) + int(stat[14])
            if int(name) == self.process.pid:
                found.append((title, own + ended))
            elif int(stat[1]) == self.process.pid:
                found.append((title, own))
        return found
