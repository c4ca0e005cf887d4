#include "report.h"
#include "stream.h"

enum { SUBJECT, KIND, OUTCOME, REASON, CHANNEL, ENVIRONMENT, APPLE_STATUS, ATTEMPTS, LAST_ATTEMPT, DUE_FROM };
#define CHECK_COLUMNS \
  "subject_id, payload_kind, outcome, reason, channel, environment, apple_status, attempts, last_attempt, due_from"
enum { RECEIPT_ID, RECEIPT_ORDER, RECEIPT_USER, CLAIMED, RECEIVED };

static void write_receipt(Report* report, const Stream* receipt, const Stream* check) {
  Table* table = &report->receipts;
  for (int column = RECEIPT_ID; column <= RECEIPT_USER; column++) put_field(table, receipt, column);
  if (check) {
    put_field(table, check, KIND);
    put_field(table, check, CHANNEL);
    put_field(table, check, ENVIRONMENT);
    put_field(table, check, OUTCOME);
    put_count(table, integer(check, APPLE_STATUS));
    put_count(table, integer(check, ATTEMPTS));
    put_time(table, instant(check, LAST_ATTEMPT));
    put_time(table, instant(check, DUE_FROM));
  } else {
    for (int empty = 0; empty < 3; empty++) put_nothing(table);
    put_text(table, "pending");
    put_nothing(table);
    put_count(table, 0);
    put_nothing(table);
    put_nothing(table);
  }
  put_time(table, instant(receipt, RECEIVED));
  if (check) {
    put_field(table, check, REASON);
  } else {
    put_text(table, "never_checked");
  }
  end_row(table);
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
    char id[ID];
    copy_text(&receipts, RECEIPT_ID, id, ID);
    while (has_check && compare_text(&checks, SUBJECT, id) < 0) has_check = stream_next(&checks);
    write_receipt(report, &receipts, has_check && compare_text(&checks, SUBJECT, id) == 0 ? &checks : NULL);
  }
  while (has_check) has_check = stream_next(&checks);
}
