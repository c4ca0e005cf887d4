// The floor of the benchmark: the least work that gives the same files. Reads the orders' side and Apple's side by ordered
// binary COPY streams of single tables, merges them, decides each order, and writes CSV and, on request, the workbook.
//
//   floor DIRECTORY csv|xlsx AS-OF TEST-USERS      AS-OF in seconds since 1970, TEST-USERS a sorted file of user ids
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "stream.h"
#include "table.h"
#include "totals.h"

#define DISPOSITION_COLUMNS \
  "settled,paid_not_delivered,delivered_not_paid,partly_delivered,refunded,refunded_still_delivered,in_flight,unconfirmed,void"

typedef struct {
  Rules rules;
  Book book;
  Table summary, findings, users, amounts, refunds, sandbox, receipts, orders;
  Totals by_user, by_price, by_sandbox_user, by_currency;
  Proof *proofs;
  size_t proof_count, proof_capacity;
  int64_t orders_read, by_disposition[DISPOSITIONS], by_kind[KIND_COUNT];
} Report;

// MARK: Receipts

static Proof *new_proof(Report *report) {
  if (report->proof_count == report->proof_capacity) {
    report->proof_capacity = report->proof_capacity ? report->proof_capacity * 2 : 1024;
    report->proofs = realloc(report->proofs, report->proof_capacity * sizeof *report->proofs);
    if (!report->proofs) fail("memory", "there is none left");
  }
  Proof *proof = &report->proofs[report->proof_count++];
  memset(proof, 0, sizeof *proof);
  return proof;
}

enum { SUBJECT, CHECK_ORDER, KIND, OUTCOME, REASON, CHANNEL, ENVIRONMENT, APPLE_STATUS, ATTEMPTS, LAST_ATTEMPT, NEXT_ATTEMPT };
#define CHECK_COLUMNS \
  "subject_id, order_id, payload_kind, outcome, reason, channel, environment, apple_status, attempts, last_attempt, next_attempt"
enum { RECEIPT_ID, RECEIPT_ORDER, RECEIPT_USER, CLAIMED, RECEIVED };

static void put_field(Table *table, const Stream *stream, int column) {
  char text[128];
  copy_text(stream, column, text, sizeof text);
  put_text(table, text);
}

