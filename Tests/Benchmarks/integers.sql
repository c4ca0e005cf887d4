-- Converts the shop of orders.sql to integer IDs, minor units and numeric states, with views as on the page Views.
-- Bad rows cannot be converted: :troubled at most 34.
SET synchronous_commit = off;
SET work_mem = '64MB';

CREATE TABLE public.products AS
SELECT row_number() OVER (ORDER BY app_store_id)::integer AS id, app_store_id
FROM (SELECT product_id AS app_store_id FROM sales.orders UNION SELECT product_id FROM sales.deliveries) AS named;

CREATE TABLE public.purchases AS
SELECT o.order_id::bigint AS id, o.user_id::bigint AS account_id, d.id AS product_id, o.quantity AS qty,
  (o.amount * CASE WHEN o.currency IN ('JPY', 'KRW') THEN 1 WHEN o.currency = 'KWD' THEN 1000 ELSE 100 END)::bigint
    AS price_minor,
  o.currency::char(3) AS currency,
  array_position(ARRAY['pending', 'verified', 'failed', 'cancelled', 'refunded'], o.status) - 1 AS state,
  o.transaction_id AS apple_transaction, o.app_account_token::uuid AS store_token,
  o.created_at AS created, o.verified_at AS paid, o.updated_at AS modified
FROM sales.orders o JOIN public.products d ON d.app_store_id = o.product_id ORDER BY 1;

CREATE TABLE public.apple_receipts AS
SELECT receipt_id::bigint AS id, order_id::bigint AS purchase_id, user_id::bigint AS account_id, payload AS receipt,
  environment = 'Sandbox' AS is_sandbox,
  array_position(ARRAY['unverified', 'verified', 'timeout', 'rejected'], status) - 1 AS check_state,
  checked_at AS checked, received_at AS received
FROM sales.receipts ORDER BY 1;

CREATE TABLE public.inventory_grants AS
SELECT g.delivery_id::bigint AS id, g.order_id::bigint AS purchase_id, g.user_id::bigint AS account_id, d.id AS product_id,
  g.quantity AS units, g.delivered_at AS granted, g.revoked_at AS taken_back
FROM sales.deliveries g JOIN public.products d ON d.app_store_id = g.product_id ORDER BY 1;

DROP TABLE sales.orders, sales.receipts, sales.deliveries;
ALTER TABLE public.products ADD PRIMARY KEY (id);
ALTER TABLE public.purchases ADD PRIMARY KEY (id);
ALTER TABLE public.apple_receipts ADD PRIMARY KEY (id);
ALTER TABLE public.inventory_grants ADD PRIMARY KEY (id);
