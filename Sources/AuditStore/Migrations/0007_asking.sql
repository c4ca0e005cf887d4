-- When a proof is asked about next, before which others and until when, is one rule of the program's. What it says is kept
-- in due_from (null: never), due_until and due_rank; the queue, the count of what is outstanding and explain read it there.
ALTER TABLE night_audit.receipt_checks RENAME COLUMN next_attempt TO due_from;
ALTER TABLE night_audit.receipt_checks
  ADD COLUMN due_until        timestamptz,
  ADD COLUMN due_rank         integer NOT NULL DEFAULT 0,
  -- As-of of the run that took the proof in as it is now.
  ADD COLUMN known_since      timestamptz,
  -- Whether anybody waits for the answer and can be asked.
  ADD COLUMN is_wanted        boolean NOT NULL DEFAULT true,
  -- As-of of the run that got this outcome first, all answers since having been the same.
  ADD COLUMN outcome_since    timestamptz,
  -- As-of of the first question since the last answer that stayed without one.
  ADD COLUMN unanswered_since timestamptz,
  -- As-of of the audit that waits with a critical finding until this is asked about again.
  ADD COLUMN critical_since   timestamptz,
  -- What payload, id and app were when it was asked about: a mended mapping is judged anew.
  ADD COLUMN fingerprint      text COLLATE "C",
  -- A refusal is held as `review` until it is known that the night has not too many of its kind; what it comes to then.
  ADD COLUMN refusal          text COLLATE "C",
  ADD COLUMN held_outcome     text,
  ADD COLUMN held_reason      text,
  -- Who is asking about it: the number of a worker, whose session holds the advisory lock of that number while it lives.
  ADD COLUMN worker           integer,
  DROP COLUMN leased_by,
  DROP COLUMN leased_until;
UPDATE night_audit.receipt_checks SET
  known_since = least(received_at, last_attempt), outcome_since = answered_at,
  unanswered_since = CASE WHEN outcome = 'unanswered' OR last_attempt > answered_at THEN last_attempt END;
ALTER TABLE night_audit.receipt_checks ALTER COLUMN known_since SET DEFAULT now(), ALTER COLUMN known_since SET NOT NULL;

DROP INDEX night_audit.receipt_checks_due, night_audit.receipt_checks_stale;
CREATE INDEX receipt_checks_due ON night_audit.receipt_checks (due_rank, due_from, subject_kind, subject_id)
  WHERE due_from IS NOT NULL;
-- What a mended mapping could change.
CREATE INDEX receipt_checks_doubtful ON night_audit.receipt_checks (subject_id)
  WHERE subject_kind = 'receipt' AND outcome IN ('rejected', 'review', 'not_found');
CREATE INDEX receipt_checks_held ON night_audit.receipt_checks (last_attempt) WHERE held_outcome IS NOT NULL;
-- To take a proof changes nothing that an index holds: with room on its page a row stays where it is.
ALTER TABLE night_audit.receipt_checks SET (fillfactor = 80);

CREATE SEQUENCE night_audit.worker_numbers AS integer MAXVALUE 2000000000 CYCLE;

-- One rate for all workers: when the next request about an app may start, for each side and interface of Apple's.
CREATE TABLE night_audit.rates (
  app       text COLLATE "C" NOT NULL,
  side      text COLLATE "C" NOT NULL,
  interface text COLLATE "C" NOT NULL,
  next_turn timestamptz NOT NULL,
  PRIMARY KEY (app, side, interface)
) WITH (fillfactor = 50);

-- How many first answers an app got in a night, and how many of them were refusals of one kind ('' counts all).
CREATE TABLE night_audit.first_answers (
  as_of   timestamptz NOT NULL,
  app     text COLLATE "C" NOT NULL,
  refusal text COLLATE "C" NOT NULL,
  answers integer NOT NULL,
  PRIMARY KEY (as_of, app, refusal)
);

-- Notifications in Apple's history that are not believed, each once, as they came.
CREATE TABLE night_audit.disbelieved_notifications (
  bundle_id         text COLLATE "C" NOT NULL,
  notification_type text COLLATE "C" NOT NULL,
  digest            text COLLATE "C" NOT NULL,
  as_of             timestamptz NOT NULL,
  reason            text NOT NULL,
  payload           text NOT NULL,
  PRIMARY KEY (bundle_id, notification_type, digest)
);
CREATE VIEW night_audit.bi_disbelieved_notifications AS
  SELECT bundle_id, notification_type, digest, as_of, reason FROM night_audit.disbelieved_notifications;

-- How far the shop's relations are known (`receipts`, `orders`), how they are defined (`definition`), and by which policy
-- dueness was reckoned (`policy`).
CREATE TABLE night_audit.asking_state (
  key   text COLLATE "C" PRIMARY KEY,
  value text NOT NULL
);
