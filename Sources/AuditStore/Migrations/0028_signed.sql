-- What receipts guess at of a purchase's dates, offers and renewals had overridden what Apple signed of it. The evidence stays;
-- what follows from it is that which was signed last, and where nothing was, no word on renewals and none against an offer.
UPDATE night_audit.transactions t SET purchased_at = coalesce(told.purchased_at, t.purchased_at),
  original_purchased_at = coalesce(told.original_purchased_at, t.original_purchased_at), is_renewal = told.is_renewal,
  has_offer = coalesce(told.has_offer, told.has_guessed_offer)
FROM (
  SELECT transaction_id, environment,
    (array_agg(purchased_at ORDER BY signed_at DESC) FILTER (WHERE is_signed AND purchased_at IS NOT NULL))[1]
      AS purchased_at,
    (array_agg(original_purchased_at ORDER BY signed_at DESC)
      FILTER (WHERE is_signed AND original_purchased_at IS NOT NULL))[1] AS original_purchased_at,
    (array_agg(is_renewal ORDER BY signed_at DESC) FILTER (WHERE is_signed AND is_renewal IS NOT NULL))[1] AS is_renewal,
    (array_agg(has_offer ORDER BY signed_at DESC) FILTER (WHERE is_signed AND has_offer IS NOT NULL))[1] AS has_offer,
    bool_or(has_offer) FILTER (WHERE has_offer) AS has_guessed_offer
  FROM (
    SELECT *, channel IN ('serverApi', 'notification') OR channel = 'offline' AND tells_account_token AS is_signed
    FROM night_audit.evidence) e
  GROUP BY transaction_id, environment) told
WHERE t.transaction_id = told.transaction_id AND t.environment = told.environment
  AND (t.purchased_at, t.original_purchased_at, t.is_renewal, t.has_offer) IS DISTINCT FROM (
    coalesce(told.purchased_at, t.purchased_at), coalesce(told.original_purchased_at, t.original_purchased_at),
    told.is_renewal, coalesce(told.has_offer, told.has_guessed_offer));
