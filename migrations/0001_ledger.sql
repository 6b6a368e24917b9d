-- The ledger: journals, their entries and postings, and the accounts that the
-- postings add up to. Every key begins with the journal.

-- +goose Up

-- The role that the service works as. It's a group role: a deployment grants it
-- to the login that the service connects with. It never owns a table.
-- +goose StatementBegin
DO $$
BEGIN
    -- Whoever finds it, from another database of this server or made by an
    -- administrator, needs no right to create roles.
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'tierledger_service') THEN
        CREATE ROLE tierledger_service NOLOGIN;
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN NULL; -- somebody made it right now
END
$$;
-- +goose StatementEnd

-- One row per journal: where it stands. Locked first by every batch that writes.
CREATE TABLE journals (
    journal_id bigint      NOT NULL,
    seq        bigint      NOT NULL DEFAULT 0,                -- of the last entry, 0 for none
    at         timestamptz NOT NULL DEFAULT 'epoch',          -- of the last entry
    hash       bytea       NOT NULL DEFAULT decode(repeat('00', 32), 'hex'), -- of the last entry
    CONSTRAINT journals_pkey PRIMARY KEY (journal_id),
    CONSTRAINT journals_id CHECK (journal_id BETWEEN 0 AND 4294967295),
    CONSTRAINT journals_seq CHECK (seq >= 0),
    CONSTRAINT journals_hash CHECK (octet_length(hash) = 32)
) WITH (fillfactor = 20); -- one hot row: room for its new versions on its own page

-- Immutable. seq is gapless and in commit order; id is made from the principal
-- and the idempotency key, so that a repeat finds its entry.
CREATE TABLE entries (
    journal_id bigint      NOT NULL,
    seq        bigint      NOT NULL,
    id         uuid        NOT NULL,
    kind       text        COLLATE "C" NOT NULL,
    at         timestamptz NOT NULL,
    principal  text        COLLATE "C" NOT NULL, -- who asked
    digest     bytea       NOT NULL, -- SHA-256 of the request
    data       json        NOT NULL, -- the fact, and the original answer, byte for byte
    hash       bytea       NOT NULL, -- SHA-256 over the previous hash and this entry
    CONSTRAINT entries_pkey PRIMARY KEY (journal_id, seq),
    CONSTRAINT entries_id_key UNIQUE (journal_id, id),
    CONSTRAINT entries_seq CHECK (seq >= 1),
    CONSTRAINT entries_digest CHECK (octet_length(digest) = 32),
    CONSTRAINT entries_hash CHECK (octet_length(hash) = 32)
);

-- Immutable. The account's version after a posting is the entry's seq.
CREATE TABLE postings (
    journal_id bigint   NOT NULL,
    seq        bigint   NOT NULL,
    leg        smallint NOT NULL, -- position in the entry, from 0
    account    text     COLLATE "C" NOT NULL,
    unit       text     COLLATE "C" NOT NULL,
    amount     bigint   NOT NULL, -- debit +, credit -
    balance    bigint   NOT NULL, -- of the account, after this posting
    CONSTRAINT postings_pkey PRIMARY KEY (journal_id, seq, leg),
    -- One leg per account, unit and entry; also the order of an account's statement.
    CONSTRAINT postings_account_key UNIQUE (journal_id, account, unit, seq),
    CONSTRAINT postings_amount CHECK (amount <> 0),
    CONSTRAINT postings_leg CHECK (leg >= 0)
);

-- What the postings add up to. A control account has no postings of its own:
-- its balance is the sum of the accounts that name it as their control.
CREATE TABLE accounts (
    journal_id bigint NOT NULL,
    code       text   COLLATE "C" NOT NULL,
    unit       text   COLLATE "C" NOT NULL,
    type       text   COLLATE "C" NOT NULL,
    control    text   COLLATE "C", -- code of the control account above it
    balance    bigint NOT NULL,
    version    bigint NOT NULL, -- seq of the last entry that touched it
    CONSTRAINT accounts_pkey PRIMARY KEY (journal_id, code, unit),
    CONSTRAINT accounts_type CHECK (type IN
        ('asset', 'liability', 'income', 'expense', 'equity', 'inventory', 'memo')),
    CONSTRAINT accounts_version CHECK (version >= 1),
    -- Tickets can't be owed: nothing but the contra account goes below zero.
    CONSTRAINT accounts_inventory CHECK (type <> 'inventory'
        OR CASE WHEN code = 'capacity' THEN balance <= 0 ELSE balance >= 0 END)
) WITH (fillfactor = 90);

-- The journal of what isn't about one event.
INSERT INTO journals (journal_id) VALUES (0);

-- Entries and postings can be added and read, and nothing can be removed. What can
-- be edited is what moves with new entries, column by column: never a key, nor what
-- an account is.
GRANT SELECT, INSERT ON entries, postings, journals, accounts TO tierledger_service;
GRANT UPDATE (seq, at, hash) ON journals TO tierledger_service;
GRANT UPDATE (balance, version) ON accounts TO tierledger_service;
-- The service refuses to start on a schema that isn't up to date.
GRANT SELECT ON goose_db_version TO tierledger_service;
