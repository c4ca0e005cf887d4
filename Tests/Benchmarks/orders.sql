-- Fills sales and night_audit with :orders orders of :users users, deterministically. Writes the test users to
-- :testers.
--
--   psql --set=orders=100000 --set=users=16667 --set=testers=FILE --set=ids=hashed --set=troubled=100 --file=orders.sql
--
-- In :troubled of a hundred hundreds of orders, half of the orders are settled and the others have one of these
-- stories; all orders of the other hundreds are settled:
--
--    0 paid_not_delivered       16 refunded, all well           31 delivered_before_paid
--    1 partly_delivered         17 partial_refund               32 future_dated
--    2 no evidence, delivered   18 refund_not_booked            33 account_token_missing
--    3 cancelled_but_paid       19 refund_only_here             34 bad_row, five ways
--    4 orphan_payment besides   20 delivered_twice              35 never paid, never delivered
--    5 duplicate_claim          21 orphan_delivery besides      36 receipt that nobody has checked yet
--    6 charged_twice            22 quantity_mismatch            37 in_flight
--    7 wrong_user               23 amount_mismatch              38 Apple knows no such transaction, delivered
--    8 product_mismatch         24 currency_mismatch            39 looked up by its transaction id, no receipt
--    9 wrong_bundle             25 family_shared_sale           41-46 app receipt, the order names no transaction
--   10 signature_invalid        26 lapsed_still_served          48 malformed receipt
--   11 sandbox_delivered        27 stuck_unconfirmed            50 the order whose transaction number 5 claims
--   12 sandbox by a test user   28 renewal_without_order besides
--   13 delivered_after_refund   29 status_mismatch              all others are paid by a signed transaction,
--   14 refund_reversed_not_reinstated                           delivered, and verified by the shop
--   15 refunded_still_delivered 30 environment_mislabelled
--
-- `hashed` IDs are on disk in another order than their own; `ordered` IDs count up as bigserial does, and Apple's, too.
-- Payloads are short, because a report never reads them: in real tables they are stored outside of the row.
\set ON_ERROR_STOP on
\set as_of '''2026-11-20 02:00:00+00'''
SET synchronous_commit = off;
SET maintenance_work_mem = '256MB';
SET work_mem = '64MB';

CREATE SCHEMA benchmark;

