-- The sales schema in its plain form, for a new shop and for rehearsals. {schema} is database.salesSchema, which exists.
CREATE TABLE IF NOT EXISTS {schema}.orders (
  order_id          text COLLATE "C" PRIMARY KEY,
  user_id           text COLLATE "C" NOT NULL,
  bundle_id         text,
  product_id        text NOT NULL,
  quantity          integer NOT NULL,
  amount            numeric NOT NULL,
  currency          text NOT NULL,
  status            text NOT NULL,
  transaction_id    text,
  app_account_token text,
  created_at        timestamptz NOT NULL,
  verified_at       timestamptz,
  updated_at        timestamptz NOT NULL
);

CREATE TABLE IF NOT EXISTS {schema}.receipts (
  receipt_id  text COLLATE "C" PRIMARY KEY,
  order_id    text COLLATE "C",
  user_id     text COLLATE "C",
  payload     text NOT NULL,
  environment text,
  status      text NOT NULL,
  checked_at  timestamptz,
  received_at timestamptz NOT NULL
);

CREATE TABLE IF NOT EXISTS {schema}.deliveries (
  delivery_id  text COLLATE "C" PRIMARY KEY,
  order_id     text COLLATE "C",
  user_id      text COLLATE "C" NOT NULL,
  product_id   text NOT NULL,
  quantity     integer NOT NULL,
  delivered_at timestamptz NOT NULL,
  revoked_at   timestamptz
);
CREATE INDEX IF NOT EXISTS deliveries_order ON {schema}.deliveries (order_id);
CREATE INDEX IF NOT EXISTS receipts_order ON {schema}.receipts (order_id);
-- A night reads the rows that were added or changed since the night before.
CREATE INDEX IF NOT EXISTS receipts_received ON {schema}.receipts (received_at);
CREATE INDEX IF NOT EXISTS orders_updated ON {schema}.orders (updated_at);
-- `explain`, `reconcile --order` and `reconcile --user` read one order or user.
CREATE INDEX IF NOT EXISTS orders_user ON {schema}.orders (user_id);
CREATE INDEX IF NOT EXISTS receipts_user ON {schema}.receipts (user_id);
CREATE INDEX IF NOT EXISTS deliveries_user ON {schema}.deliveries (user_id);
CREATE INDEX IF NOT EXISTS orders_transaction ON {schema}.orders
  (btrim(transaction_id COLLATE "C", E' \t\n\x0B\f\r'));
CREATE INDEX IF NOT EXISTS orders_token ON {schema}.orders
  (regexp_replace(translate(lower(app_account_token COLLATE "C"), E'-{} \t\n\x0B\f\r', ''), '^urn:uuid:', ''));

-- The texts must agree with the page Views. Existing comments of the shop are kept.
DO $comments$
DECLARE
  c record;
BEGIN
  FOR c IN
    SELECT a.attrelid::regclass AS relation, a.attname, meaning
    FROM (VALUES
      ($r${schema}.orders$r$, 'order_id', 'unique ID of the order; at most 1,000 bytes'),
      ($r${schema}.orders$r$, 'user_id', 'user who placed the order'),
      ($r${schema}.orders$r$, 'bundle_id', 'bundle ID of the app; NULL means the only configured app'),
      ($r${schema}.orders$r$, 'product_id', 'product identifier of App Store Connect'),
      ($r${schema}.orders$r$, 'quantity', 'ordered units, in the same unit as in deliveries; at least 1'),
      ($r${schema}.orders$r$, 'amount', 'total of the order in major units, with no more decimals than the currency has'),
      ($r${schema}.orders$r$, 'currency', 'ISO 4217 code'),
      ($r${schema}.orders$r$, 'status', 'pending, verified, failed, cancelled or refunded, as the shop believes; never evidence'),
      ($r${schema}.orders$r$, 'transaction_id', 'Apple''s transaction ID as the client or the first verification reported it; text that cannot be an ID counts as none'),
      ($r${schema}.orders$r$, 'app_account_token', 'UUID that the app gave to StoreKit for this user'),
      ($r${schema}.orders$r$, 'created_at', 'time when the order was placed'),
      ($r${schema}.orders$r$, 'verified_at', 'time since when the shop believes that the order is paid'),
      ($r${schema}.orders$r$, 'updated_at', 'time of the last change of the row'),
      ($r${schema}.receipts$r$, 'receipt_id', 'unique ID of the receipt'),
      ($r${schema}.receipts$r$, 'order_id', 'order that the receipt was sent for; NULL for a restore'),
      ($r${schema}.receipts$r$, 'user_id', 'user who sent the receipt'),
      ($r${schema}.receipts$r$, 'payload', 'base64 app receipt, base64 old transaction receipt, or signed transaction (JWS)'),
      ($r${schema}.receipts$r$, 'environment', 'Production or Sandbox as the client claimed; never evidence'),
      ($r${schema}.receipts$r$, 'status', 'result of the first verification: unverified, verified, timeout or rejected'),
      ($r${schema}.receipts$r$, 'checked_at', 'time of the first verification'),
      ($r${schema}.receipts$r$, 'received_at', 'time when the shop received the receipt'),
      ($r${schema}.deliveries$r$, 'delivery_id', 'unique ID of the delivery'),
      ($r${schema}.deliveries$r$, 'order_id', 'order that the goods were delivered for'),
      ($r${schema}.deliveries$r$, 'user_id', 'user who received the goods'),
      ($r${schema}.deliveries$r$, 'product_id', 'product identifier of App Store Connect'),
      ($r${schema}.deliveries$r$, 'quantity', 'delivered units, in the same unit as in orders; at least 1'),
      ($r${schema}.deliveries$r$, 'delivered_at', 'time of the delivery'),
      ($r${schema}.deliveries$r$, 'revoked_at', 'time when the goods were taken back; NULL while the user has them')
    ) AS d (relation, name, meaning)
    JOIN pg_attribute a ON a.attrelid = d.relation::regclass AND a.attname = d.name
    JOIN pg_class t ON t.oid = a.attrelid
    WHERE t.relkind = 'r' AND pg_has_role(t.relowner, 'USAGE') AND col_description(a.attrelid, a.attnum) IS NULL
  LOOP
    EXECUTE format('COMMENT ON COLUMN %s.%I IS %L', c.relation, c.attname, c.meaning);
  END LOOP;
END $comments$;
