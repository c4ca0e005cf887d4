#!/usr/bin/env bash
# Audits a night on a Spark cluster of a master and two workers, with the pip package, and expects the bytes of one
# process.
# Includes claims that compete across parts, a killed worker while orders change, and a shop in two databases and a
# lake.
# usage: spark.sh BINARIES [ORDERS]
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
binaries=$(cd "${1:?usage: spark.sh BINARIES [ORDERS]}" && pwd)
orders=${2:-500}
python=${SPARK_PYTHON:-$repository/.build/spark/bin/python}
[ -x "$python" ] || {
  echo "spark: skipped, because pyspark is not in .build/spark (Tests/Demo/requirements.sh real-parts)"
  exit 0
}
unset SPARK_HOME SPARK_CONF_DIR PYTHONPATH
name=spark
source "$repository/Tests/RealParts/sample_shop.sh"

say "The package, as pip installs it"
# The package is built from a copy, because a build leaves files beside its source.
cp -r "$repository/Sources/night-audit-spark" package
"$python" -m venv --without-pip installed
"$python" -c 'import os, pyspark; print(os.path.dirname(os.path.dirname(pyspark.__file__)))' >pyspark.pth
mv pyspark.pth installed/lib/python*/site-packages
"$python" -m pip --python installed/bin/python install --quiet --no-deps ./package >pip.log 2>&1 ||
  fail "the package cannot be installed: $(cat pip.log)"
"$python" -m pip --python installed/bin/python check >pip.log || fail "the package requires another Spark: $(cat pip.log)"
installed=$work/installed/bin
export PYSPARK_PYTHON=$installed/python PYSPARK_DRIVER_PYTHON=$installed/python SPARK_LOCAL_IP=127.0.0.1

say "Findings across parts"
"${ask[@]}" --command="CREATE VIEW sales.products AS SELECT DISTINCT product_id, 'Non-Consumable'::text AS type,
  NULL::text AS name, NULL::timestamptz AS sold_from, NULL::timestamptz AS sold_until FROM sales.orders"
# A date that no report can show is a bad row in every part.
"${ask[@]}" --command="INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status,
  created_at, updated_at) VALUES ('far-0', 'far', 'gems.100', 1, 9.90, 'USD', 'verified', '9999-12-31T12:00Z', '2026-11-01T00:00Z')"
# Orders of one user in the first, middle and last part, each of which states the payment of the next one. Their app
# receipts contain the payments without their orders.
"${ask[@]}" <<'SQL'
CREATE TEMPORARY TABLE chain AS
SELECT order_id, (ARRAY['1-chain-3', '5-chain-6', '9-chain-9'])[row_number() OVER by_id] AS link,
  lead(transaction_id) OVER by_id AS next
FROM (SELECT order_id, transaction_id FROM sales.orders JOIN sales.receipts USING (order_id)
      WHERE orders.status = 'verified' AND product_id = 'gems.100' AND quantity = 1 AND transaction_id IS NOT NULL
        AND payload LIKE 'M%' ORDER BY order_id LIMIT 3) AS proven
WINDOW by_id AS (ORDER BY order_id);
UPDATE sales.orders SET order_id = link, user_id = 'chain', transaction_id = next FROM chain WHERE orders.order_id = chain.order_id;
UPDATE sales.receipts SET order_id = link, user_id = 'chain' FROM chain WHERE receipts.order_id = chain.order_id;
UPDATE sales.deliveries SET order_id = link, user_id = 'chain' FROM chain WHERE deliveries.order_id = chain.order_id;
SQL
audit=(--config night-audit.yaml --as-of "$as_of" --since 2026-09-20 --until 2026-11-20)
allowing_incomplete "$binaries/night-audit" recheck --quiet --config night-audit.yaml --as-of "$as_of"
"${ask[@]}" --command='ANALYZE'
# parts_of ORDER...: the numbers of the parts that have these orders, among three parts.
parts_of() {
  "$binaries/night-audit" audit-part --plan 3 "${audit[@]}" </dev/null | "$python" -c '
import bisect, json, sys
cuts = [bytes.fromhex(cut) for cut in json.load(sys.stdin)["cuts"]["orders"]]
print(*(bisect.bisect_right(cuts, order.encode()) for order in sys.argv[1:]))' "$@"
}
[ "$(parts_of 1-chain-3 5-chain-6 9-chain-9)" = "0 1 2" ] || fail "the competing claims are not in three parts"
allowing_incomplete "$binaries/night-audit" reconcile --quiet "${audit[@]}" --out one
# Each order states the next one's transaction ID, and owns its own purchase by proof.
[ "$(grep -c ',bought_twice,minor,[59]-chain-[69],' one/findings.csv)" = 2 ] && ! grep -q 'duplicate_claim.*chain' one/findings.csv ||
  fail "claims do not compete: $(grep chain one/findings.csv)"

