"""Writes the same files with psycopg, pandas and XlsxWriter, in the usual way: tables to frames, joins, and to_csv.

    python with_pandas.py DIRECTORY csv|xlsx AS-OF

AS-OF is in seconds since 1970. Like the floor it decides nothing: it reads the dispositions of all but settled orders,
the findings and the refunds from tables.
"""

import sys

import pandas as pd
import psycopg

DIGITS = {"USD": 2, "EUR": 2, "JPY": 0, "GBP": 2, "KWD": 3, "INR": 2, "BRL": 2, "KRW": 0, "CHF": 2}
MONEY = [
    "settled",
    "paid_not_delivered",
    "delivered_not_paid",
    "partly_delivered",
    "refunded",
    "refunded_still_delivered",
    "in_flight",
    "unconfirmed",
    "void",
]
ORDERS = """SELECT order_id, user_id, bundle_id, product_id, quantity, amount, currency, status,
    transaction_id AS named_id, app_account_token AS token, created_at, verified_at FROM sales.orders"""
DELIVERIES = """SELECT delivery_id, order_id, user_id, product_id, quantity, delivered_at, revoked_at
    FROM sales.deliveries"""
TRANSACTIONS = """SELECT t.environment, t.transaction_id, t.original_transaction_id, t.order_id, t.product_id, t.bundle_id,
    t.quantity, t.purchased_at, t.expires_at, t.subscription_expires_at, t.revoked_at, t.revocation_percentage,
    t.revocation_type, t.revocation_withdrawn_at, t.price_milliunits, t.currency, t.tells_account_token, t.app_account_token,
    t.ownership, t.is_renewal, t.has_offer, t.is_contradictory, t.checked_at FROM floor.transactions t"""
OUTCOMES = """SELECT order_id, disposition, payment, payment_reason, transaction_id, environment, paid_at, delivered_at,
    refunded_at, checked_at, findings, amount AS amount_text FROM floor.outcomes"""
RECEIPTS = """SELECT r.receipt_id, r.order_id, r.user_id, c.payload_kind AS kind, c.channel, c.environment,
    coalesce(c.outcome, 'pending') AS outcome, c.apple_status, coalesce(c.attempts, 0) AS attempts, c.last_attempt,
    c.due_from AS next_attempt, r.received_at,
    CASE WHEN c.subject_id IS NULL THEN 'never_checked' ELSE c.reason END AS reason
    FROM sales.receipts r LEFT JOIN night_audit.receipt_checks c
    ON c.subject_kind = 'receipt' AND c.subject_id = r.receipt_id"""


def read(connection, query):
    cursor = connection.execute(query)
    frame = pd.DataFrame(cursor.fetchall(), columns=[column.name for column in cursor.description])
    for column in cursor.description:
        if column.type_display == "timestamptz":
            frame[column.name] = pd.to_datetime(frame[column.name], utc=True)
    return frame


def money_text(minor, digits):
    return [f"{value / 10**places:.{places}f}" for value, places in zip(minor, digits)]


def joined(orders, deliveries, transactions, outcomes):
    """Joins the rows of settled orders, and takes the results of all other orders from `outcomes`."""
    unrevoked = deliveries[deliveries["revoked_at"].isna()]
    delivered = unrevoked.groupby("order_id", as_index=False)["delivered_at"].max()
    paid = transactions.dropna(subset=["order_id"]).drop_duplicates("order_id")
    paid = paid[["order_id", "transaction_id", "environment", "purchased_at", "checked_at"]]
    orders = orders.merge(delivered, on="order_id", how="left")
    orders = orders.merge(paid.rename(columns={"purchased_at": "paid_at"}), on="order_id", how="left")
    orders = orders.assign(disposition="settled", payment="paid", payment_reason=None, refunded_at=pd.NaT, findings=None)
    orders = orders.merge(outcomes, on="order_id", how="left", suffixes=("", "_decided"))
    is_decided = orders["disposition_decided"].notna()
    for column in outcomes.columns.drop(["order_id", "amount_text"]):
        orders[column] = orders[column].astype(object).mask(is_decided, orders[column + "_decided"].astype(object))
    for column in ["paid_at", "delivered_at", "refunded_at", "checked_at"]:
        orders[column] = pd.to_datetime(orders[column], utc=True)
    # An amount in an unknown currency, or with too many decimals, is shown as text, and is in no sum.
    digits = orders["currency"].map(DIGITS)
    orders["digits"] = digits.fillna(0).astype(int)
    exact = orders["amount"].astype(float) * 10.0 ** orders["digits"]
    orders["minor"] = exact.round().astype("int64")
    orders["shown"] = money_text(orders["minor"], orders["digits"])
    is_odd = digits.isna() | ((exact - orders["minor"]).abs() > 1e-6)
    orders["shown"] = orders["shown"].mask(is_odd, orders["amount_text"])
    is_ours = orders["bundle_id"].isna() | orders["bundle_id"].eq("com.example.game")
    orders["app"] = is_ours.map({True: "game", False: ""})
    orders["country"] = None
    orders["business_day"] = orders["created_at"].dt.strftime("%Y-%m-%d")
    return orders.sort_values("order_id")


