-- What Apple counted and what Apple pays: its reports as they were downloaded, and how they compare with what is known.

-- One row for each download, whatever came of it. Append-only, but for raw files that have had their time.
CREATE TABLE night_audit.connect_reports (
  report_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  vendor      text COLLATE "C" NOT NULL,
  kind        text COLLATE "C" NOT NULL CHECK (kind IN ('SALES', 'FINANCIAL', 'FINANCE_DETAIL')),
  -- DAILY, WEEKLY, MONTHLY or YEARLY; of finance reports empty.
  frequency   text COLLATE "C" NOT NULL,
  -- The day or month, or the fiscal period: 2026-11-19, 2026-11, 2027-02.
  name        text COLLATE "C" NOT NULL,
  version     text,
  source      text NOT NULL CHECK (source IN ('api', 'folder')),
  file_name   text,
  as_of       timestamptz NOT NULL,
  recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  state       text NOT NULL CHECK (state IN ('reported', 'zero', 'doubtful_zero', 'pending', 'gone', 'drift',
                                             'unreadable', 'unknown')),
  http_status integer,
  digest      text,
  detail      text,
  raw         bytea
);
CREATE INDEX connect_reports_name ON night_audit.connect_reports (kind, frequency, name, vendor);

-- Which download of a report counts: the newest one, and no absence after it was there.
CREATE VIEW night_audit.connect_reports_current AS
  SELECT DISTINCT ON (kind, frequency, name, vendor)
    report_id, vendor, kind, frequency, name, version, source, file_name, as_of, state, http_status, digest, detail
  FROM night_audit.connect_reports
  ORDER BY kind, frequency, name, vendor, (state IN ('reported', 'zero', 'unreadable')) DESC, as_of DESC,
    report_id DESC;

-- Sales reports, summed to what the tie-out tells apart. A sum may lie in several parts. Days count from 1970-01-01.
CREATE TABLE night_audit.connect_sales (
  report_id          bigint NOT NULL REFERENCES night_audit.connect_reports ON DELETE CASCADE,
  day                integer NOT NULL,
  sku                text COLLATE "C" NOT NULL,
  parent             text COLLATE "C" NOT NULL,
  type               text COLLATE "C" NOT NULL,
  country            text COLLATE "C" NOT NULL,
  customer_currency  text COLLATE "C" NOT NULL,
  proceeds_currency  text COLLATE "C" NOT NULL,
  customer_price     numeric NOT NULL,
  developer_proceeds numeric NOT NULL,
  sign               integer NOT NULL,
  is_renewal         boolean NOT NULL,
  units              numeric NOT NULL,
  rows               bigint NOT NULL
);
CREATE INDEX connect_sales_report ON night_audit.connect_sales (report_id);
CREATE VIEW night_audit.connect_sales_current AS
  SELECT r.vendor, r.frequency, r.name, date '1970-01-01' + s.day AS report_day, s.*
  FROM night_audit.connect_sales s JOIN night_audit.connect_reports_current r USING (report_id);

CREATE TABLE night_audit.connect_settlements (
  report_id       bigint NOT NULL REFERENCES night_audit.connect_reports ON DELETE CASCADE,
  transaction_day integer,
  settlement_day  integer,
  sku             text COLLATE "C" NOT NULL,
  country         text COLLATE "C" NOT NULL,
  currency        text COLLATE "C" NOT NULL,
  partner_share   numeric NOT NULL,
  quantity        numeric NOT NULL,
  extended_share  numeric NOT NULL
);
CREATE INDEX connect_settlements_report ON night_audit.connect_settlements (report_id);

-- Each tie-out. Append-only.
CREATE TABLE night_audit.tie_outs (
  tie_out_id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  as_of              timestamptz NOT NULL,
  recorded_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  first_day          text COLLATE "C" NOT NULL,
  last_day           text COLLATE "C" NOT NULL,
  complete           boolean NOT NULL,
  incomplete_reasons text[] NOT NULL,
  notes              text[] NOT NULL
);

-- What the newest tie-out of each day says, one row a key; days that have left the window stay as they were.
CREATE TABLE night_audit.tie_out_rows (
  level           text COLLATE "C" NOT NULL,
  app             text COLLATE "C" NOT NULL,
  product_id      text COLLATE "C" NOT NULL,
  day             text COLLATE "C" NOT NULL,
  country         text COLLATE "C" NOT NULL,
  currency        text COLLATE "C" NOT NULL,
  class           text COLLATE "C" NOT NULL,
  apple           numeric,
  ours            numeric,
  shop            numeric,
  difference      numeric,
  not_reported    numeric,
  other_scope     numeric,
  free            numeric,
  restore         numeric,
  timing          numeric,
  refund_timing   numeric,
  refund_unknown  numeric,
  partial_refund  numeric,
  upgrade         numeric,
  renewal         numeric,
  country_unknown numeric,
  price           numeric,
  rounding        numeric,
  unknown_product numeric,
  unexplained     numeric,
  -- Of the unexplained: units of orders whose payment nobody has confirmed so far.
  awaited         numeric,
  PRIMARY KEY (level, app, product_id, day, country, currency, class)
);
CREATE INDEX tie_out_rows_day ON night_audit.tie_out_rows (day);
CREATE TABLE night_audit.tie_out_periods (
  fiscal_period       text COLLATE "C" NOT NULL,
  currency            text COLLATE "C" NOT NULL,
  sales_proceeds      numeric,
  open_at_end         numeric,
  settled_from_before numeric,
  never_collected     numeric,
  settled             numeric,
  difference          numeric,
  PRIMARY KEY (fiscal_period, currency)
);
CREATE VIEW night_audit.bi_tie_outs AS SELECT * FROM night_audit.tie_outs;
CREATE VIEW night_audit.bi_tie_out_days AS
  SELECT level, app, product_id, day::date AS day, country, currency, class, apple, ours, shop, difference,
    not_reported, other_scope, free, restore, timing, refund_timing, refund_unknown, partial_refund, upgrade, renewal,
    country_unknown, price, rounding, unknown_product, unexplained
  FROM night_audit.tie_out_rows;
CREATE VIEW night_audit.bi_tie_out_periods AS SELECT * FROM night_audit.tie_out_periods;
