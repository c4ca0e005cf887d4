"""Forty ways in which a mapping is wrong, as SQL over the plain tables."""


def shifted(relation, key, column):
    """Each row has the value of the row before it, as after a wrong join or sort."""
    return f"""
      UPDATE sales.{relation} t SET {column} = s.value FROM (
        SELECT {key}, lag({column}, 1, {column}) OVER (ORDER BY {key}) AS value FROM sales.{relation}) s
      WHERE s.{key} = t.{key}"""


def every(relation, column, value, where="true"):
    return f"UPDATE sales.{relation} SET {column} = {value} WHERE {where}"


SLIPS = [
    ("orders.order_id of another ID space", every("orders", "order_id", "'A' || order_id")),
    ("orders.user_id of another ID space", every("orders", "user_id", "md5(user_id)")),
    ("orders.user_id is one constant", every("orders", "user_id", "'app'")),
    ("orders.user_id of the row before", shifted("orders", "order_id", "user_id")),
    ("orders.bundle_id of an unknown app", every("orders", "bundle_id", "'com.example.other'")),
    ("orders.product_id is an internal number", every("orders", "product_id", "'p' || length(product_id)")),
    ("orders.product_id in capitals", every("orders", "product_id", "upper(product_id)")),
    ("orders.product_id of the row before", shifted("orders", "order_id", "product_id")),
    ("orders.quantity counts gems", every("orders", "quantity", "quantity * 100")),
    ("orders.quantity is always 2", every("orders", "quantity", "2")),
    ("orders.amount in minor units", every("orders", "amount", "amount * 100")),
    ("orders.amount in thousands", every("orders", "amount", "amount * 1000")),
    ("orders.amount of the row before", shifted("orders", "order_id", "amount")),
    ("orders.amount is negative", every("orders", "amount", "-amount", "amount > 0")),
    ("orders.currency is always KWD", every("orders", "currency", "'KWD'")),
    ("orders.status is always refunded", every("orders", "status", "'refunded'")),
    ("orders.status is always cancelled", every("orders", "status", "'cancelled'")),
    ("orders.status in other words", every("orders", "status", "'PAID'")),
    ("orders.transaction_id of the row before", shifted("orders", "order_id", "transaction_id")),
    ("orders.transaction_id rounded by a spreadsheet",
     every("orders", "transaction_id", "left(transaction_id, 8) || '00000000'")),
    ("orders.transaction_id is the order's own ID", every("orders", "transaction_id", "order_id")),
    ("orders.app_account_token constant",
     every("orders", "app_account_token", "'00000000-0000-4000-8000-000000000001'")),
    ("orders.created_at is the day of import", every("orders", "created_at", "'2026-11-20T02:00:00Z'")),
    ("orders.created_at a year late", every("orders", "created_at", "created_at + interval '1 year'")),
    ("orders.created_at five days early", every("orders", "created_at", "created_at - interval '5 days'")),
    ("a third of the orders missing", "DELETE FROM sales.orders WHERE hashtext(order_id) % 3 = 0"),
    ("receipts.order_id of the row before", shifted("receipts", "receipt_id", "order_id")),
    ("receipts.payload of the row before", shifted("receipts", "receipt_id", "payload")),
    ("receipts.payload cut at 255 characters", every("receipts", "payload", "left(payload, 255)")),
    ("receipts.payload is a hash", every("receipts", "payload", "md5(payload)")),
    ("receipts.status in other words", every("receipts", "status", "'OK'")),
    ("deliveries.order_id of another ID space", every("deliveries", "order_id", "'A' || order_id")),
    ("deliveries.order_id of the row before", shifted("deliveries", "delivery_id", "order_id")),
    ("deliveries.user_id of another ID space", every("deliveries", "user_id", "md5(user_id)")),
    ("deliveries.user_id is one constant", every("deliveries", "user_id", "'app'")),
    ("deliveries.quantity counts gems", every("deliveries", "quantity", "quantity * 100")),
    ("deliveries.product_id is an internal number", every("deliveries", "product_id", "'p' || length(product_id)")),
    ("deliveries.revoked_at is set when goods are spent",
     every("deliveries", "revoked_at", "delivered_at + interval '1 hour'")),
    ("deliveries doubled",
     "INSERT INTO sales.deliveries SELECT delivery_id || '-2', order_id, user_id, product_id, quantity, delivered_at, "
     "revoked_at FROM sales.deliveries"),
    ("deliveries without their last month", "DELETE FROM sales.deliveries WHERE delivered_at > '2026-10-20'"),
]
assert len(SLIPS) == 40
