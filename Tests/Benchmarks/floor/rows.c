#include <stdio.h>
#include <string.h>

#include "report.h"
#include "stream.h"

static void put_optional_money(Table* table, int64_t amount, int digits) {
  if (amount == NONE || digits < 0) {
    put_nothing(table);
  } else {
    put_money(table, amount, digits);
  }
}

// A stable id: two FNV-1a hashes of kind and subject.
static void put_finding_id(Table* table, Kind kind, const char* subject) {
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

void write_finding(Report* report, const FindingRow* row) {
  Table* table = &report->findings;
  report->by_kind[row->kind]++;
  put_finding_id(table, row->kind, row->subject);
  put_text(table, kind_names[row->kind]);
  put_text(table, kind_severities[row->kind]);
  const char* const names[] = {row->order_id,   row->user_id,     row->product_id,  row->transaction_id,
                               row->receipt_id, row->delivery_id, row->environment, row->currency};
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

void write_findings(Report* report, const Audit* audit) {
  const Order* order = &audit->order;
  bool is_bad = audit->disposition == BAD_ROW;
  for (int index = 0; index < audit->finding_count; index++) {
    const Finding* finding = &audit->findings[index];
    const Transaction* one = finding->transaction;
    write_finding(report, &(FindingRow){.kind = finding->kind,
                                        .subject = order->order_id,
                                        .order_id = order->order_id,
                                        .user_id = order->user_id,
                                        .product_id = order->product_id,
                                        .transaction_id = one ? one->transaction_id : order->transaction_id,
                                        .receipt_id = finding->receipt_id,
                                        .delivery_id = finding->delivery_id,
                                        .environment = one ? one->environment : "",
                                        .currency = is_bad ? "" : order->currency,
                                        .reason = finding->reason,
                                        .amount = is_bad ? NONE : order->amount,
                                        .at_stake = finding->at_stake,
                                        .paid = audit->own ? audit->own->purchased : NONE,
                                        .delivered = audit->delivered,
                                        .digits = order->digits});
  }
}

void write_refund(Report* report, const Transaction* one, const Audit* audit) {
  Table* table = &report->refunds;
  const Order* order = audit ? &audit->order : NULL;
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

void write_order(Report* report, const Audit* audit) {
  const Order* order = &audit->order;
  const Transaction* own = audit->own;
  Table* table = &report->orders;
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
    const char* name = kind_names[audit->findings[index].kind];
    memcpy(kinds + length, name, strlen(name) + 1);
    length += strlen(name);
  }
  put_text(table, kinds);
  end_row(table);
}
