-- What Apple had told of a customer's other subscriptions was taken for brought by the proof of one. The evidence stays; who
-- brought what is derived from it.
DELETE FROM night_audit.receipt_transactions l USING night_audit.receipt_checks c
WHERE c.subject_kind = l.subject_kind AND c.subject_id = l.subject_id
  AND c.payload_kind = 'signed' AND c.signed_transaction_id <> l.transaction_id
  AND NOT EXISTS (
    SELECT 1 FROM night_audit.evidence o WHERE o.subject_kind = l.subject_kind AND o.subject_id = l.subject_id
      AND o.transaction_id = l.transaction_id AND o.channel <> 'serverApi');
