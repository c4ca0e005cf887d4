-- The stretches of a window that are not read yet: they are read side by side, each page by page. A pagination token is good
-- for one and the same stretch only.
CREATE TABLE night_audit.sweep_slices (
  bundle_id         text COLLATE "C" NOT NULL,
  environment       text COLLATE "C" NOT NULL,
  notification_type text COLLATE "C" NOT NULL,
  slice_start       timestamptz NOT NULL,
  slice_end         timestamptz NOT NULL,
  pagination_token  text,
  refused           integer NOT NULL DEFAULT 0,
  PRIMARY KEY (bundle_id, environment, notification_type, slice_start),
  FOREIGN KEY (bundle_id, environment, notification_type) REFERENCES night_audit.sweeps ON DELETE CASCADE
);
INSERT INTO night_audit.sweep_slices (bundle_id, environment, notification_type, slice_start, slice_end, pagination_token)
SELECT bundle_id, environment, notification_type, window_start, window_end, pagination_token
FROM night_audit.sweeps WHERE window_start IS NOT NULL AND window_end IS NOT NULL;
ALTER TABLE night_audit.sweeps DROP COLUMN pagination_token;
