-- The publisher and what stands behind it: where each journal's publishing is, what each
-- consumer has done, what was given up, issued tickets, and webhooks to subscribers.
-- None of it is a balance: it follows the journals, and could be made anew from them.

-- +goose Up

-- How far a journal is published, and which process does it. The stream itself is the
-- authority on where it stands: this row may be behind it after a crash.
CREATE TABLE relays (
    journal_id bigint  NOT NULL,
    seq        bigint  NOT NULL DEFAULT 0,             -- of the last entry that the stream acknowledged
    stream     text    COLLATE "C" NOT NULL DEFAULT '', -- which stream did: its name and its birth
    stream_seq bigint  NOT NULL DEFAULT 0,             -- the message's number there
    reached    bigint  NOT NULL DEFAULT 0,             -- the furthest that seq has ever been: up to here it's published again
    suspect    boolean NOT NULL DEFAULT false,         -- the stream may have lost it since
    holder     uuid,                                   -- the process that publishes; NULL: none does
    held_until timestamptz,                            -- unless it moves on, another may from then on
    problem    text    NOT NULL DEFAULT '',            -- why it doesn't move on, for people; '' when it does
    CONSTRAINT relays_pkey PRIMARY KEY (journal_id),
    CONSTRAINT relays_seq CHECK (seq >= 0 AND stream_seq >= 0 AND reached >= 0),
    CONSTRAINT relays_held CHECK ((holder IS NULL) = (held_until IS NULL))
) WITH (fillfactor = 50);

-- How far a consumer is in a journal: its effects of all entries up to seq are there, or
-- in dead_letters. Moved in the transaction of the effects.
CREATE TABLE inbox (
    consumer   text        COLLATE "C" NOT NULL,
    journal_id bigint      NOT NULL,
    seq        bigint      NOT NULL,
    attempts   integer     NOT NULL DEFAULT 0,  -- that the entry after seq has failed
    retry_at   timestamptz,                     -- when it's tried again; NULL when it hasn't failed
    reason     text        NOT NULL DEFAULT '', -- why it failed
    CONSTRAINT inbox_pkey PRIMARY KEY (consumer, journal_id),
    CONSTRAINT inbox_seq CHECK (seq >= 0),
    CONSTRAINT inbox_attempts CHECK (attempts >= 0 AND (attempts = 0) = (retry_at IS NULL))
) WITH (fillfactor = 50);

