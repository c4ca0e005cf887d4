"""Where rows come from: our own store, and the shop's in one database, in several, or in a lake."""

import contextlib
import os
import sys
import urllib.parse
from base64 import b64encode

from pyspark.sql import functions

from . import frames, records


class Database:
    """A Postgres that is read over JDBC."""

    def __init__(self, spark, connection, snapshot, is_shop, fetch_size=10_000):
        host = connection.get("hostaddr") or connection.get("host", "localhost")
        if host.startswith("/"):
            sys.exit("JDBC has no Unix sockets: give the host of the store in the configuration")
        self._spark, self._snapshot, self._is_shop = spark, snapshot, is_shop
        self._url = f"jdbc:postgresql://{host}:{connection.get('port', '5432')}/{connection['dbname']}"
        self._options = {"driver": "org.postgresql.Driver", "user": connection.get("user", ""),
                         "fetchsize": str(fetch_size)}
        for keyword in ("password", "sslmode", "sslrootcert"):
            if keyword in connection:
                self._options[keyword] = connection[keyword]
        self._keeper = None

    @classmethod
    def of_uri(cls, spark, path):
        """The database that a file names, as `postgresql://user:password@host:port/name?sslmode=verify-full`."""
        with open(path, encoding="utf-8") as file:
            uri = urllib.parse.urlsplit(file.read().strip())
        # Never the text itself, which may hold a password.
        if uri.scheme not in ("postgres", "postgresql") or not uri.hostname or len(uri.path) < 2:
            sys.exit(f"{path} holds no connection URI, such as postgresql://reader@db.example.com:5432/shop")
        connection = {"host": uri.hostname, "port": str(uri.port or 5432), "dbname": urllib.parse.unquote(uri.path[1:]),
                      "user": urllib.parse.unquote(uri.username or "")}
        if uri.password:
            connection["password"] = urllib.parse.unquote(uri.password)
        for keyword, value in urllib.parse.parse_qsl(uri.query):
            connection[keyword] = value
        source = cls(spark, connection, None, is_shop=True)
        source._keep_snapshot(path)
        return source

    def _keep_snapshot(self, path):
        """Shares a snapshot for as long as the job runs: all parts are read as of one instant."""
        machine = self._spark.sparkContext._jvm
        properties = machine.java.util.Properties()
        for keyword in ("user", "password", "sslmode", "sslrootcert"):
            if keyword in self._options:
                properties.setProperty(keyword, self._options[keyword])
        driver = self._spark.sparkContext._jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(
            self._options["driver"]).newInstance()
        self._keeper = driver.connect(self._url, properties)
        self._keeper.setAutoCommit(False)
        statement = self._keeper.createStatement()
        statement.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        result = statement.executeQuery("SELECT pg_export_snapshot(), to_regclass('pg_catalog.pg_dist_partition')::text")
        result.next()
        self._snapshot = result.getString(1)
        if result.getString(2) is not None:
            sys.exit(
                f"{path} names a database with Citus, whose workers share no snapshot: what would be critical there is read "
                "again only of the configuration's own store, so name it as database.salesUrl and give no --sales")

    def close(self):
        if self._keeper is not None:
            self._keeper.close()

    def _query(self, query):
        start = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
        if self._snapshot is not None:
            start += f"; SET TRANSACTION SNAPSHOT '{self._snapshot}'"
        if self._is_shop:
            start += "; SET LOCAL row_security TO off"
        return self._spark.read.format("jdbc").options(url=self._url, **self._options).option(
            "sessionInitStatement", start + "; SET LOCAL jit TO off").option("query", query).load()

    def rows(self, relation):
        """The frames of a relation, one data set for each part of the plan."""
        for query in relation["queries"]:
            yield self._query(query).select("key", functions.lit(relation["tag"]).alias("tag"), "row").rdd.map(
                lambda row: (frames.key(row[0]), row[1], bytes(row[2])))

    def sums(self, totals, _):
        """What the source adds up to: rows of currency, orders and amount."""
        return [bytes(row[0]) for row in self._query(totals["query"]).collect()]


class Lake:
    """A folder with the relations `orders`, `receipts` and `deliveries` as Parquet."""

    def __init__(self, spark, folder, relations, hidden):
        self._tables, self._hidden = {}, hidden
        for relation in relations:
            path = f"{folder.rstrip('/')}/{relation['name']}"
            table = self._tables[relation["name"]] = spark.read.parquet(path)
            for column in relation["columns"]:
                if reason := records.refusal(table, column):
                    sys.exit(f"{path}: {reason}")

    def close(self):
        pass

    def _known(self, relation):
        """The rows that the audit knows of."""
        table = self._tables[relation["name"]]
        date = functions.unix_micros(table[relation["date"]].cast("timestamp"))
        is_hidden = (date > self._hidden["asOf"]) & (date <= self._hidden["until"])
        return table.where(~functions.coalesce(is_hidden, functions.lit(False)))

    def rows(self, relation):
        """The frames of a relation."""
        columns = relation["columns"]
        table = self._known(relation)
        read = table.select(*(records.selected(table, column) for column in columns))
        encode, tag = records.Encoder(columns), relation["tag"]
        yield read.rdd.map(lambda row: (frames.key(None if row[0] is None else row[0].encode()), tag, encode(row)))

    def sums(self, totals, orders):
        """As of a database."""
        table = self._known(orders)
        # More decimals than money has make no sum; what is no number at all is none either.
        exact = table["amount"].cast("decimal(38,18)")
        rounded = exact.cast(f"decimal(38,{totals['decimals']})")
        is_money = (exact == rounded) & (functions.abs(exact) <= totals["limit"])
        added = table.groupBy(table["currency"].cast("string")).agg(
            functions.count("*"), functions.sum(functions.when(is_money, rounded)))
        encode = records.Encoder([{"reading": reading} for reading in ("text", "bigint", "numeric")])
        return [encode(row) for row in added.collect()]


class Stores:
    """Our own store, and the sources of the shop's relations, each in one snapshot."""

    _KEYS_FOR_A_CUT = 50

    def __init__(self, spark, plan, sales, partitions):
        def configured(name):
            return Database(spark, plan.connections[name], plan.snapshots.get(name), is_shop=name == "sales")

        self._plan, self._own, self._sales = plan, configured("own"), []
        relations = [relation for relation in plan.relations.values() if relation["store"] == "sales"]
        for source in sales:
            is_file = os.path.isfile(source)
            self._sales.append(
                Database.of_uri(spark, source) if is_file else Lake(spark, source, relations, plan.hidden))
        if not sales:
            self._sales.append(configured("sales"))
        self._context, self._cuts = spark.sparkContext, partitions - 1 if sales else 0
        # Whether an order may be read as it never was, and is read again before anybody is accused.
        self.looks_again = plan.looks_again and not sales

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.ExitStack() as stack:
            for source in [self._own, *self._sales]:
                stack.callback(source.close)

    def rows(self, *names):
        """The frames of some relations."""
        read = []
        for name in names:
            relation = self._plan.relations[name]
            for source in self._sales if relation["store"] == "sales" else [self._own]:
                read += source.rows(relation)
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
        orders = self._plan.relations["orders"]
        rows = [row for source in self._sales for row in source.sums(self._plan.totals, orders)]
        return [b64encode(row).decode() for row in sorted(rows)]
