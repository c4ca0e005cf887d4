"""The job: reads the stores in parts, brings together what belongs together, and leaves the pieces of a report."""

import argparse
import bisect
import contextlib
import hashlib
import itertools
import json
import os
import subprocess
import sys
import zlib
from base64 import b64decode

from pyspark import StorageLevel
from pyspark.sql import SparkSession

from . import frames, sources


class Plan:
    """What night-audit says is to be read. It keeps the snapshots of both stores open for as long as it is asked to."""

    def __init__(self, arguments, sales=None, has_one_snapshot=True):
        """Plans the reading of the configuration's stores, or with `sales`, a connection URI, of another one of the shop's."""
        environment = {**os.environ, **({"NIGHT_AUDIT_DATABASE_SALES_URL": sales} if sales else {})}
        command = [arguments.binary, "audit-part", "--plan", str(arguments.partitions)]
        for option in ("config", "as_of", "since", "until"):
            value = getattr(arguments, option)
            if value is not None:
                command += ["--" + option.replace("_", "-"), value]
        if not has_one_snapshot:
            command.append("--several-stores")
        self._program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        line = self._program.stdout.readline()
        if not line:
            sys.exit(self._program.wait() or 70)
        said = json.loads(line)
        self.context = b64decode(said["context"])
        self.cuts = {name: [frames.key(bytes.fromhex(cut)) for cut in cuts] for name, cuts in said["cuts"].items()}
        self.relations = {relation["name"]: relation for relation in said["relations"]}
        self.connections, self.snapshots = said["connections"], said["snapshots"]
        self.totals, self.hidden, self.has_catalogue = said["totals"], said["hidden"], said["hasCatalogue"]
        self.counts, self.has_one_snapshot = said["counts"], said["hasOneSnapshot"]

    def close(self):
        self._program.stdin.close()
        self._program.wait()


class Job:
    """The stages of an audit, each over all parts."""

    def __init__(self, spark, plan, stores, binary, directory):
        self._spark, self._plan, self._stores = spark.sparkContext, plan, stores
        self._binary, self._directory = binary, directory
        self._context = self._spark.broadcast(plan.context)
        self._pieces = []
        self._cuts = {name: plan.cuts[name] or stores.sampled_cuts(name) for name in ("receipts", "orders")}
        self._cuts["transactions"] = plan.cuts["transactions"]
        print(", ".join(f"{len(cuts) + 1} parts of {name}" for name, cuts in sorted(self._cuts.items())), file=sys.stderr)

    def _stage(self, stage, rows, cuts, further=()):
        """Runs a stage over rows in parts, each in the order of keys, and keeps what it leaves."""
        places = self._cuts[cuts] if cuts else None
        count = len(places) + 1 if places is not None else rows.getNumPartitions()
        place = (lambda row: bisect.bisect_right(places, row[0])) if places is not None else (
            lambda row: zlib.crc32(row[0]) % count)
        binary, context = self._binary, self._context
        everywhere = self._spark.broadcast(list(further))

        def run(rows):
            def given():
                yield from everywhere.value
                for row, _ in rows:
                    yield row
            return frames.run(binary, stage, context.value, given())

        done = rows.map(lambda row: (row, None)).repartitionAndSortWithinPartitions(count, place).mapPartitions(run)
        return done.persist(StorageLevel.DISK_ONLY)

    def _once(self, stage, rows):
        """Runs a stage on the driver."""
        return list(frames.run(self._binary, stage, self._context.value, sorted(rows)))

    def _keep(self, name, chunks):
        """Writes chunks of pieces."""
        path = os.path.join(self._directory, name + ".frames")
        with open(path, "wb") as file:
            file.writelines(chunks)
        self._pieces.append({"name": os.path.basename(path), "sha256": sha256(path)})

    def _pieces_of(self, rows):
        """Yields the pieces among the frames of all parts in chunks, in the order of parts."""
        chunks = rows.mapPartitions(frames.pieces).persist(StorageLevel.DISK_ONLY)
        # First all parts side by side, then one chunk at a time, because an executor would have to hold all of a part.
        counts = chunks.mapPartitions(lambda part: [sum(1 for _ in part)]).collect()
        for part, count in enumerate(counts):
            for place in range(count):
                yield from self._spark.runJob(chunks, nth(place), [part])
        chunks.unpersist()

    def _keep_all(self, name, rows):
        self._keep(name, self._pieces_of(rows))

    def run(self):
        def of(rows, *tags):
            return rows.filter(lambda row: row[1] in tags)

        stores = self._stores
        receipts = self._stage("receipts", stores.rows("receipts", "checks", "receiptLinks"), "receipts")
        self._keep_all("receipts", receipts)
        orders = self._stage(
            "orders", stores.rows("orders", "lookups", "lookupLinks").union(of(receipts, frames.PROOF)), "orders")
        self._keep_all("orders", orders)
        transactions = self._stage(
            "transactions", stores.rows("transactions").union(of(orders, frames.REFERENCE)), "transactions")
        self._keep_all("transactions", transactions)

        opened = of(orders, frames.OPEN_PERSON).distinct().collect()
        order_transactions = of(transactions, frames.ORDER_TRANSACTION)
        questions = of(transactions, frames.LINK_QUESTION).collect()
        if questions:
            tokens = self._spark.broadcast({row[0] for row in questions})
            orders_by_link = of(orders, frames.LINKABLE_ORDER).union(of(transactions, frames.LINKABLE_ORDER))
            orders_by_link = orders_by_link.filter(lambda row: row[0] in tokens.value).collect()
            answers = self._once("tokens", questions + orders_by_link)
            self._keep("tokens", frames.pieces(answers))
            order_transactions = order_transactions.union(self._spark.parallelize(of_list(answers, frames.ORDER_TRANSACTION)))
            transactions = transactions.union(
                self._spark.parallelize(of_list(answers, frames.CONTESTED, frames.CONTESTED_ORDER)))
        groups = of(orders, frames.GROUP).union(order_transactions)
        deliveries = stores.rows("deliveries").persist(StorageLevel.DISK_ONLY)
        by_id = of(self._stage("deliveries", deliveries, None), frames.DELIVERY)
        repeated = of(self._stage("repeated", by_id, None), frames.REPEATED_DELIVERY).collect()
        matched = self._match(of, groups.union(deliveries), transactions, repeated)
        groups = groups.union(self._spark.parallelize(matched))

        twice = []
        if self._plan.has_catalogue or questions:
            compared = self._stage("purchases", groups, "orders", opened)
            owned = self._stage("subscriptions", of(compared, frames.OWNED_PERIOD), None)
            groups = groups.union(of(owned, frames.ORDER_TRANSACTION))
            if self._plan.has_catalogue:
                paid = of(compared, frames.PURCHASE).collect()
                twice = of_list(self._once("bought-twice", paid), frames.BOUGHT_TWICE)
        material = groups.union(deliveries).union(self._spark.parallelize(twice))
        self._keep_all("judge", self._stage("judge", material, "orders", opened + repeated))
        self._finish()

    def _match(self, of, orders, transactions, repeated):
        """Matches what is contested, on the driver: its size is that of the contests."""
        contested = of(transactions, frames.CONTESTED).collect()
        if not contested:
            return []
        contested_orders = self._spark.broadcast(set(of(transactions, frames.CONTESTED_ORDER).map(lambda row: row[0]).collect()))
        material = orders.filter(lambda row: row[0] in contested_orders.value).collect()
        outcome = self._once("contests", contested + material + repeated)
        self._keep("contests", frames.pieces(outcome))
        return of_list(outcome, frames.ORDER_TRANSACTION) + of_list(outcome, frames.MATCHED)

    def _finish(self):
        context = os.path.join(self._directory, "context")
        with open(context, "wb") as file:
            file.write(self._plan.context)
        manifest = os.path.join(self._directory, "manifest.json")
        with open(manifest + ".new", "w", encoding="utf-8") as file:
            said = {"pieces": self._pieces, "context": sha256(context), "sums": self._stores.sums(),
                    "counts": self._stores.counts()}
            json.dump(said, file, indent=1, sort_keys=True)
        os.replace(manifest + ".new", manifest)


