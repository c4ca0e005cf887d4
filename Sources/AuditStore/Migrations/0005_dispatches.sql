-- Reports that are owed to the places of report.deliver: a row for each. It is written together with the run, before the
-- report appears, so that whatever a night cannot send, or is killed before it sends, the next one still knows of.

CREATE TABLE night_audit.dispatches (
  dispatch_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_id       uuid NOT NULL REFERENCES night_audit.runs ON DELETE CASCADE,
  target       text COLLATE "C" NOT NULL,
  directory    text COLLATE "C" NOT NULL,
  -- withdrawn: there is nothing to send any more; problem says why.
  state        text NOT NULL DEFAULT 'owed' CHECK (state IN ('owed', 'delivered', 'withdrawn')),
  attempts     integer NOT NULL DEFAULT 0,
  problem      text,
  -- SHA-256 of the folder's SHA256SUMS: the content that was sent.
  content      text,
  queued_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  settled_at   timestamptz
);
CREATE INDEX dispatches_owed ON night_audit.dispatches (dispatch_id) WHERE state = 'owed';
CREATE INDEX dispatches_place ON night_audit.dispatches (directory, target, dispatch_id);

CREATE VIEW night_audit.bi_dispatches AS SELECT * FROM night_audit.dispatches;
