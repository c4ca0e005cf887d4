#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "stream.h"

#define HOURS INT64_C(3600000000)

const char* const payment_names[] = {"paid", "reversed", "unpaid", "unconfirmed", ""};
const char* const disposition_names[] = {
    "settled",
    "paid_not_delivered",
    "delivered_not_paid",
    "partly_delivered",
    "refunded",
    "refunded_still_delivered",
    "in_flight",
    "unconfirmed",
    "void",
    "sandbox",
    "bad_row",
};

int currency_digits(const char* code) {
  static const struct {
    char code[4];
    int digits;
  } known[] = {
      {"USD", 2}, {"EUR", 2}, {"JPY", 0}, {"GBP", 2}, {"KWD", 3}, {"INR", 2}, {"BRL", 2}, {"KRW", 0}, {"CHF", 2},
  };
  for (size_t index = 0; index < sizeof known / sizeof *known; index++) {
    if (memcmp(known[index].code, code, 4) == 0) return known[index].digits;
  }
  return -1;
}

bool is_reversed(const Transaction* transaction) {
  if (transaction->revoked == NONE) return false;
  return transaction->percentage == NONE ? !transaction->is_prorated : transaction->percentage >= 100000;
}

static bool is_tester(const Rules* rules, const char* user) {
  return bsearch(user, rules->testers, (size_t)rules->tester_count, ID, (int (*)(const void*, const void*))strcmp) !=
         NULL;
}

// Why a transaction cannot pay the order; NULL when it can.
static const char* refusal(const Order* order, const Transaction* transaction) {
  if (transaction->is_contradictory) return "contradiction";
  if (order->bundle_id[0] && transaction->bundle_id[0] && strcmp(order->bundle_id, transaction->bundle_id))
    return "wrong_bundle";
  if (strcmp(order->product_id, transaction->product_id)) return "product_mismatch";
  if (transaction->environment[0] != 'P' && transaction->environment[0] != 'S') return "xcode";
  return transaction->is_family ? "family_shared" : NULL;
}

static bool is_candidate(const Order* order, const Transaction* transaction) {
  if (refusal(order, transaction) || transaction->is_renewal || transaction->purchased == NONE) return false;
  return llabs(transaction->purchased - order->created) <= 72 * HOURS;
}

static const Transaction* named(const Transaction* transactions, int count, const char* id) {
  const Transaction* found = NULL;
  for (int index = 0; index < count && id[0]; index++) {
    if (strcmp(transactions[index].transaction_id, id)) continue;
    if (!found || transactions[index].environment[0] == 'P') found = &transactions[index];
  }
  return found;
}

static const Transaction* nearest(const Audit* audit, const Transaction* besides) {
  const Transaction* best = NULL;
  for (int index = 0; index < audit->transaction_count; index++) {
    const Transaction* one = &audit->transactions[index];
    if (one == besides || !is_candidate(&audit->order, one)) continue;
    if (besides && (is_reversed(one) || one->environment[0] != 'P')) continue;
    if (!best || llabs(one->purchased - audit->order.created) < llabs(best->purchased - audit->order.created))
      best = one;
  }
  return best;
}

static void decide(Audit* audit, Payment payment, const char* reason) {
  audit->payment = payment;
  audit->payment_reason = reason;
}

static void decide_without_transaction(Audit* audit, const Rules* rules) {
  const Proof *open = NULL, *false_proof = NULL;
  for (int index = 0; index < audit->proof_count; index++) {
    const Proof* proof = &audit->proofs[index];
    if (proof->is_lookup && strcmp(proof->outcome, "not_found") == 0) {
      bool is_old = rules->as_of - audit->order.created > 24 * HOURS;
      return is_old ? decide(audit, UNPAID, "not_found") : decide(audit, UNCONFIRMED, "not_found_yet");
    }
    if (strcmp(proof->outcome, "rejected") == 0) {
      false_proof = proof;
    } else if (strcmp(proof->outcome, "verified")) {
      open = proof;
    }
  }
  if (open) return decide(audit, UNCONFIRMED, open->reason[0] ? open->reason : "never_checked");
  if (false_proof) return decide(audit, UNPAID, false_proof->reason);
  if (audit->order.transaction_id[0]) return decide(audit, UNCONFIRMED, "never_checked");
  if (rules->as_of - audit->order.created <= HOURS) return decide(audit, UNCONFIRMED, "awaiting_evidence");
  decide(audit, UNPAID, audit->order.status == VERIFIED ? "no_evidence" : "never_paid");
}

