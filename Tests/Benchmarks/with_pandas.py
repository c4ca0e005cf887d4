"""The same report with psycopg, pandas and XlsxWriter, as one would write it: tables to frames, joins, and to_csv.

    with_pandas.py DIRECTORY csv|xlsx AS-OF TEST-USERS

AS-OF is in seconds since 1970, TEST-USERS a file of user ids.
"""

import hashlib
import json
import sys

import numpy as np
import pandas as pd
import psycopg

DIGITS = {"USD": 2, "EUR": 2, "JPY": 0, "GBP": 2, "KWD": 3, "INR": 2, "BRL": 2, "KRW": 0, "CHF": 2}
STATUSES = ["pending", "verified", "failed", "cancelled", "refunded"]
IN_TOTALS = [
    "settled", "paid_not_delivered", "delivered_not_paid", "partly_delivered", "refunded", "refunded_still_delivered",
    "in_flight", "unconfirmed", "void",
]
# Kind, severity and what to do, worst first.
KINDS = [
    ("paid_not_delivered", "critical", "Deliver the goods, or refund the customer through Apple."),
    ("partly_delivered", "critical", "Deliver the missing units."),
    ("delivered_not_paid", "critical", "Take the goods back or collect the payment; ask the customer before calling it fraud."),
    ("cancelled_but_paid", "critical", "Reopen the order and deliver, or ask Apple's customer to request a refund."),
    ("orphan_payment", "critical", "Find the customer by the transaction and create or correct the order."),
    ("duplicate_claim", "critical", "Keep the order that owns the payment and take back what was delivered for this one."),
    ("charged_twice", "critical", "Tell the customer and help with a refund of the second charge."),
    ("wrong_user", "critical", "Check which account paid and which one got the goods, and move them."),
    ("product_mismatch", "critical", "Compare the ordered product with the one that was paid and correct the order."),
    ("wrong_bundle", "critical", "Block the order: its proof belongs to another app."),
    ("signature_invalid", "critical", "Treat the proof as forged or damaged and block automatic delivery for this user."),
    ("sandbox_delivered", "critical", "Take the goods back, or put the user on the list of test users."),
    ("delivered_after_refund", "critical", "Take the goods back and find out why delivery followed the refund."),
    ("refund_reversed_not_reinstated", "critical", "Give the goods back: Apple has charged the customer again."),
    ("refunded_still_delivered", "major", "Take the goods back, or accept the loss."),
    ("partial_refund", "major", "Book the refunded part."),
    ("refund_not_booked", "major", "Book the refund in the shop."),
    ("refund_only_here", "major", "Correct the order: Apple has not refunded it."),
    ("delivered_twice", "major", "Take back the surplus units."),
    ("orphan_delivery", "major", "Find the order that this delivery belongs to, or take the goods back."),
    ("quantity_mismatch", "major", "Correct the order's quantity, or deliver what was paid for."),
    ("amount_mismatch", "major", "Correct the price in the shop or the order's amount."),
    ("currency_mismatch", "major", "Correct the order's currency; nothing was converted."),
    ("family_shared_sale", "major", "Remove the amount: access through Family Sharing is no sale."),
    ("lapsed_still_served", "major", "End the access, or find the renewal that is missing."),
    ("stuck_unconfirmed", "major", "Look at the receipt's last reason; ask the customer for a fresh receipt if it stays."),
    ("renewal_without_order", "minor", "Book an order for this renewal if renewals are booked as orders."),
    ("status_mismatch", "minor", "Correct the order's status in the shop."),
    ("environment_mislabelled", "minor", "Correct the client: it reports the wrong environment."),
    ("delivered_before_paid", "minor", "Check the clocks and the delivery path: goods left before the payment."),
    ("future_dated", "minor", "Check the clock of the system that wrote this date."),
    ("account_token_missing", "minor", "Pass the account token to StoreKit at purchase."),
    ("bad_row", "minor", "Correct the row in the sales tables or in the view that maps them."),
]
FINDING_COLUMNS = [
    "finding_id", "kind", "severity", "order_id", "user_id", "product_id", "transaction_id", "receipt_id", "delivery_id",
    "environment", "currency", "amount", "at_stake", "paid_at", "delivered_at", "first_seen", "age_days", "status", "owner",
    "reason", "suggested_action",
]
ORDER_COLUMNS = [
    "order_id", "user_id", "product_id", "quantity", "currency", "amount", "status", "disposition", "payment",
    "payment_reason", "transaction_id", "environment", "created_at", "paid_at", "delivered_at", "refunded_at", "checked_at",
    "findings",
]
TRANSACTION = """t.environment, t.transaction_id, t.original_transaction_id, t.order_id, t.product_id, t.bundle_id, t.quantity,
    t.purchased_at, t.expires_at, t.subscription_expires_at, t.revoked_at, t.revocation_percentage, t.revocation_type,
    t.revocation_withdrawn_at, t.price_milliunits, t.currency, t.tells_account_token, t.app_account_token, t.ownership,
    t.is_renewal, t.has_offer, t.is_contradictory, t.checked_at"""


