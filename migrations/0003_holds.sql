-- Holds: a customer's time-bounded claim on tickets.

-- +goose Up

CREATE TABLE holds (
    journal_id bigint      NOT NULL,
    hold_id    uuid        NOT NULL, -- the id of the entry that placed it
    customer   text        COLLATE "C" NOT NULL,
    status     text        COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    items      json        NOT NULL, -- [{tier, quantity, unit_price, price_version}]
    total      bigint      NOT NULL, -- minor units of the event's currency
    version    bigint      NOT NULL, -- seq of the last entry that changed it
    CONSTRAINT holds_pkey PRIMARY KEY (journal_id, hold_id),
    CONSTRAINT holds_status CHECK (status IN ('held', 'released', 'expired')),
    CONSTRAINT holds_deadline CHECK (expires_at > created_at),
    CONSTRAINT holds_total CHECK (total >= 0)
);

-- What is due next: read by every batch of the journal, and by the sweeper.
CREATE INDEX holds_due ON holds (journal_id, expires_at) WHERE status = 'held';
-- A customer's holds. The customer alone: an index that has the key's columns too, in
-- whatever place, is as good as the primary key to a plan that's made while the table is
-- empty, and kept.
CREATE INDEX holds_customer ON holds (customer);

-- A hold ends; whose it is, what it claims and until when never changes.
GRANT SELECT, INSERT ON holds TO tierledger_service;
GRANT UPDATE (status, version) ON holds TO tierledger_service;