def sha256(path):
    """Of a file, as hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def nth(place):
    """Gives one element of an iterator."""
    return lambda elements: itertools.islice(elements, place, place + 1)


def of_list(rows, *tags):
    return [row for row in rows if row[1] in tags]


def main():
    parser = argparse.ArgumentParser(prog="python -m night_audit_spark", description=__doc__)
    parser.add_argument("--master", required=True, help="the cluster, such as spark://host:7077")
    parser.add_argument("--config", help="the configuration file of night-audit; default: as for night-audit")
    parser.add_argument("--as-of", required=True, help="the instant that the audit describes")
    parser.add_argument("--since", required=True, help="first day of the period")
    parser.add_argument("--until", required=True, help="last day of the period, included")
    parser.add_argument("--parts", required=True, help="the folder for the results of the parts; created if missing, else empty")
    parser.add_argument("--partitions", type=int, default=64, help="the largest number of parts")
    parser.add_argument("--binary", default="night-audit", help="the program, at the same path on every host")
    parser.add_argument("--jdbc-driver", default="/usr/share/java/postgresql.jar", help="PostgreSQL's JDBC driver")
    parser.add_argument(
        "--sales", action="append", default=[], metavar="SOURCE",
        help="the source of orders, receipts and deliveries, instead of the configured store: a folder of Parquet files, or a "
        "file with a connection URI; may be repeated")
    arguments = parser.parse_args()
    # As for reports, because the pieces contain user names.
    os.umask(0o027)
    os.makedirs(arguments.parts, exist_ok=True)
    if os.listdir(arguments.parts):
        sys.exit(f"{arguments.parts} is not empty: results of two audits cannot be joined; name an empty folder")
    spark = SparkSession.builder.master(arguments.master).appName("night-audit").config(
        "spark.jars", arguments.jdbc_driver).config(
        "spark.sql.session.timeZone", "UTC").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    with contextlib.ExitStack() as open_plans:
        def planned(*options):
            return open_plans.enter_context(contextlib.closing(Plan(arguments, *options)))

        is_one_place = len(arguments.sales) < 2
        shops = {place: planned(sources.connection_uri(place), is_one_place)
                 for place in arguments.sales if os.path.isfile(place)}
        # No snapshot spans several places, or the workers of a Citus coordinator.
        plan = planned(None, is_one_place and all(shop.has_one_snapshot for shop in shops.values()))
        stores = sources.Stores(spark, plan, arguments.sales, shops, arguments.partitions)
        Job(spark, plan, stores, arguments.binary, arguments.parts).run()
    spark.stop()


if __name__ == "__main__":
    main()
