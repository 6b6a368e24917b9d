-- Orders: purchases, their steps with the payment provider, what the provider tells
-- of itself, and the cases that somebody must resolve.

-- +goose Up

-- A hold that is being paid for, was paid for, or whose payment's outcome is unknown
-- isn't due at expires_at. pay_until is the end of its one grace, set at its first
-- checkout and never moved.
ALTER TABLE holds
    DROP CONSTRAINT holds_status,
    ADD COLUMN pay_until timestamptz,
    ADD CONSTRAINT holds_status CHECK (status IN
        ('held', 'payment_pending', 'reconciling', 'confirmed', 'released', 'expired')),
    ADD CONSTRAINT holds_grace CHECK (pay_until >= expires_at),
    ADD CONSTRAINT holds_paying CHECK (pay_until IS NOT NULL
        OR status NOT IN ('payment_pending', 'reconciling'));
GRANT UPDATE (pay_until) ON holds TO tierledger_service;

-- Until when a late payment may still be honoured; NULL for no end.
ALTER TABLE events
    ADD COLUMN honour_until timestamptz,
    ADD CONSTRAINT events_honour_until CHECK (honour_until >= sale_closes_at);

-- A purchase. One per hold, with the id that the hold's id leads to. Its parts are what
-- it costs: face values, platform fees, tax; minor units of the event's currency.
CREATE TABLE orders (
    journal_id     bigint      NOT NULL,
    order_id       uuid        NOT NULL,
    hold_id        uuid        NOT NULL,
    customer       text        COLLATE "C" NOT NULL,
    status         text        COLLATE "C" NOT NULL,
    reconciling    boolean     NOT NULL, -- a case or an unknown outcome is open beside the status
    payment_status text        COLLATE "C" NOT NULL,
    items          json        NOT NULL, -- those of the hold, with what was returned
    face           bigint      NOT NULL,
    fee            bigint      NOT NULL,
    tax            bigint      NOT NULL,
    captured       bigint      NOT NULL, -- taken from the buyer
    refunded_face  bigint      NOT NULL, -- asked to be paid back, or charged back
    refunded_fee   bigint      NOT NULL,
    refunded_tax   bigint      NOT NULL,
    created_at     timestamptz NOT NULL,
    pay_until      timestamptz NOT NULL, -- of the hold
    due_at         timestamptz,          -- when somebody must look at it; NULL when settled
    version        bigint      NOT NULL, -- seq of the last entry that changed it or a step of it
    CONSTRAINT orders_pkey PRIMARY KEY (journal_id, order_id),
    CONSTRAINT orders_status CHECK (status IN
        ('pending', 'confirmed', 'captured', 'partially_refunded', 'refunded', 'cancelled')),
    CONSTRAINT orders_payment_status CHECK (payment_status IN
        ('authorizing', 'requires_action', 'authorized', 'declined', 'capturing', 'captured', 'voiding', 'voided',
         'refunding', 'refunded', 'partially_refunded', 'unknown')),
    CONSTRAINT orders_parts CHECK (face >= 0 AND fee >= 0 AND tax >= 0),
    CONSTRAINT orders_captured CHECK (captured BETWEEN 0 AND face + fee + tax),
    CONSTRAINT orders_refunded CHECK (refunded_face BETWEEN 0 AND face
        AND refunded_fee BETWEEN 0 AND fee
        AND refunded_tax BETWEEN 0 AND tax
        AND refunded_face + refunded_fee + refunded_tax <= captured)
);

-- What the janitor looks for.
CREATE INDEX orders_due ON orders (due_at) WHERE due_at IS NOT NULL;
-- A customer's orders. Like every further index it has what's looked up and nothing of the
-- key: see holds_customer.
CREATE INDEX orders_customer ON orders (customer);

