#!/usr/bin/env python3
"""Compares two builds of night-audit byte by byte, over seeded shops.

usage: compare.py BASELINE BINARIES [--worlds N] [--first SEED] [--keep DIR]

BASELINE and BINARIES are folders with `night-audit`; the simulator is that of BINARIES. Each world is a shop of the
evaluation: a sample shop or a public shape, in one of four circumstances, asked about through verifyReceipt or the
App Store Server API. Both builds audit copies of one database and ask one simulated Apple. The new build audits each
world twice: as it is, and with shuffled rows and two readers. Every file of every report except run.json, the list of
findings, and the explanations of some orders must be the same.

An intended difference is named in changes.py, with the reason, until it is released.
"""

import argparse
import concurrent.futures
import copy
import datetime
import difflib
import json
import os
import re
import shutil
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", folder) for folder in ("Evaluation", "Benchmarks")]
import cluster as postgres  # noqa: E402
import evaluate  # noqa: E402
import shapes  # noqa: E402
from changes import CHANGES  # noqa: E402

AS_OF = evaluate.AS_OF
EXPLAINED = 12
# Without the outage, because the number of questions that it leaves without an answer depends on the machine.
CIRCUMSTANCES = [one for one in evaluate.CIRCUMSTANCES if one is not evaluate.after_outage]
# Answers in an explanation. Which of two questions about one transaction is answered first, and at what time, varies.
ANSWER = re.compile(r"^ +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  .*\n", re.MULTILINE)
# Places of the heap do not matter. The sample is seeded, so that a difference can be seen again.
SHUFFLE = """
DO $$ DECLARE relation text; BEGIN
  FOR relation IN SELECT relname FROM pg_class WHERE relnamespace = 'sales'::regnamespace AND relkind = 'r' LOOP
    EXECUTE format('CREATE TEMPORARY TABLE shuffled AS SELECT * FROM sales.%1$I ORDER BY md5(%1$I::text)', relation);
    EXECUTE format('DELETE FROM sales.%1$I', relation);
    EXECUTE format('INSERT INTO sales.%1$I SELECT * FROM shuffled', relation);
    DROP TABLE shuffled;
  END LOOP;
END $$;
VACUUM ANALYZE;
"""


