"""The discrepancies, kind by kind."""

import hashlib

import numpy as np
import pandas as pd

from decide import is_reversed
from tables import DIGITS, decimal_text, minor_units

# Kind, severity and what to do, worst first.
KINDS = [
    ("paid_not_delivered", "critical", "Deliver the goods, or refund the customer through Apple."),
    ("partly_delivered", "critical", "Deliver the missing units."),
    (
        "delivered_not_paid",
        "critical",
        "Take the goods back from whoever has them or collect the payment; ask before calling it fraud.",
    ),
    ("cancelled_but_paid", "critical", "Reopen the order and deliver, or ask Apple's customer to request a refund."),
    ("orphan_payment", "critical", "Find the customer by the transaction and create or correct the order."),
    (
        "duplicate_claim",
        "critical",
        "Keep the order that owns the payment and take back what was delivered for this one.",
    ),
    ("charged_twice", "critical", "Tell the customer and help with a refund of the second charge."),
    ("wrong_user", "critical", "Check which account paid and which one got the goods, and move them."),
    ("product_mismatch", "critical", "Compare the ordered product with the one that was paid and correct the order."),
    ("wrong_bundle", "critical", "Block the order: its proof belongs to another app."),
    (
        "signature_invalid",
        "critical",
        "Treat the proof as forged or damaged and block automatic delivery for this user.",
    ),
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
    (
        "stuck_unconfirmed",
        "major",
        "Look at the last reason; have the client send a fresh receipt if it stays.",
    ),
    ("renewal_without_order", "minor", "Book an order for this renewal if renewals are booked as orders."),
    ("status_mismatch", "minor", "Correct the order's status in the shop."),
    ("environment_mislabelled", "minor", "Correct the client: it reports the wrong environment."),
    ("delivered_before_paid", "minor", "Check the clocks and the delivery path: goods left before the payment."),
    ("future_dated", "minor", "Check the clock of the system that wrote this date."),
    ("account_token_missing", "minor", "Pass the account token to StoreKit at purchase."),
    ("bad_row", "minor", "Correct the row in the sales tables or in the view that maps them."),
]