def read(connection, query):
    cursor = connection.execute(query)
    return pd.DataFrame(cursor.fetchall(), columns=[column.name for column in cursor.description])


def times(frame, *names):
    for name in names:
        frame[name] = pd.to_datetime(frame[name], utc=True)


def read_all():
    with psycopg.connect("") as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        orders = read(connection, """SELECT order_id, user_id, bundle_id, product_id, quantity, amount, currency, status,
            transaction_id AS named_id, app_account_token AS token, created_at, verified_at FROM sales.orders""")
        deliveries = read(connection, """SELECT delivery_id, order_id, user_id, product_id, quantity, delivered_at, revoked_at
            FROM sales.deliveries""")
        transactions = read(connection, f"SELECT {TRANSACTION} FROM night_audit.transactions t")
        detours = read(connection, f"""SELECT d.order_id AS detour_order, {TRANSACTION} FROM night_audit.receipt_transactions d
            JOIN night_audit.transactions t USING (transaction_id, environment) WHERE d.is_detour""")
        receipts = read(connection, """SELECT r.receipt_id, r.order_id, r.user_id, c.payload_kind AS kind, c.channel,
            c.environment, c.outcome, c.apple_status, c.attempts, c.last_attempt, c.next_attempt, r.received_at, c.reason,
            r.environment AS claimed FROM sales.receipts r LEFT JOIN night_audit.receipt_checks c
            ON c.subject_kind = 'receipt' AND c.subject_id = r.receipt_id""")
        lookups = read(connection, """SELECT order_id, outcome, attempts, last_attempt FROM night_audit.receipt_checks
            WHERE subject_kind = 'lookup'""")
        brought = read(connection, """SELECT b.transaction_id, r.receipt_id, r.user_id FROM night_audit.transactions t
            JOIN night_audit.receipt_transactions b USING (transaction_id, environment)
            JOIN sales.receipts r ON b.subject_kind = 'receipt' AND r.receipt_id = b.subject_id WHERE t.order_id IS NULL""")
    times(orders, "created_at", "verified_at")
    times(deliveries, "delivered_at", "revoked_at")
    for frame in (transactions, detours):
        times(frame, "purchased_at", "expires_at", "subscription_expires_at", "revoked_at", "revocation_withdrawn_at", "checked_at")
    times(receipts, "last_attempt", "next_attempt", "received_at")
    times(lookups, "last_attempt")
    return orders, deliveries, transactions, detours, receipts, lookups, brought


def minor_units(price_milliunits, digits):
    return price_milliunits / 10 ** (3 - digits)


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
        units=("quantity", "sum"), delivered_at=("delivered_at", "max"), first_delivered_at=("delivered_at", "min"))
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
                frame["is_contradictory"].eq(True), frame["bundle_id_t"].ne(frame["bundle_id"]),
                frame["product_id_t"].ne(frame["product_id"]), ~frame["environment"].isin(["Production", "Sandbox"]),
                frame["ownership"].eq("FAMILY_SHARED"),
            ],
            ["contradiction", "wrong_bundle", "product_mismatch", "xcode", "family_shared"], ""),
        index=frame.index)