-- A request to replay or discard dead letters, and how far it is.
CREATE TABLE replays (
    replay_id    uuid        NOT NULL, -- made of the principal and the key that asked for it
    action       text        COLLATE "C" NOT NULL,
    status       text        COLLATE "C" NOT NULL,
    chosen       json        NOT NULL, -- by what: a filter, or letters by their ids; as asked
    rate         integer     NOT NULL, -- letters a second
    canary       boolean     NOT NULL, -- the first alone; the rest only if that went well
    reason       text        NOT NULL,
    requested_by text        COLLATE "C" NOT NULL,
    requested_at timestamptz NOT NULL,
    decided_by   text        COLLATE "C", -- who approved or rejected; NULL when nobody needed to, or has
    changed_at   timestamptz NOT NULL,    -- when its status last became what it is
    note         text        NOT NULL DEFAULT '', -- why it stands where it does
    letters      integer     NOT NULL DEFAULT 0, -- chosen
    money        integer     NOT NULL DEFAULT 0, -- of those, about money
    done         integer     NOT NULL DEFAULT 0,
    failed       integer     NOT NULL DEFAULT 0, -- died again
    freed        integer     NOT NULL DEFAULT 0, -- let go of: it was rejected, or another replay took them over
    due_at       timestamptz, -- when the next is taken; NULL unless it's running
    CONSTRAINT replays_pkey PRIMARY KEY (replay_id),
    CONSTRAINT replays_action CHECK (action IN ('replay', 'discard')),
    CONSTRAINT replays_status CHECK (status IN ('awaiting_approval', 'rejected', 'running', 'stopped', 'done')),
    CONSTRAINT replays_rate CHECK (rate BETWEEN 1 AND 1000),
    CONSTRAINT replays_due CHECK ((status = 'running') = (due_at IS NOT NULL)),
    CONSTRAINT replays_counts CHECK (least(money, done, failed, freed, letters - done - failed - freed) >= 0 AND money <= letters),
    CONSTRAINT replays_second_person CHECK (decided_by <> requested_by),
    CONSTRAINT replays_approved CHECK (money = 0 OR done + failed = 0 OR decided_by IS NOT NULL)
) WITH (fillfactor = 50);
CREATE INDEX replays_due ON replays (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX replays_requested ON replays (requested_at);
CREATE INDEX replays_open ON replays (status) WHERE status IN ('awaiting_approval', 'running', 'stopped');

-- What was done with a replay, by whom and why. Immutable.
CREATE TABLE replay_steps (
    step_id   uuid        NOT NULL, -- made of the principal and the key that asked for it
    replay_id uuid        NOT NULL,
    step      text        COLLATE "C" NOT NULL,
    principal text        COLLATE "C" NOT NULL,
    at        timestamptz NOT NULL,
    reason    text        NOT NULL,
    CONSTRAINT replay_steps_pkey PRIMARY KEY (step_id),
    CONSTRAINT replay_steps_step CHECK (step IN
        ('requested', 'approved', 'rejected', 'stopped', 'resumed', 'taken_over', 'done'))
);
CREATE INDEX replay_steps_replay ON replay_steps (replay_id, at);

-- What couldn't be done after all attempts. Written before its origin is let go of, and
-- never removed.
CREATE TABLE dead_letters (
    letter_id  uuid        NOT NULL, -- made of consumer, journal, seq and target: the business key
    consumer   text        COLLATE "C" NOT NULL,
    journal_id bigint      NOT NULL,
    seq        bigint      NOT NULL, -- of the entry; 0 when the message names none
    target     text        COLLATE "C" NOT NULL DEFAULT '', -- whom it was for, or where in a stream it was
    kind       text        COLLATE "C" NOT NULL, -- '' when the message names none
    payload    bytea       NOT NULL, -- as it was published; of a message that names no entry, its beginning
    money      boolean     NOT NULL, -- the entry moved money: a second person decides
    reason     text        NOT NULL, -- for people
    attempts   integer     NOT NULL, -- in all
    died_at    timestamptz NOT NULL, -- the last time
    status     text        COLLATE "C" NOT NULL DEFAULT 'dead',
    taken      boolean     NOT NULL DEFAULT false, -- the replay still has to do it
    replay_id  uuid,       -- that has taken it, or had it last
    ended_at   timestamptz, -- when it was replayed or discarded
    CONSTRAINT dead_letters_pkey PRIMARY KEY (letter_id),
    CONSTRAINT dead_letters_seq CHECK (seq >= 0),
    CONSTRAINT dead_letters_status CHECK (status IN ('dead', 'replayed', 'discarded')),
    CONSTRAINT dead_letters_ended CHECK ((status = 'dead') = (ended_at IS NULL)),
    CONSTRAINT dead_letters_replayed CHECK (status = 'dead' OR replay_id IS NOT NULL),
    CONSTRAINT dead_letters_taken CHECK (NOT taken OR status = 'dead' AND replay_id IS NOT NULL),
    CONSTRAINT dead_letters_attempts CHECK (attempts >= 1)
);
CREATE INDEX dead_letters_died ON dead_letters (died_at);
CREATE INDEX dead_letters_dead ON dead_letters (consumer) WHERE status = 'dead';
CREATE INDEX dead_letters_taken ON dead_letters (replay_id, journal_id, seq) WHERE taken;

-- An order that has had tickets, or was cancelled, and the last of its entries that they
-- follow: an older one that comes after all, as a replayed dead letter, changes nothing.
CREATE TABLE ticketed_orders (
    journal_id bigint NOT NULL,
    order_id   uuid   NOT NULL,
    seq        bigint NOT NULL,
    CONSTRAINT ticketed_orders_pkey PRIMARY KEY (journal_id, order_id),
    CONSTRAINT ticketed_orders_seq CHECK (seq >= 1)
) WITH (fillfactor = 80);

-- A ticket: one sold unit of a captured order, signed. number counts an order's tickets
-- from 1 and never names another unit.
CREATE TABLE tickets (
    journal_id bigint      NOT NULL,
    order_id   uuid        NOT NULL,
    number     integer     NOT NULL,
    line       integer     NOT NULL, -- of the order, from 1
    ticket_id  uuid        NOT NULL, -- made of journal, order and number
    tier       text        COLLATE "C" NOT NULL,
    seat       text        COLLATE "C" NOT NULL DEFAULT '', -- its label; '' for general admission
    token      text        COLLATE "C" NOT NULL,            -- the signed form
    issued_seq bigint      NOT NULL, -- of the entry that it was issued from
    issued_at  timestamptz NOT NULL,
    revoked_seq bigint,    -- of the entry that took the unit back; NULL: it's valid
    CONSTRAINT tickets_pkey PRIMARY KEY (journal_id, order_id, number),
    CONSTRAINT tickets_ticket_id_key UNIQUE (ticket_id),
    CONSTRAINT tickets_number CHECK (number >= 1 AND line >= 1),
    CONSTRAINT tickets_revoked CHECK (revoked_seq > issued_seq)
);

-- Who is told of entries by webhook.
CREATE TABLE subscriptions (
    subscription_id uuid        NOT NULL,
    url             text        NOT NULL,
    kinds           text[]      COLLATE "C" NOT NULL, -- kinds, or beginnings such as order.*; empty: all
    event           text        COLLATE "C",          -- NULL: of all events
    description     text        NOT NULL,
    status          text        COLLATE "C" NOT NULL,
    reason          text        NOT NULL, -- why it's disabled
    secret          bytea       NOT NULL, -- sealed; signs every webhook
    old_secret      bytea,                -- sealed; signs too, until old_until
    old_until       timestamptz,
    active_since    timestamptz NOT NULL, -- entries from before aren't told
    created_by      text        COLLATE "C" NOT NULL,
    created_at      timestamptz NOT NULL,
    changed_by      text        COLLATE "C" NOT NULL,
    changed_at      timestamptz NOT NULL,
    CONSTRAINT subscriptions_pkey PRIMARY KEY (subscription_id),
    CONSTRAINT subscriptions_status CHECK (status IN ('active', 'disabled')),
    CONSTRAINT subscriptions_old CHECK ((old_secret IS NULL) = (old_until IS NULL))
);
CREATE INDEX subscriptions_status ON subscriptions (status);

-- Every change of a subscription: who made it, and what a repeat of the request is
-- recognised by.
CREATE TABLE subscription_changes (
    change_id       uuid        NOT NULL, -- made of principal and idempotency key
    subscription_id uuid        NOT NULL,
    kind            text        COLLATE "C" NOT NULL,
    digest          bytea       NOT NULL, -- of what was asked
    answer          json,                 -- of a repeat; NULL: the subscription as it is then
    changed_by      text        COLLATE "C" NOT NULL,
    changed_at      timestamptz NOT NULL,
    CONSTRAINT subscription_changes_pkey PRIMARY KEY (change_id)
);

-- One entry for one subscriber.
CREATE TABLE deliveries (
    subscription_id uuid        NOT NULL,
    journal_id      bigint      NOT NULL,
    seq             bigint      NOT NULL,
    kind            text        COLLATE "C" NOT NULL,
    status          text        COLLATE "C" NOT NULL,
    attempts        integer     NOT NULL DEFAULT 0,
    spent           integer     NOT NULL DEFAULT 0, -- of the attempts: before its schedule began anew
    created_at      timestamptz NOT NULL,
    due_at          timestamptz, -- of the next attempt, or the end of the lease of the one under way
    ended_at        timestamptz,
    CONSTRAINT deliveries_pkey PRIMARY KEY (subscription_id, journal_id, seq),
    CONSTRAINT deliveries_status CHECK (status IN ('pending', 'delivered', 'dead', 'dropped')),
    CONSTRAINT deliveries_due CHECK ((status = 'pending') = (due_at IS NOT NULL)),
    CONSTRAINT deliveries_ended CHECK ((status = 'pending') = (ended_at IS NULL)),
    CONSTRAINT deliveries_attempts CHECK (spent BETWEEN 0 AND attempts)
) WITH (fillfactor = 80);
-- Each subscriber has a queue of its own, so that a long one is in nobody's way. The id is
-- there as text, so that no other index can be taken for it, however empty the table was
-- when a plan was made.
CREATE INDEX deliveries_pending ON deliveries ((subscription_id::text) COLLATE "C", due_at, journal_id, seq) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_log ON deliveries (subscription_id, created_at, journal_id, seq);

-- What came of each attempt.
CREATE TABLE delivery_attempts (
    subscription_id uuid        NOT NULL,
    journal_id      bigint      NOT NULL,
    seq             bigint      NOT NULL,
    attempt         integer     NOT NULL,
    at              timestamptz NOT NULL,
    milliseconds    integer     NOT NULL,
    status_code     integer     NOT NULL, -- 0: there was no answer
    error           text        NOT NULL, -- '' when it was taken
    response        text        NOT NULL, -- the beginning of the answer's body
    CONSTRAINT delivery_attempts_pkey PRIMARY KEY (subscription_id, journal_id, seq, attempt),
    CONSTRAINT delivery_attempts_attempt CHECK (attempt >= 1)
);

GRANT SELECT, INSERT ON relays, inbox, replays, replay_steps, dead_letters, ticketed_orders, tickets, subscriptions, subscription_changes,
    deliveries, delivery_attempts TO tierledger_service;
GRANT UPDATE (seq, stream, stream_seq, reached, suspect, holder, held_until, problem) ON relays TO tierledger_service;
GRANT UPDATE (seq, attempts, retry_at, reason) ON inbox TO tierledger_service;
GRANT UPDATE (status, decided_by, changed_at, note, letters, money, done, failed, freed, due_at) ON replays TO tierledger_service;
GRANT UPDATE (reason, attempts, died_at, status, taken, replay_id, ended_at) ON dead_letters TO tierledger_service;
GRANT UPDATE (seq) ON ticketed_orders TO tierledger_service;
GRANT UPDATE (revoked_seq) ON tickets TO tierledger_service;
GRANT UPDATE (url, kinds, event, description, status, reason, secret, old_secret, old_until, active_since, changed_by, changed_at)
    ON subscriptions TO tierledger_service;
GRANT UPDATE (answer) ON subscription_changes TO tierledger_service;
GRANT UPDATE (status, attempts, spent, due_at, ended_at) ON deliveries TO tierledger_service;
-- The log of webhooks is kept for a time only.
GRANT DELETE ON deliveries, delivery_attempts TO tierledger_service;
