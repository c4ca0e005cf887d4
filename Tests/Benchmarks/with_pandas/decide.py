"""What each order comes to: payment and disposition, by joins."""

import numpy as np
import pandas as pd

from tables import DIGITS

STATUSES = ["pending", "verified", "failed", "cancelled", "refunded"]


def is_reversed(frame):
    percentage = frame["revocation_percentage"]
    whole = percentage.ge(100000) | (percentage.isna() & frame["revocation_type"].ne("REFUND_PRORATED"))
    return frame["revoked_at"].notna() & whole


def check_rows(orders):
    digits = orders["currency"].map(DIGITS)
    orders["digits"] = digits.fillna(0).astype(int)
    exact = orders["amount"].astype(float) * 10.0 ** orders["digits"]
    orders["minor"] = exact.round().astype("int64")
    problems = {
        "amount is negative": exact < 0,
        "amount has more decimals than the currency": (exact - orders["minor"]).abs() > 1e-6,
        "currency is no code of ISO 4217": digits.isna(),
        "status is none of " + ", ".join(STATUSES): ~orders["status"].isin(STATUSES),
        "quantity is below 1": orders["quantity"] < 1,
    }
    orders["defect"] = ""
    for words, found in problems.items():
        orders.loc[found, "defect"] = words


def add_deliveries(orders, deliveries):
    standing = deliveries[deliveries["revoked_at"].isna()].copy()
    standing = standing.merge(orders[["order_id", "user_id"]].rename(columns={"user_id": "buyer"}), on="order_id")
    grouped = standing.groupby("order_id")
    summary = grouped.agg(
        units=("quantity", "sum"), delivered_at=("delivered_at", "max"), first_delivered_at=("delivered_at", "min")
    )
    orders = orders.merge(summary, on="order_id", how="left")
    orders["units"] = orders["units"].fillna(0).astype(int)
    orders["taken_back"] = orders["order_id"].isin(deliveries.loc[deliveries["revoked_at"].notna(), "order_id"])
    astray = standing[standing["user_id"] != standing["buyer"]].drop_duplicates("order_id")
    astray = astray[["order_id", "user_id", "delivery_id"]]
    astray.columns = ["order_id", "astray_user", "astray_delivery"]
    return orders.merge(astray, on="order_id", how="left")


def refusal(frame):
    """Why each transaction (suffix _t) cannot pay its order; empty when it can."""
    return pd.Series(
        np.select(
            [
                frame["is_contradictory"].eq(True),
                frame["bundle_id_t"].ne(frame["bundle_id"]),
                frame["product_id_t"].ne(frame["product_id"]),
                ~frame["environment"].isin(["Production", "Sandbox"]),
                frame["ownership"].eq("FAMILY_SHARED"),
            ],
            ["contradiction", "wrong_bundle", "product_mismatch", "xcode", "family_shared"],
            "",
        ),
        index=frame.index,
    )


def add_transactions(orders, transactions, detours):
    sides = ["order_id", "named_id", "product_id", "bundle_id", "created_at"]
    pairs = orders.loc[orders["defect"] == "", sides].merge(transactions, on="order_id", suffixes=("", "_t"))
    pairs["refusal"] = refusal(pairs)
    pairs["is_named"] = pairs["transaction_id"] == pairs["named_id"]
    pairs["distance"] = (pairs["purchased_at"] - pairs["created_at"]).abs()
    near = pairs["refusal"].eq("") & pairs["distance"].le(pd.Timedelta(hours=72)) & ~pairs["is_renewal"].eq(True)
    claims = pairs[pairs["is_named"] | near].sort_values(["is_named", "distance"], ascending=[False, True])
    first = claims[claims["is_named"] | claims["named_id"].isna()].drop_duplicates("order_id")
    lost = detours.merge(
        orders[sides],
        left_on=["detour_order", "transaction_id"],
        right_on=["order_id", "named_id"],
        suffixes=("_t", ""),
    )
    lost = lost.rename(columns={"order_id_t": "owner_order"})
    lost = lost.merge(
        orders[["order_id", "user_id"]].rename(columns={"order_id": "owner_order", "user_id": "owner_user"}),
        on="owner_order",
        how="left",
    )
    lost["refusal"] = refusal(lost)
    lost.loc[lost["refusal"] == "", "refusal"] = "duplicate"
    first = pd.concat([first, lost[~lost["order_id"].isin(first["order_id"])]])
    others = claims[~claims["transaction_id"].isin(first["transaction_id"])]
    others = others[near.reindex(others.index) & ~is_reversed(others) & others["environment"].eq("Production")]
    second = others.drop_duplicates("order_id")[["order_id", "transaction_id", "price_milliunits"]]
    second.columns = ["order_id", "second_id", "second_price"]
    keep = [
        "order_id",
        "transaction_id",
        "environment",
        "refusal",
        "product_id_t",
        "bundle_id_t",
        "quantity",
        "purchased_at",
        "expires_at",
        "subscription_expires_at",
        "revoked_at",
        "revocation_percentage",
        "revocation_type",
        "revocation_withdrawn_at",
        "price_milliunits",
        "currency",
        "tells_account_token",
        "app_account_token",
        "has_offer",
        "checked_at",
        "owner_order",
        "owner_user",
    ]
    first = first[keep].rename(columns={"quantity": "quantity_t", "currency": "currency_t"})
    return orders.merge(first, on="order_id", how="left").merge(second, on="order_id", how="left")