def add_transactions(orders, transactions, detours):
    sides = ["order_id", "named_id", "product_id", "bundle_id", "created_at"]
    pairs = orders.loc[orders["defect"] == "", sides].merge(transactions, on="order_id", suffixes=("", "_t"))
    pairs["refusal"] = refusal(pairs)
    pairs["is_named"] = pairs["transaction_id"] == pairs["named_id"]
    pairs["distance"] = (pairs["purchased_at"] - pairs["created_at"]).abs()
    near = pairs["refusal"].eq("") & pairs["distance"].le(pd.Timedelta(hours=72)) & ~pairs["is_renewal"].eq(True)
    claims = pairs[pairs["is_named"] | near].sort_values(["is_named", "distance"], ascending=[False, True])
    first = claims[claims["is_named"] | claims["named_id"].isna()].drop_duplicates("order_id")
    lost = detours.merge(orders[sides], left_on=["detour_order", "transaction_id"], right_on=["order_id", "named_id"], suffixes=("_t", ""))
    lost = lost.rename(columns={"order_id_t": "owner_order"})
    lost = lost.merge(
        orders[["order_id", "user_id"]].rename(columns={"order_id": "owner_order", "user_id": "owner_user"}), on="owner_order", how="left")
    lost["refusal"] = refusal(lost)
    lost.loc[lost["refusal"] == "", "refusal"] = "duplicate"
    first = pd.concat([first, lost[~lost["order_id"].isin(first["order_id"])]])
    others = claims[~claims["transaction_id"].isin(first["transaction_id"])]
    others = others[near.reindex(others.index) & ~is_reversed(others) & others["environment"].eq("Production")]
    second = others.drop_duplicates("order_id")[["order_id", "transaction_id", "price_milliunits"]]
    second.columns = ["order_id", "second_id", "second_price"]
    keep = [
        "order_id", "transaction_id", "environment", "refusal", "product_id_t", "bundle_id_t", "quantity", "purchased_at",
        "expires_at", "subscription_expires_at", "revoked_at", "revocation_percentage", "revocation_type",
        "revocation_withdrawn_at", "price_milliunits", "currency", "tells_account_token", "app_account_token", "has_offer",
        "checked_at", "owner_order", "owner_user",
    ]
    first = first[keep].rename(columns={"quantity": "quantity_t", "currency": "currency_t"})
    return orders.merge(first, on="order_id", how="left").merge(second, on="order_id", how="left")


def add_proofs(orders, receipts, lookups):
    open_receipts = receipts[receipts["outcome"].ne("verified") | receipts["environment"].ne(receipts["claimed"])]
    proofs = open_receipts.dropna(subset=["order_id"]).drop_duplicates("order_id")
    proofs = proofs[["order_id", "receipt_id", "outcome", "reason", "environment", "claimed", "attempts", "last_attempt"]]
    proofs.columns = ["order_id", "receipt_id", "proof", "proof_reason", "proof_environment", "claimed", "attempts", "last_attempt"]
    lookups = lookups.rename(columns={"outcome": "lookup", "attempts": "lookup_attempts", "last_attempt": "looked_up_at"})
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
        orders["defect"].ne(""), sandbox, own & is_reversed(orders), own, refused.eq("contradiction"), refused.ne(""),
        orders["lookup"].eq("not_found") & old, orders["lookup"].eq("not_found"), pending, rejected, orders["named_id"].notna(),
        age <= pd.Timedelta(hours=1),
    ]
    payments = [
        "", "unpaid", "reversed", "paid", "unconfirmed", "unpaid", "unpaid", "unconfirmed", "unconfirmed", "unpaid",
        "unconfirmed", "unconfirmed",
    ]
    proof_reason = orders["proof_reason"].fillna("never_checked")
    reasons = [
        "", "sandbox", "", "", refused, refused, "not_found", "not_found_yet", proof_reason, proof_reason, "never_checked",
        "awaiting_evidence",
    ]
    orders["payment"] = np.select(conditions, payments, "unpaid")
    orders["payment_reason"] = np.select(
        conditions, reasons, np.where(orders["status"] == "verified", "no_evidence", "never_paid"))
    held, complete = orders["units"] > 0, orders["units"] >= orders["quantity"]
    paid, unpaid = orders["payment"].eq("paid"), orders["payment"].eq("unpaid")
    in_time = (as_of - orders["purchased_at"]) <= pd.Timedelta(hours=1)
    orders["disposition"] = np.select(
        [
            orders["defect"].ne(""), paid & complete, paid & held, paid & in_time, paid,
            orders["payment"].eq("reversed") & held, orders["payment"].eq("reversed"),
            unpaid & orders["payment_reason"].eq("family_shared"), sandbox & orders["user_id"].isin(testers), unpaid & held, unpaid,
        ],
        [
            "bad_row", "settled", "partly_delivered", "in_flight", "paid_not_delivered", "refunded_still_delivered", "refunded",
            "void", "sandbox", "delivered_not_paid", "void",
        ], "unconfirmed")
    orders["own"] = own
    orders["paid_at"] = orders["purchased_at"].where(own)
    orders["refunded_at"] = orders["revoked_at"].where(own)
    orders["checked_at"] = orders[["checked_at", "last_attempt", "looked_up_at"]].max(axis=1)


