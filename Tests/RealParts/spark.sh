#!/usr/bin/env bash
# A night over a Spark cluster of a master and two workers: the same bytes as of one process. In the middle of it a worker is
# killed, and the job ends with the same bytes. So it does where one half of the shop is in another database, and the other in
# a lake.
# usage: spark.sh BINARIES [ORDERS]
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
binaries=$(cd "${1:?usage: spark.sh BINARIES [ORDERS]}" && pwd)
orders=${2:-500}
python=${SPARK_PYTHON:-$repository/.build/spark/bin/python}
[ -x "$python" ] || {
  echo "spark: passed over, because pyspark is not in .build/spark (Tests/Demo/requirements.sh real-parts)"
  exit 0
}
unset SPARK_HOME SPARK_CONF_DIR
export PYSPARK_PYTHON=$python PYSPARK_DRIVER_PYTHON=$python SPARK_LOCAL_IP=127.0.0.1
export PYTHONPATH=$repository/Sources/night-audit-spark
name=spark
source "$repository/Tests/RealParts/sample_shop.sh"
"${ask[@]}" --command="CREATE VIEW sales.products AS SELECT DISTINCT product_id, 'Non-Consumable'::text AS type,
  NULL::text AS name, NULL::timestamptz AS sold_from, NULL::timestamptz AS sold_until FROM sales.orders"
# A date that no report can show is reported, wherever its row is.
"${ask[@]}" --command="INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status,
  created_at, updated_at) VALUES ('far-0', 'far', 'gems.100', 1, 9.90, 'USD', 'verified', '9999-12-31T12:00Z', '2026-11-01T00:00Z')"
audit=(--config night-audit.yaml --as-of "$as_of" --since 2026-09-20 --until 2026-11-20)
allowing_incomplete "$binaries/night-audit" recheck --quiet --config night-audit.yaml --as-of "$as_of"
"${ask[@]}" --command='ANALYZE'
allowing_incomplete "$binaries/night-audit" reconcile --quiet "${audit[@]}" --out one

say "A master and two workers"
spark=$("$python" -c 'import pyspark, os; print(os.path.dirname(pyspark.__file__))')
master_port=$(free_port)
# class NAME ARGUMENTS...: a program of Spark's own.
class() {
  local name=$1
  shift
  exec "$spark/bin/spark-class" "org.apache.spark.deploy.$name" "$@"
}
(class master.Master --host 127.0.0.1 --port "$master_port" --webui-port 0 >master.log 2>&1) &
processes+=($!)
worker() {
  (class worker.Worker --cores 1 --memory 1g --host 127.0.0.1 --webui-port 0 --work-dir "$work/$1" \
    "spark://127.0.0.1:$master_port" >"$1.log" 2>&1) &
  processes+=($!)
  worker=$!
}
wait_for 60 "${processes[-1]}" grep -q 'New state: ALIVE' master.log
worker first
worker second
wait_for 60 "$worker" grep -q 'Successfully registered' second.log
wait_for 60 "$worker" grep -q 'Successfully registered' first.log

job=(-m night_audit_spark)
# spread DIR OPTIONS: the parts of the night, audited by the cluster.
spread() {
  local parts=$1
  shift
  "$python" "${job[@]}" --master "spark://127.0.0.1:$master_port" "${audit[@]}" --parts "$parts" --partitions 3 \
    --binary "$binaries/night-audit" "$@" >"$parts.log" 2>&1
}
# publish NAME: the report of what the cluster has left is the one of a single process, byte by byte.
publish() {
  allowing_incomplete "$binaries/night-audit" run --quiet "${audit[@]}" --parts "$1" --out "report-$1"
  diff --recursive --brief --exclude=run.json one "report-$1" || fail "$1: other bytes than of one process"
}

say "The night, in three parts"
spread calm
publish calm