-- One step of an order with the payment provider, or one of the provider's own.
CREATE TABLE operations (
    journal_id   bigint      NOT NULL,
    operation_id uuid        NOT NULL, -- the provider knows it by this id, for good
    order_id     uuid        NOT NULL,
    kind         text        COLLATE "C" NOT NULL,
    attempt      integer     NOT NULL, -- among the order's operations of this kind, from 1
    status       text        COLLATE "C" NOT NULL,
    provider     text        COLLATE "C" NOT NULL,
    method       text        COLLATE "C" NOT NULL, -- of an authorization, else ''
    return_url   text        NOT NULL,             -- likewise
    payment      text        COLLATE "C" NOT NULL, -- the provider's reference of the payment, '' when it isn't known
    reference    text        COLLATE "C" NOT NULL, -- the provider's name of the step, likewise
    amount       bigint      NOT NULL,
    currency     text        COLLATE "C" NOT NULL, -- the event's, but for what the provider does in another
    authorized   bigint      NOT NULL, -- of an authorization: still reserved
    taken        bigint      NOT NULL, -- of an authorization: money that came with it
    face         bigint      NOT NULL, -- of a refund or chargeback: what it takes of each part of the order
    fee          bigint      NOT NULL,
    tax          bigint      NOT NULL,
    disputed     bigint      NOT NULL, -- of a chargeback: what rests with the provider for it
    reason       text        COLLATE "C" NOT NULL, -- the provider's, or who asked for the step why
    next_action  json,
    sends        integer     NOT NULL, -- how often it was leased to a worker
    sent_at      timestamptz,          -- for the first time
    told_at      timestamptz,          -- by the provider's clock: what its status rests on
    due_at       timestamptz,          -- end of a lease, or time of the next attempt; NULL when settled
    answered     bigint      NOT NULL, -- seq of the entry with the first outcome, 0 for none yet
    updated_at   timestamptz NOT NULL,
    version      bigint      NOT NULL,
    CONSTRAINT operations_pkey PRIMARY KEY (journal_id, operation_id),
    CONSTRAINT operations_kind CHECK (kind IN ('authorize', 'capture', 'void', 'refund', 'cancel', 'chargeback')),
    CONSTRAINT operations_status CHECK (status IN
        ('prepared', 'sent', 'requires_action', 'pending', 'unknown', 'succeeded', 'declined', 'not_attempted')),
    CONSTRAINT operations_amount CHECK (amount >= 0),
    CONSTRAINT operations_authorized CHECK (authorized BETWEEN 0 AND amount AND (authorized = 0 OR kind = 'authorize')),
    CONSTRAINT operations_disputed CHECK (disputed BETWEEN 0 AND amount AND (disputed = 0 OR kind = 'chargeback')),
    CONSTRAINT operations_taken CHECK (taken = 0 OR kind = 'authorize'),
    CONSTRAINT operations_parts CHECK (face >= 0 AND fee >= 0 AND tax >= 0 AND face + fee + tax <= amount),
    CONSTRAINT operations_sent CHECK ((sent_at IS NULL) = (sends = 0)),
    -- What we began and isn't settled has a time at which somebody looks after it.
    CONSTRAINT operations_due CHECK (due_at IS NOT NULL
        OR status IN ('succeeded', 'declined', 'not_attempted') OR sends = 0)
);

CREATE INDEX operations_order ON operations (order_id);
CREATE INDEX operations_due ON operations (due_at) WHERE due_at IS NOT NULL;
-- How many orders of an event are pending: the cap on checkouts compares with it.
CREATE TABLE checkouts (
    journal_id bigint NOT NULL,
    pending    bigint NOT NULL,
    CONSTRAINT checkouts_pkey PRIMARY KEY (journal_id),
    CONSTRAINT checkouts_pending CHECK (pending >= 0)
) WITH (fillfactor = 20); -- like journals: one hot row

-- What providers told of themselves, as it came. A webhook is stored and applied in one
-- commit, or stored and parked until what it's about is known.
CREATE TABLE webhooks (
    journal_id   bigint      NOT NULL, -- of what it's about; the system journal when that isn't ours
    provider     text        COLLATE "C" NOT NULL,
    event_id     text        COLLATE "C" NOT NULL, -- the provider's; every delivery has the same
    type         text        COLLATE "C" NOT NULL,
    operation_id uuid,       -- ours that it's about; NULL when it names none
    body         bytea       NOT NULL, -- raw, what the signature covers
    received_at  timestamptz NOT NULL,
    status       text        COLLATE "C" NOT NULL,
    tries        integer     NOT NULL, -- to apply it
    due_at       timestamptz,          -- of a parked one: the next try
    version      bigint      NOT NULL,
    CONSTRAINT webhooks_pkey PRIMARY KEY (journal_id, provider, event_id),
    CONSTRAINT webhooks_status CHECK (status IN ('applied', 'parked', 'unidentified')),
    CONSTRAINT webhooks_due CHECK ((status = 'parked') = (due_at IS NOT NULL))
);