def find(orders, deliveries, transactions, brought, as_of):
    """One frame of findings for each kind, from the orders that its condition selects."""
    found = []

    def add(kind, selected, reason, at_stake=None, **columns):
        rows = orders.loc[selected]
        frame = pd.DataFrame({
            "kind": kind, "subject": rows["order_id"], "order_id": rows["order_id"], "user_id": rows["user_id"],
            "product_id": rows["product_id"], "transaction_id": rows["transaction_id"].fillna(rows["named_id"]),
            "receipt_id": rows["receipt_id"], "delivery_id": None, "environment": rows["environment"],
            "currency": rows["currency"], "digits": rows["digits"], "minor": rows["minor"].astype("Float64"),
            "stake": np.nan if at_stake is None else at_stake[selected].round(), "paid_at": rows["paid_at"],
            "delivered_at": rows["delivered_at"],
            "reason": reason(rows) if callable(reason) else reason,
        })
        for name, values in columns.items():
            frame[name] = values[selected]
        found.append(frame)

    amount, own, disposition = orders["minor"], orders["own"], orders["disposition"]
    paid, status = orders["payment"].eq("paid"), orders["status"]
    for kind, reason in {
        "paid_not_delivered": "Apple confirms the payment, but the user does not hold the goods.",
        "delivered_not_paid": lambda rows: "The user holds goods of an order that is not paid: " + rows["payment_reason"] + ".",
        "refunded_still_delivered": "Apple refunded the purchase and the user still holds the goods.",
    }.items():
        add(kind, disposition == kind, reason, amount)
    missing = orders["quantity"] - orders["units"]
    add("partly_delivered", disposition == "partly_delivered",
        lambda rows: "Paid for " + rows["quantity"].astype(str) + ", delivered " + rows["units"].astype(str) + ".",
        amount * missing / orders["quantity"])
    add("cancelled_but_paid", paid & status.isin(["failed", "cancelled"]),
        lambda rows: "Apple confirms the payment, but the shop says " + rows["status"] + ".", amount)
    add("duplicate_claim", orders["payment_reason"] == "duplicate",
        lambda rows: "The payment " + rows["transaction_id"] + " belongs to order " + rows["owner_order"] + " of "
        + np.where(rows["owner_user"] == rows["user_id"], "the same user", "another user (" + rows["owner_user"] + ")") + ".", amount)
    second_price = minor_units(orders["second_price"].astype(float), orders["digits"])
    add("charged_twice", own & orders["second_id"].notna(),
        lambda rows: "Apple charged 2 times for one order; besides " + rows["transaction_id"] + ": " + rows["second_id"] + ".",
        second_price.fillna(amount), transaction_id=orders["second_id"])
    astray = orders["astray_user"].notna() & (orders["defect"] == "")
    add("wrong_user", astray,
        lambda rows: "User " + rows["user_id"] + " ordered, user " + rows["astray_user"] + " got the goods.", amount,
        delivery_id=orders["astray_delivery"])
    other_token = own & orders["token"].notna() & orders["app_account_token"].notna() & (
        orders["token"].str.lower() != orders["app_account_token"].str.lower())
    add("wrong_user", other_token & ~astray, "Apple's account token is not the one of this order's user.", amount)
    add("product_mismatch", orders["payment_reason"] == "product_mismatch",
        lambda rows: "Ordered " + rows["product_id"] + ". The payment is for " + rows["product_id_t"] + ".", amount)
    add("wrong_bundle", orders["payment_reason"] == "wrong_bundle",
        lambda rows: "The proof belongs to " + rows["bundle_id_t"] + ", not to the order's app.", amount)
    sound = orders["defect"] == ""
    add("signature_invalid", sound & orders["proof"].eq("rejected") & orders["proof_reason"].eq("signature_invalid"),
        lambda rows: "The proof in receipt " + rows["receipt_id"] + " does not carry Apple's signature.", amount)
    add("sandbox_delivered", (disposition == "delivered_not_paid") & (orders["payment_reason"] == "sandbox"),
        "Goods were delivered for a sandbox purchase by a user who is not on the list of test users.", amount)
    reversed_ = orders["payment"] == "reversed"
    add("delivered_after_refund", reversed_ & (orders["delivered_at"] > orders["revoked_at"]),
        "Goods were delivered after Apple's refund.", amount)
    add("refund_reversed_not_reinstated",
        paid & orders["revocation_withdrawn_at"].notna() & (orders["units"] == 0) & orders["taken_back"],
        "Apple took its refund back, so the order is paid again, but the goods are still taken back.", amount)
    part = (amount * orders["revocation_percentage"].astype(float) / 100000 + 0.5) // 1
    add("partial_refund", paid & orders["revoked_at"].notna(), lambda rows: "Apple refunded " + pd.Series(
        decimal_text(part[rows.index], rows["digits"]), index=rows.index) + " " + rows["currency"] + " of this order.", part)
    add("refund_not_booked", reversed_ & (status == "verified"),
        "Apple refunded the purchase, but the shop still says verified.", amount)
    add("refund_only_here", paid & orders["revoked_at"].isna() & (status == "refunded"),
        "The shop says refunded, but Apple has not refunded the purchase.", amount)
    add("delivered_twice", sound & (orders["units"] > orders["quantity"]),
        lambda rows: "Ordered " + rows["quantity"].astype(str) + ", delivered " + rows["units"].astype(str) + ".",
        amount * -missing / orders["quantity"].clip(lower=1))
    compared = sound & (own | (orders["payment_reason"] == "duplicate"))
    add("quantity_mismatch", compared & orders["quantity_t"].ne(orders["quantity"]),
        lambda rows: "Ordered " + rows["quantity"].astype(str) + ", Apple's transaction is for "
        + rows["quantity_t"].astype(int).astype(str) + ".")
    same_currency = orders["currency_t"] == orders["currency"]
    price = minor_units(orders["price_milliunits"].astype(float), orders["digits"])
    add("amount_mismatch", compared & same_currency & price.notna() & price.ne(amount) & ~orders["has_offer"].eq(True),
        lambda rows: "Ordered for " + pd.Series(decimal_text(rows["minor"], rows["digits"]), index=rows.index)
        + ", Apple charged the customer " + pd.Series(decimal_text(price[rows.index], rows["digits"]), index=rows.index)
        + " " + rows["currency"] + ".", (price - amount).abs())
    add("currency_mismatch", compared & orders["currency_t"].notna() & ~same_currency,
        lambda rows: "Ordered in " + rows["currency"] + ", charged in " + rows["currency_t"] + ".", amount)
    add("family_shared_sale", (orders["payment_reason"] == "family_shared") & (amount > 0),
        "A family member's purchase gives this user access; nobody paid for this order.", amount)
    newest = orders["subscription_expires_at"].fillna(orders["expires_at"])
    add("lapsed_still_served", paid & (orders["units"] > 0) & (as_of - newest > pd.Timedelta(days=16)),
        lambda rows: "The subscription ended " + (as_of - newest[rows.index]).dt.days.astype(str)
        + " days ago and access was not taken back.", amount)
    add("stuck_unconfirmed", (disposition == "unconfirmed") & (as_of - orders["created_at"] > pd.Timedelta(hours=48)),
        lambda rows: "Unconfirmed for " + (as_of - rows["created_at"]).dt.days.astype(str) + " days after "
        + rows["attempts"].fillna(0).astype(int).astype(str) + " attempts: " + rows["payment_reason"] + ".", amount)
    add("status_mismatch",
        ((disposition == "settled") & (status == "pending")) | ((disposition == "void") & status.isin(["verified", "refunded"]))
        | ((disposition == "refunded") & (status == "pending")),
        lambda rows: "The order is " + rows["disposition"] + ", but the shop says " + rows["status"] + ".")
    add("environment_mislabelled", sound & orders["proof_environment"].notna() & orders["claimed"].ne(orders["proof_environment"]),
        lambda rows: "The client called receipt " + rows["receipt_id"] + " " + rows["claimed"] + "; Apple says "
        + rows["proof_environment"] + ".")
    add("delivered_before_paid", own & (orders["first_delivered_at"] < orders["purchased_at"] - pd.Timedelta(minutes=5)),
        "The goods were delivered before Apple's purchase date.")
    latest = as_of + pd.Timedelta(minutes=5)
    add("future_dated", sound & ((orders["created_at"] > latest) | (orders["verified_at"] > latest) | (orders["delivered_at"] > latest)),
        "A date of the order or its delivery is later than the audit.")
    add("account_token_missing",
        compared & orders["token"].notna() & orders["tells_account_token"].eq(True) & orders["app_account_token"].isna(),
        "The order has an account token, Apple's transaction has none.")
    add("bad_row", ~sound, lambda rows: "The order row breaks the contract: " + rows["defect"] + ".")
    found[-1][["minor", "currency"]] = None, None

    lost = deliveries[~deliveries["order_id"].isin(orders["order_id"])]
    found.append(pd.DataFrame({
        "kind": "orphan_delivery", "subject": lost["delivery_id"], "order_id": lost["order_id"], "user_id": lost["user_id"],
        "product_id": lost["product_id"], "delivery_id": lost["delivery_id"], "digits": 0, "delivered_at": lost["delivered_at"],
        "reason": np.where(lost["order_id"].isna(), "The delivery names no order.",
                           "The delivery names order " + lost["order_id"].fillna("") + ", which does not exist."),
    }))
    orphans = transactions[
        transactions["order_id"].isna() & ~is_reversed(transactions) & transactions["environment"].eq("Production")
        & transactions["ownership"].ne("FAMILY_SHARED") & ~transactions["is_contradictory"]]
    orphans = orphans.merge(brought.drop_duplicates("transaction_id"), on="transaction_id", how="left")
    digits = orphans["currency"].map(DIGITS).fillna(0).astype(int)
    price = minor_units(orphans["price_milliunits"].astype(float), digits)
    renewal = orphans["is_renewal"].eq(True)
    found.append(pd.DataFrame({
        "kind": np.where(renewal, "renewal_without_order", "orphan_payment"), "subject": orphans["transaction_id"],
        "user_id": orphans["user_id"], "product_id": orphans["product_id"], "transaction_id": orphans["transaction_id"],
        "receipt_id": orphans["receipt_id"], "environment": orphans["environment"], "currency": orphans["currency"],
        "digits": digits, "minor": price.astype("Float64"), "stake": price.where(~renewal), "paid_at": orphans["purchased_at"],
        "reason": np.where(renewal, "Apple renewed a subscription to " + orphans["product_id"] + " and no order claims the renewal.",
                           "Apple confirms a payment for " + orphans["product_id"] + " that no order claims."),
    }))
    return pd.concat(found, ignore_index=True)