class Comparison:
    def __init__(self, baseline, binaries, cluster, kept):
        self.kept = kept
        self.evaluation = evaluate.Evaluation(binaries, cluster)
        self.baseline = copy.copy(self.evaluation)
        self.baseline.program = lambda name: os.path.join(os.path.abspath(baseline), name)

    def shop(self, seed):
        """The shop of a seed, and the nights to run."""
        circumstance = CIRCUMSTANCES[seed % len(CIRCUMSTANCES)]
        shape = evaluate.SHAPES[seed // len(CIRCUMSTANCES) % len(evaluate.SHAPES)]
        name = f"world-{seed}"
        if shape is not evaluate.sample_shop:
            change = getattr(shapes, circumstance.__name__, lambda world: None)
            return evaluate.BuiltShop(self.evaluation, name, seed, shape, change), circumstance
        shop = evaluate.Shop(self.evaluation, name, seed, with_key=seed % 2 == 1)
        if circumstance is evaluate.refund_wave:
            evaluate.refund_sample(shop)
        return shop, circumstance

    def compare(self, seed):
        """The differences of one world, each as a file with its first lines."""
        shop, circumstance = self.shop(seed)
        differences = []
        # The time of day is that of the audit before the first night, too.
        shop.world(lambda world: world.update(now=evaluate.MOMENT))
        with shop:
            template = f"{shop.name}-filled"
            self.evaluation.psql("postgres", f'ALTER DATABASE "{shop.name}" RENAME TO "{template}"')
            expected = self.audit(shop, circumstance, template, self.baseline)
            for arrival in ("", "shuffled"):
                found = self.audit(shop, circumstance, template, self.evaluation, arrival)
                for path in sorted(expected.keys() | found.keys()):
                    old, new = expected.get(path, b""), found.get(path, b"")
                    if old != new and not self.is_intended(path, old, new):
                        differences.append((arrival or "as filled", path, old, new))
                        self.keep(seed, arrival, path, old, new)
            self.evaluation.psql("postgres", f'DROP DATABASE "{template}"')
        shutil.rmtree(shop.directory)
        print(f"{shop.name}: {len(differences)} differences", file=sys.stderr, flush=True)
        return seed, differences

    def audit(self, shop, circumstance, template, evaluation, arrival=""):
        """The nights of a circumstance over a copy of the shop; their files by path, and what commands print."""
        evaluation.psql("postgres", f'CREATE DATABASE "{shop.name}" TEMPLATE "{template}"')
        one = copy.copy(shop)
        one.evaluation, one.expected = evaluation, copy.deepcopy(getattr(shop, "expected", None))
        if evaluation is self.baseline:
            # The new build has filled the template, and its schema may differ.
            evaluation.psql(shop.name, "DROP SCHEMA night_audit CASCADE")
            one.night_audit("init")
        # Apple forgets what the other build asked.
        with open(os.path.join(shop.directory, "world.json"), encoding="utf-8") as file:
            one.post("world", json.load(file))
        if arrival:
            one.psql(SHUFFLE)

        def night(as_of, *more):
            # Apple signs at the time of the night, whatever the time of day.
            if not one.apple.endswith(":9"):
                one.post("clock", {"now": int(datetime.datetime.fromisoformat(as_of).timestamp() * 1000)})
            readers = ["--readers", "2"] if arrival else []
            return one.night_audit("run", "--as-of", as_of, *more, *readers)

        one.night = night
        done = circumstance(one)
        printed = {"exit status": str(done.returncode).encode()}
        printed["findings list"] = one.night_audit("findings", "list", "--csv").stdout.encode()
        orders = evaluation.rows(shop.name, "SELECT order_id FROM sales.orders ORDER BY md5(order_id), order_id")[:EXPLAINED]
        for order in orders:
            text = one.night_audit("explain", order, "--as-of", AS_OF).stdout
            printed[f"explain {order}"] = ANSWER.sub("", text).encode()
        for folder, _, names in os.walk(one.reports):
            for name in names:
                path = os.path.join(folder, name)
                if name != "run.json" and not os.path.islink(path):
                    with open(path, "rb") as file:
                        printed[os.path.relpath(path, one.reports)] = file.read()
        shutil.rmtree(one.reports, ignore_errors=True)
        evaluation.psql("postgres", f'DROP DATABASE "{shop.name}"')
        return printed

    def is_intended(self, path, old, new):
        return any(applies(path, old, new) for _, applies in CHANGES)

    def keep(self, seed, arrival, path, old, new):
        if not self.kept:
            return
        for side, content in (("baseline", old), ("new", new)):
            target = os.path.join(self.kept, f"{seed}-{arrival or 'as-filled'}", side, path.replace("/", "_"))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as file:
                file.write(content)


def excerpt(old, new):
    lines = difflib.unified_diff(
        old.decode(errors="replace").splitlines(), new.decode(errors="replace").splitlines(), "baseline", "new", n=0, lineterm="")
    return "\n".join("    " + line[:300] for line in list(lines)[:6])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("baseline")
    parser.add_argument("binaries")
    parser.add_argument("--worlds", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--keep", help="a folder for both sides of each difference")
    options = parser.parse_args()
    with postgres.Cluster() as cluster, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        comparison = Comparison(options.baseline, options.binaries, cluster, options.keep)
        results = list(pool.map(comparison.compare, range(options.first, options.first + options.worlds)))
    count = sum(len(differences) for _, differences in results)
    for seed, differences in results:
        for arrival, path, old, new in differences[:5]:
            print(f"world {seed}, {arrival}: {path}\n{excerpt(old, new)}")
    print(f"{len(results)} worlds, {count} differences")
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()