static void keep_proof(Report *report, const Stream *receipt, const Stream *check) {
  Proof *proof = new_proof(report);
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

static void write_receipt(Report *report, const Stream *receipt, const Stream *check) {
  Table *table = &report->receipts;
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

static int compare_proofs(const void *left, const void *right) {
  return strcmp(((const Proof *)left)->order_id, ((const Proof *)right)->order_id);
}

// Lists every receipt and keeps those, few as they are, that say more than the transactions that they brought.
static void read_receipts(Report *report, const char *snapshot) {
  Stream receipts, checks;
  stream_open(&receipts, snapshot, "SELECT receipt_id, order_id, user_id, environment, received_at FROM sales.receipts ORDER BY receipt_id");
  stream_open(&checks, snapshot,
              "SELECT " CHECK_COLUMNS " FROM night_audit.receipt_checks WHERE subject_kind = 'receipt' ORDER BY subject_id");
  bool has_check = stream_next(&checks);
  while (stream_next(&receipts)) {
    char id[ID], claimed[16];
    copy_text(&receipts, RECEIPT_ID, id, ID);
    copy_text(&receipts, CLAIMED, claimed, sizeof claimed);
    while (has_check && compare_text(&checks, SUBJECT, id) < 0) has_check = stream_next(&checks);
    const Stream *check = has_check && compare_text(&checks, SUBJECT, id) == 0 ? &checks : NULL;
    bool is_plain = check && text_is(check, OUTCOME, "verified") && text_is(check, ENVIRONMENT, claimed);
    if (!is_plain && !is_null(&receipts, RECEIPT_ORDER)) keep_proof(report, &receipts, check);
    write_receipt(report, &receipts, check);
  }
  while (has_check) has_check = stream_next(&checks);
  stream_open(&checks, snapshot,
              "SELECT " CHECK_COLUMNS " FROM night_audit.receipt_checks WHERE subject_kind = 'lookup' AND outcome <> 'verified'");
  while (stream_next(&checks)) keep_proof(report, NULL, &checks);
  qsort(report->proofs, report->proof_count, sizeof *report->proofs, compare_proofs);
}

// MARK: Rows of an order

#define TRANSACTION_COLUMNS \
  "t.transaction_id, t.original_transaction_id, t.environment, t.product_id, t.bundle_id, t.quantity, t.purchased_at, " \
  "t.expires_at, t.subscription_expires_at, t.revoked_at, t.revocation_percentage, t.revocation_type, t.revocation_reason, " \
  "t.revocation_withdrawn_at, t.price_milliunits, t.currency, t.tells_account_token, t.app_account_token, t.ownership, " \
  "t.is_renewal, t.has_offer, t.is_contradictory, t.checked_at"

// The columns above begin at the second one; the first is the order.
static void read_transaction(const Stream *stream, Transaction *one) {
  copy_text(stream, 1, one->transaction_id, ID);
  copy_text(stream, 2, one->original_id, ID);
  copy_text(stream, 3, one->environment, sizeof one->environment);
  copy_text(stream, 4, one->product_id, NAME);
  copy_text(stream, 5, one->bundle_id, NAME);
  one->quantity = integer(stream, 6);
  one->purchased = instant(stream, 7);
  one->is_subscription = !is_null(stream, 8);
  one->expires = is_null(stream, 9) ? instant(stream, 8) : instant(stream, 9);
  one->revoked = instant(stream, 10);
  one->percentage = integer(stream, 11);
  one->is_prorated = text_is(stream, 12, "REFUND_PRORATED");
  one->withdrawn = instant(stream, 14);
  one->price = integer(stream, 15);
  copy_text(stream, 16, one->currency, sizeof one->currency);
  one->tells_token = boolean(stream, 17);
  copy_text(stream, 18, one->token, ID);
  one->is_family = text_is(stream, 19, "FAMILY_SHARED");
  one->is_renewal = boolean(stream, 20);
  one->has_offer = boolean(stream, 21);
  one->is_contradictory = boolean(stream, 22);
  one->checked = instant(stream, 23);
  one->owner_order[0] = one->owner_user[0] = 0;
}

static Status status_of(const char *word) {
  static const char *const words[] = {"pending", "verified", "failed", "cancelled", "refunded"};
  for (int status = PENDING; status < UNKNOWN_STATUS; status++) {
    if (strcmp(words[status], word) == 0) return (Status)status;
  }
  return UNKNOWN_STATUS;
}

static void read_order(const Stream *stream, Order *order) {
  copy_text(stream, 0, order->order_id, ID);
  copy_text(stream, 1, order->user_id, ID);
  copy_text(stream, 2, order->bundle_id, NAME);
  copy_text(stream, 3, order->product_id, NAME);
  order->quantity = integer(stream, 4);
  copy_text(stream, 6, order->currency, sizeof order->currency);
  copy_text(stream, 7, order->status_text, sizeof order->status_text);
  copy_text(stream, 8, order->transaction_id, ID);
  copy_text(stream, 9, order->token, ID);
  order->created = instant(stream, 10);
  order->verified = instant(stream, 11);
  order->status = status_of(order->status_text);
  order->digits = currency_digits(order->currency);
  order->defect[0] = 0;
  const char *defect = NULL;
  if (order->quantity < 1) defect = "quantity is below 1";
  if (order->status == UNKNOWN_STATUS) defect = "status is none of pending, verified, failed, cancelled, refunded";
  if (order->digits < 0) {
    defect = "currency is no code of ISO 4217";
  } else if (!minor_units(stream, 5, order->digits, &order->amount)) {
    defect = "amount has more decimals than the currency";
  } else if (order->amount < 0) {
    defect = "amount is negative";
  }
  if (defect) strcpy(order->defect, defect);
}

// MARK: Writing what was decided

static void put_optional_money(Table *table, int64_t amount, int digits) {
  if (amount == NONE || digits < 0) {
    put_nothing(table);
  } else {
    put_money(table, amount, digits);
  }
}

// A stable id: two FNV-1a hashes of kind and subject.
static void put_finding_id(Table *table, Kind kind, const char *subject) {
  char text[128], id[33];
  int length = snprintf(text, sizeof text, "%s\n%s", kind_names[kind], subject);
  uint64_t one = 0xcbf29ce484222325, other = 0x84222325cbf29ce4;
  for (int index = 0; index < length; index++) {
    one = (one ^ (uint8_t)text[index]) * 0x100000001b3;
    other = (other ^ (uint8_t)text[index]) * 0x100000001b3;
  }
  snprintf(id, sizeof id, "%016llx%016llx", (unsigned long long)one, (unsigned long long)other);
  put_text(table, id);
}

typedef struct {
  Kind kind;
  const char *subject, *order_id, *user_id, *product_id, *transaction_id, *receipt_id, *delivery_id, *environment, *currency, *reason;
  int64_t amount, at_stake, paid, delivered;
  int digits;
} FindingRow;

static void write_finding(Report *report, const FindingRow *row) {
  Table *table = &report->findings;
  report->by_kind[row->kind]++;
  put_finding_id(table, row->kind, row->subject);
  put_text(table, kind_names[row->kind]);
  put_text(table, kind_severities[row->kind]);
  const char *const names[] = {row->order_id, row->user_id, row->product_id, row->transaction_id, row->receipt_id,
                               row->delivery_id, row->environment, row->currency};
  for (size_t index = 0; index < sizeof names / sizeof *names; index++) put_text(table, names[index]);
  put_optional_money(table, row->amount, row->digits);
  put_optional_money(table, row->at_stake, row->digits);
  put_time(table, row->paid);
  put_time(table, row->delivered);
  put_time(table, report->rules.as_of);
  put_count(table, 0);
  put_text(table, "open");
  put_nothing(table);
  put_text(table, row->reason);
  put_text(table, kind_actions[row->kind]);
  end_row(table);
}

static void write_findings(Report *report, const Audit *audit) {
  const Order *order = &audit->order;
  bool is_bad = audit->disposition == BAD_ROW;
  for (int index = 0; index < audit->finding_count; index++) {
    const Finding *finding = &audit->findings[index];
    const Transaction *one = finding->transaction;
    write_finding(report, &(FindingRow){
      .kind = finding->kind, .subject = order->order_id, .order_id = order->order_id, .user_id = order->user_id,
      .product_id = order->product_id, .transaction_id = one ? one->transaction_id : order->transaction_id,
      .receipt_id = finding->receipt_id, .delivery_id = finding->delivery_id, .environment = one ? one->environment : "",
      .currency = is_bad ? "" : order->currency, .reason = finding->reason, .amount = is_bad ? NONE : order->amount,
      .at_stake = finding->at_stake, .paid = audit->own ? audit->own->purchased : NONE, .delivered = audit->delivered,
      .digits = order->digits});
  }
}

static void write_refund(Report *report, const Transaction *one, const Audit *audit) {
  Table *table = &report->refunds;
  const Order *order = audit ? &audit->order : NULL;
  int digits = order ? order->digits : currency_digits(one->currency);
  int64_t whole = order ? order->amount : price_minor_units(one, digits);
  int64_t percentage = one->percentage == NONE ? 100000 : one->percentage;
  put_text(table, one->transaction_id);
  put_text(table, order ? order->order_id : "");
  put_text(table, order ? order->user_id : "");
  put_text(table, one->product_id);
  put_text(table, order ? order->currency : one->currency);
  put_optional_money(table, whole == NONE ? NONE : -share(whole, percentage, 100000), digits);
  put_money(table, percentage, 3);
  put_time(table, one->purchased);
  put_time(table, one->revoked);
  put_text(table, one->is_prorated ? "REFUND_PRORATED" : "REFUND_FULL");
  put_text(table, audit ? disposition_names[audit->disposition] : "");
  end_row(table);
}

static void write_order(Report *report, const Audit *audit) {
  const Order *order = &audit->order;
  const Transaction *own = audit->own;
  Table *table = &report->orders;
  put_text(table, order->order_id);
  put_text(table, order->user_id);
  put_text(table, order->product_id);
  put_count(table, order->quantity);
  put_text(table, order->currency);
  put_optional_money(table, order->defect[0] ? NONE : order->amount, order->digits);
  put_text(table, order->status_text);
  put_text(table, disposition_names[audit->disposition]);
  put_text(table, payment_names[audit->payment]);
  put_text(table, audit->payment_reason);
  put_text(table, own ? own->transaction_id : order->transaction_id);
  put_text(table, audit->shown ? audit->shown->environment : "");
  put_time(table, order->created);
  put_time(table, own ? own->purchased : NONE);
  put_time(table, audit->delivered);
  put_time(table, own ? own->revoked : NONE);
  put_time(table, audit->checked);
  char kinds[512] = "";
  size_t length = 0;
  for (int index = 0; index < audit->finding_count; index++) {
    if (index) kinds[length++] = ';';
    const char *name = kind_names[audit->findings[index].kind];
    memcpy(kinds + length, name, strlen(name) + 1);
    length += strlen(name);
  }
  put_text(table, kinds);
  end_row(table);
}

// MARK: Totals

static void add_to(Totals *totals, const char *key, size_t length, int64_t amount, Disposition disposition) {
  Line *line = totals_line(totals, key, length);
  line->orders++;
  line->ordered += amount;
  if (disposition < MONEY_DISPOSITIONS) line->by_disposition[disposition] += amount;
}

static void count(Report *report, const Audit *audit) {
  const Order *order = &audit->order;
  report->orders_read++;
  report->by_disposition[audit->disposition]++;
  if (audit->disposition == BAD_ROW) return;
  char key[2 * NAME + 16];
  size_t length;
  if (audit->own && audit->own->environment[0] == 'S') {
    length = (size_t)sprintf(key, "%s%c%s%c%s", order->user_id, 0, order->product_id, 0, order->currency) + 1;
    add_to(&report->by_sandbox_user, key, length, order->amount, audit->disposition);
  }
  if (audit->disposition == SANDBOX) return;
  length = (size_t)sprintf(key, "%s%c%s", order->user_id, 0, order->currency) + 1;
  add_to(&report->by_user, key, length, order->amount, audit->disposition);
  // The amount's bytes from the most significant one, so that keys sort by value.
  uint64_t value = __builtin_bswap64((uint64_t)order->amount);
  memcpy(key, order->currency, 4);
  memcpy(key + 4, &value, 8);
  strcpy(key + 12, order->product_id);
  add_to(&report->by_price, key, 12 + strlen(order->product_id) + 1, order->amount, audit->disposition);
  add_to(&report->by_currency, order->currency, 4, order->amount, audit->disposition);
}

static void put_line(Table *table, const Line *line, int digits) {
  put_count(table, line->orders);
  put_money(table, line->ordered, digits);
  for (int index = 0; index < MONEY_DISPOSITIONS; index++) put_money(table, line->by_disposition[index], digits);
  end_row(table);
}

static void write_totals(Report *report) {
  totals_sort(&report->by_user);
  for (size_t index = 0; index < report->by_user.count; index++) {
    const Line *line = &report->by_user.lines[index];
    const char *user = report->by_user.keys + line->key, *currency = user + strlen(user) + 1;
    put_text(&report->users, user);
    put_text(&report->users, currency);
    put_line(&report->users, line, currency_digits(currency));
  }
  totals_sort(&report->by_price);
  for (size_t index = 0; index < report->by_price.count; index++) {
    const Line *line = &report->by_price.lines[index];
    const char *currency = report->by_price.keys + line->key;
    int digits = currency_digits(currency);
    uint64_t value;
    memcpy(&value, currency + 4, 8);
    put_text(&report->amounts, currency);
    put_money(&report->amounts, (int64_t)__builtin_bswap64(value), digits);
    put_text(&report->amounts, currency + 12);
    put_line(&report->amounts, line, digits);
  }
  totals_sort(&report->by_sandbox_user);
  for (size_t index = 0; index < report->by_sandbox_user.count; index++) {
    const Line *line = &report->by_sandbox_user.lines[index];
    const char *user = report->by_sandbox_user.keys + line->key, *product = user + strlen(user) + 1;
    const char *currency = product + strlen(product) + 1;
    bool is_allowed = bsearch(user, report->rules.testers, (size_t)report->rules.tester_count, ID,
                              (int (*)(const void *, const void *))strcmp);
    put_text(&report->sandbox, user);
    put_text(&report->sandbox, product);
    put_text(&report->sandbox, currency);
    put_count(&report->sandbox, line->orders);
    put_money(&report->sandbox, line->ordered, currency_digits(currency));
    put_text(&report->sandbox, is_allowed ? "true" : "false");
    end_row(&report->sandbox);
  }
}

static void write_summary(Report *report, const char *directory) {
  char path[4096];
  snprintf(path, sizeof path, "%s/summary.json", directory);
  FILE *file = fopen(path, "w");
  if (!file) fail(path, strerror(errno));
  fprintf(file, "{\n  \"complete\": true,\n  \"orders\": {\"read\": %lld},\n  \"dispositions\": {", (long long)report->orders_read);
  totals_sort(&report->by_currency);
  for (int index = 0; index < DISPOSITIONS; index++) {
    put_text(&report->summary, disposition_names[index]);
    put_count(&report->summary, report->by_disposition[index]);
    end_row(&report->summary);
    fprintf(file, "%s\n    \"%s\": {\"orders\": %lld, \"amount\": {", index ? "," : "", disposition_names[index],
            (long long)report->by_disposition[index]);
    for (size_t line = 0; line < report->by_currency.count && index < MONEY_DISPOSITIONS; line++) {
      const Line *sum = &report->by_currency.lines[line];
      const char *currency = report->by_currency.keys + sum->key;
      char amount[32];
      amount[print_money(amount, sum->by_disposition[index], currency_digits(currency))] = 0;
      fprintf(file, "%s\"%s\": \"%s\"", line ? ", " : "", currency, amount);
    }
    fprintf(file, "}}");
  }
  fprintf(file, "\n  },\n  \"findings\": {\"open\": {");
  for (int kind = 0; kind < KIND_COUNT; kind++) {
    put_text(&report->summary, kind_names[kind]);
    put_count(&report->summary, report->by_kind[kind]);
    end_row(&report->summary);
    fprintf(file, "%s\n    \"%s\": %lld", kind ? "," : "", kind_names[kind], (long long)report->by_kind[kind]);
  }
  fprintf(file, "\n  }}\n}\n");
  if (fclose(file)) fail(path, strerror(errno));
}

// MARK: The merge

static void orphan_delivery(Report *report, const Stream *stream) {
  char order[ID], delivery[ID], user[ID], product[NAME], reason[128];
  copy_text(stream, 0, order, ID);
  copy_text(stream, 1, delivery, ID);
  copy_text(stream, 2, user, ID);
  copy_text(stream, 3, product, NAME);
  snprintf(reason, sizeof reason, order[0] ? "The delivery names order %s, which does not exist." : "The delivery names no order.", order);
  write_finding(report, &(FindingRow){
    .kind = KIND_orphan_delivery, .subject = delivery, .order_id = order, .user_id = user, .product_id = product,
    .transaction_id = "", .receipt_id = "", .delivery_id = delivery, .environment = "", .currency = "", .reason = reason,
    .amount = NONE, .at_stake = NONE, .paid = NONE, .delivered = is_null(stream, 6) ? instant(stream, 5) : NONE, .digits = -1});
}

static void room(int rows, const char *order) {
  if (rows == ROWS) fail(order, "has too many rows");
}

static void read_orders(Report *report, const char *snapshot) {
  Stream orders, deliveries, transactions, detours;
  stream_open(&orders, snapshot,
              "SELECT order_id, user_id, bundle_id, product_id, quantity, amount, currency, status, transaction_id, "
              "app_account_token, created_at, verified_at FROM sales.orders ORDER BY order_id");
  stream_open(&deliveries, snapshot,
              "SELECT order_id, delivery_id, user_id, product_id, quantity, delivered_at, revoked_at "
              "FROM sales.deliveries ORDER BY order_id");
  stream_open(&transactions, snapshot,
              "SELECT t.order_id, " TRANSACTION_COLUMNS
              " FROM night_audit.transactions t WHERE t.order_id IS NOT NULL ORDER BY t.order_id");
  stream_open(&detours, snapshot,
              "SELECT d.order_id, " TRANSACTION_COLUMNS ", t.order_id, o.user_id FROM night_audit.receipt_transactions d "
              "JOIN night_audit.transactions t USING (transaction_id, environment) LEFT JOIN sales.orders o ON o.order_id = t.order_id "
              "WHERE d.is_detour ORDER BY d.order_id");
  bool has_delivery = stream_next(&deliveries), has_transaction = stream_next(&transactions), has_detour = stream_next(&detours);
  size_t next_proof = 0;
  static Audit audit;
  while (stream_next(&orders)) {
    read_order(&orders, &audit.order);
    const char *id = audit.order.order_id;
    int order = 0;
    audit.delivery_count = audit.transaction_count = audit.detour_count = audit.proof_count = 0;
    while (has_delivery && !is_null(&deliveries, 0) && (order = compare_text(&deliveries, 0, id)) <= 0) {
      if (order < 0) {
        orphan_delivery(report, &deliveries);
      } else {
        room(audit.delivery_count, id);
        Delivery *delivery = &audit.deliveries[audit.delivery_count++];
        copy_text(&deliveries, 1, delivery->delivery_id, ID);
        copy_text(&deliveries, 2, delivery->user_id, ID);
        delivery->quantity = integer(&deliveries, 4);
        delivery->delivered = instant(&deliveries, 5);
        delivery->revoked = instant(&deliveries, 6);
      }
      has_delivery = stream_next(&deliveries);
    }
    for (; has_transaction && (order = compare_text(&transactions, 0, id)) <= 0; has_transaction = stream_next(&transactions)) {
      if (order < 0) continue;
      room(audit.transaction_count, id);
      read_transaction(&transactions, &audit.transactions[audit.transaction_count++]);
    }
    for (; has_detour && (order = compare_text(&detours, 0, id)) <= 0; has_detour = stream_next(&detours)) {
      if (order < 0) continue;
      room(audit.detour_count, id);
      Transaction *one = &audit.detours[audit.detour_count++];
      read_transaction(&detours, one);
      copy_text(&detours, 24, one->owner_order, ID);
      copy_text(&detours, 25, one->owner_user, ID);
    }
    while (next_proof < report->proof_count && strcmp(report->proofs[next_proof].order_id, id) < 0) next_proof++;
    audit.proofs = &report->proofs[next_proof];
    while (next_proof < report->proof_count && strcmp(report->proofs[next_proof].order_id, id) == 0) {
      next_proof++;
      audit.proof_count++;
    }
    judge(&audit, &report->rules);
    write_order(report, &audit);
    write_findings(report, &audit);
    if (audit.own && audit.own->revoked != NONE) write_refund(report, audit.own, &audit);
    count(report, &audit);
  }
  for (; has_delivery; has_delivery = stream_next(&deliveries)) orphan_delivery(report, &deliveries);
  while (has_transaction) has_transaction = stream_next(&transactions);
  while (has_detour) has_detour = stream_next(&detours);
}

// Transactions that no order stands for: lost payments, and renewals that nobody booked.
static void read_orphans(Report *report, const char *snapshot) {
  Stream stream;
  stream_open(&stream, snapshot,
              "SELECT r.receipt_id, " TRANSACTION_COLUMNS ", r.user_id FROM night_audit.transactions t "
              "LEFT JOIN night_audit.receipt_transactions b ON b.transaction_id = t.transaction_id AND b.environment = t.environment "
              "AND b.subject_kind = 'receipt' LEFT JOIN sales.receipts r ON r.receipt_id = b.subject_id WHERE t.order_id IS NULL");
  while (stream_next(&stream)) {
    Transaction one;
    char receipt[ID], user[ID], reason[160];
    read_transaction(&stream, &one);
    copy_text(&stream, 0, receipt, ID);
    copy_text(&stream, 24, user, ID);
    if (one.revoked != NONE) write_refund(report, &one, NULL);
    if (is_reversed(&one) || one.is_contradictory || one.is_family || one.environment[0] != 'P') continue;
    bool is_restore = !one.is_renewal && !one.is_subscription && one.original_id[0] && strcmp(one.original_id, one.transaction_id);
    if (is_restore) continue;
    snprintf(reason, sizeof reason,
             one.is_renewal ? "Apple renewed a subscription to %s and no order claims the renewal."
                            : "Apple confirms a payment for %s that no order claims.", one.product_id);
    int digits = currency_digits(one.currency);
    int64_t price = price_minor_units(&one, digits);
    write_finding(report, &(FindingRow){
      .kind = one.is_renewal ? KIND_renewal_without_order : KIND_orphan_payment, .subject = one.transaction_id, .order_id = "",
      .user_id = user, .product_id = one.product_id, .transaction_id = one.transaction_id, .receipt_id = receipt, .delivery_id = "",
      .environment = one.environment, .currency = one.currency, .reason = reason, .amount = price,
      .at_stake = one.is_renewal ? NONE : price, .paid = one.purchased, .delivered = NONE, .digits = digits});
  }
}

static void read_testers(Rules *rules, const char *path) {
  FILE *file = fopen(path, "r");
  if (!file) fail(path, strerror(errno));
  char line[ID];
  while (fgets(line, sizeof line, file)) {
    rules->testers = realloc(rules->testers, (size_t)(rules->tester_count + 1) * ID);
    if (!rules->testers) fail("memory", "there is none left");
    line[strcspn(line, "\n")] = 0;
    strcpy(rules->testers[rules->tester_count++], line);
  }
  fclose(file);
}

int main(int count, char **arguments) {
  if (count != 5) {
    fprintf(stderr, "usage: floor DIRECTORY csv|xlsx AS-OF TEST-USERS\n");
    return 64;
  }
  static Report report;
  const char *directory = arguments[1];
  report.rules.as_of = strtoll(arguments[3], NULL, 10) * 1000000;
  read_testers(&report.rules, arguments[4]);
  Book *book = &report.book;
  if (strcmp(arguments[2], "xlsx") == 0) book_open(book, directory);
  table_open(&report.summary, book, directory, "summary.csv", "Summary", "name,count");
  table_open(&report.findings, book, directory, "findings.csv", "Findings",
             "finding_id,kind,severity,order_id,user_id,product_id,transaction_id,receipt_id,delivery_id,environment,currency,"
             "amount,at_stake,paid_at,delivered_at,first_seen,age_days,status,owner,reason,suggested_action");
  table_open(&report.users, book, directory, "users.csv", "Users", "user_id,currency,orders,ordered," DISPOSITION_COLUMNS);
  table_open(&report.amounts, book, directory, "amounts.csv", "Amounts", "currency,amount,product_id,orders,ordered," DISPOSITION_COLUMNS);
  table_open(&report.refunds, book, directory, "refunds.csv", "Refunds",
             "transaction_id,order_id,user_id,product_id,currency,amount,percentage,purchased_at,refunded_at,reason,disposition");
  table_open(&report.sandbox, book, directory, "sandbox.csv", "Sandbox", "user_id,product_id,currency,orders,amount,allowed");
  table_open(&report.receipts, book, directory, "receipts.csv", "Receipts",
             "receipt_id,order_id,user_id,kind,channel,environment,outcome,apple_status,attempts,last_attempt,next_attempt,"
             "age_days,reason");
  table_open(&report.orders, book, directory, "orders.csv", "Orders",
             "order_id,user_id,product_id,quantity,currency,amount,status,disposition,payment,payment_reason,transaction_id,"
             "environment,created_at,paid_at,delivered_at,refunded_at,checked_at,findings");
  table_sort_later(&report.findings, directory);
  table_sort_later(&report.refunds, directory);

  PGconn *holder = connect_reader(NULL);
  PGresult *exported = PQexec(holder, "SELECT pg_export_snapshot()");
  if (PQresultStatus(exported) != PGRES_TUPLES_OK) fail("the snapshot", PQerrorMessage(holder));
  const char *snapshot = PQgetvalue(exported, 0, 0);
  read_receipts(&report, snapshot);
  read_orders(&report, snapshot);
  read_orphans(&report, snapshot);
  PQclear(exported);
  PQfinish(holder);

  write_totals(&report);
  write_summary(&report, directory);
  Table *tables[] = {&report.summary, &report.findings, &report.users, &report.amounts, &report.refunds, &report.sandbox,
                     &report.receipts, &report.orders};
  for (size_t index = 0; index < sizeof tables / sizeof *tables; index++) table_close(tables[index]);
  totals_free(&report.by_user);
  totals_free(&report.by_price);
  totals_free(&report.by_sandbox_user);
  totals_free(&report.by_currency);
  if (book->workbook) book_close(book);
  free(report.proofs);
  free(report.rules.testers);
  return 0;
}
