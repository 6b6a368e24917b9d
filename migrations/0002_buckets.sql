-- Events and their tiers: what is for sale, when, and for how much.

-- +goose Up

-- The directory, kept by the system journal: which journal records which event.
-- An event's journal has the seq of the system entry that created it as its number.
CREATE TABLE event_journals (
    journal_id       bigint NOT NULL, -- the system journal
    event            text   COLLATE "C" NOT NULL,
    event_journal_id bigint NOT NULL,
    CONSTRAINT event_journals_pkey PRIMARY KEY (journal_id, event),
    CONSTRAINT event_journals_number_key UNIQUE (journal_id, event_journal_id),
    CONSTRAINT event_journals_system CHECK (journal_id = 0 AND event_journal_id > 0)
);

-- One row per event, in the event's own journal; a decision reads it with the rest.
CREATE TABLE events (
    journal_id          bigint      NOT NULL,
    event               text        COLLATE "C" NOT NULL,
    name                text        NOT NULL,
    currency            text        COLLATE "C" NOT NULL,
    hold_seconds        integer     NOT NULL,
    grace_seconds       integer     NOT NULL,
    limit_per_customer  bigint,               -- over all tiers; NULL for none
    sale_opens_at       timestamptz,          -- NULL: from the start
    sale_closes_at      timestamptz,          -- NULL: never
    organiser           text        COLLATE "C" NOT NULL,
    late_payment_policy text        COLLATE "C" NOT NULL,
    created_at          timestamptz NOT NULL,
    version             bigint      NOT NULL, -- seq of the last entry that changed it
    CONSTRAINT events_pkey PRIMARY KEY (journal_id),
    CONSTRAINT events_hold_seconds CHECK (hold_seconds > 0),
    CONSTRAINT events_grace_seconds CHECK (grace_seconds >= 0),
    CONSTRAINT events_limit CHECK (limit_per_customer > 0),
    CONSTRAINT events_window CHECK (sale_opens_at < sale_closes_at),
    CONSTRAINT events_late_payment_policy CHECK (late_payment_policy IN
        ('honour_if_available', 'refund', 'review'))
);

-- A class of like tickets. Its quantity rests on the accounts, not here.
CREATE TABLE tiers (
    journal_id         bigint   NOT NULL,
    tier               text     COLLATE "C" NOT NULL,
    position           smallint NOT NULL, -- order in which they were added, from 0
    name               text     NOT NULL,
    price_version      bigint   NOT NULL, -- of the price in force
    limit_per_customer bigint,            -- NULL for none
    version            bigint   NOT NULL, -- seq of the last entry that changed it
    CONSTRAINT tiers_pkey PRIMARY KEY (journal_id, tier),
    CONSTRAINT tiers_limit CHECK (limit_per_customer > 0)
);

-- Every price a tier ever had, immutable: a hold names the one it was made at.
CREATE TABLE prices (
    journal_id    bigint  NOT NULL,
    tier          text    COLLATE "C" NOT NULL,
    price_version bigint  NOT NULL,
    amount        bigint  NOT NULL, -- face value of one ticket, minor units
    fee           bigint  NOT NULL, -- platform fee on one ticket, minor units
    tax_rate      numeric NOT NULL, -- share of amount + fee, 0.07 for 7 %
    CONSTRAINT prices_pkey PRIMARY KEY (journal_id, tier, price_version),
    CONSTRAINT prices_amounts CHECK (amount >= 0 AND fee >= 0),
    CONSTRAINT prices_tax_rate CHECK (tax_rate >= 0 AND tax_rate <= 1)
);

GRANT SELECT, INSERT ON event_journals, events, tiers, prices TO tierledger_service;
GRANT UPDATE (name, price_version, limit_per_customer, version) ON tiers TO tierledger_service;
