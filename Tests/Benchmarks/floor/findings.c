#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "audit.h"
#include "stream.h"
#include "table.h"

#define NAME_OF(name, severity, action) #name,
#define SEVERITY_OF(name, severity, action) #severity,
#define ACTION_OF(name, severity, action) action,
const char* const kind_names[] = {KINDS(NAME_OF)};
const char* const kind_severities[] = {KINDS(SEVERITY_OF)};
const char* const kind_actions[] = {KINDS(ACTION_OF)};

#define MINUTES INT64_C(60000000)
#define HOURS (60 * MINUTES)
#define DAYS (24 * HOURS)

int64_t share(int64_t amount, int64_t part, int64_t whole) {
  __int128 doubled = (__int128)amount * part * 2 + whole;
  return (int64_t)(doubled / (2 * whole));
}

int64_t price_minor_units(const Transaction* transaction, int digits) {
  static const int64_t milliunits[] = {1000, 100, 10, 1};
  if (transaction->price == NONE || digits < 0 || digits > 3 || transaction->price % milliunits[digits]) return NONE;
  return transaction->price / milliunits[digits];
}

__attribute__((format(printf, 4, 5))) static Finding* add(Audit* audit, Kind kind, int64_t at_stake, const char* reason,
                                                          ...) {
  if (audit->finding_count == FINDINGS) fail(audit->order.order_id, "has too many findings");
  Finding* finding = &audit->findings[audit->finding_count++];
  finding->kind = kind;
  finding->at_stake = at_stake;
  finding->transaction = audit->own;
  finding->delivery_id[0] = finding->receipt_id[0] = 0;
  if (audit->proof_count > 0 && !audit->proofs[0].is_lookup) strcpy(finding->receipt_id, audit->proofs[0].subject_id);
  va_list arguments;
  va_start(arguments, reason);
  vsnprintf(finding->reason, sizeof finding->reason, reason, arguments);
  va_end(arguments);
  return finding;
}

static const char* explanation(const char* reason) {
  static const char* const words[][2] = {
      {"signature_invalid", "its proof does not carry Apple's signature"},
      {"malformed", "its proof is not a receipt at all"},
      {"wrong_bundle", "its proof belongs to another app"},
      {"product_mismatch", "the payment is for another product"},
      {"duplicate", "another order owns the payment"},
      {"sandbox", "it was a test purchase in the sandbox"},
      {"not_found", "there is no such transaction of Apple's in production or sandbox"},
      {"no_evidence", "there is neither receipt nor transaction id, though the shop says verified"},
      {"never_paid", "there is neither receipt nor transaction id"},
      {"never_checked", "Apple has not been asked yet"},
      {"unreachable", "Apple could not be reached"},
  };
  for (size_t index = 0; index < sizeof words / sizeof *words; index++) {
    if (strcmp(words[index][0], reason) == 0) return words[index][1];
  }
  return reason;
}

static void consider_disposition(Audit* audit, const Rules* rules) {
  const Order* order = &audit->order;
  switch (audit->disposition) {
    case SETTLED:
      if (order->status == PENDING)
        add(audit, KIND_status_mismatch, NONE, "Paid and delivered, but the shop still says pending.");
      break;
    case PAID_NOT_DELIVERED:
      add(audit, KIND_paid_not_delivered, order->amount,
          "Apple confirms the payment, but the user does not hold the goods.");
      break;
    case PARTLY_DELIVERED:
      add(audit, KIND_partly_delivered, share(order->amount, order->quantity - audit->units, order->quantity),
          "Paid for %lld, delivered %lld.", (long long)order->quantity, (long long)audit->units);
      break;
    case DELIVERED_NOT_PAID:
      add(audit, KIND_delivered_not_paid, order->amount, "The user holds goods of an order that is not paid: %s.",
          explanation(audit->payment_reason));
      if (strcmp(audit->payment_reason, "sandbox") == 0) {
        add(audit, KIND_sandbox_delivered, order->amount,
            "Goods were delivered for a sandbox purchase by a user who is not on the list of test users.");
      }
      break;
    case REFUNDED_STILL_DELIVERED:
      add(audit, KIND_refunded_still_delivered, order->amount,
          "Apple refunded the purchase and the user still holds the goods.");
      break;
    case VOID:
      if (order->status == VERIFIED || order->status == REFUNDED_STATUS) {
        add(audit, KIND_status_mismatch, NONE, "Neither paid nor delivered, but the shop says %s.", order->status_text);
      }
      break;
    case REFUNDED:
      if (order->status == PENDING)
        add(audit, KIND_status_mismatch, NONE, "Refunded and taken back, but the shop still says pending.");
      break;
    case UNCONFIRMED_ORDER: {
      if (rules->as_of - order->created <= 48 * HOURS) break;
      long long attempts = 0;
      for (int index = 0; index < audit->proof_count; index++) attempts += audit->proofs[index].attempts;
      add(audit, KIND_stuck_unconfirmed, order->amount, "Unconfirmed for %lld days after %lld attempts: %s.",
          (long long)((rules->as_of - order->created) / DAYS), attempts, explanation(audit->payment_reason));
      break;
    }
    case IN_FLIGHT:
    case SANDBOX:
    case BAD_ROW:
      break;
  }
  if (audit->payment == PAID && (order->status == FAILED || order->status == CANCELLED)) {
    add(audit, KIND_cancelled_but_paid, order->amount, "Apple confirms the payment, but the shop says %s.",
        order->status_text);
  }
  if (audit->units > order->quantity) {
    add(audit, KIND_delivered_twice, share(order->amount, audit->units - order->quantity, order->quantity),
        "Ordered %lld, delivered %lld.", (long long)order->quantity, (long long)audit->units);
  }
}