say "A worker dies in the middle; what is left comes to the driver a few rows at a time"
job=(-c 'import functools
from night_audit_spark import __main__, frames
frames.pieces = functools.partial(frames.pieces, size=2000)
__main__.main()')
spread disturbed &
running=$!
wait_for 120 "$running" test -s disturbed/receipts.frames
# The executors that it started go with it.
kill -KILL "$worker"
pkill -KILL --parent "$worker" || true
wait "$running" || fail "the job did not survive the worker"
publish disturbed
job=(-m night_audit_spark)

say "The shop in a database and a lake"
"${ask[@]}" --command='CREATE DATABASE east'
pg_dump --host=127.0.0.1 --port="$port" --username=shop --schema=sales postgres >sales.dump
"${ask[@]}" --dbname=east --file=sales.dump >/dev/null
# Receipts and deliveries without an order stay in the east.
"${ask[@]}" --dbname=east <<SQL
DELETE FROM sales.orders WHERE right(order_id, 1) < '5';
DELETE FROM sales.receipts WHERE right(order_id, 1) < '5';
DELETE FROM sales.deliveries WHERE right(order_id, 1) < '5';
SQL
"$python" - "jdbc:postgresql://127.0.0.1:$port/postgres" >lake.log 2>&1 <<'PYTHON'
import sys
from pyspark.sql import SparkSession, functions
spark = SparkSession.builder.master("local[1]").config("spark.jars", "/usr/share/java/postgresql.jar").getOrCreate()
for relation in ("orders", "receipts", "deliveries"):
    rows = spark.read.jdbc(sys.argv[1], f"(SELECT * FROM sales.{relation} WHERE right(order_id, 1) < '5') AS west",
                           properties={"user": "shop", "driver": "org.postgresql.Driver"})
    rows.write.parquet(f"west/{relation}")
# As pandas writes whole numbers of which some are missing.
deliveries = spark.read.parquet("west/deliveries")
for kind in ("double", "decimal(20,2)"):
    deliveries.withColumn("order_id", functions.lit(17).cast(kind)).write.parquet(f"{kind}/deliveries")
PYTHON
echo "postgresql://shop@127.0.0.1:$port/east" >east
# Nobody tells where ids are to be cut.
"${ask[@]}" --command='DELETE FROM pg_statistic'
spread divided --sales east --sales "$work/west"
grep -q '^3 parts of orders' divided.log || fail "ids were not cut where a sample says"
publish divided
echo 'shop:secret@127.0.0.1' >broken-uri
! spread never-read --sales broken-uri || fail "a source that is none was taken"
! grep -q secret never-read.log || fail "a password was told"
for kind in double 'decimal(20,2)'; do
  cp -r west/orders west/receipts "$kind"
  ! spread "never-read-$kind" --sales east --sales "$work/$kind" || fail "ids of type $kind were taken"
  grep -qF "column order_id is of type $kind, but must be text" "never-read-$kind.log" || fail "$kind: $(cat "never-read-$kind.log")"
done
rm -r west/receipts/*.parquet
! spread never-read-either --sales east --sales "$work/west" || fail "a lake without receipts was taken"

say "Numbers are encoded as the server does it"
PYTHONPATH=$repository/Sources/night-audit-spark "$python" -c '
from decimal import Decimal
from night_audit_spark.records import numeric
for text in "0 0.00 1 -1 9.90 0.0001 0.00001 10000 99999999.99 100000000 -123456789.123456 1E+3 0.000000 12345.000".split():
    print(text, numeric(Decimal(text)).hex())
' >encoded
while read -r text hexadecimal; do
  echo "$text $("${ask[@]}" --tuples-only --no-align --command="SELECT encode(numeric_send('$text'::numeric), 'hex')")"
done <encoded >expected
diff encoded expected

say "What does not fit is refused"
for change in 's/"sums":/"sums": [], "rest":/' 's/"receipts.frames"/"nothing.frames"/'; do
  cp -r calm broken
  sed -i "$change" broken/manifest.json
  ! cmp --quiet calm/manifest.json broken/manifest.json || fail "the manifest was not changed"
  ! "$binaries/night-audit" run --quiet "${audit[@]}" --parts broken --out never 2>refusal || fail "a broken folder was taken"
  [ ! -e never ] || fail "something was published of a broken folder"
  rm -r broken
done
status=0
"$binaries/night-audit" run --quiet --config night-audit.yaml --as-of "$as_of" --date 2026-11-18 --parts calm --out never \
  2>refusal || status=$?
[ "$status" -eq 64 ] && grep -q 'another as-of' refusal || fail "parts of another period were taken: $(cat refusal)"
say "The same bytes."
