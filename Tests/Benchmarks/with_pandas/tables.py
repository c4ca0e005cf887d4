"""Reading tables and printing money."""

import pandas as pd
import psycopg

DIGITS = {"USD": 2, "EUR": 2, "JPY": 0, "GBP": 2, "KWD": 3, "INR": 2, "BRL": 2, "KRW": 0, "CHF": 2}
TRANSACTION = """t.environment, t.transaction_id, t.original_transaction_id, t.order_id, t.product_id, t.bundle_id,
    t.quantity, t.purchased_at, t.expires_at, t.subscription_expires_at, t.revoked_at, t.revocation_percentage,
    t.revocation_type, t.revocation_withdrawn_at, t.price_milliunits, t.currency, t.tells_account_token, t.app_account_token,
    t.ownership,
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
        orders = read(
            connection,
            """SELECT order_id, user_id, bundle_id, product_id, quantity, amount, currency, status,
            transaction_id AS named_id, app_account_token AS token, created_at, verified_at FROM sales.orders""",
        )
        deliveries = read(
            connection,
            """SELECT delivery_id, order_id, user_id, product_id, quantity, delivered_at, revoked_at
            FROM sales.deliveries""",
        )
        transactions = read(connection, f"SELECT {TRANSACTION} FROM floor.transactions t")
        detours = read(
            connection,
            f"""SELECT d.order_id AS detour_order, {TRANSACTION} FROM floor.receipt_transactions d
            JOIN floor.transactions t USING (transaction_id, environment) WHERE d.is_detour""",
        )
        receipts = read(
            connection,
            """SELECT r.receipt_id, r.order_id, r.user_id, c.payload_kind AS kind, c.channel,
            c.environment, c.outcome, c.apple_status, c.attempts, c.last_attempt, c.due_from, r.received_at,
            c.reason, r.environment AS claimed FROM sales.receipts r LEFT JOIN night_audit.receipt_checks c
            ON c.subject_kind = 'receipt' AND c.subject_id = r.receipt_id""",
        )
        lookups = read(
            connection,
            """SELECT order_id, outcome, attempts, last_attempt FROM night_audit.receipt_checks
            WHERE subject_kind = 'lookup'""",
        )
        brought = read(
            connection,
            """SELECT b.transaction_id, r.receipt_id, r.user_id FROM floor.transactions t
            JOIN floor.receipt_transactions b USING (transaction_id, environment)
            JOIN sales.receipts r ON b.subject_kind = 'receipt' AND r.receipt_id = b.subject_id
            WHERE t.order_id IS NULL""",
        )
    times(orders, "created_at", "verified_at")
    times(deliveries, "delivered_at", "revoked_at")
    for frame in (transactions, detours):
        times(
            frame,
            "purchased_at",
            "expires_at",
            "subscription_expires_at",
            "revoked_at",
            "revocation_withdrawn_at",
            "checked_at",
        )
    times(receipts, "last_attempt", "due_from", "received_at")
    times(lookups, "last_attempt")
    return orders, deliveries, transactions, detours, receipts, lookups, brought


def minor_units(price_milliunits, digits):
    return price_milliunits / 10 ** (3 - digits)


def decimal_text(minor, digits):
    return [f"{value / 10 ** places:.{places}f}" if value == value else "" for value, places in zip(minor, digits)]
