"""The same report with psycopg, pandas and XlsxWriter, as one would write it: tables to frames, joins, and to_csv.

    python with_pandas DIRECTORY csv|xlsx AS-OF TEST-USERS

AS-OF is in seconds since 1970, TEST-USERS a file of user ids.
"""

import json
import sys

import numpy as np
import pandas as pd

from decide import add_deliveries, add_proofs, add_transactions, check_rows, decide
from find import find, finish_findings
from tables import decimal_text, read_all

IN_TOTALS = [
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
FINDING_COLUMNS = [
    "finding_id",
    "kind",
    "severity",
    "order_id",
    "user_id",
    "product_id",
    "transaction_id",
    "receipt_id",
    "delivery_id",
    "environment",
    "currency",
    "amount",
    "at_stake",
    "paid_at",
    "delivered_at",
    "first_seen",
    "age_days",
    "status",
    "owner",
    "reason",
    "suggested_action",
]
ORDER_COLUMNS = [
    "order_id",
    "user_id",
    "product_id",
    "quantity",
    "currency",
    "amount",
    "status",
    "disposition",
    "payment",
    "payment_reason",
    "transaction_id",
    "environment",
    "created_at",
    "paid_at",
    "delivered_at",
    "refunded_at",
    "checked_at",
    "findings",
]


def totals(orders, keys):
    counted = orders[orders["disposition"].isin(IN_TOTALS)].assign(point=orders["minor"])
    grouped = counted.groupby(keys + ["digits"])["minor"].agg(orders="size", ordered="sum")
    by_disposition = counted.pivot_table(
        index=keys + ["digits"], columns="disposition", values="minor", aggfunc="sum", fill_value=0
    )
    by_disposition = by_disposition.reindex(columns=IN_TOTALS, fill_value=0)
    return grouped.join(by_disposition).reset_index().sort_values(keys)


def main():
    directory, formats, as_of_seconds, testers_file = sys.argv[1:]
    as_of = pd.Timestamp(int(as_of_seconds), unit="s", tz="UTC")
    with open(testers_file) as file:
        testers = file.read().split()
    orders, deliveries, transactions, detours, receipts, lookups, brought = read_all()
    check_rows(orders)
    orders = add_deliveries(orders, deliveries)
    orders = add_transactions(orders, transactions, detours)
    orders = add_proofs(orders, receipts, lookups)
    decide(orders, as_of, testers)
    findings = finish_findings(find(orders, deliveries, transactions, brought, as_of), as_of)
    kinds = findings[findings["order_id"].notna()].groupby("order_id")["kind"].agg(";".join)
    orders["findings"] = orders["order_id"].map(kinds)
    findings = findings.sort_values("finding_id")

    users = totals(orders, ["user_id", "currency"])
    amounts = totals(orders, ["currency", "point", "product_id"])
    reversals = orders[orders["own"] & orders["revoked_at"].notna()]
    percentage = reversals["revocation_percentage"].astype(float).fillna(100000)
    refunds = pd.DataFrame(
        {
            "transaction_id": reversals["transaction_id"],
            "order_id": reversals["order_id"],
            "user_id": reversals["user_id"],
            "product_id": reversals["product_id"],
            "currency": reversals["currency"],
            "digits": reversals["digits"],
            "amount": -((reversals["minor"] * percentage / 100000 + 0.5) // 1),
            "percentage": percentage / 1000,
            "purchased_at": reversals["purchased_at"],
            "refunded_at": reversals["revoked_at"],
            "reason": reversals["revocation_type"],
            "disposition": reversals["disposition"],
        }
    ).sort_values("transaction_id")
    tests = orders[orders["own"] & orders["environment"].eq("Sandbox")]
    sandbox = (
        tests.groupby(["user_id", "product_id", "currency", "digits"])["minor"]
        .agg(orders="size", amount="sum")
        .reset_index()
    )
    sandbox["allowed"] = np.where(sandbox["user_id"].isin(testers), "true", "false")
    receipts["age_days"] = (as_of - receipts["received_at"]).dt.days
    receipts["outcome"] = receipts["outcome"].fillna("pending")
    receipts["attempts"] = receipts["attempts"].fillna(0).astype(int)
    receipts.loc[receipts["outcome"] == "pending", "reason"] = "never_checked"
    receipts["apple_status"] = receipts["apple_status"].astype("Int64")
    receipts = receipts.sort_values("receipt_id")
    orders = orders.sort_values("order_id")
    orders["transaction_id"] = orders["transaction_id"].where(orders["own"], orders["named_id"])
    orders["amount"] = orders["minor"].astype(float).where(orders["defect"] == "")

    money = ["ordered"] + IN_TOTALS
    tables = {
        "Findings": (findings, FINDING_COLUMNS, ["amount", "at_stake"]),
        "Users": (users, ["user_id", "currency", "orders"] + money, money),
        "Amounts": (
            amounts.rename(columns={"point": "amount"}),
            ["currency", "amount", "product_id", "orders"] + money,
            ["amount"] + money,
        ),
        "Refunds": (refunds, [name for name in refunds.columns if name != "digits"], ["amount"]),
        "Sandbox": (sandbox, ["user_id", "product_id", "currency", "orders", "amount", "allowed"], ["amount"]),
        "Receipts": (
            receipts,
            [
                "receipt_id",
                "order_id",
                "user_id",
                "kind",
                "channel",
                "environment",
                "outcome",
                "apple_status",
                "attempts",
                "last_attempt",
                "due_from",
                "age_days",
                "reason",
            ],
            [],
        ),
        "Orders": (orders, ORDER_COLUMNS, ["amount"]),
    }
    for name, (frame, columns, amounts_of) in tables.items():
        table = frame[columns].copy()
        for column in amounts_of:
            table[column] = decimal_text(frame[column], frame["digits"])
        table.to_csv(
            f"{directory}/{name.lower()}.csv", index=False, lineterminator="\r\n", date_format="%Y-%m-%dT%H:%M:%SZ"
        )
    dispositions = orders["disposition"].value_counts()
    open_kinds = findings["kind"].value_counts()
    with open(f"{directory}/summary.json", "w") as file:
        json.dump(
            {
                "complete": True,
                "orders": {"read": len(orders)},
                "dispositions": {name: {"orders": int(count)} for name, count in dispositions.items()},
                "findings": {"open": {name: int(count) for name, count in open_kinds.items()}},
            },
            file,
            indent=2,
        )
    if formats != "xlsx":
        return
    with pd.ExcelWriter(f"{directory}/night-audit.xlsx", engine="xlsxwriter") as workbook:
        pd.concat([dispositions, open_kinds]).rename_axis("name").reset_index(name="count").to_excel(
            workbook, sheet_name="Summary", index=False
        )
        for name, (frame, columns, amounts_of) in tables.items():
            table = frame[columns].copy()
            for column in amounts_of:
                table[column] = frame[column] / 10.0 ** frame["digits"]
            for column in table.select_dtypes("datetimetz").columns:
                table[column] = table[column].dt.tz_localize(None)
            table.columns = [column.replace("_", " ").capitalize() for column in columns]
            table.to_excel(workbook, sheet_name=name, index=False)


if __name__ == "__main__":
    main()
