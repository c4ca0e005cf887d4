"""Sweeps a day of many sales from a slow notification history, and compares the time with the ideal.

A page has 20 notifications, and each request is answered after --latency seconds. Pages read one after the other would
take pages x latency. --in-flight concurrent requests and --rate requests per second determine the ideal.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

from cluster import Cluster, die_with_parent
from latency import wait_for

AT_MOST = 2
A_PAGE = 20
DAY = 86_400_000
BEFORE, AS_OF, AS_OF_MILLISECONDS = "2026-11-19T03:00:00Z", "2026-11-20T03:00:00Z", 1_795_143_600_000


def sales(count):
    """Yields consumables, spread over the day before the as-of."""
    for number in range(count):
        yield {
            "transactionId": str(2_000_000_000_000 + number), "environment": "Production", "productId": "gems.100",
            "bundleId": "com.example.game", "type": "Consumable", "price": 1_990, "currency": "USD",
            "purchaseDate": AS_OF_MILLISECONDS - 2 * 3_600_000 - number * (DAY - 3 * 3_600_000) // count,
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sales", type=int, default=100_000)
    parser.add_argument("--latency", type=float, default=4)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--rate", type=float, default=25, help="requests a second; 0: as many as there are answers")
    parser.add_argument("--binaries", required=True, help="the folder of the release build")
    options = parser.parse_args()
    night_audit, simulator = (
        os.path.abspath(os.path.join(options.binaries, name)) for name in ("night-audit", "app-store-simulator"))
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
    with Cluster() as cluster:
        files = {name: os.path.join(cluster.directory, name) for name in ("world", "port", "key", "roots", "config", "reports")}
        subprocess.run(
            ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", files["key"]],
            check=True, capture_output=True)
        public = subprocess.run(
            ["openssl", "pkey", "-in", files["key"], "-pubout"], check=True, capture_output=True, text=True)
        app = {"bundleId": "com.example.game", "issuerId": "issuer", "keyId": "key", "publicKey": public.stdout}
        with open(files["world"], "w") as file:
            json.dump(
                {"apps": [app], "receipts": [], "now": AS_OF_MILLISECONDS, "transactions": list(sales(options.sales))}, file)
        os.mkdir(files["roots"])
        apple = subprocess.Popen(
            [simulator, "serve", "--world", files["world"], "--port-file", files["port"], "--latency",
             f"{options.latency}s", "--root-certificate", files["roots"] + "/root.pem"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent(signal.SIGKILL))
        try:
            return sweep(options, cluster, files, night_audit, wait_for(files["port"], apple))
        finally:
            apple.terminate()
            apple.wait()


def sweep(options, cluster, files, night_audit, port):
    url = f"http://127.0.0.1:{port}"
    with open(files["config"], "w") as file:
        json.dump({
            "app": {"game": {
                "bundleId": "com.example.game", "issuerId": "issuer", "keyId": "key", "privateKeyFile": files["key"]}},
            "appstore": {
                "requestsPerSecond": options.rate, "concurrency": options.in_flight, "productionUrl": url + "/production",
                "sandboxUrl": url + "/sandbox", "rootCertificates": files["roots"], "pinRoots": False},
            "audit": {"holdShare": 1}, "report": {"directory": files["reports"], "formats": ["csv"]},
        }, file)
    cluster.create_database("shop")
    environment = cluster.environment("shop")
    config = ["--config", files["config"], "--quiet"]
    subprocess.run([night_audit, "init", "--with-sales-schema", *config[:2]], check=True, env=environment, capture_output=True)

    def night(as_of):
        before, started = asked(url), time.monotonic()
        done = subprocess.run([night_audit, "run", "--as-of", as_of, *config], env=environment, capture_output=True, text=True)
        if done.returncode not in (0, 3):
            raise SystemExit(f"night-audit ended with {done.returncode}.\n{done.stderr}")
        return time.monotonic() - started, asked(url) - before

    # The first night sweeps weeks. All sales of this benchmark are after its as-of.
    night(BEFORE)
    wall, requests = night(AS_OF)
    known = subprocess.run(
        [f"{cluster.programs}/psql", "-qAtX", "-c", "SELECT count(*) FROM night_audit.transactions"],
        check=True, capture_output=True, text=True, env=environment)
    pages = -(-options.sales // A_PAGE)
    print(f"{options.sales:,} sales on {pages:,} pages: {requests:,} requests, {int(known.stdout):,} transactions known after")
    least = pages * options.latency / options.in_flight
    ideal = max(least, requests / options.rate if options.rate else 0) + options.latency
    print(f"{wall:.0f} s, ideal {ideal:.0f} s; {pages * options.latency:,.0f} s one page after the other")
    is_met = wall <= AT_MOST * ideal and int(known.stdout) == options.sales
    print(f"{'met   ' if is_met else 'MISSED'}  all of a day, in at most {AT_MOST} x the ideal: {wall / ideal:.2f}")
    return 0 if is_met else 1


def asked(url):
    with urllib.request.urlopen(f"{url}/simulator/requests?last=0") as answer:
        return json.load(answer)["total"]


if __name__ == "__main__":
    sys.exit(main())