static void consider_claims(Audit* audit) {
  const Order* order = &audit->order;
  const Transaction* shown = audit->shown;
  Finding* finding = NULL;
  if (audit->second) {
    int64_t price = price_minor_units(audit->second, order->digits);
    finding = add(audit, KIND_charged_twice, price == NONE ? order->amount : price,
                  "Apple charged 2 times for one order; besides %s: %s.", audit->own->transaction_id,
                  audit->second->transaction_id);
    finding->transaction = audit->second;
  }
  if (audit->payment != UNPAID || !shown || audit->own) return;
  if (strcmp(audit->payment_reason, "duplicate") == 0) {
    bool is_same = strcmp(shown->owner_user, order->user_id) == 0;
    finding = add(audit, KIND_duplicate_claim, order->amount, "The payment %s belongs to order %s of %s%s%s.",
                  shown->transaction_id, shown->owner_order, is_same ? "the same user" : "another user (",
                  is_same ? "" : shown->owner_user, is_same ? "" : ")");
  } else if (strcmp(audit->payment_reason, "product_mismatch") == 0) {
    finding = add(audit, KIND_product_mismatch, order->amount, "Ordered %s. The payment is for %s.", order->product_id,
                  shown->product_id);
  } else if (strcmp(audit->payment_reason, "wrong_bundle") == 0) {
    finding = add(audit, KIND_wrong_bundle, order->amount, "The proof belongs to %s, not to the order's app.",
                  shown->bundle_id);
  } else if (strcmp(audit->payment_reason, "family_shared") == 0 && order->amount > 0) {
    finding = add(audit, KIND_family_shared_sale, order->amount,
                  "A family member's purchase gives this user access; nobody paid for this order.");
  }
  if (finding) finding->transaction = shown;
}

static void consider_proofs(Audit* audit) {
  for (int index = 0; index < audit->proof_count; index++) {
    const Proof* proof = &audit->proofs[index];
    Finding* finding = NULL;
    if (strcmp(proof->outcome, "rejected") == 0 && strcmp(proof->reason, "signature_invalid") == 0) {
      finding = add(audit, KIND_signature_invalid, audit->order.amount,
                    "The proof in receipt %s does not carry Apple's signature.", proof->subject_id);
    } else if (proof->claimed[0] && proof->environment[0] && strcmp(proof->claimed, proof->environment)) {
      finding = add(audit, KIND_environment_mislabelled, NONE, "The client called receipt %s %s; Apple says %s.",
                    proof->subject_id, proof->claimed, proof->environment);
    }
    if (finding) strcpy(finding->receipt_id, proof->subject_id);
  }
}

static void consider_refunds(Audit* audit) {
  const Order* order = &audit->order;
  if (audit->payment == REVERSED) {
    if (order->status == VERIFIED) {
      add(audit, KIND_refund_not_booked, order->amount,
          "Apple refunded the purchase, but the shop still says verified.");
    }
    for (int index = 0; index < audit->delivery_count; index++) {
      const Delivery* delivery = &audit->deliveries[index];
      if (delivery->revoked != NONE || delivery->delivered <= audit->own->revoked) continue;
      Finding* finding =
          add(audit, KIND_delivered_after_refund, order->amount, "Goods were delivered after Apple's refund.");
      strcpy(finding->delivery_id, delivery->delivery_id);
      break;
    }
  }
  if (audit->payment != PAID) return;
  if (audit->own->revoked != NONE) {
    int64_t part = audit->own->percentage == NONE ? NONE : share(order->amount, audit->own->percentage, 100000);
    char words[64] = "a part that Apple does not name";
    if (part != NONE) sprintf(words + print_money(words, part, order->digits), " %s", order->currency);
    add(audit, KIND_partial_refund, part, "Apple refunded %s of this order.", words);
  } else if (order->status == REFUNDED_STATUS) {
    add(audit, KIND_refund_only_here, order->amount,
        "The shop says refunded, but Apple has not refunded the purchase.");
  }
  if (audit->own->withdrawn != NONE && audit->units < audit->order.quantity && audit->is_taken_back) {
    add(audit, KIND_refund_reversed_not_reinstated, order->amount,
        "Apple took its refund back, so the order is paid again, but goods are still taken back.");
  }
}

