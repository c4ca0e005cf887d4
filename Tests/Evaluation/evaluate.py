#!/usr/bin/env python3
"""Measures the whole program over seeded shops with known truth.

usage: evaluate.py BINARIES [--seeds N] [--page FILE]

1. Healthy shops: recall and precision for each kind of finding, false accusations, nights that were held.
2. Slips: a shop is mapped wrong in each of 40 ways. Is the night held or refused?

--page replaces everything below the marker line of a page.
"""

import argparse
import collections
import concurrent.futures
import copy
import csv
import datetime
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Benchmarks"))
import cluster as postgres  # noqa: E402

import shapes  # noqa: E402
from slips import SLIPS  # noqa: E402

AS_OF = "2026-11-20T03:00:00Z"
MOMENT = 1_795_143_600_000
ISSUER = "57246542-96fe-1a63-e053-0824d011072b"
NEXT = "2026-11-21T03:00:00Z"
# The fewest of a sample shop. A night is held from 20 orders and 20 % on, so that both limits matter.
ORDERS = 500
HELD, INCOMPLETE, REFUSED = 4, 3, 78
# Without the catalogue, which takes longer than the tables of a small shop.
ANALYZE = """
SELECT format('ANALYZE %I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname IN ('sales', 'public') \\gexec
"""
with open(os.path.join(postgres.SOURCES, "Reconciliation", "Findings", "FindingKind.swift"), encoding="utf-8") as source:
    KINDS = re.findall(r'case \w+ = "([a-z_]+)"', source.read().split("enum FindingKind")[1].split("\n\n")[0])
# It needs Apple's sales reports, which these shops do not have.
UNMEASURED = {"unreported_by_shop"}

Measured = collections.namedtuple("Measured", "shape circumstance seed doctor done found truth")