static void decide_payment(Audit* audit, const Rules* rules) {
  const Order* order = &audit->order;
  const Transaction* claimed = named(audit->transactions, audit->transaction_count, order->transaction_id);
  const Transaction* lost = claimed ? NULL : named(audit->detours, audit->detour_count, order->transaction_id);
  if (!order->transaction_id[0]) claimed = nearest(audit, NULL);
  const char* refused = claimed ? refusal(order, claimed) : lost ? refusal(order, lost) : NULL;
  audit->shown = claimed ? claimed : lost;
  if (refused) return decide(audit, strcmp(refused, "contradiction") ? UNPAID : UNCONFIRMED, refused);
  if (lost) return decide(audit, UNPAID, "duplicate");
  if (!claimed) return decide_without_transaction(audit, rules);
  audit->own = claimed;
  audit->second = audit->transaction_count > 1 ? nearest(audit, claimed) : NULL;
  if (claimed->environment[0] == 'S') return decide(audit, UNPAID, "sandbox");
  decide(audit, is_reversed(claimed) ? REVERSED : PAID, "");
}

static Disposition disposition(const Audit* audit, const Rules* rules) {
  const Order* order = &audit->order;
  bool is_complete = audit->units >= order->quantity, is_held = audit->units > 0;
  switch (audit->payment) {
    case PAID: {
      if (is_complete) return SETTLED;
      if (is_held) return PARTLY_DELIVERED;
      int64_t paid = audit->own->purchased != NONE ? audit->own->purchased : order->created;
      return rules->as_of - paid <= HOURS ? IN_FLIGHT : PAID_NOT_DELIVERED;
    }
    case REVERSED:
      return is_held ? REFUNDED_STILL_DELIVERED : REFUNDED;
    case UNPAID:
      if (strcmp(audit->payment_reason, "family_shared") == 0) return VOID;
      if (strcmp(audit->payment_reason, "sandbox") == 0 && is_tester(rules, order->user_id)) return SANDBOX;
      return is_held ? DELIVERED_NOT_PAID : VOID;
    case UNCONFIRMED:
    case UNSAID:
      break;
  }
  return UNCONFIRMED_ORDER;
}

void judge(Audit* audit, const Rules* rules) {
  audit->own = audit->second = audit->shown = NULL;
  audit->units = 0;
  audit->is_taken_back = false;
  audit->delivered = audit->checked = NONE;
  audit->finding_count = 0;
  for (int index = 0; index < audit->delivery_count; index++) {
    const Delivery* delivery = &audit->deliveries[index];
    if (delivery->revoked != NONE) {
      audit->is_taken_back = true;
      continue;
    }
    audit->units += delivery->quantity;
    if (delivery->delivered > audit->delivered) audit->delivered = delivery->delivered;
  }
  if (audit->order.defect[0]) {
    decide(audit, UNSAID, "");
    audit->disposition = BAD_ROW;
  } else {
    decide_payment(audit, rules);
    audit->disposition = disposition(audit, rules);
    if (audit->shown) audit->checked = audit->shown->checked;
    for (int index = 0; index < audit->proof_count; index++) {
      if (audit->proofs[index].last_attempt > audit->checked) audit->checked = audit->proofs[index].last_attempt;
    }
  }
  find_discrepancies(audit, rules);
}