def finish_findings(findings, as_of):
    ranks = {kind: rank for rank, (kind, _, _) in enumerate(KINDS)}
    findings["rank"] = findings["kind"].map(ranks)
    findings = findings.sort_values(["subject", "rank"])
    staked = findings[findings["stake"].notna() & findings["kind"].ne("charged_twice")]
    findings.loc[staked.index[staked.duplicated("subject")], "stake"] = np.nan
    findings["severity"] = findings["kind"].map({kind: severity for kind, severity, _ in KINDS})
    findings["suggested_action"] = findings["kind"].map({kind: action for kind, _, action in KINDS})
    findings["finding_id"] = [
        hashlib.sha256(f"{kind}\n{subject}".encode()).hexdigest()[:32]
        for kind, subject in zip(findings["kind"], findings["subject"])]
    findings["first_seen"] = as_of
    findings["age_days"] = 0
    findings["status"] = "open"
    findings["owner"] = None
    findings["amount"] = findings["minor"].astype(float)
    findings["at_stake"] = findings["stake"]
    return findings


def decimal_text(minor, digits):
    return [f"{value / 10 ** places:.{places}f}" if value == value else "" for value, places in zip(minor, digits)]


def totals(orders, keys):
    counted = orders[orders["disposition"].isin(IN_TOTALS)].assign(point=orders["minor"])
    grouped = counted.groupby(keys + ["digits"])["minor"].agg(orders="size", ordered="sum")
    by_disposition = counted.pivot_table(index=keys + ["digits"], columns="disposition", values="minor", aggfunc="sum", fill_value=0)
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
    refunds = pd.DataFrame({
        "transaction_id": reversals["transaction_id"], "order_id": reversals["order_id"], "user_id": reversals["user_id"],
        "product_id": reversals["product_id"], "currency": reversals["currency"], "digits": reversals["digits"],
        "amount": -((reversals["minor"] * percentage / 100000 + 0.5) // 1), "percentage": percentage / 1000,
        "purchased_at": reversals["purchased_at"], "refunded_at": reversals["revoked_at"],
        "reason": reversals["revocation_type"], "disposition": reversals["disposition"],
    }).sort_values("transaction_id")
    tests = orders[orders["own"] & orders["environment"].eq("Sandbox")]
    sandbox = tests.groupby(["user_id", "product_id", "currency", "digits"])["minor"].agg(orders="size", amount="sum").reset_index()
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
        "Amounts": (amounts.rename(columns={"point": "amount"}), ["currency", "amount", "product_id", "orders"] + money,
                    ["amount"] + money),
        "Refunds": (refunds, [name for name in refunds.columns if name != "digits"], ["amount"]),
        "Sandbox": (sandbox, ["user_id", "product_id", "currency", "orders", "amount", "allowed"], ["amount"]),
        "Receipts": (receipts, [
            "receipt_id", "order_id", "user_id", "kind", "channel", "environment", "outcome", "apple_status", "attempts",
            "last_attempt", "next_attempt", "age_days", "reason"], []),
        "Orders": (orders, ORDER_COLUMNS, ["amount"]),
    }
    for name, (frame, columns, amounts_of) in tables.items():
        table = frame[columns].copy()
        for column in amounts_of:
            table[column] = decimal_text(frame[column], frame["digits"])
        table.to_csv(f"{directory}/{name.lower()}.csv", index=False, lineterminator="\r\n", date_format="%Y-%m-%dT%H:%M:%SZ")
    dispositions = orders["disposition"].value_counts()
    open_kinds = findings["kind"].value_counts()
    with open(f"{directory}/summary.json", "w") as file:
        json.dump({
            "complete": True, "orders": {"read": len(orders)},
            "dispositions": {name: {"orders": int(count)} for name, count in dispositions.items()},
            "findings": {"open": {name: int(count) for name, count in open_kinds.items()}},
        }, file, indent=2)
    if formats != "xlsx":
        return
    with pd.ExcelWriter(f"{directory}/night-audit.xlsx", engine="xlsxwriter") as workbook:
        pd.concat([dispositions, open_kinds]).rename_axis("name").reset_index(name="count").to_excel(
            workbook, sheet_name="Summary", index=False)
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
