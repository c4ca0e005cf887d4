#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "stream.h"

static Proof* new_proof(Report* report) {
  if (report->proof_count == report->proof_capacity) {
    report->proof_capacity = report->proof_capacity ? report->proof_capacity * 2 : 1024;
    report->proofs = realloc(report->proofs, report->proof_capacity * sizeof *report->proofs);
    if (!report->proofs) fail("memory", "there is none left");
  }
  Proof* proof = &report->proofs[report->proof_count++];
  memset(proof, 0, sizeof *proof);
  return proof;
}

enum {
  SUBJECT,
  CHECK_ORDER,
  KIND,
  OUTCOME,
  REASON,
  CHANNEL,
  ENVIRONMENT,
  APPLE_STATUS,
  ATTEMPTS,
  LAST_ATTEMPT,
  NEXT_ATTEMPT
};
#define CHECK_COLUMNS                                                                                                 \
  "subject_id, order_id, payload_kind, outcome, reason, channel, environment, apple_status, attempts, last_attempt, " \
  "due_from"
enum {
  RECEIPT_ID,
  RECEIPT_ORDER,
  RECEIPT_USER,
  CLAIMED,
  RECEIVED
};

static void put_field(Table* table, const Stream* stream, int column) {
  char text[128];
  copy_text(stream, column, text, sizeof text);
  put_text(table, text);
}

static void keep_proof(Report* report, const Stream* receipt, const Stream* check) {
  Proof* proof = new_proof(report);
  if (receipt) {
    copy_text(receipt, RECEIPT_ORDER, proof->order_id, ID);
    copy_text(receipt, RECEIPT_ID, proof->subject_id, ID);
    copy_text(receipt, CLAIMED, proof->claimed, sizeof proof->claimed);
  } else {
    proof->is_lookup = true;
    copy_text(check, CHECK_ORDER, proof->order_id, ID);
  }
  proof->last_attempt = NONE;
  if (!check) return (void)strcpy(proof->outcome, "pending");
  copy_text(check, OUTCOME, proof->outcome, sizeof proof->outcome);
  copy_text(check, REASON, proof->reason, sizeof proof->reason);
  copy_text(check, ENVIRONMENT, proof->environment, sizeof proof->environment);
  proof->attempts = integer(check, ATTEMPTS);
  proof->last_attempt = instant(check, LAST_ATTEMPT);
}

static void write_receipt(Report* report, const Stream* receipt, const Stream* check) {
  Table* table = &report->receipts;
  for (int column = RECEIPT_ID; column <= RECEIPT_USER; column++) put_field(table, receipt, column);
  if (check) {
    put_field(table, check, KIND);
    put_field(table, check, CHANNEL);
    put_field(table, check, ENVIRONMENT);
    put_field(table, check, OUTCOME);
    if (is_null(check, APPLE_STATUS)) {
      put_nothing(table);
    } else {
      put_count(table, integer(check, APPLE_STATUS));
    }
    put_count(table, integer(check, ATTEMPTS));
    put_time(table, instant(check, LAST_ATTEMPT));
    put_time(table, instant(check, NEXT_ATTEMPT));
  } else {
    for (int empty = 0; empty < 3; empty++) put_nothing(table);
    put_text(table, "pending");
    put_nothing(table);
    put_count(table, 0);
    put_nothing(table);
    put_nothing(table);
  }
  put_count(table, (report->rules.as_of - instant(receipt, RECEIVED)) / INT64_C(86400000000));
  if (check) {
    put_field(table, check, REASON);
  } else {
    put_text(table, "never_checked");
  }
  end_row(table);
}

static int compare_proofs(const void* left, const void* right) {
  return strcmp(((const Proof*)left)->order_id, ((const Proof*)right)->order_id);
}

void read_receipts(Report* report, const char* snapshot) {
  Stream receipts, checks;
  stream_open(&receipts, snapshot,
              "SELECT receipt_id, order_id, user_id, environment, received_at FROM sales.receipts ORDER BY receipt_id");
  stream_open(&checks, snapshot,
              "SELECT " CHECK_COLUMNS
              " FROM night_audit.receipt_checks WHERE subject_kind = 'receipt' ORDER BY subject_id");
  bool has_check = stream_next(&checks);
  while (stream_next(&receipts)) {
    char id[ID], claimed[16];
    copy_text(&receipts, RECEIPT_ID, id, ID);
    copy_text(&receipts, CLAIMED, claimed, sizeof claimed);
    while (has_check && compare_text(&checks, SUBJECT, id) < 0) has_check = stream_next(&checks);
    const Stream* check = has_check && compare_text(&checks, SUBJECT, id) == 0 ? &checks : NULL;
    bool is_plain = check && text_is(check, OUTCOME, "verified") && text_is(check, ENVIRONMENT, claimed);
    if (!is_plain && !is_null(&receipts, RECEIPT_ORDER)) keep_proof(report, &receipts, check);
    write_receipt(report, &receipts, check);
  }
  while (has_check) has_check = stream_next(&checks);
  stream_open(&checks, snapshot,
              "SELECT " CHECK_COLUMNS
              " FROM night_audit.receipt_checks WHERE subject_kind = 'lookup' AND outcome <> 'verified'");
  while (stream_next(&checks)) keep_proof(report, NULL, &checks);
  qsort(report->proofs, report->proof_count, sizeof *report->proofs, compare_proofs);
}