static void consider_deliveries(Audit* audit, const Rules* rules) {
  const Order* order = &audit->order;
  const Delivery *astray = NULL, *first = NULL;
  for (int index = 0; index < audit->delivery_count; index++) {
    const Delivery* delivery = &audit->deliveries[index];
    if (delivery->revoked != NONE) continue;
    if (!astray && strcmp(delivery->user_id, order->user_id)) astray = delivery;
    if (!first || delivery->delivered < first->delivered) first = delivery;
  }
  if (astray) {
    Finding* finding = add(audit, KIND_wrong_user, order->amount, "User %s ordered, user %s got the goods.",
                           order->user_id, astray->user_id);
    strcpy(finding->delivery_id, astray->delivery_id);
  } else if (audit->own && order->token[0] && audit->own->token[0] && strcasecmp(order->token, audit->own->token)) {
    add(audit, KIND_wrong_user, order->amount, "Apple's account token is not the one of this order's user.");
  }
  if (!audit->own || !first) return;
  if (first->delivered < audit->own->purchased - 5 * MINUTES) {
    Finding* finding =
        add(audit, KIND_delivered_before_paid, NONE, "The goods were delivered before Apple's purchase date.");
    strcpy(finding->delivery_id, first->delivery_id);
  }
  if (audit->payment == PAID && audit->own->expires != NONE && rules->as_of - audit->own->expires > 16 * DAYS) {
    add(audit, KIND_lapsed_still_served, order->amount,
        "The subscription ended %lld days ago and access was not taken back.",
        (long long)((rules->as_of - audit->own->expires) / DAYS));
  }
}

static void consider_comparison(Audit* audit) {
  const Order* order = &audit->order;
  bool is_duplicate = audit->payment == UNPAID && strcmp(audit->payment_reason, "duplicate") == 0;
  const Transaction* one = audit->own ? audit->own : is_duplicate ? audit->shown : NULL;
  if (!one) return;
  if (one->quantity != NONE && one->quantity != order->quantity) {
    add(audit, KIND_quantity_mismatch, NONE, "Ordered %lld, Apple's transaction is for %lld.",
        (long long)order->quantity, (long long)one->quantity);
  }
  if (order->token[0] && one->tells_token && !one->token[0]) {
    add(audit, KIND_account_token_missing, NONE, "The order has an account token, Apple's transaction has none.");
  }
  if (!one->currency[0]) return;
  if (strcmp(one->currency, order->currency)) {
    add(audit, KIND_currency_mismatch, order->amount, "Ordered in %s, charged in %s.", order->currency, one->currency);
    return;
  }
  int64_t price = price_minor_units(one, order->digits);
  if (price == NONE || one->has_offer || price == order->amount) return;
  char ours[32], theirs[32];
  ours[print_money(ours, order->amount, order->digits)] = theirs[print_money(theirs, price, order->digits)] = 0;
  add(audit, KIND_amount_mismatch, llabs(price - order->amount), "Ordered for %s, Apple charged the customer %s %s.",
      ours, theirs, order->currency);
}

static void consider_dates(Audit* audit, const Rules* rules) {
  int64_t latest = rules->as_of + 5 * MINUTES;
  char late[160] = "";
  size_t length = 0;
  if (audit->order.created > latest) length += (size_t)sprintf(late + length, ", the order's creation");
  if (audit->order.verified > latest) length += (size_t)sprintf(late + length, ", the order's verification");
  for (int index = 0; index < audit->delivery_count && length < 80; index++) {
    if (audit->deliveries[index].delivered > latest) {
      length += (size_t)sprintf(late + length, ", delivery %s", audit->deliveries[index].delivery_id);
    }
  }
  if (length > 0) add(audit, KIND_future_dated, NONE, "Dated later than the audit: %s.", late + 2);
}

void find_discrepancies(Audit* audit, const Rules* rules) {
  if (audit->disposition == BAD_ROW) {
    add(audit, KIND_bad_row, NONE, "The order row breaks the contract: %s.", audit->order.defect);
    return;
  }
  consider_disposition(audit, rules);
  consider_claims(audit);
  consider_proofs(audit);
  consider_refunds(audit);
  consider_deliveries(audit, rules);
  consider_comparison(audit);
  consider_dates(audit, rules);
  // Worst first; money at stake stands once, on the first that has the most, but a second charge is money of its own.
  for (int index = 1; index < audit->finding_count; index++) {
    Finding moved = audit->findings[index];
    int place = index;
    for (; place > 0 && audit->findings[place - 1].kind > moved.kind; place--)
      audit->findings[place] = audit->findings[place - 1];
    audit->findings[place] = moved;
  }
  Finding* carrier = NULL;
  for (int index = 0; index < audit->finding_count; index++) {
    Finding* finding = &audit->findings[index];
    if (finding->at_stake == NONE || finding->kind == KIND_charged_twice) continue;
    Finding* less = carrier != NULL && carrier->at_stake >= finding->at_stake ? finding : carrier;
    if (less != finding) carrier = finding;
    if (less != NULL) less->at_stake = NONE;
  }
}
