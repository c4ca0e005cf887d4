"""What must not become disproportionately dear: night-audit alone, over shops unlike others, each with its bound.

Every bound is a ratio of two runs of this one program in the same run of this script, or bytes; none is a time of
day. CPU is that of client and server together.
"""

import argparse
import os
import shutil
import subprocess
import sys

from cluster import Cluster
from run import AS_OF, OURS, PERIOD, Benchmark


class Cliffs(Benchmark):
    """One scenario after the other, each over a database of its own."""

    def shop(self, orders, users, script="", ids="ordered", troubled=26):
        self.ids, self.troubled = ids, troubled
        self.fill(orders, users)
        if script:
            self.cluster.psql(self.database, script=script)

    def configure(self, formats):
        super().configure(formats)
        with open(self.config, "a") as file:
            # Payloads here are no receipts, and nobody is accused of it.
            file.write("audit.systemicShare: 1\n")

    def audit(self):
        run, _ = self.run(OURS, "csv")
        if run is None:
            raise SystemExit(1)
        print(f"  {run.cpu:.2f} CPU s (client {run.client:.2f}), {run.wall:.1f} s, {run.peak:.0f} MB", flush=True)
        return run

    def night(self, number):
        """A whole night that asks nobody, of the as-of so many days later; also what it wrote to the server's log."""
        self.configure("csv")
        before = self.wal()
        server = self.cluster.cpu_seconds()
        command = [self.night_audit, "run", "--offline", "--quiet", "--config", self.config, "--since", PERIOD[0]]
        as_of = AS_OF.replace(day=AS_OF.day + number)
        command += ["--until", PERIOD[1], "--as-of", as_of.strftime("%Y-%m-%dT%H:%M:%SZ")]
        child = subprocess.Popen(
            command, env=self.cluster.environment(self.database), cwd=self.work, stderr=subprocess.PIPE, text=True
        )
        said = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in (0, 3):
            self.fails(OURS, child.returncode, said)
            raise SystemExit(1)
        cpu = usage.ru_utime + usage.ru_stime + self.cluster.cpu_seconds() - server
        written = self.wal() - before
        print(
            f"  night {number + 1}: {cpu:.2f} CPU s, {usage.ru_maxrss / 1024:.0f} MB, "
            f"{written / 1e6:.1f} MB of write-ahead log",
            flush=True,
        )
        return cpu, usage.ru_maxrss / 1024, written

    def wal(self):
        return int(self.ask("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"))

    def ask(self, sql):
        return subprocess.run(
            [f"{self.cluster.programs}/psql", "-qAtX", "-c", sql],
            check=True, capture_output=True, text=True, env=self.cluster.environment(self.database),
        ).stdout.strip()

    # Scenarios

    def findings(self, size):
        """Thirty in a hundred orders have a finding; the second night finds the same."""
        self.shop(size // 10, size // 60, troubled=77)
        first, second = self.night(0), self.night(1)
        open_findings = int(self.ask("SELECT count(*) FROM night_audit.findings WHERE closed_at IS NULL"))
        print(f"  {open_findings:,} findings")
        self.verdict("30 % findings: the second night costs at most the first, CPU", second[0] / first[0], 1.0)
        self.verdict("30 % findings: the second night's log, of the first's", second[2] / first[2], 0.05)

    def quiet(self, size):
        """A night after a night, with nothing new; and ten times as many orders."""
        costs = {}
        for orders in (size // 10, size):
            self.shop(orders, orders // 6)
            first = self.night(0)
            costs[orders] = self.night(1)
            self.verdict(f"quiet night of {orders:,}: its log, of the first night's", costs[orders][2] / first[2], 0.05)
        self.verdict("quiet night: CPU of ten times the orders", costs[size][0] / costs[size // 10][0], 12)

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
        """An audit of a shop in which many orders, each paid by a transaction of its own, name another one."""
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

    def lists(self, receipts, purchases):
        """An audit of one user with so many purchases and an order for each; so many of their receipts list all of them."""
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
        """An audit of one user with an order of the same product every minute, and how many purchases receipts list.

        One receipt in `orders / receipts` is kept; `listed` says which purchases, by number, receipt number `r.n` lists.
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
        """One receipt for all, an equal one for each order, one for each order that lists what there is so far."""
        for shape, orders, receipts, listed, bound in [
            ("one receipt lists all", size // 200, 1, "TRUE", 6),
            ("each with a receipt that lists all", size // 500, size, "TRUE", 30),
            ("each with a receipt that lists what there is so far", size // 500, size, "t.n <= r.n", 30),
        ]:
            few, many = (self.bot(n, min(n, receipts), listed) for n in (orders // 5, orders))
            name = f"one user with {orders:,} orders, {shape}"
            self.verdict(f"{name}: CPU of a fifth as many", many.cpu / few.cpu, bound)
            self.verdict(f"{name}: peak in MB", many.peak, 150)

    def flat(self, size):
        self.shop(size, size // 6)
        some = self.audit()
        self.shop(size * 10, size // 6)
        many = self.audit()
        self.verdict("ten times the orders: MB more", many.peak - some.peak, 10)
        self.verdict("ten times the orders: CPU", many.cpu / some.cpu, 12)


SCENARIOS = ["findings", "quiet", "one_user", "users", "one_transaction", "long_receipt", "bots", "flat"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", default=SCENARIOS[:-1], help="some of " + ", ".join(SCENARIOS))
    parser.add_argument("--orders", type=int, default=1_000_000, help="what the scenarios' sizes go by")
    parser.add_argument("--night-audit", required=True, help="the release build of night-audit")
    options = parser.parse_args()
    with Cluster() as cluster:
        cliffs = Cliffs(cluster, os.path.abspath(options.night_audit))
        for name in options.scenarios:
            print(f"\n## {name}", flush=True)
            getattr(cliffs, name)(options.orders)
            shutil.rmtree(os.path.join(cliffs.work, "nightaudit-csv"), ignore_errors=True)
            cluster.psql("postgres", script=f"DROP DATABASE IF EXISTS {cliffs.database}")
        for failure in cliffs.failures:
            print(f"Failed: {failure}")
        return 1 if cliffs.failures else 0


if __name__ == "__main__":
    sys.exit(main())
