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
