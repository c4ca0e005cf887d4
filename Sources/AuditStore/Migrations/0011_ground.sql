-- Why the asking about an app was ended, or not believed, in the runs of an as-of: an audit that asks nobody says the same.
CREATE TABLE night_audit.asking_faults (
  as_of  timestamptz NOT NULL,
  app    text COLLATE "C" NOT NULL,
  remedy text NOT NULL,
  PRIMARY KEY (as_of, app)
);
CREATE VIEW night_audit.bi_asking_faults AS SELECT * FROM night_audit.asking_faults;
