"""Reads a year of Apple's daily sales reports of a shop with 2,000 products, and compares the cost with pandas.

Both read the same 365 compressed files and sum units by product, day, country, currency and price. night-audit also
stores the sums, compares 45 days of them with transactions and orders, and writes the result to Postgres. Its second
night has no new files and only compares.
"""

import argparse
import datetime
import gzip
import os
import random
import resource
import signal
import subprocess
import sys
import time

from cluster import Cluster

AS_OF = "2026-11-20T03:00:00Z"
LAST_DAY = datetime.date(2026, 11, 18)
COLUMNS = [
    "Provider", "Provider Country", "SKU", "Developer", "Title", "Version", "Product Type Identifier", "Units",
    "Developer Proceeds", "Begin Date", "End Date", "Customer Currency", "Country Code", "Currency of Proceeds",
    "Apple Identifier", "Customer Price", "Promo Code", "Parent Identifier", "Subscription", "Period", "Category", "CMB",
    "Device", "Supported Platforms", "Proceeds Reason", "Preserved Pricing", "Client", "Order Type",
]
PLACES = [("US", "USD"), ("DE", "EUR"), ("FR", "EUR"), ("JP", "JPY"), ("GB", "GBP"), ("CN", "CNY")]
PANDAS = """
import glob, sys
import pandas
frames = []
for path in sorted(glob.glob(sys.argv[1] + "/S_D_*.txt.gz")):
    frame = pandas.read_csv(path, sep="\\t", dtype=str, usecols=[
        "SKU", "Units", "Begin Date", "Customer Currency", "Country Code", "Customer Price"])
    # Integers of thousandths make sums exact.
    frame["Units"] = frame["Units"].astype("int64")
    frame["Customer Price"] = (frame["Customer Price"].astype("float64") * 1000).round().astype("int64").abs()
    frames.append(frame.groupby(
        ["SKU", "Begin Date", "Country Code", "Customer Currency", "Customer Price"], sort=False)["Units"].sum())
print(len(pandas.concat(frames)))
"""


def write_reports(folder, days, products, rows):
    """Writes one file per day, always with the same bytes."""
    drawn = random.Random(1)
    for back in range(days):
        date = LAST_DAY - datetime.timedelta(days=back)
        american = date.strftime("%m/%d/%Y")
        lines = ["\t".join(COLUMNS)]
        for _ in range(rows):
            country, currency = drawn.choice(PLACES)
            refund = drawn.random() < 0.02
            price = drawn.choice(["0.99", "4.99", "9.99", "49.99"])
            values = {
                "Provider": "APPLE", "Provider Country": "US", "SKU": f"com.example.game.{drawn.randrange(products)}",
                "Title": "60 Gems", "Product Type Identifier": "IA1",
                "Units": str(-1 if refund else drawn.randrange(1, 9)), "Developer Proceeds": "0.70", "Begin Date": american,
                "End Date": american, "Customer Currency": currency, "Country Code": country,
                "Currency of Proceeds": currency, "Apple Identifier": "9900000001",
                "Customer Price": ("-" if refund else "") + price, "Parent Identifier": "GAME01",
                "Device": drawn.choice(["iPhone", "iPad"]),
            }
            lines.append("\t".join(values.get(name, "") for name in COLUMNS))
        name = f"S_D_80012345_{date:%Y%m%d}.txt.gz"
        with gzip.GzipFile(os.path.join(folder, name), "wb", mtime=0) as file:
            file.write(("\n".join(lines) + "\n").encode())


def measured(command):
    """Runs a command; returns its wall time and CPU time in seconds, its peak memory in MiB, and its output."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 3):
        raise SystemExit(f"{command[0]} ended with {code}.")
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--products", type=int, default=2_000)
    parser.add_argument("--rows", type=int, default=8_000, help="rows of one day's report")
    parser.add_argument("--night-audit", required=True)
    parser.add_argument("--python", default=sys.executable, help="one that has pandas")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with Cluster() as cluster:
        folder = os.path.join(cluster.directory, "connect")
        os.mkdir(folder)
        write_reports(folder, options.days, options.products, options.rows)
        configuration = os.path.join(cluster.directory, "night-audit.yaml")
        with open(configuration, "w") as file:
            file.write(
                f'database:\n  url: "host={cluster.directory} user=benchmark dbname=postgres"\n'
                "app:\n  game:\n    bundleId: com.example.game\n    sku: GAME01\n"
                f"tieOut:\n  folder: {folder}\n"
            )
        common = ["--config", configuration]
        subprocess.run([options.night_audit, "init", "--with-sales-schema"] + common, check=True)
        print(f"{options.days} files, {options.days * options.rows:,} rows, {options.products:,} products")
        tie_out = [options.night_audit, "tie-out", "--as-of", AS_OF, "--json"] + common
        for name, command in [
            ("night-audit, first night", tie_out),
            ("night-audit, second night", tie_out),
            ("pandas", [options.python, "-c", PANDAS, folder]),
        ]:
            wall, cpu, memory, _ = measured(command)
            print(f"{name:28}{wall:8.1f} s{cpu:8.1f} s CPU{memory:8.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
