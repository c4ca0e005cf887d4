#!/usr/bin/env bash
# Audits a shop on a Citus coordinator, distributed by order and by user, and over Spark if pyspark is installed.
# Expects the bytes of plain Postgres, except for the sentence about the as-of. Runs if NIGHT_AUDIT_TEST_CITUS is set and the newest
# server has the extension.
# usage: citus.sh BINARIES [ORDERS]
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
binaries=$(cd "${1:?usage: citus.sh BINARIES [ORDERS]}" && pwd)
orders=${2:-500}
python=python3
[ -n "${NIGHT_AUDIT_TEST_CITUS:-}" ] || {
  echo "citus: skipped, because NIGHT_AUDIT_TEST_CITUS is not set"
  exit 0
}
name=citus
source "$repository/Tests/RealParts/sample_shop.sh"

say "A coordinator and two workers"
listen coordinator -c shared_preload_libraries=citus
coordinator=$port
at "$coordinator" --command='CREATE EXTENSION citus' --command="SELECT citus_set_coordinator_host('127.0.0.1', $port)" >/dev/null
for worker in first second; do
  listen "$worker" -c shared_preload_libraries=citus
  at "$port" --command='CREATE EXTENSION citus'
  at "$coordinator" --command="SELECT citus_add_node('127.0.0.1', $port)" >/dev/null
done
port=$shop_port

# audit CONFIGURATION REPORTS: two nights, filtered reports, and the explanation of an order.
audit() {
  local settings=(--quiet --config "$1")
  for day in 19 20; do
    allowing_incomplete "$binaries/night-audit" run "${settings[@]}" --readers 2 --as-of "2026-11-$((day + 1))T03:00:00Z" \
      --date "2026-11-$day" >/dev/null
  done
  for filter in "--product gems.550" "--user $user" "--order $order"; do
    # shellcheck disable=SC2086
    allowing_incomplete "$binaries/night-audit" reconcile "${settings[@]}" --as-of "$as_of" --date 2026-11-19 $filter \
      --out "$2/${filter%% *}" >/dev/null
  done
  "$binaries/night-audit" explain "${settings[@]}" --as-of "$as_of" "$order" | grep -v 'verifyReceipt about' >"$2/explained"
}
read -r user order < <("${ask[@]}" --tuples-only --no-align --field-separator=' ' \
  --command="SELECT user_id, min(order_id) FROM sales.orders GROUP BY 1 HAVING count(*) > 1 ORDER BY 1 LIMIT 1")
audit night-audit.yaml reports

# Citus needs a distribution column that is never NULL and part of each key, so orphans have one, too.
spread() {
  say "Spread by $1"
  "${ask[@]}" --command='DROP DATABASE IF EXISTS ours' --command='CREATE DATABASE ours'
  at "$coordinator" --command='DROP SCHEMA IF EXISTS sales CASCADE' --command='CREATE SCHEMA sales' 2>/dev/null
  for relation in order receipt delivery; do
    local key=${relation}_id
    relation=${relation/%y/ie}s
    pg_dump --host=127.0.0.1 --port="$shop_port" --username=shop --schema-only --table="sales.$relation" postgres |
      sed '/^ALTER TABLE ONLY/,/;$/d' | at "$coordinator" >/dev/null
    at "$coordinator" >/dev/null <<SQL
ALTER TABLE sales.$relation ADD shard text NOT NULL;
ALTER TABLE sales.$relation ADD PRIMARY KEY (shard, $key);
SELECT create_distributed_table('sales.$relation', 'shard', colocate_with => 'none');
SQL
  done
  for relation in orders receipts deliveries; do
    "${ask[@]}" --command="\\copy (SELECT *, coalesce($1, 'none') FROM sales.$relation) to stdout" |
      at "$coordinator" --command="\\copy sales.$relation from stdin"
  done
  configure "$1.yaml" ours "by-$1" "  salesUrl: \"host=127.0.0.1 port=$coordinator user=shop dbname=postgres\""
  "$binaries/night-audit" init --config "$1.yaml" >/dev/null
  audit "$1.yaml" "by-$1"
  local page
  while read -r page; do
    grep -q 'No snapshot spans' "$page" || fail "by $1: $page does not say that it describes an earlier instant"
    sed -i '/No snapshot spans/d' "$page"
  done < <(find "by-$1" -name report.html)
  diff --recursive --brief --exclude=run.json --exclude=SHA256SUMS --exclude='*.xlsx' reports "by-$1" ||
    fail "by $1: the files differ from those of plain Postgres"
  "$python" - "by-$1" <<'PYTHON' || fail "by $1: the workbook differs from that of plain Postgres on a sheet other than About"
import pathlib, sys, zipfile

for here in pathlib.Path("reports").rglob("*.xlsx"):
    one, other = zipfile.ZipFile(here), zipfile.ZipFile(sys.argv[1] / here.relative_to("reports"))
    assert one.namelist() == other.namelist(), here
    changed = [name for name in one.namelist() if one.read(name) != other.read(name)]
    about = [name for name in changed if name != "xl/sharedStrings.xml"]
    assert len(about) == 1 and any(b"No snapshot spans" in other.read(name) for name in changed), (here, changed)
PYTHON
  "$binaries/night-audit" doctor --config "$1.yaml" | grep -q 'share no snapshot' || fail "the doctor does not report Citus"
}

# over_spark CONFIGURATION REPORTS: the job's report has the bytes of one process.
over_spark() {
  local spark=${SPARK_PYTHON:-$repository/.build/spark/bin/python}
  [ -x "$spark" ] || {
    echo "citus: Spark skipped, because pyspark is not in .build/spark"
    return
  }
  local night=(--config "$1" --as-of "$as_of" --since 2026-09-20 --until 2026-11-20)
  allowing_incomplete "$binaries/night-audit" reconcile --quiet "${night[@]}" --out "$2-one" >/dev/null
  PYTHONPATH=$repository/Sources/night-audit-spark PYSPARK_PYTHON=$spark SPARK_LOCAL_IP=127.0.0.1 \
    "$spark" -m night_audit_spark --master 'local[2]' "${night[@]}" --parts "$2-parts" --partitions 3 \
    --binary "$binaries/night-audit" >"$2-parts.log" 2>&1 || fail "over Spark: $(tail -3 "$2-parts.log")"
  allowing_incomplete "$binaries/night-audit" run --quiet "${night[@]}" --parts "$2-parts" --out "$2-joined" >/dev/null
  diff --recursive --brief --exclude=run.json "$2-one" "$2-joined" || fail "over Spark: the files differ from those of one process"
}
spread order_id
spread user_id
say "Over Spark"
over_spark user_id.yaml spark
say "The same bytes."
