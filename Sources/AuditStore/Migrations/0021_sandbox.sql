-- Whether somebody who bought in the sandbox is on the list of test users; null where the purchase is not of the sandbox.
-- The bucket does not tell: an order of theirs may be unconfirmed, or claim what another order owns. Until the next night, who
-- has an order in the bucket of test users is on the list.
ALTER TABLE night_audit.order_nights ADD COLUMN is_allowed boolean;
UPDATE night_audit.order_nights
SET is_allowed = user_id IN (SELECT b.user_id FROM night_audit.bi_orders b WHERE b.disposition = 'sandbox')
WHERE environment = 'Sandbox';

-- Where nights differ, because an order is not there any more, the newest says it.
CREATE OR REPLACE VIEW night_audit.bi_sandbox AS
  SELECT user_id, product_id, currency, count(*) AS orders, sum(amount) AS amount,
    (array_agg(is_allowed ORDER BY as_of DESC))[1] AS allowed
  FROM (
    SELECT DISTINCT ON (order_id) user_id, product_id, currency, amount, environment, is_allowed, as_of
    FROM night_audit.order_nights ORDER BY order_id, as_of DESC) newest
  WHERE environment = 'Sandbox' AND amount IS NOT NULL GROUP BY user_id, product_id, currency;