CREATE FUNCTION benchmark.mix(number bigint, salt bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN hashint8extended(number, salt) & 9223372036854775807;

-- An ID of 16 to 19 digits, if hashed.
CREATE FUNCTION benchmark.id(number bigint, salt bigint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN :'ids' = 'ordered'
    THEN (CASE WHEN salt IN (5, 17, 18, 19) THEN 2000000000000000 ELSE 0 END + number * 20 + salt)::text ELSE (
    SELECT (floor + hash / 4 % (8 * floor))::text
    FROM (SELECT hash, (ARRAY[1, 10, 100, 1000])[1 + hash % 4] * 1000000000000000 AS floor
          FROM (SELECT benchmark.mix(number, salt) AS hash) AS hashed) AS sized) END;

-- Minor units for one US cent, rounded.
CREATE TABLE benchmark.currencies (place integer, currency text, digits integer, rate numeric);
INSERT INTO benchmark.currencies
SELECT place, currency, digits, rate
FROM (VALUES (0, 44, 'USD', 2, 1), (45, 64, 'EUR', 2, 1), (65, 74, 'JPY', 0, 1.5), (75, 82, 'GBP', 2, 0.8),
             (83, 86, 'KWD', 3, 3), (87, 91, 'INR', 2, 80), (92, 95, 'BRL', 2, 5), (96, 99, 'KRW', 0, 14))
     AS share (low, high, currency, digits, rate), generate_series(low, high) AS place;

CREATE TABLE benchmark.products (place integer, product_id text, cents integer);
INSERT INTO benchmark.products
SELECT place, 'com.example.game.' || name, cents
FROM (VALUES (0, 'gems.100', 99), (1, 'gems.550', 499), (2, 'gems.1200', 999), (3, 'gems.2500', 1999),
             (4, 'gems.6500', 4999), (5, 'gems.14000', 9999), (6, 'coins.small', 199), (7, 'coins.large', 1499),
             (8, 'starter.pack', 299), (9, 'energy.refill', 99), (10, 'chest.gold', 799), (11, 'season.ticket', 1099))
     AS listed (place, name, cents);

CREATE UNLOGGED TABLE benchmark.sales AS
SELECT
  number, story, variant, owner,
  benchmark.id(number, 1) AS order_id,
  CASE
    WHEN story = 12 THEN benchmark.id(variant % 100, 3)
    WHEN story = 5 AND variant % 2 = 1 THEN benchmark.id(benchmark.mix(number, 4) % :users, 2)
    ELSE benchmark.id(buyer, 2)
  END AS user_id,
  CASE WHEN buyer % 2 = 0 AND story NOT IN (5, 50) OR story = 33 THEN
    overlay(overlay(left(encode(sha256(buyer::text::bytea), 'hex'), 32) placing '4' FROM 13) placing 'a' FROM 17)::uuid::text
  END AS token,
  benchmark.id(owner, 5) AS transaction_id,
  CASE WHEN story = 26 THEN 'com.example.game.pass.monthly' ELSE product_id END AS product_id,
  currency, digits,
  (ceil(cents * rate) * quantity)::bigint AS minor_units,
  quantity,
  created_at + interval '2 seconds' AS purchased_at,
  created_at,
  story IN (6, 41, 42, 43, 44, 45, 46) AS is_app_receipt,
  story NOT IN (2, 34, 35, 38, 39) AS has_receipt,
  story NOT IN (2, 5, 10, 27, 34, 35, 36, 38, 48) AS has_transaction,
  story NOT IN (0, 8, 9, 10, 27, 35, 37, 48) AS has_delivery,
  CASE WHEN story IN (11, 12) THEN 'Sandbox' ELSE 'Production' END AS environment,
  CASE
    WHEN story IN (10, 48) THEN 'rejected'
    WHEN story = 27 THEN 'unanswered'
    WHEN story = 36 THEN 'pending'
    WHEN story = 38 THEN 'not_found'
    ELSE 'verified'
  END AS outcome,
  -- The last answer: in one of the last three nights, or at once. Critical ones were asked about again in this night.
  CASE
    WHEN story = 37 THEN created_at + interval '5 seconds'
    WHEN story IN (0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 38, 50) THEN :as_of::timestamptz
    ELSE :as_of::timestamptz - interval '1 day' * (1 + benchmark.mix(number, 6) % 3)
  END AS checked_at
FROM (
  SELECT
    number, story, variant, owner,
    benchmark.mix(owner, 4) % :users AS buyer,
    CASE WHEN story = 1 THEN 3
      ELSE (ARRAY[1, 1, 1, 1, 1, 1, 1, 1, 2, 3])[1 + benchmark.mix(owner, 7) % 10]
    END AS quantity,
    (benchmark.mix(owner, 8) % 12)::integer AS product,
    CASE
      WHEN story = 36 THEN :as_of::timestamptz - interval '3 hours' - interval '1 microsecond' * (drift % 144000000000)
      WHEN story = 37 THEN :as_of::timestamptz - interval '10 minutes' - interval '1 microsecond' * (drift % 2400000000)
      WHEN story = 26 THEN '2026-08-23 00:00:00+00'::timestamptz + interval '1 microsecond' * (drift % 1728000000000)
      ELSE '2026-08-23 00:00:00+00'::timestamptz + interval '1 microsecond' * (drift % 7344000000000)
        + CASE WHEN story = 5 THEN interval '10 minutes' ELSE interval '0' END
    END AS created_at
  FROM (
    SELECT number, story, variant, owner, benchmark.mix(owner, 9) AS drift
    FROM (
      SELECT number, story, number / 100 AS variant, CASE WHEN story = 5 THEN number + 45 ELSE number END AS owner
      FROM (
        SELECT number, CASE WHEN number / 100 * 37 % 100 < :troubled THEN number % 100 ELSE 49 END AS story
        FROM generate_series(0, :orders::bigint - 1) AS number) AS numbered) AS told) AS drifting) AS sale
JOIN benchmark.currencies ON place = benchmark.mix(buyer, 10) % 100
JOIN benchmark.products AS products ON products.place = product
ORDER BY number;

INSERT INTO sales.orders (order_id, user_id, bundle_id, product_id, quantity, amount, currency, status, transaction_id,
                          app_account_token, created_at, verified_at, updated_at)
SELECT order_id, user_id, 'com.example.game', product_id,
  CASE WHEN story = 34 AND variant % 5 = 0 THEN 0 ELSE quantity END,
  round(minor_units / power(10::numeric, digits), digits) * CASE WHEN story = 34 AND variant % 5 = 1 THEN -1 ELSE 1 END
    + CASE WHEN story = 34 AND variant % 5 = 2 THEN 0.00001 ELSE 0 END,
  CASE WHEN story = 34 AND variant % 5 = 3 THEN 'ZZZ' ELSE currency END,
  CASE
    WHEN story = 34 AND variant % 5 = 4 THEN 'shipped'
    WHEN story IN (27, 29, 35, 36, 48) THEN 'pending'
    WHEN story IN (8, 9, 10) OR story = 3 AND variant % 2 = 0 THEN 'failed'
    WHEN story = 3 THEN 'cancelled'
    WHEN story IN (13, 15, 16, 19) THEN 'refunded'
    ELSE 'verified'
  END,
  CASE WHEN story NOT IN (2, 34, 35, 41, 42, 43, 44, 45, 46, 48) THEN transaction_id END,
  token, created_at,
  CASE WHEN story = 32 THEN :as_of::timestamptz + interval '1 day'
    WHEN story NOT IN (27, 29, 35, 36, 48) THEN created_at + interval '4 seconds' END,
  created_at + interval '6 seconds'
FROM benchmark.sales;

INSERT INTO sales.deliveries (delivery_id, order_id, user_id, product_id, quantity, delivered_at, revoked_at)
SELECT benchmark.id(number, 11), order_id,
  CASE WHEN story = 7 THEN benchmark.id(number, 12) ELSE user_id END, product_id,
  CASE WHEN story = 1 THEN 1 ELSE quantity END,
  CASE
    WHEN story = 13 THEN purchased_at + interval '49 hours'
    WHEN story = 31 THEN purchased_at - interval '1 hour'
    ELSE purchased_at + interval '3 seconds'
  END,
  CASE WHEN story IN (14, 16, 18) THEN purchased_at + interval '72 hours' END
FROM benchmark.sales WHERE has_delivery
UNION ALL
SELECT benchmark.id(number, 13), order_id, user_id, product_id, quantity, purchased_at + interval '1 minute', NULL
FROM benchmark.sales WHERE story = 20
UNION ALL
SELECT benchmark.id(number, 13), CASE WHEN variant % 2 = 0 THEN benchmark.id(number, 14) END, user_id, product_id, 1,
  purchased_at, NULL
FROM benchmark.sales WHERE story = 21;

INSERT INTO sales.receipts (receipt_id, order_id, user_id, payload, environment, status, checked_at, received_at)
SELECT benchmark.id(number, 15), order_id, user_id, left(encode(sha256(number::text::bytea), 'hex'), 18),
  CASE WHEN story = 30 THEN 'Sandbox' ELSE environment END,
  CASE outcome
    WHEN 'rejected' THEN 'rejected' WHEN 'unanswered' THEN 'timeout' WHEN 'pending' THEN 'unverified'
    ELSE 'verified'
  END,
  created_at + interval '4 seconds', created_at + interval '3 seconds'
FROM benchmark.sales WHERE has_receipt
UNION ALL
-- A restore: its receipt contains a purchase without an order.
SELECT benchmark.id(number, 16), NULL, user_id, left(encode(sha256(number::text::bytea), 'hex'), 18), 'Production', 'verified',
  created_at + interval '1 day', created_at + interval '1 day'
FROM benchmark.sales WHERE story IN (4, 28);

INSERT INTO night_audit.receipt_checks (subject_kind, subject_id, order_id, received_at, app, payload_kind, outcome,
  reason, channel, environment, bundle_id, apple_status, attempts, last_attempt, due_from, answered_at,
  signed_transaction_id, brought_count, is_urgent, known_since, outcome_since, unanswered_since)
SELECT CASE WHEN has_receipt THEN 'receipt' ELSE 'lookup' END,
  CASE WHEN has_receipt THEN benchmark.id(number, 15) ELSE 'com.example.game/' || transaction_id END, order_id,
  created_at + interval '3 seconds',
  'game',
  CASE WHEN NOT has_receipt THEN NULL WHEN story = 48 THEN 'malformed' WHEN is_app_receipt THEN 'app' ELSE 'signed' END,
  outcome,
  CASE story WHEN 10 THEN 'signature_invalid' WHEN 27 THEN 'unreachable' WHEN 36 THEN 'never_checked'
             WHEN 38 THEN 'not_found' WHEN 48 THEN 'malformed' END,
  CASE WHEN outcome <> 'pending' THEN CASE WHEN is_app_receipt THEN 'verifyReceipt' ELSE 'serverApi' END END,
  CASE WHEN outcome = 'verified' THEN environment END,
  CASE WHEN outcome = 'verified' THEN CASE WHEN story = 9 THEN 'com.example.other' ELSE 'com.example.game' END END,
  CASE WHEN outcome = 'verified' AND is_app_receipt THEN 0 END,
  CASE outcome WHEN 'unanswered' THEN 5 WHEN 'pending' THEN 0 ELSE 1 END,
  CASE WHEN outcome <> 'pending' THEN checked_at END,
  CASE WHEN outcome = 'unanswered' THEN :as_of::timestamptz + interval '20 hours' END,
  CASE WHEN outcome IN ('verified', 'rejected', 'not_found') THEN checked_at END,
  CASE WHEN has_receipt AND outcome = 'verified' AND NOT is_app_receipt THEN transaction_id END,
  CASE WHEN outcome <> 'verified' THEN 0 WHEN story = 6 THEN 2 ELSE 1 END, false,
  created_at + interval '3 seconds', CASE WHEN outcome <> 'pending' THEN checked_at END,
  CASE WHEN outcome = 'unanswered' THEN checked_at END
FROM benchmark.sales
-- Every other new receipt is not queued yet.
WHERE has_receipt AND NOT (story = 36 AND variant % 2 = 0) OR story IN (38, 39)
UNION ALL
SELECT 'receipt', benchmark.id(number, 16), NULL, created_at + interval '1 day', 'game', 'app', 'verified', NULL,
  'verifyReceipt', 'Production', 'com.example.game', 0, 1, checked_at, NULL, checked_at, NULL, 1, false,
  created_at + interval '1 day', checked_at, NULL
FROM benchmark.sales WHERE story IN (4, 28);

-- Transactions with their owners for the floor and pandas, which do not match them.
CREATE SCHEMA floor;
CREATE TABLE floor.transactions (LIKE night_audit.transactions, order_id text COLLATE "C");

INSERT INTO floor.transactions (environment, transaction_id, order_id, original_transaction_id, bundle_id,
  product_id, product_type, quantity, purchased_at, original_purchased_at, expires_at, subscription_expires_at,
  revoked_at, revocation_percentage, revocation_type, revocation_reason, revocation_withdrawn_at, price_milliunits, currency,
  revocation_told_at, tells_account_token, app_account_token, ownership, is_renewal, has_offer, is_upgraded,
  is_contradictory, channel, signed_at, checked_at)
SELECT environment, transaction_id, order_id, transaction_id,
  CASE WHEN story = 9 THEN 'com.example.other' ELSE 'com.example.game' END,
  CASE WHEN story = 8 THEN 'com.example.game.gift' ELSE product_id END,
  CASE WHEN story = 26 THEN 'Auto-Renewable Subscription' ELSE 'Consumable' END,
  CASE WHEN story = 22 THEN quantity + 1 ELSE quantity END,
  purchased_at, purchased_at,
  CASE WHEN story = 26 THEN purchased_at + interval '30 days' END,
  CASE WHEN story = 26 THEN purchased_at + interval '30 days' END,
  CASE WHEN story IN (13, 15, 16, 17, 18) THEN purchased_at + interval '48 hours' END,
  CASE WHEN story = 17 THEN 50000 END,
  CASE WHEN story = 17 THEN 'REFUND_PRORATED' WHEN story IN (13, 15, 16, 18) THEN 'REFUND_FULL' END,
  CASE WHEN story IN (13, 15, 16, 17, 18) THEN variant % 2 END,
  CASE WHEN story = 14 THEN purchased_at + interval '96 hours' END,
  CASE WHEN NOT is_app_receipt THEN
    minor_units * power(10, 3 - digits)::bigint + CASE WHEN story = 23 THEN 1000 ELSE 0 END
  END,
  CASE WHEN is_app_receipt THEN NULL WHEN story = 24 THEN 'CHF' ELSE currency END,
  CASE WHEN NOT is_app_receipt THEN checked_at END, NOT is_app_receipt,
  CASE WHEN NOT is_app_receipt AND story <> 33 THEN token END,
  CASE WHEN story = 25 THEN 'FAMILY_SHARED' ELSE 'PURCHASED' END,
  false, false, false, false,
  CASE WHEN is_app_receipt THEN 'verifyReceipt' ELSE 'serverApi' END, checked_at, checked_at
FROM benchmark.sales WHERE has_transaction
UNION ALL
-- The second charge of an order, in the same app receipt.
SELECT environment, benchmark.id(number, 17), order_id, benchmark.id(number, 17), 'com.example.game', product_id,
  'Consumable', quantity, purchased_at + interval '1 minute', purchased_at + interval '1 minute', NULL, NULL,
  NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, 'PURCHASED', false, false, false, false,
  'verifyReceipt', checked_at, checked_at
FROM benchmark.sales WHERE story = 6
UNION ALL
-- Transactions of restores: a purchase or a renewal without an order.
SELECT 'Production', benchmark.id(number, 18), NULL,
  CASE WHEN story = 4 THEN benchmark.id(number, 18) ELSE benchmark.id(number, 19) END, 'com.example.game',
  CASE WHEN story = 4 THEN product_id ELSE 'com.example.game.pass.monthly' END,
  CASE WHEN story = 4 THEN 'Consumable' ELSE 'Auto-Renewable Subscription' END, 1, purchased_at,
  CASE WHEN story = 4 THEN purchased_at ELSE purchased_at - interval '30 days' END,
  CASE WHEN story = 28 THEN purchased_at + interval '120 days' END,
  CASE WHEN story = 28 THEN purchased_at + interval '120 days' END,
  NULL, NULL, NULL, NULL, NULL,
  minor_units * power(10, 3 - digits)::bigint, currency, checked_at, true, NULL, 'PURCHASED', story = 28, false, false, false,
  'serverApi', checked_at, checked_at
FROM benchmark.sales WHERE story IN (4, 28);

-- Apple's status ends a subscription, not the expiry date.
UPDATE floor.transactions SET subscription_status = 2, subscription_status_at = checked_at
WHERE expires_at IS NOT NULL AND NOT is_renewal;

INSERT INTO night_audit.lookups (order_id, subject_id)
SELECT order_id, 'com.example.game/' || transaction_id FROM benchmark.sales
WHERE NOT has_receipt AND (story IN (38, 39) OR has_transaction);

INSERT INTO night_audit.receipt_transactions (subject_kind, subject_id, environment, transaction_id)
SELECT CASE WHEN has_receipt THEN 'receipt' ELSE 'lookup' END,
  CASE WHEN has_receipt THEN benchmark.id(number, 15) ELSE 'com.example.game/' || transaction_id END, environment, transaction_id
FROM benchmark.sales WHERE has_transaction OR story = 5
UNION ALL
SELECT 'receipt', benchmark.id(number, 15), environment, benchmark.id(number, 17)
FROM benchmark.sales WHERE story = 6
UNION ALL
SELECT 'receipt', benchmark.id(number, 16), 'Production', benchmark.id(number, 18)
FROM benchmark.sales WHERE story IN (4, 28);

DO $$
DECLARE
  names text := (
    SELECT string_agg(quote_ident(column_name), ', ' ORDER BY ordinal_position) FROM information_schema.columns
    WHERE table_schema = 'night_audit' AND table_name = 'transactions');
BEGIN
  EXECUTE format('INSERT INTO night_audit.transactions (%s) SELECT %s FROM floor.transactions', names, names);
END $$;
CREATE INDEX ON floor.transactions (order_id);

\t on
\pset format unaligned
\o :testers
SELECT DISTINCT user_id FROM benchmark.sales WHERE story = 12 ORDER BY 1;
\o
DROP SCHEMA benchmark CASCADE;
VACUUM (ANALYZE) sales.orders, sales.deliveries, sales.receipts, night_audit.transactions, night_audit.receipt_checks,
  night_audit.receipt_transactions, floor.transactions;
CHECKPOINT;
