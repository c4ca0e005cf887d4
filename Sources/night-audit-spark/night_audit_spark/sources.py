"""Where rows come from: our own store, and the shop's in one database, in several, or in a lake."""

import os
import sys
from base64 import b64encode

from pyspark.sql import functions

from . import frames, records


class Database:
    """A Postgres that is read over JDBC, as a plan says that keeps its snapshot open."""

    def __init__(self, spark, plan, store, fetch_size=10_000):
        connection = plan.connections[store]
        host = connection.get("hostaddr") or connection.get("host", "localhost")
        if host.startswith("/"):
            sys.exit("JDBC cannot use Unix sockets: give the host of the store in its connection URI")
        self._spark, self._plan, self._snapshot, self._is_shop = spark, plan, plan.snapshots.get(store), store == "sales"
        self._url = f"jdbc:postgresql://{host}:{connection.get('port', '5432')}/{connection['dbname']}"
        self._options = {"driver": "org.postgresql.Driver", "user": connection.get("user", ""),
                         "fetchsize": str(fetch_size)}
        for keyword in ("password", "sslmode", "sslrootcert"):
            if keyword in connection:
                self._options[keyword] = connection[keyword]

    def _query(self, query):
        start = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
        if self._snapshot is not None:
            start += f"; SET TRANSACTION SNAPSHOT '{self._snapshot}'"
        if self._is_shop:
            start += "; SET LOCAL row_security TO off"
        return self._spark.read.format("jdbc").options(url=self._url, **self._options).option(
            "sessionInitStatement", start + "; SET LOCAL jit TO off").option("query", query).load()

    def rows(self, name):
        """The frames of a relation, one data set for each part of the plan."""
        relation = self._plan.relations[name]
        for query in relation["queries"]:
            yield self._query(query).select("key", functions.lit(relation["tag"]).alias("tag"), "row").rdd.map(
                lambda row: (frames.key(row[0]), row[1], bytes(row[2])))

    def sums(self):
        """What the source adds up to: rows of currency, orders and amount."""
        return [bytes(row[0]) for row in self._query(self._plan.totals["query"]).collect()]

    def count(self, name):
        """How many rows of a relation a night is measured by."""
        return self._query(self._plan.counts["queries"][name]).head()[0]


class Lake:
    """A folder with the relations `orders`, `receipts` and `deliveries` as Parquet."""

    def __init__(self, spark, folder, plan):
        self._tables, self._plan = {}, plan
        for relation in plan.relations.values():
            if relation["store"] != "sales":
                continue
            path = f"{folder.rstrip('/')}/{relation['name']}"
            table = self._tables[relation["name"]] = spark.read.parquet(path)
            for column in relation["columns"]:
                if reason := records.refusal(table, column):
                    sys.exit(f"{path}: {reason}")

    def _known(self, relation):
        """The rows that the audit knows of."""
        table = self._tables[relation["name"]]
        date = functions.unix_micros(table[relation["date"]].cast("timestamp"))
        is_hidden = (date > self._plan.hidden["asOf"]) & (date <= self._plan.hidden["until"])
        return table.where(~functions.coalesce(is_hidden, functions.lit(False)))

    def rows(self, name):
        """The frames of a relation."""
        relation = self._plan.relations[name]
        columns, nameless = relation["columns"], b"" if relation["namelessFirst"] else None
        table = self._known(relation)
        read = table.select(*(records.selected(table, column) for column in columns))
        encode, tag = records.Encoder(columns), relation["tag"]
        yield read.rdd.map(lambda row: (frames.key(nameless if row[0] is None else row[0].encode()), tag, encode(row)))

    def sums(self):
        """As of a database."""
        table, totals = self._known(self._plan.relations["orders"]), self._plan.totals
        # Amounts with too many decimals, and values that are not numbers, are in no sum.
        exact = table["amount"].cast("decimal(38,18)")
        rounded = exact.cast(f"decimal(38,{totals['decimals']})")
        is_money = (exact == rounded) & (functions.abs(exact) <= totals["limit"])
        added = table.groupBy(table["currency"].cast("string")).agg(
            functions.count("*"), functions.sum(functions.when(is_money, rounded)))
        encode = records.Encoder([{"reading": reading} for reading in ("text", "bigint", "numeric")])
        return [encode(row) for row in added.collect()]

    def count(self, name):
        """As of a database."""
        relation = self._plan.relations[name]
        table = self._known(relation)
        return table.where(functions.unix_micros(table[relation["date"]].cast("timestamp")) >= self._plan.counts["since"]).count()


def connection_uri(path):
    """The connection URI in a file."""
    with open(path, encoding="utf-8") as file:
        uri = file.read().strip()
    # An empty URI would plan for the configured store.
    if not uri:
        sys.exit(f"{path} is empty: it must contain a connection URI, such as postgresql://reader@db.example.com:5432/shop")
    return uri


class Stores:
    """Our own store, and the sources of the shop's relations, each database in one snapshot."""

    _KEYS_FOR_A_CUT = 50

    def __init__(self, spark, plan, sales, shops, partitions):
        """`sales` has the places of the shop's relations, and `shops` the plans of those that are databases."""
        self._plan, self._own = plan, Database(spark, plan, "own")
        self._sales = [
            Database(spark, shops[place], "sales") if place in shops else Lake(spark, place, plan) for place in sales
        ] or [Database(spark, plan, "sales")]
        self._context, self._cuts = spark.sparkContext, partitions - 1 if sales else 0

    def rows(self, *names):
        """The frames of some relations."""
        read = []
        for name in names:
            for source in self._sales if self._plan.relations[name]["store"] == "sales" else [self._own]:
                read += source.rows(name)
        return self._context.union(read)

    def sampled_cuts(self, name):
        """Where to cut ids that no statistics are known of: the configuration's store knows nothing of other sources."""
        if self._cuts == 0:
            return []
        keys = self.rows(name).map(lambda row: row[0]).takeSample(False, (self._cuts + 1) * self._KEYS_FOR_A_CUT, 1)
        keys.sort()
        return sorted({keys[len(keys) * cut // (self._cuts + 1)] for cut in range(1, self._cuts + 1)}) if keys else []

    def sums(self):
        """What the sources add up to, each by currency, in base 64."""
        rows = [row for source in self._sales for row in source.sums()]
        return [b64encode(row).decode() for row in sorted(rows)]

    def counts(self):
        """How many rows of each relation a night is measured by."""
        return {name: sum(source.count(name) for source in self._sales) for name in self._plan.counts["queries"]}