class Shop:
    """A sample shop with its database and its simulated Apple."""

    has_app_receipts = True

    def __init__(self, evaluation, name, seed, with_key=False):
        self.evaluation, self.name, self.credentials, self.apps = evaluation, name, None, {"game": ""}
        self.directory = os.path.join(evaluation.work, name)
        self.reports = os.path.join(self.directory, "reports")
        self.simulator = None
        subprocess.run(
            [evaluation.program("app-store-simulator"), "sample-shop", "--directory", self.directory]
            + ["--orders", str(ORDERS), "--seed", str(seed), "--as-of", AS_OF] + ["--quiz"] * with_key,
            check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        if with_key:
            self.world(self.give_key)
        with open(os.path.join(self.directory, "expected.json"), encoding="utf-8") as file:
            self.expected = json.load(file)

    def give_key(self, world):
        """All apps are asked through the App Store Server API, with the key of the sample's second app."""
        key = next(app for app in world["apps"] if "keyId" in app and "publicKey" in app)
        for app in world["apps"]:
            app.update({name: key[name] for name in ("issuerId", "keyId", "publicKey")})
        self.apps = {"game": "appAppleId: 1234567890", "quiz": "appAppleId: 1234567892"}
        file = os.path.join(self.directory, "SubscriptionKey_QUIZKEY.p8")
        self.credentials = f"issuerId: {key['issuerId']}, keyId: {key['keyId']}, privateKeyFile: {file}"

    def world(self, change):
        """Changes Apple's side before the simulator starts."""
        path = os.path.join(self.directory, "world.json")
        with open(path, encoding="utf-8") as file:
            world = json.load(file)
        change(world)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(world, file)

    def __enter__(self):
        directory = self.directory
        port, roots = os.path.join(directory, "port"), os.path.join(directory, "roots")
        os.mkdir(roots)
        self.log = open(os.path.join(directory, "simulator.log"), "wb")
        self.simulator = subprocess.Popen(
            [self.evaluation.program("app-store-simulator"), "--world", os.path.join(directory, "world.json")]
            + ["--port-file", port, "--root-certificate", os.path.join(roots, "signed.pem")]
            # The keys that sign app receipts take half a second.
            + ["--receipt-root-certificate", os.path.join(roots, "receipts.pem")] * self.has_app_receipts,
            stdout=self.log, stderr=self.log, preexec_fn=postgres.die_with_parent(9))  # fmt: skip
        while not (os.path.exists(port) and os.path.getsize(port)):
            if self.simulator.poll() is not None:
                raise SystemExit(f"The simulator of {self.name} ended. See {directory}/simulator.log.")
            time.sleep(0.02)
        with open(port, encoding="utf-8") as file:
            self.apple = f"http://127.0.0.1:{file.read().strip()}"
        self.evaluation.psql("postgres", f'CREATE DATABASE "{self.name}" TEMPLATE plain')
        self.configure(self.name)
        self.fill()
        return self

    def fill(self):
        self.psql("".join(
            f"\\copy sales.{name} from '{self.directory}/{name}.csv' (format csv, header)\n"
            for name in ("orders", "receipts", "deliveries")))  # fmt: skip
        self.make_receipts_genuine()

    def post(self, path, *contents):
        """The answers of the simulator's control interface, over one connection."""
        connection = http.client.HTTPConnection(self.apple.removeprefix("http://"))
        answers = []
        for content in contents:
            connection.request("POST", f"/simulator/{path}", json.dumps(content))
            answer = connection.getresponse()
            text = answer.read().decode()
            if answer.status != 200:
                raise SystemExit(f"The simulator of {self.name} refuses {path}: {text}")
            answers.append(json.loads(text))
        connection.close()
        return answers

    def make_receipts_genuine(self):
        """Replaces each app receipt by one that the simulator signs, or by a signed transaction if there is a key."""
        with open(os.path.join(self.directory, "world.json"), encoding="utf-8") as file:
            known = {one["payload"]: one for one in json.load(file)["receipts"]}
        with open(os.path.join(self.directory, "orders.csv"), encoding="utf-8", newline="") as file:
            stated = {row["order_id"]: row["transaction_id"] for row in csv.DictReader(file)}
        genuine, rows = {}, []
        with open(os.path.join(self.directory, "receipts.csv"), encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                one = known.get(row["payload"])
                # Apple's forced answers belong to the payload of the world file.
                if one is None or one["kind"] != "app" or not one["transactions"] or "status" in one and not self.credentials:
                    continue
                if self.credentials:
                    chosen = stated.get(row["order_id"])
                    chosen = chosen if chosen in one["transactions"] else one["transactions"][0]
                    wanted = {"form": "signed", "transactions": [chosen], "environment": one["environment"]}
                else:
                    received = datetime.datetime.fromisoformat(row["received_at"]).timestamp() * 1000
                    wanted = {"form": "app", "signedDate": int(received)}
                    wanted |= {name: one[name] for name in ("transactions", "environment", "bundleId")}
                # A copied receipt has the bytes of the original.
                key = row["payload"], *wanted["transactions"]
                genuine.setdefault(key, wanted)
                rows.append((row["receipt_id"], key))
        made = dict(zip(genuine, self.post("payload", *genuine.values())))
        changes = ", ".join(f"('{receipt}', '{made[key]['payload']}')" for receipt, key in rows)
        self.psql(f"UPDATE sales.receipts r SET payload = v.payload FROM (VALUES {changes}) AS v (id, payload) "
                  f"WHERE v.id = r.receipt_id;\n{ANALYZE}")  # fmt: skip

    def __exit__(self, *_):
        self.simulator.kill()
        self.simulator.wait()
        self.log.close()

    def configure(self, database):
        with open(os.path.join(self.directory, "test-users.txt"), encoding="utf-8") as file:
            users = json.dumps(file.read().split())
        self.database = database
        self.configuration = os.path.join(self.directory, f"{database}.yaml")
        credentials = self.credentials or f"sharedSecretFile: {self.directory}/shared-secret"
        apps = self.apps
        one = ", ".join(
            f"{app}: {{bundleId: com.example.{app}, {credentials}{', ' + more if more else ''}}}" for app, more in apps.items())
        with open(self.configuration, "w", encoding="utf-8") as file:
            file.write(f"""\
database: {{url: "{self.evaluation.conninfo(database)}"}}
appstore:
  apps: [{", ".join(apps)}]
  productionUrl: {self.apple}/production
  sandboxUrl: {self.apple}/sandbox
  verifyReceiptUrl: {self.apple}/production/verifyReceipt
  verifyReceiptSandboxUrl: {self.apple}/sandbox/verifyReceipt
  rootCertificates: {self.directory}/roots
  pinRoots: false
  requestsPerSecond: 10000
app: {{{one}}}
audit: {{testUsers: {users}}}
report: {{directory: {self.reports}, formats: csv}}
""")

    def over(self, database):
        """The same shop and Apple over a copy of the database, with reports of its own."""
        shop = copy.copy(self)
        shop.reports = os.path.join(self.directory, f"reports-{database}")
        shop.configure(database)
        return shop

    def psql(self, script):
        self.evaluation.psql(self.database, script)

    def night_audit(self, *arguments):
        return subprocess.run(
            [self.evaluation.program("night-audit"), *arguments, "--config", self.configuration],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.directory)  # fmt: skip

    def night(self, as_of, *arguments):
        return self.night_audit("run", "--as-of", as_of, *arguments)

    def findings(self, day="2026-11-19", counts=lambda row: True):
        """The open findings of a night as pairs of subject and kind."""
        with open(os.path.join(self.reports, day, "findings.csv"), encoding="utf-8", newline="") as file:
            return {
                (row["delivery_id"] if row["kind"] == "orphan_delivery" else
                 row["order_id"] or row["transaction_id"] or row["delivery_id"] or row["receipt_id"], row["kind"])
                for row in csv.DictReader(file)
                if counts(row)
            }  # fmt: skip

    def accusations(self, day):
        """Without `stuck_unconfirmed`, which accuses nobody."""
        return self.findings(day, lambda row: row["severity"] != "minor" and row["kind"] != "stuck_unconfirmed")

    def truth(self):
        pairs = {(order, kind) for order, one in self.expected["orders"].items() for kind in one["findings"]}
        return pairs | set(self.expected["unowned"].items())


class BuiltShop(Shop):
    """A shop of one of the public shapes. Apple is asked through the App Store Server API."""

    has_app_receipts = False

    def __init__(self, evaluation, name, seed, shape, circumstance):
        self.evaluation, self.name, self.simulator = evaluation, name, None
        self.directory = os.path.join(evaluation.work, name)
        self.reports = os.path.join(self.directory, "reports")
        self.apps = {"game": "appAppleId: 1234567890"}
        self.credentials = evaluation.credentials
        self.content = shapes.World(seed, MOMENT)
        self.write = shape(self.content)
        circumstance(self.content)
        os.mkdir(self.directory)
        open(os.path.join(self.directory, "test-users.txt"), "w").close()
        with open(os.path.join(self.directory, "world.json"), "w", encoding="utf-8") as file:
            json.dump({"apps": [{"bundleId": "com.example.game", "appAppleId": 1234567890}], "receipts": [], "now": MOMENT,
                       "transactions": list(self.content.transactions.values())}, file)  # fmt: skip

    def fill(self):
        content = self.content
        proofs = [(sale, one, max(sale.at, content.transactions[one]["purchaseDate"]) + 10_000)
                  for sale in content.sales for one in sale.proofs]  # fmt: skip
        made = self.post("payload", *({"form": "signed", "transactions": [one], "signedDate": at} for _, one, at in proofs))
        content.receipts = [(content.name("r"), sale, answer["payload"], at) for (sale, _, at), answer in zip(proofs, made)]
        written, script = self.write()
        self.psql(script + shapes.plain_tables(content, written) + ANALYZE)

    def night(self, as_of, *arguments):
        # Without a clock there is no Apple that could be set.
        if not self.apple.endswith(":9"):
            self.post("clock", {"now": int(datetime.datetime.fromisoformat(as_of).timestamp() * 1000)})
        return super().night(as_of, *arguments)

    def truth(self):
        return self.content.truth


class Evaluation:
    def __init__(self, binaries, cluster):
        self.binaries, self.cluster = os.path.abspath(binaries), cluster
        self.work = os.path.join(cluster.directory, "shops")
        os.mkdir(self.work)
        keys = os.path.join(self.work, "keys")
        subprocess.run([self.program("app-store-simulator"), "sample-shop", "--directory", keys, "--orders", "500", "--quiz"],
                       check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        self.credentials = f"issuerId: {ISSUER}, keyId: QUIZKEY, privateKeyFile: {keys}/SubscriptionKey_QUIZKEY.p8"
        self.psql("postgres", "CREATE DATABASE plain")
        done = subprocess.run(
            [self.program("night-audit"), "init", "--with-sales-schema"],
            env={**os.environ, "NIGHT_AUDIT_DATABASE_URL": self.conninfo("plain"), "NIGHT_AUDIT_APPSTORE_APPS": "game",
                 "NIGHT_AUDIT_APP_GAME_BUNDLE_ID": "com.example.game"},
            cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # fmt: skip
        if done.returncode:
            raise SystemExit(done.stdout)

    def program(self, name):
        return os.path.join(self.binaries, name)

    def conninfo(self, database):
        return f"host={self.cluster.directory} user=benchmark dbname={database}"

    def psql(self, database, script):
        self.cluster.psql(database, script=script)

    def rows(self, database, query):
        done = subprocess.run(
            [f"{self.cluster.programs}/psql", "--no-psqlrc", "--tuples-only", "--no-align", "--command", query],
            check=True, stdout=subprocess.PIPE, text=True, env=self.cluster.environment(database))  # fmt: skip
        return done.stdout.split()


# Circumstances of the night. Each prepares a sample shop, and runs the nights up to the one that is measured.


def first_night(shop):
    return shop.night(AS_OF)


def fraud(shop):
    """2 % of the orders are another user's purchase, ordered again five minutes later and delivered."""
    if isinstance(shop, BuiltShop):
        return shop.night(AS_OF)
    healthy = [o for o, one in shop.expected["orders"].items() if one["disposition"] == "settled" and not one["findings"]]
    victims = healthy[:: max(1, len(healthy) // (ORDERS // 50))][: ORDERS // 50]
    chosen = ", ".join(f"'{order}'" for order in victims)
    shop.psql(f"""
        INSERT INTO sales.orders SELECT 'thief-' || order_id, 'thief-' || order_id, bundle_id, product_id, quantity, amount,
          currency, 'verified', transaction_id, NULL, created_at + interval '5 min', verified_at + interval '5 min',
          updated_at + interval '5 min' FROM sales.orders WHERE order_id IN ({chosen}) AND transaction_id IS NOT NULL;
        INSERT INTO sales.deliveries SELECT 'thief-' || order_id, order_id, user_id, product_id, quantity,
          created_at + interval '1 min', NULL FROM sales.orders WHERE order_id LIKE 'thief-%';
        """)
    for order in shop.evaluation.rows(shop.database, "SELECT order_id FROM sales.orders WHERE order_id LIKE 'thief-%'"):
        shop.expected["orders"][order] = {"findings": ["delivered_not_paid", "duplicate_claim"]}
    return shop.night(AS_OF)


def refund_wave(shop):
    return shop.night(AS_OF)


def refund_sample(shop):
    """Apple refunds 5 % of the orders in the last day; neither the shop nor the goods know."""
    orders = {}
    with open(os.path.join(shop.directory, "orders.csv"), encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            one = shop.expected["orders"].get(row["order_id"])
            if row["transaction_id"] and row["status"] == "verified" and one == {"disposition": "settled", "findings": []}:
                orders[row["transaction_id"]] = row["order_id"]
    wave = set(list(orders)[:: max(1, len(orders) // (ORDERS // 20))][: ORDERS // 20])

    def refund(world):
        for transaction in world["transactions"]:
            # verifyReceipt never shows the refund of a consumable.
            if transaction["transactionId"] in wave and transaction["type"] != "Consumable":
                transaction["revocationDate"] = MOMENT - 12 * 3_600_000
                transaction["revocationReason"] = 0
                one = shop.expected["orders"][orders[transaction["transactionId"]]]
                one["findings"] = ["refund_not_booked", "refunded_still_delivered"]

    shop.world(refund)


def promotion(shop):
    """The night has the orders of twenty days."""
    earlier = shop.night("2026-10-31T03:00:00Z")
    if earlier.returncode not in (0, INCOMPLETE):
        return earlier
    return shop.night(AS_OF)


def after_outage(shop):
    """Apple did not answer in the night before."""
    apple = shop.apple
    shop.apple = "http://127.0.0.1:9"
    shop.configure(shop.database)
    shop.night("2026-11-19T03:00:00Z", "--max-duration", "1s")
    shop.apple = apple
    shop.configure(shop.database)
    return shop.night(AS_OF)


CIRCUMSTANCES = [first_night, fraud, refund_wave, promotion, after_outage]


def sample_shop(world):
    """Stands for the sample shop, which the simulator writes. Its truth is that of verifyReceipt."""


SHAPES = [sample_shop, *shapes.SHAPES]


def healthy(evaluation, seed, first):
    """One shop. Seeds as many as shapes have each shape once; five times as many have each in each circumstance."""
    turn, place = divmod(seed - first, len(SHAPES))
    shape, circumstance = SHAPES[place], CIRCUMSTANCES[(turn + place) % len(CIRCUMSTANCES)]
    name = f"seed-{seed}"
    if shape is not sample_shop:
        change = getattr(shapes, circumstance.__name__, lambda world: None)
        shop = BuiltShop(evaluation, name, seed, shape, change)
    else:
        shop = Shop(evaluation, name, seed)
        if circumstance is refund_wave:
            refund_sample(shop)
    with shop:
        # The first night of each shop makes the comparisons of doctor, too.
        doctor = shop.night_audit("doctor") if turn == 0 else None
        done = circumstance(shop)
    found = None if done.returncode not in (0, INCOMPLETE) else shop.findings()
    evaluation.psql("postgres", f'DROP DATABASE "{shop.name}"')
    shutil.rmtree(shop.directory)
    one = Measured(shape.__name__, circumstance.__name__, seed, doctor, done, found, shop.truth())
    print(f"{name}: {'refused, ' if is_refused(one) else ''}{done.returncode}", file=sys.stderr, flush=True)
    return one


def is_refused(one):
    return one.doctor is not None and one.doctor.returncode != 0


def slipped(base, index):
    """The exit statuses of doctor, of a first night and of a later night with this slip, and the orders each accuses."""
    evaluation, (name, script) = base.evaluation, SLIPS[index]
    statuses, accused = [], []
    for template, as_of, day in ((base.name, AS_OF, "2026-11-19"), (f"{base.name}-audited", NEXT, "2026-11-20")):
        database = f"{template}-{index}"
        evaluation.psql("postgres", f'CREATE DATABASE "{database}" TEMPLATE "{template}"')
        shop = base.over(database)
        shop.psql(f"{script};\n{ANALYZE}")
        if template == base.name:
            statuses.append(shop.night_audit("doctor").returncode)
        statuses.append(shop.night_audit("run", "--as-of", as_of).returncode)
        is_published = statuses[-1] in (0, INCOMPLETE)
        accused.append(len({one for one, _ in shop.accusations(day) - base.ordinary}) if is_published else 0)
        evaluation.psql("postgres", f'DROP DATABASE "{database}"')
    print(f"{name}: {statuses}, {accused} falsely accused", file=sys.stderr, flush=True)
    return name, statuses, accused


def slips(evaluation, pool, with_key):
    base = Shop(evaluation, "key" if with_key else "secret", 1, with_key)
    with base:
        doctor = base.night_audit("doctor")
        if doctor.returncode:
            raise SystemExit(f"doctor over the healthy shop ended with {doctor.returncode}.\n{doctor.stdout}")
        evaluation.psql("postgres", f'CREATE DATABASE "{base.name}-audited" TEMPLATE "{base.name}"')
        audited = base.over(f"{base.name}-audited")
        done = audited.night_audit("run", "--as-of", AS_OF)
        if done.returncode not in (0, INCOMPLETE):
            raise SystemExit(f"The night before the slips ended with {done.returncode}.\n{done.stdout}")
        base.ordinary = audited.accusations("2026-11-19")
        audited.psql("ANALYZE")
        # A healthy later night has findings of its own.
        evaluation.psql("postgres", f'CREATE DATABASE "{base.name}-later" TEMPLATE "{audited.database}"')
        later = base.over(f"{base.name}-later")
        done = later.night_audit("run", "--as-of", NEXT)
        if done.returncode not in (0, INCOMPLETE):
            raise SystemExit(f"The night after a healthy one ended with {done.returncode}.\n{done.stdout}")
        base.ordinary |= later.accusations("2026-11-20")
        return list(pool.map(lambda index: slipped(base, index), range(len(SLIPS))))


def is_stopped(one):
    """True if doctor refuses the slip, or the first night is held or refuses it."""
    _, (doctor, first, _), _ = one
    return REFUSED in (doctor, first) or first == HELD


def is_harmless_later(one):
    """True if a night after a healthy one is held, refuses the slip, or accuses nobody falsely."""
    _, (_, _, later), (_, accused) = one
    return later in (HELD, REFUSED) or accused == 0


def percent(part, whole):
    return "" if not whole else f"{100 * part / whole:.1f} %" if part != whole else "100 %"


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def report(shops, slipped):
    """The text of the page, and whether every target of these shops and slips is met."""
    counts = {kind: [0, 0, 0] for kind in KINDS}
    by_shape = {shape.__name__: [0, 0, 0, 0] for shape in SHAPES}
    held, false_orders = [], set()
    for one in shops:
        line = by_shape[one.shape]
        line[0] += 1
        if one.found is None or is_refused(one):
            held.append(one)
            line[1] += 1
        if one.found is None:
            continue
        for pair in one.found | one.truth:
            counts[pair[1]][0 if pair in one.found and pair in one.truth else 1 if pair in one.found else 2] += 1
        line[2] += len(one.found - one.truth)
        line[3] += len(one.truth - one.found)
        false_orders |= {(one.seed, subject) for subject, _ in one.found - one.truth}
    text = f"## Healthy shops\n\n{len(shops)} shops. Held or refused: {len(held)}. "
    text += f"Orders and payments with a false finding: {len(false_orders)}.\n\n"
    text += table(
        ["shape", "shops", "held or refused", "false findings", "missed findings"],
        [[shape.replace("_", " "), *line] for shape, line in sorted(by_shape.items())]) + "\n"  # fmt: skip
    text += table(
        ["kind", "true", "found", "false", "missed", "precision", "recall"],
        [[f"`{kind}`", hit + missed, hit + wrong, wrong, missed, percent(hit, hit + wrong), percent(hit, hit + missed)]
         for kind, (hit, wrong, missed) in sorted(counts.items())])  # fmt: skip
    for channel, ones in slipped.items():
        stopped, harmless = sum(map(is_stopped, ones)), sum(map(is_harmless_later, ones))
        text += f"\n## Slips, {channel}\n\n{stopped} of {len(ones)} are held or refused. After a healthy night, without doctor, "
        text += f"the night holds or refuses {harmless} of {len(ones)}, or accuses nobody.\n\n"
        text += table(
            ["wrong column", "`doctor`", "first night", "later night", "accused by the first", "by the later"],
            [[name, *statuses, *accused] for name, statuses, accused in ones])  # fmt: skip
    is_met = not held and all(is_stopped(one) and is_harmless_later(one) for ones in slipped.values() for one in ones)
    is_met = is_met and not any(wrong or missed for _, wrong, missed in counts.values())
    if shops:
        is_met = is_met and all(line[0] for line in by_shape.values())
        is_met = is_met and all(hit for kind, (hit, _, _) in counts.items() if kind not in UNMEASURED)
    return text, is_met


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries")
    parser.add_argument("--seeds", type=int, default=200, help=f"at least {len(SHAPES)}, the number of shapes")
    parser.add_argument("--only-slips", action="store_true")
    parser.add_argument("--only-shops", action="store_true")
    # Nights also wait, so there is one more than processors.
    parser.add_argument("--workers", type=int, default=os.cpu_count() + 1)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--page", help="a Markdown file; the text after its line <!-- figures --> is replaced")
    options = parser.parse_args()
    if not options.only_slips and options.seeds < len(SHAPES):
        parser.error(f"--seeds must be at least {len(SHAPES)}, so that each shape is measured.")
    started = time.monotonic()
    threads = concurrent.futures.ThreadPoolExecutor
    with postgres.Cluster() as cluster, threads(options.workers) as pool, threads(2) as channels:
        evaluation = Evaluation(options.binaries, cluster)
        # The nights before the slips run beside the shops, which keep all workers busy.
        running = {
            channel: channels.submit(slips, evaluation, pool, with_key)
            for channel, with_key in (("App Store Server API", True), ("verifyReceipt", False))
            if not options.only_shops
        }
        seeds = range(options.first, options.first if options.only_slips else options.first + options.seeds)
        shops = list(pool.map(lambda seed: healthy(evaluation, seed, options.first), seeds))
        print(f"shops: {time.monotonic() - started:.0f} s", file=sys.stderr)
        slipped = {channel: future.result() for channel, future in running.items()}
    text, is_met = report(shops, slipped)
    print(text)
    for one in shops:
        if is_refused(one):
            print(f"seed {one.seed} ({one.shape}, {one.circumstance}): doctor ended with {one.doctor.returncode}\n"
                  f"{one.doctor.stdout}")  # fmt: skip
        if one.found is None:
            print(f"seed {one.seed} ({one.shape}, {one.circumstance}) ended with {one.done.returncode}\n{one.done.stdout}")
            continue
        for sign, pairs in (("false", one.found - one.truth), ("missed", one.truth - one.found)):
            for subject, kind in sorted(pairs)[:5]:
                print(f"seed {one.seed} ({one.shape}, {one.circumstance}): {sign} {kind} of {subject}")
    print(f"{time.monotonic() - started:.0f} s")
    if options.page:
        with open(options.page, encoding="utf-8") as file:
            head = file.read().split("<!-- figures -->")[0]
        with open(options.page, "w", encoding="utf-8") as file:
            day = datetime.date.today()
            file.write(f"{head}<!-- figures -->\n\nMeasured on {day}, in {(time.monotonic() - started) / 60:.0f} minutes on "
                       f"{os.cpu_count()} processors.\n\n{text}")
    sys.exit(0 if is_met else 1)


if __name__ == "__main__":
    main()