def totals(orders, keys):
    counted = orders[orders["disposition"].isin(MONEY)].assign(point=orders["minor"])
    grouped = counted.groupby([*keys, "digits"])["minor"].agg(orders="size", ordered="sum")
    by_disposition = counted.pivot_table(
        index=[*keys, "digits"], columns="disposition", values="minor", aggfunc="sum", fill_value=0
    )
    by_disposition = by_disposition.reindex(columns=MONEY, fill_value=0)
    return grouped.join(by_disposition).reset_index().sort_values(keys)


def main():
    directory, formats, _ = sys.argv[1:]
    with psycopg.connect("") as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        tables = [read(connection, query) for query in (ORDERS, DELIVERIES, TRANSACTIONS, OUTCOMES)]
        receipts = read(connection, RECEIPTS)
        findings, refunds = (
            read(connection, f"SELECT * FROM floor.{name} ORDER BY 1").astype({"amount": object})
            for name in ("findings", "refunds")
        )
    orders = joined(*tables)
    tests = orders[orders["environment"].eq("Sandbox")]
    tests = tests.assign(allowed=tests["disposition"].eq("sandbox").map({True: "true", False: "false"}))
    sandbox = tests.groupby(["user_id", "product_id", "currency", "digits", "allowed"], as_index=False)["minor"]
    sandbox = sandbox.agg(orders="size", amount="sum")
    receipts["apple_status"] = receipts["apple_status"].astype("Int64")
    findings["business_day"] = findings["business_day"].dt.strftime("%Y-%m-%d")
    findings["days_since"] = findings["days_since"].astype("Int64")
    sums = ["ordered", *MONEY]
    amounts = totals(orders, ["currency", "point", "product_id", "app"]).rename(columns={"point": "amount"})
    files = {
        "findings": (findings, list(findings.columns), []),
        "users": (totals(orders, ["user_id", "currency"]), ["user_id", "currency", "orders", *sums], sums),
        "amounts": (amounts, ["currency", "amount", "product_id", "orders", *sums, "app"], ["amount", *sums]),
        "products": (
            totals(orders, ["app", "product_id", "currency"]).assign(country=None),
            ["app", "product_id", "country", "currency", "orders", *sums],
            sums,
        ),
        "refunds": (refunds, list(refunds.columns), []),
        "sandbox": (sandbox, ["user_id", "product_id", "currency", "orders", "amount", "allowed"], ["amount"]),
        "receipts": (
            receipts.sort_values("receipt_id"),
            ["receipt_id", "order_id", "user_id", "kind", "channel", "environment", "outcome", "apple_status", "attempts"]
            + ["last_attempt", "next_attempt", "received_at", "reason"],
            [],
        ),
        "orders": (
            orders.drop(columns="amount").rename(columns={"shown": "amount"}),
            ["order_id", "user_id", "product_id", "quantity", "currency", "amount", "status", "disposition", "payment"]
            + ["payment_reason", "transaction_id", "environment", "created_at", "paid_at", "delivered_at", "refunded_at"]
            + ["checked_at", "findings", "app", "country", "business_day"],
            [],
        ),
    }
    for name, (frame, columns, money) in files.items():
        table = frame[columns].copy()
        for column in money:
            table[column] = money_text(frame[column], frame["digits"])
        table.to_csv(f"{directory}/{name}.csv", index=False, lineterminator="\r\n", date_format="%Y-%m-%dT%H:%M:%SZ")
    if formats != "xlsx":
        return
    with pd.ExcelWriter(f"{directory}/night-audit.xlsx", engine="xlsxwriter") as workbook:
        for name, (frame, columns, money) in files.items():
            table = frame[columns].copy()
            for column in money:
                table[column] = frame[column] / 10.0 ** frame["digits"]
            for column in table.columns.intersection(["amount", "at_stake"]).difference(money):
                table[column] = pd.to_numeric(table[column], errors="coerce")
            for column in table.select_dtypes("datetimetz").columns:
                table[column] = table[column].dt.tz_localize(None)
            table.columns = [column.replace("_", " ").capitalize() for column in columns]
            table.to_excel(workbook, sheet_name=name.capitalize(), index=False)


if __name__ == "__main__":
    main()
