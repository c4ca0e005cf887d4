"""Measures night-audit over shops with unusual data, each with a bound of its cost.

A bound is a ratio of two runs of night-audit in the same call of this script, or bytes, or wall seconds of a command.
CPU is that of client and server together.
"""

import argparse
import contextlib
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from cluster import Cluster
from latency import Simulator
from run import AS_OF, OURS, PERIOD, Benchmark

# The bytes around a receipt's content, as in the sample shop; the content has 76 bytes that only Apple can read.
BEGINNING, END = "307306092a864886f70d010702a06630640201013100305b06092a864886f70d010701a04e044c", "3100"


class Cliffs(Benchmark):
    """Runs the scenarios one after the other, each with its own database."""

    def __init__(self, cluster, night_audit):
        super().__init__(cluster, night_audit)
        self.apple = None
        # Bytes of temporary files that the server wrote during the last audit.
        self.spilled = 0

    def shop(self, orders, users, script="", ids="ordered", troubled=26):
        self.ids, self.troubled = ids, troubled
        # Reports of another database would be refused.
        shutil.rmtree(os.path.join(self.work, "reports"), ignore_errors=True)
        self.fill(orders, users)
        if script:
            self.cluster.psql(self.database, script=script)

    def configure(self, formats):
        super().configure(formats)
        if formats == "xlsx":
            # The workbook is imported for its findings.
            with open(self.config) as file:
                text = file.read().replace(f"workbookOrders: {self.orders}", "workbookOrders: 1000")
            with open(self.config, "w") as file:
                file.write(text)
        with open(self.config, "a") as file:
            # The payloads are no receipts, and must not count as an outage.
            file.write("audit.systemicShare: 1\n")
            if self.apple:
                file.write("appstore.requestsPerSecond: 0\n")
                for key, side in [("verifyReceiptUrl", "production"), ("verifyReceiptSandboxUrl", "sandbox")]:
                    file.write(f"appstore.{key}: {self.apple.url}/{side}/verifyReceipt\n")

    def audit(self, *further):
        before = self.temporary_bytes()
        run, _ = self.run(OURS, "csv", *further)
        if run is None:
            raise SystemExit(1)
        self.spilled = self.temporary_bytes() - before
        print(f"  {run.cpu:.2f} CPU s (client {run.client:.2f}), {run.wall:.1f} s, {run.peak:.0f} MB", flush=True)
        return run

    def temporary_bytes(self):
        """Bytes of all temporary files of the database. A session reports them when it ends, so all others end first."""
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        while self.ask(others) != "0":
            time.sleep(0.02)
        return int(self.ask("SELECT temp_bytes FROM pg_stat_database WHERE datname = current_database()"))

    def night(self, number, formats="csv"):
        """Runs a whole night with an as-of `number` days later, offline without a simulator.

        Returns CPU, peak memory and the bytes written to the write-ahead log.
        """
        self.configure(formats)
        before = self.wal()
        as_of = AS_OF.replace(day=AS_OF.day + number)
        command = ["run", *([] if self.apple else ["--offline"]), "--quiet", "--since", PERIOD[0], "--until", PERIOD[1]]
        cost = self.cost(*command, "--as-of", as_of.strftime("%Y-%m-%dT%H:%M:%SZ"))
        written = self.wal() - before
        print(
            f"  night {number + 1}: {cost.cpu:.2f} CPU s, {cost.peak:.0f} MB, {written / 1e6:.1f} MB of write-ahead log",
            flush=True,
        )
        return cost.cpu, cost.peak, written

    def recheck(self, *further, stopped_after=None):
        """Runs `recheck`; returns its cost and the number of answers."""
        self.configure("csv")
        before = self.answers()
        as_of = AS_OF.strftime("%Y-%m-%dT%H:%M:%SZ")
        cost = self.cost("recheck", "--quiet", "--as-of", as_of, *further, stopped_after=stopped_after)
        answers = self.answers() - before
        print(
            f"  {answers:,} answers: {cost.cpu:.2f} CPU s (server {cost.server:.2f}), {cost.wall:.1f} s, {cost.peak:.0f} MB",
            flush=True,
        )
        return cost, answers

    def answers(self):
        return int(self.ask("SELECT count(*) FROM night_audit.answers"))

    def cost(self, *arguments, stopped_after=None, statuses=(0, 3)):
        """Returns the cost of a command.

        - stopped_after: the number of requests to Apple after which SIGTERM stops the command.
        - statuses: the exit statuses that are no failure.
        """
        limit = stopped_after and self.apple.asked()["total"] + stopped_after

        def stop(child):
            # Waits without reaping, so that the process can still be signalled.
            while limit and os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
                if self.apple.asked()["total"] >= limit:
                    child.send_signal(signal.SIGTERM)
                    break
                time.sleep(0.02)

        run, status, said = self.measure([self.night_audit, *arguments, "--config", self.config], stop)
        if status not in (*statuses, 128 + signal.SIGTERM if limit else 0):
            self.fails(OURS, status, said)
            raise SystemExit(1)
        return run

    def wal(self):
        return int(self.ask("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"))

    def ask(self, sql, database=None):
        return subprocess.run(
            [f"{self.cluster.programs}/psql", "-qAtX", "-c", sql],
            check=True, capture_output=True, text=True, env=self.cluster.environment(database or self.database),
        ).stdout.strip()

    def commands(self, size):
        """Each command over a shop and over one ten times as large, before and after VACUUM ANALYZE of the database."""
        self.require(self.ask("SHOW shared_buffers", "postgres") == "128MB", "the server of the commands is tuned")
        costs, nights = {}, {}
        for orders in (size // 10, size):
            self.shop(orders, orders // 6)
            self.cluster.psql(self.database, script=EVIDENCE)
            self.night(0)
            before = self.night(1, "xlsx")
            # The shop's transactions were not folded from evidence, and the server has no statistics of it.
            costs[orders, "before statistics"] = {"rebuild --write": self.cost("rebuild", "--write")}
            for statistics in ("as the night left it", "after VACUUM ANALYZE"):
                if statistics.startswith("after"):
                    self.cluster.psql(self.database, script="VACUUM ANALYZE")
                costs[orders, statistics] = self.each_command(f"{orders:,} orders, {statistics}")
            nights[orders] = self.night(2, "xlsx")
            self.verdict(f"night of {orders:,} after VACUUM ANALYZE: CPU, of one before", nights[orders][0] / before[0], 1.25)
            # The last command, because it removes the run that other commands name.
            costs[orders, "at the end"] = {"runs forget": self.cost("runs", "forget", self.runs()[-1])}
        self.verdict("night after VACUUM ANALYZE: CPU of ten times the orders", nights[size][0] / nights[size // 10][0], 11)
        for (orders, statistics), found in costs.items():
            for name, run in found.items():
                if name in AT_MOST and orders == size:
                    self.verdict(f"{name}, {statistics}: wall seconds", run.wall, AT_MOST[name])
                if name in LINEAR + CHANGING and orders == size:
                    few = costs[size // 10, statistics][name]
                    self.verdict(f"{name}, {statistics}: CPU of ten times the orders", run.cpu / few.cpu, 13)
                    if name in LINEAR:
                        self.verdict(f"{name}, {statistics}: MB more with ten times the orders", run.peak - few.peak, 20)

    def runs(self):
        """The IDs of the nights, the earlier one first."""
        return self.ask("SELECT run_id FROM night_audit.runs ORDER BY as_of").split()

    def each_command(self, title):
        print(f"  {title}", flush=True)
        self.configure("csv")
        as_of, next_night = (AS_OF.replace(day=AS_OF.day + nights).strftime("%Y-%m-%dT%H:%M:%SZ") for nights in (1, 2))
        order, user = self.ask("SELECT order_id || ' ' || user_id FROM sales.orders ORDER BY created_at DESC LIMIT 1").split()
        day = self.ask(f"SELECT (created_at AT TIME ZONE 'UTC')::date FROM sales.orders WHERE order_id = '{order}'")
        critical = self.ask("SELECT min(order_id) FROM night_audit.findings WHERE severity = 'critical'")
        kind = self.ask("""
          SELECT kind FROM night_audit.findings WHERE closed_at IS NULL GROUP BY kind ORDER BY abs(count(*) - 1000) LIMIT 1""")
        narrowed = ["--date", day, "--as-of", as_of]
        earlier, later = self.runs()
        report = self.ask(f"SELECT directory FROM night_audit.runs WHERE run_id = '{later}'")
        [workbook] = glob.glob(os.path.join(self.work, report, "*.xlsx"))
        people = ["--by", "benchmark", "--quiet"]
        found = {}
        # `tie-out` needs Apple's reports of the shop: tie_out.py measures it.
        for name, command in {
            "init": ["init"],
            "doctor": ["doctor"],
            "status": ["status"],
            "explain": ["explain", order],
            "explain of a critical order": ["explain", critical],
            UNKNOWN: ["explain", "no-such-order"],
            "reconcile of a day": ["reconcile", *narrowed],
            "reconcile --order": ["reconcile", "--order", order, *narrowed],
            "reconcile --user": ["reconcile", "--user", user, *narrowed],
            "reconcile --product": ["reconcile", "--product", "gems.100", *narrowed],
            "reconcile --app": ["reconcile", "--app", "game", *narrowed],
            "recheck --order": ["recheck", "--offline", "--order", order, "--as-of", as_of],
            "recheck --user": ["recheck", "--offline", "--user", user, "--as-of", as_of],
            "run --dry-run": ["run", "--dry-run", "--since", PERIOD[0], "--until", PERIOD[1], "--as-of", next_night],
            "runs list": ["runs", "list"],
            "runs diff": ["runs", "diff", earlier, later],
            "findings list": ["findings", "list"],
            "findings list --csv": ["findings", "list", "--csv"],
            "findings list --json": ["findings", "list", "--json"],
            "findings list of a kind": ["findings", "list", "--kind", kind],
            "findings import": ["findings", "import", workbook, *people],
            "findings close --all": ["findings", "close", "--all", "--yes", *people],
            "findings undo": ["findings", "undo", *people],
            "verify": ["verify"],
            "verify of a folder": ["verify", os.path.join(self.work, report)],
            "verify --run": ["verify", "--run", later],
            "rebuild": ["rebuild"],
            "rebuild --write": ["rebuild", "--write"],
        }.items():
            if name == "rebuild --write":
                self.cluster.psql(self.database, script=DAMAGE)
            found[name] = run = self.cost(*command, statuses=(1,) if name == UNKNOWN else (0, 3))
            print(
                f"    {name}: {run.wall:.2f} s, {run.cpu:.2f} CPU s (client {run.client:.2f}), {run.peak:.0f} MB", flush=True
            )
        return found

    def findings(self, size):
        """30 % of the orders have a finding; the second night has the same findings."""
        self.shop(size // 10, size // 60)
        usual = self.night(0)
        self.shop(size // 10, size // 60, troubled=77)
        first, second = self.night(0), self.night(1)
        open_findings = int(self.ask("SELECT count(*) FROM night_audit.findings WHERE closed_at IS NULL"))
        print(f"  {open_findings:,} findings")
        self.verdict("30 % findings: CPU of the first night, of one with 10 %", first[0] / usual[0], 1.5)
        self.verdict("30 % findings: the second night costs at most the first, CPU", second[0] / first[0], 1.0)
        self.verdict("30 % findings: the second night's log, of the first's", second[2] / first[2], 0.05)

    def quiet(self, size):
        """A second night without new rows, over a shop and over one ten times as large."""
        costs = {}
        for orders in (size // 10, size):
            self.shop(orders, orders // 6)
            first = self.night(0)
            costs[orders] = self.night(1)
            self.verdict(f"quiet night of {orders:,}: its log, of the first night's", costs[orders][2] / first[2], 0.05)
        self.verdict("quiet night: CPU of ten times the orders", costs[size][0] / costs[size // 10][0], 11)

    def vacuumed(self, size):
        """A first night over tables that were vacuumed while empty, as by autovacuum between init and the night."""
        self.shop(size, size // 6, troubled=77)
        usual = self.night(0)
        self.shop(size, size // 6, troubled=77, script="VACUUM ANALYZE")
        first = self.night(0)
        self.verdict("first night after VACUUM of empty tables: CPU, of one without", first[0] / usual[0], 1.25)

    def closed(self, size):
        """A quiet night with five times as many closed findings, and one without closed findings."""
        self.shop(size, size // 6, troubled=77)
        self.night(0)
        usual = self.night(1)
        self.cluster.psql(self.database, script="""
          INSERT INTO night_audit.findings SELECT c.* FROM night_audit.findings f, generate_series(1, 5) n,
            LATERAL jsonb_populate_record(f, jsonb_build_object(
              'finding_id', f.finding_id || n, 'closed_at', f.last_seen)) c;
          VACUUM ANALYZE""")
        second = self.night(2)
        self.verdict("a night over many closed findings: CPU, of one over none", second[0] / usual[0], 1.2)

    def restores(self, size):
        """Each purchase was restored once, and the receipt of its order lists both transactions."""
        orders = size * 3 // 10
        self.shop(orders, orders // 6, troubled=0)
        usual = self.audit()
        self.shop(
            orders, orders // 6, troubled=0,
            script="""
              INSERT INTO night_audit.transactions SELECT r.* FROM night_audit.transactions t,
                LATERAL jsonb_populate_record(t, jsonb_build_object(
                  'transaction_id', t.transaction_id || '9', 'original_transaction_id', t.transaction_id)) r;
              INSERT INTO night_audit.receipt_transactions (subject_kind, subject_id, environment, transaction_id)
              SELECT subject_kind, subject_id, environment, transaction_id || '9' FROM night_audit.receipt_transactions;
              UPDATE night_audit.receipt_checks SET payload_kind = 'app', signed_transaction_id = NULL, brought_count = 2;
              VACUUM ANALYZE""",
        )
        restored = self.audit()
        self.verdict(f"{orders:,} restored purchases: CPU, of as many that were not", restored.cpu / usual.cpu, 2.0)
        self.verdict(f"{orders:,} restored purchases: MB more", restored.peak - usual.peak, 20)

    def unusual(self, size):
        """Audits of the same shop, each with one option or one property that differs from the usual audit."""
        self.shop(size, size // 6)
        usual = self.audit()
        self.verdict("an audit: bytes of the server's temporary files", self.spilled, 0)
        past = AS_OF.replace(day=AS_OF.day - 7).strftime("%Y-%m-%dT%H:%M:%SZ")
        for name, further in {
            "of one app": ["--app", "game"], "of two products": ["--product", "gems.100", "--product", "gems.500"],
            "by six readers": ["--readers", "6"], "of a past as-of": ["--as-of", past, "--until", past[:10]],
        }.items():
            self.verdict(f"an audit {name}: CPU of the usual one", self.audit(*further).cpu / usual.cpu, 1.25)
        self.cluster.psql(self.database, script="""
          ALTER TABLE sales.deliveries DROP CONSTRAINT deliveries_pkey;
          CREATE INDEX ON sales.deliveries (delivery_id);
          INSERT INTO sales.deliveries SELECT * FROM sales.deliveries ORDER BY delivery_id LIMIT 1; ANALYZE sales.deliveries""")
        self.verdict("an audit with a repeated delivery ID: CPU of the usual one", self.audit().cpu / usual.cpu, 1.25)
        # Customers renew and restore old purchases, so that rows lie in no order of their IDs.
        self.cluster.psql(self.database, script="""
          CREATE TABLE public.shuffled AS SELECT * FROM night_audit.transactions ORDER BY md5(transaction_id);
          TRUNCATE night_audit.transactions;
          INSERT INTO night_audit.transactions SELECT * FROM public.shuffled;
          DROP TABLE public.shuffled; VACUUM ANALYZE night_audit.transactions""")
        self.audit()
        self.verdict("an audit of transactions in random order: bytes of the server's temporary files", self.spilled, 0)

    def offline(self, size):
        """Malformed receipts that are judged offline, in an app whose orders could be looked up by ID."""
        costs, key, roots = [], os.path.join(self.work, "key.p8"), os.path.join(self.work, "roots")
        os.mkdir(roots)
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "9999",
             "-subj", "/CN=Root", "-keyout", key, "-out", os.path.join(roots, "root.pem")], check=True, capture_output=True)
        for orders in (size // 120, size // 40):
            self.shop(orders, orders // 6, troubled=0, script="""
              TRUNCATE night_audit.receipt_checks, night_audit.receipt_transactions; VACUUM ANALYZE""")
            self.configure("csv")
            with open(self.config) as file:
                text = file.read().replace("  channel: verifyReceipt\n", f"  rootCertificates: {roots}\n  pinRoots: false\n")
            with open(self.config, "w") as file:
                file.write(text.replace(
                    "    bundleId", f"    issuerId: issuer\n    keyId: key\n    privateKeyFile: {key}\n    bundleId"))
            costs.append(self.cost("recheck", "--quiet", "--offline", "--as-of", AS_OF.strftime("%Y-%m-%dT%H:%M:%SZ")))
            print(f"  {orders:,} receipts: {costs[-1].cpu:.2f} CPU s", flush=True)
        ratio = costs[1].cpu / costs[0].cpu
        self.verdict(f"{size // 40:,} receipts judged offline: CPU of a third as many", ratio, 3.5)

    def one_user(self, size):
        orders = size * 3 // 10
        self.shop(orders, orders // 6, troubled=0)
        usual = self.audit()
        self.shop(orders, 1, troubled=0)
        alone = self.audit()
        self.verdict(f"one user with {orders:,} orders: CPU of as many by others", alone.cpu / usual.cpu, 1.25)
        self.verdict("one user: peak in MB", alone.peak, 120)

    def users(self, size):
        self.shop(size, size // 1000)
        few = self.audit()
        self.shop(size, size)
        many = self.audit()
        self.verdict(f"{size:,} users: peak in MB", many.peak, 100)
        self.verdict(f"{size:,} users: bytes each", (many.peak - few.peak) * (1 << 20) / size, 60)

    def names(self, size, named):
        """Audits a shop in which many orders state another transaction ID than that of their own purchase."""
        orders = size * 3 // 10
        self.shop(
            orders, orders // 6, troubled=0,
            script=f"""
              UPDATE sales.orders o SET transaction_id = n.named
              FROM (SELECT order_id, {named} AS named FROM sales.orders ORDER BY order_id LIMIT {size // 10}) n
              WHERE n.order_id = o.order_id;
              VACUUM ANALYZE sales.orders""",
        )
        return self.audit()

    def one_transaction(self, size):
        in_pairs = """CASE row_number() OVER (ORDER BY order_id) % 2 WHEN 1 THEN lead(transaction_id) OVER (ORDER BY order_id)
          ELSE lag(transaction_id) OVER (ORDER BY order_id) END"""
        many = self.names(size, in_pairs)
        one = self.names(size, "(SELECT min(transaction_id) FROM night_audit.transactions)")
        claimants = size // 10
        ratio = one.cpu / many.cpu
        self.verdict(f"{claimants:,} orders on one transaction: CPU of as many that name each other's", ratio, 1.25)
        self.verdict(f"{claimants:,} orders on one transaction: MB more than those", one.peak - many.peak, 10)

    def chain(self, size):
        """The owner of each of these transactions depends on the owners of all others."""
        run = self.names(size, "lead(transaction_id) OVER (ORDER BY order_id)")
        self.verdict(f"{size // 10:,} orders that each name the next one's transaction: peak in MB", run.peak, 500)

    def lists(self, receipts, purchases):
        """Audits one user with an order for each purchase, and with receipts that each list all purchases."""
        kept = f"(SELECT receipt_id FROM sales.receipts ORDER BY receipt_id LIMIT {receipts})"
        self.shop(
            purchases, 1, troubled=0,
            script=f"""
              DELETE FROM night_audit.receipt_transactions; UPDATE sales.orders SET transaction_id = NULL;
              DELETE FROM sales.receipts WHERE receipt_id NOT IN {kept};
              UPDATE night_audit.receipt_checks SET payload_kind = 'app', brought_count = {purchases};
              INSERT INTO night_audit.receipt_transactions
              SELECT 'receipt', r.receipt_id, t.environment, t.transaction_id
              FROM sales.receipts r, night_audit.transactions t;
              VACUUM ANALYZE""",
        )
        return self.audit()

    def long_receipt(self, size):
        some, many = (self.lists(1, count) for count in (3_000, 30_000))
        self.verdict("a receipt with 30,000 purchases: client CPU of one with 3,000", many.client / some.client, 15)

    def bot(self, orders, receipts, listed):
        """Audits one user with an order of the same product every minute; prints how many purchases the receipts list.

        One receipt in `orders / receipts` is kept; `listed` is the condition for receipt `r.n` to list purchase `t.n`.
        """
        self.shop(
            orders, 1, troubled=0,
            script=f"""
              DELETE FROM night_audit.receipt_transactions;
              CREATE TEMPORARY TABLE paces AS
              SELECT order_id, transaction_id, n, '2026-10-01'::timestamptz + n * interval '1 minute' AS at
              FROM (SELECT *, row_number() OVER (ORDER BY order_id) AS n FROM sales.orders) numbered;
              UPDATE sales.orders o SET transaction_id = NULL, product_id = 'gems.100', quantity = 1, created_at = p.at,
                verified_at = p.at + interval '4 seconds' FROM paces p WHERE p.order_id = o.order_id;
              UPDATE sales.deliveries d SET product_id = 'gems.100', quantity = 1, delivered_at = p.at + interval '5 seconds'
              FROM paces p WHERE p.order_id = d.order_id;
              UPDATE sales.receipts r SET received_at = p.at + interval '3 seconds'
              FROM paces p WHERE p.order_id = r.order_id;
              UPDATE night_audit.receipt_checks c SET payload_kind = 'app', received_at = p.at + interval '3 seconds',
                signed_transaction_id = NULL, brought_count = {orders}
              FROM paces p WHERE p.order_id = c.order_id;
              UPDATE night_audit.transactions t SET product_id = 'gems.100', quantity = 1, price_milliunits = NULL,
                purchased_at = p.at + interval '2 seconds', original_purchased_at = p.at + interval '2 seconds'
              FROM paces p WHERE p.transaction_id = t.transaction_id;
              DELETE FROM sales.receipts r USING paces p WHERE p.order_id = r.order_id AND p.n % {orders // receipts} <> 0;
              INSERT INTO night_audit.receipt_transactions
              SELECT 'receipt', r.receipt_id, 'Production', t.transaction_id
              FROM (SELECT receipt_id, n FROM sales.receipts JOIN paces USING (order_id)) r, paces t WHERE {listed};
              VACUUM ANALYZE""",
        )
        links = int(self.ask("SELECT count(*) FROM night_audit.receipt_transactions"))
        run = self.audit()
        print(f"  {links:,} purchases listed, {run.cpu / links * 1e6:.2f} CPU us each", flush=True)
        return run

    def bots(self, size):
        """One receipt of all purchases; the same for each order; for each order a receipt of the purchases so far."""
        for shape, orders, receipts, listed, bound in [
            ("one receipt lists all", size // 200, 1, "TRUE", 6),
            ("each with a receipt that lists all", size // 500, size, "TRUE", 30),
            ("each with a receipt that lists what there is so far", size // 500, size, "t.n <= r.n", 30),
        ]:
            few, many = (self.bot(n, min(n, receipts), listed) for n in (orders // 5, orders))
            name = f"one user with {orders:,} orders, {shape}"
            self.verdict(f"{name}: CPU of a fifth as many", many.cpu / few.cpu, bound)
            self.verdict(f"{name}: peak in MB", many.peak, 150)

    def due(self, size):
        count = size // 200
        few, many = (self.due_among_settled(orders, count) for orders in (size // 100, size))
        self.verdict(f"{count:,} due among {size:,} receipts: CPU of as many among {size // 100:,}", many / few, 1.5)
        for ids in ("ordered", "views"):
            few, many = (self.all_due(orders, count, ids) for orders in (size // 100, size))
            name = f"{size:,} due, ids {ids}: the server's CPU for an answer, of one where {size // 100:,} are due"
            self.verdict(name, many / few, 2)
        self.incident(size)

    def due_among_settled(self, orders, count):
        """The CPU of asking about `count` receipts if all others have recent answers."""
        def digest(text):
            return f"left(encode(sha256(convert_to({text}, getdatabaseencoding())), 'hex'), 32)"
        described = "concat_ws(E'\\x1f', r.payload, o.bundle_id, coalesce(o.transaction_id, ''))"
        self.shop(orders, orders // 6, troubled=0)
        as_of = AS_OF.isoformat()
        # Receipts whose last answer is more than a week old.
        world = self.make_known(f"""
          SELECT receipt_id FROM (
            SELECT receipt_id, row_number() OVER (ORDER BY length(receipt_id), receipt_id) AS n, count(*) OVER () AS among
            FROM sales.receipts WHERE received_at < '{as_of}'::timestamptz - interval '9 days') AS old
          WHERE n * {count} / among > (n - 1) * {count} / among""")
        self.cluster.psql(self.database, script=f"""
          UPDATE night_audit.receipt_checks c SET payload_kind = 'app', channel = 'verifyReceipt', apple_status = 0,
            signed_transaction_id = NULL, answered_at = a.at, last_attempt = a.at, outcome_since = a.at,
            fingerprint = {digest(described)}
              || ' ' || {digest("r.payload")}
          FROM (
            SELECT c.subject_id, CASE WHEN a.receipt_id IS NULL THEN c.answered_at
              ELSE '{as_of}'::timestamptz - interval '8 days' END AS at
            FROM night_audit.receipt_checks c LEFT JOIN floor.asked a ON a.receipt_id = c.subject_id) AS a
          JOIN sales.receipts r ON r.receipt_id = a.subject_id JOIN sales.orders o ON o.order_id = r.order_id
          WHERE c.subject_kind = 'receipt' AND c.subject_id = a.subject_id;
          INSERT INTO night_audit.answers (run_id, as_of, subject_kind, subject_id, channel, outcome, environment,
            apple_status, facts, evidence_through)
          SELECT '{RUN}', c.answered_at, c.subject_kind, c.subject_id, c.channel, c.outcome, c.environment, 0, 1, 1000000000
          FROM night_audit.receipt_checks c;
          INSERT INTO night_audit.evidence (run_id, as_of, subject_kind, subject_id, channel, signed_at, environment,
            transaction_id, original_transaction_id, bundle_id, product_id, product_type, quantity, purchased_at,
            original_purchased_at, tells_revocation, tells_account_token, ownership)
          SELECT '{RUN}', c.answered_at, c.subject_kind, c.subject_id, c.channel, c.answered_at, t.environment,
            t.transaction_id, t.original_transaction_id, t.bundle_id, t.product_id, t.product_type, t.quantity,
            t.purchased_at, t.original_purchased_at, true, false, t.ownership
          FROM night_audit.receipt_checks c JOIN night_audit.receipt_transactions l USING (subject_kind, subject_id)
          JOIN night_audit.transactions t ON (t.transaction_id, t.environment) = (l.transaction_id, l.environment);
          VACUUM ANALYZE""")
        with self.answering(world):
            # Queues the shop's rows and computes their due dates, then ends.
            self.recheck("--max-duration", "0s")
            self.cluster.psql(self.database, script="VACUUM ANALYZE; CHECKPOINT")
            cost, answers = self.recheck()
        self.require(answers == count, f"{answers:,} receipts were asked about, not {count:,}")
        return cost.cpu

    def all_due(self, orders, count, ids):
        """The server's CPU for an answer in a shop without any answers: taking the check from the queue and storing it."""
        self.shop(orders, orders // 6, troubled=0, ids=ids, script="""
          TRUNCATE night_audit.receipt_checks, night_audit.receipt_transactions, night_audit.transactions;
          VACUUM ANALYZE""")
        self.recheck("--max-duration", "0s")
        # More than `count`, because the checks under way at the end were leased, too.
        world = self.make_known(f"""
          SELECT subject_id AS receipt_id FROM night_audit.receipt_checks
          ORDER BY due_rank, due_from, subject_kind, subject_id LIMIT {2 * count}""")
        self.cluster.psql(self.database, script="VACUUM ANALYZE; CHECKPOINT")
        with self.answering(world):
            # Subtracts the cost before the first question and after the last answer.
            idle, _ = self.recheck("--max-duration", "0s")
            cost, answers = self.recheck(stopped_after=count)
        self.require(answers >= count // 2, f"{answers:,} receipts were asked about, not {count:,}")
        each = (cost.server - idle.server) / answers
        print(f"  {each * 1e6:.0f} us of the server's CPU for an answer", flush=True)
        self.require(each > 0, "so few were asked about that an answer cost the server nothing: take more --orders")
        return each

    def incident(self, size):
        """A night with many new critical findings, and the night after it.

        Half of the findings rest on old answers, so Apple is asked again; the others on answers about new receipts.
        """
        self.shop(size, size // 6, troubled=0)
        half = size // 100
        newest = "SELECT receipt_id FROM sales.receipts ORDER BY received_at DESC, receipt_id"
        world = self.make_known(f"{newest} LIMIT {half}")
        # The simulator does not know these receipts and rejects them.
        forged = f"SELECT receipt_id FROM ({newest} OFFSET {half} LIMIT {half}) AS next"
        self.give_payloads(forged)
        self.cluster.psql(self.database, script=f"""
          UPDATE night_audit.receipt_checks c SET payload_kind = 'app', channel = 'verifyReceipt', apple_status = 0,
            signed_transaction_id = NULL
          FROM floor.asked a WHERE c.subject_kind = 'receipt' AND c.subject_id = a.receipt_id;
          VACUUM ANALYZE""")
        self.night(0)
        self.cluster.psql(self.database, script=f"""
          CREATE TABLE floor.forged AS
          SELECT r.receipt_id, r.order_id, r.received_at FROM sales.receipts r JOIN ({forged}) AS f USING (receipt_id);
          UPDATE sales.deliveries d SET user_id = 'another-' || d.user_id
          FROM sales.receipts r JOIN floor.asked USING (receipt_id) WHERE d.order_id = r.order_id;
          DELETE FROM night_audit.transactions t USING night_audit.receipt_transactions l, floor.forged f
          WHERE l.subject_kind = 'receipt' AND l.subject_id = f.receipt_id AND t.transaction_id = l.transaction_id;
          DELETE FROM night_audit.receipt_transactions l USING floor.forged f
          WHERE l.subject_kind = 'receipt' AND l.subject_id = f.receipt_id;
          DELETE FROM night_audit.receipt_checks c USING floor.forged f
          WHERE c.subject_kind = 'receipt' AND c.subject_id = f.receipt_id;
          INSERT INTO night_audit.receipt_checks (subject_kind, subject_id, order_id, received_at, known_since, is_urgent,
            reason, due_from, due_rank)
          SELECT 'receipt', receipt_id, order_id, received_at, '{AS_OF.isoformat()}', false, 'never_checked', received_at, 1
          FROM floor.forged;
          VACUUM ANALYZE""")
        with self.answering(world):
            first, second = self.night(1), self.night(2)
        critical = int(self.ask(
            "SELECT count(*) FROM night_audit.findings WHERE closed_at IS NULL AND severity = 'critical'"))
        print(f"  {critical:,} critical findings, {self.answers():,} answers", flush=True)
        self.require(critical >= 2 * half, f"{critical:,} findings are critical, not {2 * half:,}")
        self.verdict(f"{critical:,} critical findings: the night after costs at most theirs, CPU", second[0] / first[0], 1.0)

    def give_payloads(self, receipts):
        """Replaces the payloads of the receipts in a query by payloads that Apple can be asked about."""
        table, id, payload = "sales.receipts", "receipt_id", "payload"
        if self.ids == "views":
            table, id, payload = "public.apple_receipts", "id::text", "receipt"
        receipt = f"decode('{BEGINNING}', 'hex') || lpad({id}, 76, 'x')::bytea || decode('{END}', 'hex')"
        self.cluster.psql(self.database, script=f"""
          UPDATE {table} SET {payload} = translate(encode({receipt}, 'base64'), E'\\n', '') WHERE {id} IN ({receipts})""")

    def make_known(self, receipts):
        """Writes a world in which Apple knows the receipts and their purchases, and lists the receipts in `floor.asked`."""
        self.cluster.psql(self.database, script=f"CREATE TABLE floor.asked AS {receipts}")
        self.give_payloads("SELECT receipt_id FROM floor.asked")
        milliseconds = "(extract(epoch FROM t.purchased_at) * 1000)::bigint"
        rows = self.ask(f"""
          SELECT json_build_object('payload', r.payload, 'transactionId', t.transaction_id, 'productId', t.product_id,
            'quantity', t.quantity, 'purchaseDate', {milliseconds})
          FROM floor.asked JOIN sales.receipts r USING (receipt_id) JOIN floor.transactions t USING (order_id)""")
        app = {"bundleId": "com.example.game", "environment": "Production"}
        receipts, transactions = [], []
        for row in map(json.loads, rows.splitlines()):
            receipts.append({**app, "kind": "app", "payload": row.pop("payload"), "transactions": [row["transactionId"]]})
            transactions.append({**app, **row, "type": "Consumable", "price": 990, "currency": "USD"})
        world = os.path.join(self.work, "world.json")
        with open(world, "w") as file:
            apps = [{"bundleId": "com.example.game"}]
            json.dump({"apps": apps, "receipts": receipts, "transactions": transactions}, file)
        return world

    @contextlib.contextmanager
    def answering(self, world):
        """Lets nights and re-checks ask a simulated Apple that answers at once."""
        with Simulator(simulator_beside(self.night_audit), self.work, world) as self.apple:
            try:
                yield
            finally:
                self.apple = None

    def require(self, holds, otherwise):
        """Fails the scenario unless it measured the intended work."""
        if not holds:
            print(f"MISSED  {otherwise}", flush=True)
            self.failures.append(otherwise)

    def flat(self, size):
        self.shop(size, size // 6)
        some = self.audit()
        self.shop(size * 10, size // 6)
        many = self.audit()
        self.verdict("ten times the orders: MB more", many.peak - some.peak, 10)
        self.verdict("ten times the orders: CPU", many.cpu / some.cpu, 12)


UNKNOWN = "explain of an unknown ID"
# Limits in wall seconds at 1,000,000 orders, on two idle cores.
AT_MOST = {
    "doctor": 10, "status": 1, "explain": 1, "explain of a critical order": 1, UNKNOWN: 1, "reconcile --order": 1,
    "reconcile --user": 1, "recheck --order": 1, "recheck --user": 1, "findings list of a kind": 1, "runs list": 1, "init": 5,
}
LINEAR = [
    "doctor", "findings list", "findings list --csv", "findings list --json", "reconcile --product", "reconcile --app",
    "reconcile of a day", "run --dry-run", "verify", "verify of a folder", "verify --run", "rebuild",
    "rebuild --write",
]
# They keep their findings in memory: a change of many is one transaction, and a difference is one document.
CHANGING = ["findings import", "findings close --all", "findings undo", "runs forget", "runs diff"]

# The run ID of the evidence below.
RUN = "00000000-0000-4000-8000-000000000000"
# The answers and the evidence that earlier nights would have stored.
EVIDENCE = f"""
  INSERT INTO night_audit.answers (run_id, as_of, subject_kind, subject_id, channel, outcome, facts, evidence_through)
  SELECT '{RUN}', answered_at, subject_kind, subject_id, 'verifyReceipt', outcome, 1, 1000000000
  FROM night_audit.receipt_checks WHERE answered_at IS NOT NULL;
  INSERT INTO night_audit.evidence (run_id, as_of, subject_kind, subject_id, channel, signed_at, environment, transaction_id,
    original_transaction_id, web_order_line_item_id, bundle_id, product_id, product_type, quantity, purchased_at,
    original_purchased_at, expires_at, tells_revocation, revoked_at, revocation_percentage, revocation_type, revocation_reason,
    price_milliunits, currency, tells_account_token, app_account_token, ownership, is_renewal, has_offer, is_upgraded)
  SELECT '{RUN}', t.checked_at, l.subject_kind, l.subject_id, t.channel, t.signed_at, t.environment,
    t.transaction_id, t.original_transaction_id, t.web_order_line_item_id, t.bundle_id, t.product_id, t.product_type, t.quantity,
    t.purchased_at, t.original_purchased_at, t.expires_at, true, t.revoked_at, t.revocation_percentage, t.revocation_type,
    t.revocation_reason, t.price_milliunits, t.currency, t.tells_account_token, t.app_account_token, t.ownership, t.is_renewal,
    t.has_offer, t.is_upgraded
  FROM night_audit.transactions t LEFT JOIN night_audit.receipt_transactions l USING (transaction_id, environment)
"""
# Deletes a tenth of the links, and adds as many links of receipts that do not exist.
DAMAGE = """
  DELETE FROM night_audit.receipt_transactions WHERE md5(subject_id) < '1a';
  INSERT INTO night_audit.receipt_transactions
  SELECT subject_kind, 'gone-' || subject_id, environment, transaction_id FROM night_audit.receipt_transactions
  WHERE md5(subject_id) > 'e6'
"""

SCENARIOS = [
    "commands", "findings", "vacuumed", "closed", "quiet", "restores", "unusual", "offline", "one_user", "users",
    "one_transaction", "chain", "long_receipt", "bots", "due", "flat",
]


def simulator_beside(night_audit):
    return os.path.join(os.path.dirname(night_audit), "app-store-simulator")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", default=SCENARIOS[:-1], help="some of " + ", ".join(SCENARIOS))
    parser.add_argument("--orders", type=int, default=1_000_000, help="what the scenarios' sizes go by")
    parser.add_argument("--night-audit", required=True, help="the release build of night-audit")
    options = parser.parse_args()
    night_audit = os.path.abspath(options.night_audit)
    if "due" in options.scenarios and not os.access(simulator_beside(night_audit), os.X_OK):
        raise SystemExit(f"There is no {simulator_beside(night_audit)}: swift build -c release makes it.")
    failures = []
    for name in options.scenarios:
        print(f"\n## {name}", flush=True)
        # People run commands on servers that are not tuned.
        with Cluster(is_tuned=name != "commands") as cluster:
            cliffs = Cliffs(cluster, night_audit)
            getattr(cliffs, name)(options.orders)
            failures += cliffs.failures
    for failure in failures:
        print(f"Failed: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