# Orders in three parts that are delivered and refunded in turn.
mapfile -t changing < <("${ask[@]}" --tuples-only --no-align --command="
  SELECT unnest(ARRAY[ids[1], ids[cardinality(ids) / 2], ids[cardinality(ids)]])
  FROM (SELECT array_agg(order_id ORDER BY order_id) AS ids FROM sales.orders
        WHERE status = 'verified' AND transaction_id IS NOT NULL AND user_id <> 'chain' AND right(order_id, 1) BETWEEN '5' AND '7'
          AND EXISTS (SELECT FROM sales.deliveries WHERE deliveries.order_id = orders.order_id AND revoked_at IS NULL)) AS sold")
[ "$(parts_of "${changing[@]}")" = "0 1 2" ] || fail "the changing orders are not in three parts: ${changing[*]}"
# A single statement, so that no reader sees half of the change.
change="WITH goods AS (
    UPDATE sales.deliveries SET revoked_at = CASE WHEN revoked_at IS NULL THEN timestamptz '2026-11-19T00:00Z' END
    WHERE order_id IN ('${changing[0]}', '${changing[1]}', '${changing[2]}'))
  UPDATE sales.orders SET status = CASE status WHEN 'verified' THEN 'refunded' ELSE 'verified' END
  WHERE order_id IN ('${changing[0]}', '${changing[1]}', '${changing[2]}') RETURNING status;"
"${ask[@]}" --command="$change" >/dev/null
allowing_incomplete "$binaries/night-audit" reconcile --quiet "${audit[@]}" --out changed
"${ask[@]}" --command="$change" >/dev/null
! cmp --quiet one/orders.csv changed/orders.csv || fail "the report does not show the changed orders"

say "A master and two workers"
spark=$("$python" -c 'import pyspark, os; print(os.path.dirname(pyspark.__file__))')
master_port=$(free_port)
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

job=("$installed/night-audit-spark")
spread() {
  local parts=$1
  shift
  "${job[@]}" --master "spark://127.0.0.1:$master_port" "${audit[@]}" --parts "$parts" --partitions 3 \
    --binary "$binaries/night-audit" "$@" >"$parts.log" 2>&1
}
# publish NAME [REPORT...]: joins the parts, and compares the report with those of one process, without `excluded`.
excluded=()
publish() {
  local parts=$1 report
  shift
  allowing_incomplete "$binaries/night-audit" run --quiet "${audit[@]}" --parts "$parts" --out "report-$parts"
  for report in "${@:-one}"; do
    ! diff --recursive --brief --exclude=run.json "${excluded[@]}" "$report" "report-$parts" >"differences-$report" || return 0
  done
  fail "$parts: the files differ from those of one process: $(cat differences-*; diff "$report/orders.csv" "report-$parts/orders.csv")"
}
# start_changing DATABASE: changes orders back and forth, and records each state.
start_changing() {
  : >changes
  touch is-changing
  while [ -e is-changing ]; do
    echo "$change"
    # Some hundred changes happen during a job; the pause leaves the processors to it.
    sleep 0.1
  done | "${ask[@]}" --dbname="$1" --tuples-only --no-align >changes &
  writer=$!
  processes+=("$writer")
}
# end_changing NAME: ends the changes, which must have happened during the job, and restores the orders.
end_changing() {
  rm is-changing
  wait "$writer"
  [ $(($(wc -l <changes) - begun)) -ge 60 ] || fail "$1: orders did not change while the job read them"
  [ "$(tail -n 1 changes)" = verified ] || "${ask[@]}" --dbname="$2" --command="$change" >/dev/null
}

say "The night, in three parts"
spread calm
publish calm