def add_proofs(orders, receipts, lookups):
    open_receipts = receipts[receipts["outcome"].ne("verified") | receipts["environment"].ne(receipts["claimed"])]
    proofs = open_receipts.dropna(subset=["order_id"]).drop_duplicates("order_id")
    proofs = proofs[
        ["order_id", "receipt_id", "outcome", "reason", "environment", "claimed", "attempts", "last_attempt"]
    ]
    proofs.columns = [
        "order_id",
        "receipt_id",
        "proof",
        "proof_reason",
        "proof_environment",
        "claimed",
        "attempts",
        "last_attempt",
    ]
    lookups = lookups.rename(
        columns={"outcome": "lookup", "attempts": "lookup_attempts", "last_attempt": "looked_up_at"}
    )
    return orders.merge(proofs, on="order_id", how="left").merge(lookups, on="order_id", how="left")


def decide(orders, as_of, testers):
    age = as_of - orders["created_at"]
    has_transaction = orders["transaction_id"].notna()
    refused = orders["refusal"].fillna("")
    own = has_transaction & refused.eq("")
    sandbox = own & orders["environment"].eq("Sandbox")
    old = age > pd.Timedelta(hours=24)
    pending = orders["proof"].isin(["pending", "unanswered", "review"])
    rejected = orders["proof"].eq("rejected")
    conditions = [
        orders["defect"].ne(""),
        sandbox,
        own & is_reversed(orders),
        own,
        refused.eq("contradiction"),
        refused.ne(""),
        orders["lookup"].eq("not_found") & old,
        orders["lookup"].eq("not_found"),
        pending,
        rejected,
        orders["named_id"].notna(),
        age <= pd.Timedelta(hours=1),
    ]
    payments = [
        "",
        "unpaid",
        "reversed",
        "paid",
        "unconfirmed",
        "unpaid",
        "unpaid",
        "unconfirmed",
        "unconfirmed",
        "unpaid",
        "unconfirmed",
        "unconfirmed",
    ]
    proof_reason = orders["proof_reason"].fillna("never_checked")
    reasons = [
        "",
        "sandbox",
        "",
        "",
        refused,
        refused,
        "not_found",
        "not_found_yet",
        proof_reason,
        proof_reason,
        "never_checked",
        "awaiting_evidence",
    ]
    orders["payment"] = np.select(conditions, payments, "unpaid")
    orders["payment_reason"] = np.select(
        conditions, reasons, np.where(orders["status"] == "verified", "no_evidence", "never_paid")
    )
    held, complete = orders["units"] > 0, orders["units"] >= orders["quantity"]
    paid, unpaid = orders["payment"].eq("paid"), orders["payment"].eq("unpaid")
    in_time = (as_of - orders["purchased_at"]) <= pd.Timedelta(hours=1)
    orders["disposition"] = np.select(
        [
            orders["defect"].ne(""),
            paid & complete,
            paid & held,
            paid & in_time,
            paid,
            orders["payment"].eq("reversed") & held,
            orders["payment"].eq("reversed"),
            unpaid & orders["payment_reason"].eq("family_shared"),
            sandbox & orders["user_id"].isin(testers),
            unpaid & held,
            unpaid,
        ],
        [
            "bad_row",
            "settled",
            "partly_delivered",
            "in_flight",
            "paid_not_delivered",
            "refunded_still_delivered",
            "refunded",
            "void",
            "sandbox",
            "delivered_not_paid",
            "void",
        ],
        "unconfirmed",
    )
    orders["own"] = own
    orders["paid_at"] = orders["purchased_at"].where(own)
    orders["refunded_at"] = orders["revoked_at"].where(own)
    orders["checked_at"] = orders[["checked_at", "last_attempt", "looked_up_at"]].max(axis=1)