def find(orders, deliveries, transactions, brought, as_of):
    """One frame of findings for each kind, from the orders that its condition selects."""
    found = []

    def add(kind, selected, reason, at_stake=None, **columns):
        rows = orders.loc[selected]
        frame = pd.DataFrame(
            {
                "kind": kind,
                "subject": rows["order_id"],
                "order_id": rows["order_id"],
                "user_id": rows["user_id"],
                "product_id": rows["product_id"],
                "transaction_id": rows["transaction_id"].fillna(rows["named_id"]),
                "receipt_id": rows["receipt_id"],
                "delivery_id": None,
                "environment": rows["environment"],
                "currency": rows["currency"],
                "digits": rows["digits"],
                "minor": rows["minor"].astype("Float64"),
                "stake": np.nan if at_stake is None else at_stake[selected].round(),
                "paid_at": rows["paid_at"],
                "delivered_at": rows["delivered_at"],
                "reason": reason(rows) if callable(reason) else reason,
            }
        )
        for name, values in columns.items():
            frame[name] = values[selected]
        found.append(frame)

    amount, own, disposition = orders["minor"], orders["own"], orders["disposition"]
    paid, status = orders["payment"].eq("paid"), orders["status"]
    for kind, reason in {
        "paid_not_delivered": "Apple confirms the payment, but the user does not hold the goods.",
        "delivered_not_paid": lambda rows: "The user holds goods of an order that is not paid: "
        + rows["payment_reason"]
        + ".",
        "refunded_still_delivered": "Apple refunded the purchase and the user still holds the goods.",
    }.items():
        add(kind, disposition == kind, reason, amount)
    missing = orders["quantity"] - orders["units"]
    add(
        "partly_delivered",
        disposition == "partly_delivered",
        lambda rows: "Paid for " + rows["quantity"].astype(str) + ", delivered " + rows["units"].astype(str) + ".",
        amount * missing / orders["quantity"],
    )
    add(
        "cancelled_but_paid",
        paid & status.isin(["failed", "cancelled"]),
        lambda rows: "Apple confirms the payment, but the shop says " + rows["status"] + ".",
        amount,
    )
    add(
        "duplicate_claim",
        orders["payment_reason"] == "duplicate",
        lambda rows: "The payment "
        + rows["transaction_id"]
        + " belongs to order "
        + rows["owner_order"]
        + " of "
        + np.where(rows["owner_user"] == rows["user_id"], "the same user", "another user (" + rows["owner_user"] + ")")
        + ".",
        amount,
    )
    second_price = minor_units(orders["second_price"].astype(float), orders["digits"])
    add(
        "charged_twice",
        own & orders["second_id"].notna(),
        lambda rows: "Apple charged 2 times for one order; besides "
        + rows["transaction_id"]
        + ": "
        + rows["second_id"]
        + ".",
        second_price.fillna(amount),
        transaction_id=orders["second_id"],
    )
    astray = orders["astray_user"].notna() & (orders["defect"] == "")
    add(
        "wrong_user",
        astray,
        lambda rows: "User " + rows["user_id"] + " ordered, user " + rows["astray_user"] + " got the goods.",
        amount,
        delivery_id=orders["astray_delivery"],
    )
    other_token = (
        own
        & orders["token"].notna()
        & orders["app_account_token"].notna()
        & (orders["token"].str.lower() != orders["app_account_token"].str.lower())
    )
    add("wrong_user", other_token & ~astray, "Apple's account token is not the one of this order's user.", amount)
    add(
        "product_mismatch",
        orders["payment_reason"] == "product_mismatch",
        lambda rows: "Ordered " + rows["product_id"] + ". The payment is for " + rows["product_id_t"] + ".",
        amount,
    )
    add(
        "wrong_bundle",
        orders["payment_reason"] == "wrong_bundle",
        lambda rows: "The proof belongs to " + rows["bundle_id_t"] + ", not to the order's app.",
        amount,
    )
    sound = orders["defect"] == ""
    add(
        "signature_invalid",
        sound & orders["proof"].eq("rejected") & orders["proof_reason"].eq("signature_invalid"),
        lambda rows: "The proof in receipt " + rows["receipt_id"] + " does not carry Apple's signature.",
        amount,
    )
    add(
        "sandbox_delivered",
        (disposition == "delivered_not_paid") & (orders["payment_reason"] == "sandbox"),
        "Goods were delivered for a sandbox purchase by a user who is not on the list of test users.",
        amount,
    )
    reversed_ = orders["payment"] == "reversed"
    add(
        "delivered_after_refund",
        reversed_ & (orders["delivered_at"] > orders["revoked_at"]),
        "Goods were delivered after Apple's refund.",
        amount,
    )
    add(
        "refund_reversed_not_reinstated",
        paid & orders["revocation_withdrawn_at"].notna() & (missing > 0) & orders["taken_back"],
        "Apple took its refund back, so the order is paid again, but goods are still taken back.",
        amount,
    )
    part = (amount * orders["revocation_percentage"].astype(float) / 100000 + 0.5) // 1
    add(
        "partial_refund",
        paid & orders["revoked_at"].notna(),
        lambda rows: "Apple refunded "
        + pd.Series(decimal_text(part[rows.index], rows["digits"]), index=rows.index)
        + " "
        + rows["currency"]
        + " of this order.",
        part,
    )
    add(
        "refund_not_booked",
        reversed_ & (status == "verified"),
        "Apple refunded the purchase, but the shop still says verified.",
        amount,
    )
    add(
        "refund_only_here",
        paid & orders["revoked_at"].isna() & (status == "refunded"),
        "The shop says refunded, but Apple has not refunded the purchase.",
        amount,
    )
    add(
        "delivered_twice",
        sound & (orders["units"] > orders["quantity"]),
        lambda rows: "Ordered " + rows["quantity"].astype(str) + ", delivered " + rows["units"].astype(str) + ".",
        amount * -missing / orders["quantity"].clip(lower=1),
    )
    compared = sound & (own | (orders["payment_reason"] == "duplicate"))
    add(
        "quantity_mismatch",
        compared & orders["quantity_t"].ne(orders["quantity"]),
        lambda rows: "Ordered "
        + rows["quantity"].astype(str)
        + ", Apple's transaction is for "
        + rows["quantity_t"].astype(int).astype(str)
        + ".",
    )
    same_currency = orders["currency_t"] == orders["currency"]
    price = minor_units(orders["price_milliunits"].astype(float), orders["digits"])
    add(
        "amount_mismatch",
        compared & same_currency & price.notna() & price.ne(amount) & ~orders["has_offer"].eq(True),
        lambda rows: "Ordered for "
        + pd.Series(decimal_text(rows["minor"], rows["digits"]), index=rows.index)
        + ", Apple charged the customer "
        + pd.Series(decimal_text(price[rows.index], rows["digits"]), index=rows.index)
        + " "
        + rows["currency"]
        + ".",
        (price - amount).abs(),
    )
    add(
        "currency_mismatch",
        compared & orders["currency_t"].notna() & ~same_currency,
        lambda rows: "Ordered in " + rows["currency"] + ", charged in " + rows["currency_t"] + ".",
        amount,
    )
    add(
        "family_shared_sale",
        (orders["payment_reason"] == "family_shared") & (amount > 0),
        "A family member's purchase gives this user access; nobody paid for this order.",
        amount,
    )
    newest = orders["subscription_expires_at"].fillna(orders["expires_at"])
    add(
        "lapsed_still_served",
        paid & (orders["units"] > 0) & (as_of - newest > pd.Timedelta(days=16)),
        lambda rows: "The subscription ended "
        + (as_of - newest[rows.index]).dt.days.astype(str)
        + " days ago and access was not taken back.",
        amount,
    )
    add(
        "stuck_unconfirmed",
        (disposition == "unconfirmed") & (as_of - orders["created_at"] > pd.Timedelta(hours=48)),
        lambda rows: "Unconfirmed for "
        + (as_of - rows["created_at"]).dt.days.astype(str)
        + " days after "
        + rows["attempts"].fillna(0).astype(int).astype(str)
        + " attempts: "
        + rows["payment_reason"]
        + ".",
        amount,
    )
    add(
        "status_mismatch",
        ((disposition == "settled") & (status == "pending"))
        | ((disposition == "void") & status.isin(["verified", "refunded"]))
        | ((disposition == "refunded") & (status == "pending")),
        lambda rows: "The order is " + rows["disposition"] + ", but the shop says " + rows["status"] + ".",
    )
    add(
        "environment_mislabelled",
        sound & orders["proof_environment"].notna() & orders["claimed"].ne(orders["proof_environment"]),
        lambda rows: "The client called receipt "
        + rows["receipt_id"]
        + " "
        + rows["claimed"]
        + "; Apple says "
        + rows["proof_environment"]
        + ".",
    )
    add(
        "delivered_before_paid",
        own & (orders["first_delivered_at"] < orders["purchased_at"] - pd.Timedelta(minutes=5)),
        "The goods were delivered before Apple's purchase date.",
    )
    latest = as_of + pd.Timedelta(minutes=5)
    add(
        "future_dated",
        sound
        & ((orders["created_at"] > latest) | (orders["verified_at"] > latest) | (orders["delivered_at"] > latest)),
        "A date of the order or its delivery is later than the audit.",
    )
    add(
        "account_token_missing",
        compared
        & orders["token"].notna()
        & orders["tells_account_token"].eq(True)
        & orders["app_account_token"].isna(),
        "The order has an account token, Apple's transaction has none.",
    )
    add("bad_row", ~sound, lambda rows: "The order row breaks the contract: " + rows["defect"] + ".")
    found[-1][["minor", "currency"]] = None, None

    lost = deliveries[~deliveries["order_id"].isin(orders["order_id"])]
    found.append(
        pd.DataFrame(
            {
                "kind": "orphan_delivery",
                "subject": lost["delivery_id"],
                "order_id": lost["order_id"],
                "user_id": lost["user_id"],
                "product_id": lost["product_id"],
                "delivery_id": lost["delivery_id"],
                "digits": 0,
                "delivered_at": lost["delivered_at"],
                "reason": np.where(
                    lost["order_id"].isna(),
                    "The delivery names no order.",
                    "The delivery names order " + lost["order_id"].fillna("") + ", which does not exist.",
                ),
            }
        )
    )
    orphans = transactions[
        transactions["order_id"].isna()
        & ~is_reversed(transactions)
        & transactions["environment"].eq("Production")
        & transactions["ownership"].ne("FAMILY_SHARED")
        & ~transactions["is_contradictory"]
    ]
    orphans = orphans.merge(brought.drop_duplicates("transaction_id"), on="transaction_id", how="left")
    digits = orphans["currency"].map(DIGITS).fillna(0).astype(int)
    price = minor_units(orphans["price_milliunits"].astype(float), digits)
    renewal = orphans["is_renewal"].eq(True)
    found.append(
        pd.DataFrame(
            {
                "kind": np.where(renewal, "renewal_without_order", "orphan_payment"),
                "subject": orphans["transaction_id"],
                "user_id": orphans["user_id"],
                "product_id": orphans["product_id"],
                "transaction_id": orphans["transaction_id"],
                "receipt_id": orphans["receipt_id"],
                "environment": orphans["environment"],
                "currency": orphans["currency"],
                "digits": digits,
                "minor": price.astype("Float64"),
                "stake": price.where(~renewal),
                "paid_at": orphans["purchased_at"],
                "reason": np.where(
                    renewal,
                    "Apple renewed a subscription to " + orphans["product_id"] + " and no order claims the renewal.",
                    "Apple confirms a payment for " + orphans["product_id"] + " that no order claims.",
                ),
            }
        )
    )
    return pd.concat(found, ignore_index=True)


def finish_findings(findings, as_of):
    ranks = {kind: rank for rank, (kind, _, _) in enumerate(KINDS)}
    findings["rank"] = findings["kind"].map(ranks)
    findings = findings.sort_values(["subject", "rank"])
    staked = findings[findings["stake"].notna() & findings["kind"].ne("charged_twice")]
    staked = staked.sort_values(["subject", "stake", "rank"], ascending=[True, False, True])
    findings.loc[staked.index[staked.duplicated("subject")], "stake"] = np.nan
    findings["severity"] = findings["kind"].map({kind: severity for kind, severity, _ in KINDS})
    findings["suggested_action"] = findings["kind"].map({kind: action for kind, _, action in KINDS})
    findings["finding_id"] = [
        hashlib.sha256(f"{kind}\n{subject}".encode()).hexdigest()[:32]
        for kind, subject in zip(findings["kind"], findings["subject"])
    ]
    findings["first_seen"] = as_of
    findings["age_days"] = 0
    findings["status"] = "open"
    findings["owner"] = None
    findings["amount"] = findings["minor"].astype(float)
    findings["at_stake"] = findings["stake"]
    return findings