say "A worker dies in the middle, while orders change; what is left comes to the driver a few rows at a time"
job=("$installed/python" -c 'import functools
from night_audit_spark import __main__, frames
frames.pieces = functools.partial(frames.pieces, size=2000)
__main__.main()')
start_changing postgres
spread disturbed &
running=$!
wait_for 120 "$running" test -s disturbed/receipts.frames
begun=$(wc -l <changes)
# Killing the worker ends its executors.
kill -KILL "$worker"
pkill -KILL --parent "$worker" || true
wait "$running" || fail "the job failed after the worker was killed"
end_changing disturbed postgres
publish disturbed one changed
job=("$installed/python" -m night_audit_spark)

say "The shop in two databases and a lake, while orders of one of them change"
pg_dump --host=127.0.0.1 --port="$port" --username=shop --schema=sales postgres >sales.dump
# The lake has the western orders. Receipts and deliveries without an order stay in the southern database.
place="CASE WHEN right(order_id, 1) < '5' THEN 'west' WHEN right(order_id, 1) < '8' THEN 'north' ELSE 'south' END"
for database in north south; do
  "${ask[@]}" --command="CREATE DATABASE $database"
  "${ask[@]}" --dbname="$database" --file=sales.dump >/dev/null
  for relation in orders receipts deliveries; do
    "${ask[@]}" --dbname="$database" --command="DELETE FROM sales.$relation WHERE $place <> '$database'"
  done
  echo "postgresql://shop@127.0.0.1:$port/$database" >"$database"
done
"$python" - "jdbc:postgresql://127.0.0.1:$port/postgres" >lake.log 2>&1 <<'PYTHON'
import sys
from pyspark.sql import SparkSession, functions
spark = SparkSession.builder.master("local[1]").config("spark.jars", "/usr/share/java/postgresql.jar").getOrCreate()
for relation in ("orders", "receipts", "deliveries"):
    rows = spark.read.jdbc(sys.argv[1], f"(SELECT * FROM sales.{relation} WHERE right(order_id, 1) < '5') AS west",
                           properties={"user": "shop", "driver": "org.postgresql.Driver"})
    rows.write.parquet(f"west/{relation}")
# pandas writes integers with missing values in this way.
deliveries = spark.read.parquet("west/deliveries")
for kind in ("double", "decimal(20,2)"):
    deliveries.withColumn("order_id", functions.lit(17).cast(kind)).write.parquet(f"{kind}/deliveries")
PYTHON
# Without statistics, the server gives no cuts between parts.
"${ask[@]}" --command='DELETE FROM pg_statistic'
start_changing north
spread divided --sales north --sales south --sales "$work/west" &
running=$!
wait_for 120 "$running" test -s divided/receipts.frames
begun=$(wc -l <changes)
wait "$running" || fail "the job failed because of changing orders"
end_changing divided north
grep -q '^3 parts of orders' divided.log || fail "the parts were not cut by a sample of the IDs"
# These files give the reason for an earlier as-of, which only several stores have.
excluded=(--exclude=report.html --exclude='*.xlsx' --exclude=SHA256SUMS)
publish divided one changed
grep -q 'No snapshot spans' report-divided/report.html || fail "the report does not say that it describes an earlier instant"
excluded=()
! spread never-read-late --sales north --sales south --as-of "$(date --utc +%FT%TZ)" ||
  fail "an as-of of now was accepted for two databases"
grep -q 'is too late' never-read-late.log || fail "never-read-late: $(cat never-read-late.log)"
echo 'shop:secret@127.0.0.1' >broken-uri
! spread never-read --sales broken-uri || fail "an invalid source was accepted"
! grep -q secret never-read.log || fail "a password was printed"
: >empty-uri
! spread never-read-empty --sales empty-uri || fail "an empty file was accepted as the configuration's store"
for kind in double 'decimal(20,2)'; do
  cp -r west/orders west/receipts "$kind"
  ! spread "never-read-$kind" --sales north --sales "$work/$kind" || fail "IDs of type $kind were accepted"
  grep -qF "column order_id is of type $kind, but must be text" "never-read-$kind.log" || fail "$kind: $(cat "never-read-$kind.log")"
done
rm -r west/receipts/*.parquet
! spread never-read-either --sales north --sales "$work/west" || fail "a lake without receipts was accepted"

say "Numbers are encoded as the server does it"
"$installed/python" -c '
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
  ! "$binaries/night-audit" run --quiet "${audit[@]}" --parts broken --out never 2>refusal || fail "a broken folder was accepted"
  [ ! -e never ] || fail "a report of a broken folder was published"
  rm -r broken
done
status=0
"$binaries/night-audit" run --quiet --config night-audit.yaml --as-of "$as_of" --date 2026-11-18 --parts calm --out never \
  2>refusal || status=$?
[ "$status" -eq 64 ] && grep -q 'another as-of' refusal || fail "parts of another period were accepted: $(cat refusal)"
say "The same bytes."