CREATE INDEX webhooks_due ON webhooks (due_at) WHERE due_at IS NOT NULL;

-- One difference or late fact that must be resolved: by policy, or by two people.
CREATE TABLE cases (
    journal_id      bigint      NOT NULL,
    case_id         uuid        NOT NULL,
    reason          text        COLLATE "C" NOT NULL,
    status          text        COLLATE "C" NOT NULL,
    amount          bigint      NOT NULL, -- minor units of currency: what it's about
    currency        text        COLLATE "C" NOT NULL,
    suspended       bigint      NOT NULL, -- of that, what rests in suspense for it
    hold_id         uuid,
    order_id        uuid,
    operation_id    uuid,
    provider        text        COLLATE "C" NOT NULL, -- of an unidentified payment, else ''
    told_at         timestamptz, -- by the provider's clock: when the payment came to this
    opened_at       timestamptz NOT NULL,
    owner           text        COLLATE "C" NOT NULL, -- who must act: system or finance
    last_fact       text        NOT NULL, -- what was verified last
    deadline        timestamptz NOT NULL, -- when it's overdue
    due_at          timestamptz,          -- when the system tries next; NULL when a person must act
    resolution      text        COLLATE "C" NOT NULL, -- proposed or done; '' for none
    resolved_reason text        NOT NULL,
    evidence        text        NOT NULL,
    proposed_by     text        COLLATE "C" NOT NULL,
    decided_by      text        COLLATE "C" NOT NULL, -- who approved
    resolved_at     timestamptz,
    version         bigint      NOT NULL,
    CONSTRAINT cases_pkey PRIMARY KEY (journal_id, case_id),
    CONSTRAINT cases_status CHECK (status IN ('open', 'awaiting_approval', 'resolving', 'resolved')),
    CONSTRAINT cases_suspended CHECK (suspended BETWEEN 0 AND amount),
    CONSTRAINT cases_resolution CHECK (resolution IN ('', 'honour', 'refund', 'write_off', 'link')),
    CONSTRAINT cases_resolved CHECK ((status = 'resolved') = (resolved_at IS NOT NULL)
        AND (status = 'open' OR resolution <> '')),
    -- Four eyes: what isn't resolved by policy has been proposed by one and approved by another.
    CONSTRAINT cases_four_eyes CHECK (status NOT IN ('resolving', 'resolved')
        OR proposed_by = 'system'
        OR (proposed_by <> '' AND decided_by <> '' AND proposed_by <> decided_by))
);

CREATE INDEX cases_open ON cases (journal_id, opened_at) WHERE status <> 'resolved';
CREATE INDEX cases_order ON cases (order_id);
CREATE INDEX cases_due ON cases (due_at) WHERE due_at IS NOT NULL;

GRANT SELECT, INSERT ON orders, operations, checkouts, webhooks, cases TO tierledger_service;
GRANT UPDATE (status, reconciling, payment_status, items, captured, refunded_face, refunded_fee, refunded_tax,
              due_at, version) ON orders TO tierledger_service;
GRANT UPDATE (status, payment, reference, authorized, taken, face, fee, tax, disputed, reason, next_action, sends, sent_at, told_at, due_at, answered,
              updated_at, version) ON operations TO tierledger_service;
GRANT UPDATE (pending) ON checkouts TO tierledger_service;
GRANT UPDATE (status, tries, due_at, version) ON webhooks TO tierledger_service;
GRANT UPDATE (status, amount, told_at, suspended, owner, last_fact, due_at, resolution, resolved_reason, evidence, proposed_by, decided_by,
              resolved_at, version) ON cases TO tierledger_service;
