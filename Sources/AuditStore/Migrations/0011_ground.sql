-- Why the asking about an app was ended, or not believed, in the runs of an as-of: an audit that asks nobody says the same.
CREATE TABLE night_audit.asking_faults (
  as_of  timestamptz NOT NULL,
  app    text COLLATE "C" NOT NULL,
  remedy text NOT NULL,
  PRIMARY KEY (as_of, app)
);
CREATE VIEW night_audit.bi_asking_faults AS SELECT * FROM night_audit.asking_faults;

-- Where the purchase behind an order was made, for who bought what in the sandbox.
ALTER TABLE night_audit.order_nights ADD COLUMN environment text;
CREATE VIEW night_audit.bi_sandbox AS
  SELECT user_id, product_id, currency, count(*) AS orders, sum(amount) AS amount, bool_and(disposition = 'sandbox') AS allowed
  FROM (
    SELECT DISTINCT ON (order_id) user_id, product_id, currency, amount, disposition, environment
    FROM night_audit.order_nights ORDER BY order_id, as_of DESC) newest
  WHERE environment = 'Sandbox' AND amount IS NOT NULL GROUP BY user_id, product_id, currency;
