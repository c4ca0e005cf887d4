-- The sales schema in its plain form, for a new shop and for rehearsals. {schema} is database.salesSchema.
CREATE SCHEMA IF NOT EXISTS {schema};

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
-- What is new is found by its date: a night takes in what has come since the one before.
CREATE INDEX IF NOT EXISTS receipts_received ON {schema}.receipts (received_at);
CREATE INDEX IF NOT EXISTS orders_updated ON {schema}.orders (updated_at);
-- And what concerns one order or one user is read by these alone: `explain`, `reconcile --order`, `reconcile --user`.
CREATE INDEX IF NOT EXISTS orders_user ON {schema}.orders (user_id);
CREATE INDEX IF NOT EXISTS receipts_user ON {schema}.receipts (user_id);
CREATE INDEX IF NOT EXISTS deliveries_user ON {schema}.deliveries (user_id);
CREATE INDEX IF NOT EXISTS orders_transaction ON {schema}.orders
  (btrim(transaction_id COLLATE "C", E' \t\n\x0B\f\r'));
CREATE INDEX IF NOT EXISTS orders_token ON {schema}.orders
  (regexp_replace(translate(lower(app_account_token COLLATE "C"), E'-{} \t\n\x0B\f\r', ''), '^urn:uuid:', ''));

-- The page Views has the same texts.
COMMENT ON COLUMN {schema}.orders.order_id IS 'unique ID of the order; at most 1,000 bytes';
COMMENT ON COLUMN {schema}.orders.user_id IS 'user who placed the order';
COMMENT ON COLUMN {schema}.orders.bundle_id IS 'bundle ID of the app; NULL means the only configured app';
COMMENT ON COLUMN {schema}.orders.product_id IS 'product identifier of App Store Connect';
COMMENT ON COLUMN {schema}.orders.quantity IS 'ordered units, in the same unit as in deliveries; at least 1';
COMMENT ON COLUMN {schema}.orders.amount IS 'total of the order in major units, with no more decimals than the currency has';
COMMENT ON COLUMN {schema}.orders.currency IS 'ISO 4217 code';
COMMENT ON COLUMN {schema}.orders.status IS 'pending, verified, failed, cancelled or refunded, as the shop believes; never evidence';
COMMENT ON COLUMN {schema}.orders.transaction_id IS 'Apple''s transaction ID as the client or the first verification reported it';
COMMENT ON COLUMN {schema}.orders.app_account_token IS 'UUID that the app gave to StoreKit for this user';
COMMENT ON COLUMN {schema}.orders.created_at IS 'time when the order was placed';
COMMENT ON COLUMN {schema}.orders.verified_at IS 'time since when the shop believes that the order is paid';
COMMENT ON COLUMN {schema}.orders.updated_at IS 'time of the last change of the row';
COMMENT ON COLUMN {schema}.receipts.receipt_id IS 'unique ID of the receipt';
COMMENT ON COLUMN {schema}.receipts.order_id IS 'order that the receipt was sent for; NULL for a restore';
COMMENT ON COLUMN {schema}.receipts.user_id IS 'user who sent the receipt';
COMMENT ON COLUMN {schema}.receipts.payload IS 'base64 app receipt, base64 old transaction receipt, or signed transaction (JWS)';
COMMENT ON COLUMN {schema}.receipts.environment IS 'Production or Sandbox as the client claimed; never evidence';
COMMENT ON COLUMN {schema}.receipts.status IS 'result of the first verification: unverified, verified, timeout or rejected';
COMMENT ON COLUMN {schema}.receipts.checked_at IS 'time of the first verification';
COMMENT ON COLUMN {schema}.receipts.received_at IS 'time when the shop received the receipt';
COMMENT ON COLUMN {schema}.deliveries.delivery_id IS 'unique ID of the delivery';
COMMENT ON COLUMN {schema}.deliveries.order_id IS 'order that the goods were delivered for';
COMMENT ON COLUMN {schema}.deliveries.user_id IS 'user who received the goods';
COMMENT ON COLUMN {schema}.deliveries.product_id IS 'product identifier of App Store Connect';
COMMENT ON COLUMN {schema}.deliveries.quantity IS 'delivered units, in the same unit as in orders; at least 1';
COMMENT ON COLUMN {schema}.deliveries.delivered_at IS 'time of the delivery';
COMMENT ON COLUMN {schema}.deliveries.revoked_at IS 'time when the goods were taken back; NULL while the user has them';
