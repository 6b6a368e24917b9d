-- Quotas: the lanes over which a hot event is split, allotments with their access
-- codes, and moves of tickets between the buckets that these make.

-- +goose Up

-- The directory has a row for every lane of an event. The first is the event's own
-- journal, its home; a further lane's journal, too, has the seq of the system entry
-- that created it as its number.
ALTER TABLE event_journals
    ADD COLUMN lane integer NOT NULL DEFAULT 1,
    ADD CONSTRAINT event_journals_lane CHECK (lane >= 1),
    DROP CONSTRAINT event_journals_pkey,
    ADD CONSTRAINT event_journals_pkey PRIMARY KEY (journal_id, event, lane);

-- What a lane's journal knows of the split, from its own entries: a decision reads it
-- with the rest. Every lane of a split event has its row, in its own journal; an event
-- that was never split has none. What else is known about the event is in the home's
-- rows, and read there.
CREATE TABLE lanes (
    journal_id bigint   NOT NULL,
    home       bigint   NOT NULL, -- journal of the first lane
    lane       integer  NOT NULL, -- from 1
    generation bigint   NOT NULL, -- of the split that the lane goes by: one more each time
    counts     integer[] NOT NULL, -- lanes in use, one number for each split, the newest last
    journals   bigint[] NOT NULL, -- of all lanes that there ever were, the first lane's first
    version    bigint   NOT NULL, -- seq of the entry that made it so
    CONSTRAINT lanes_pkey PRIMARY KEY (journal_id),
    CONSTRAINT lanes_lane CHECK (lane BETWEEN 1 AND cardinality(journals)),
    CONSTRAINT lanes_generation CHECK (generation >= 0),
    CONSTRAINT lanes_counts CHECK (cardinality(counts) >= 1 AND array_position(counts, NULL) IS NULL),
    CONSTRAINT lanes_home CHECK (home = journals[1] AND (lane = 1) = (home = journal_id))
);

-- Tickets set aside for a channel; in the home's journal. Its tickets rest on
-- available:<allotment> in the lanes.
CREATE TABLE allotments (
    journal_id    bigint      NOT NULL,
    allotment     text        COLLATE "C" NOT NULL,
    name          text        NOT NULL,
    opens_at      timestamptz,          -- NULL: with the event's sale
    releases_at   timestamptz,          -- from then on its free tickets are everybody's; NULL: never
    code_required boolean     NOT NULL, -- only who has an access code buys from it
    created_at    timestamptz NOT NULL,
    closed_at     timestamptz,          -- NULL: it isn't
    version       bigint      NOT NULL, -- seq of the last entry that changed it
    CONSTRAINT allotments_pkey PRIMARY KEY (journal_id, allotment),
    CONSTRAINT allotments_window CHECK (opens_at < releases_at)
);

-- An access code, in the home's journal. Its uses are counted on accounts, in the unit
-- _uses: code:<code> has those that are free, redeemed:<code> those that holds took.
CREATE TABLE access_codes (
    journal_id bigint  NOT NULL,
    code       text    COLLATE "C" NOT NULL,
    allotment  text    COLLATE "C" NOT NULL,
    max_uses   bigint  NOT NULL,
    version    bigint  NOT NULL, -- seq of the entry that made it
    CONSTRAINT access_codes_pkey PRIMARY KEY (journal_id, code),
    CONSTRAINT access_codes_max_uses CHECK (max_uses >= 1)
);

-- A move of tickets (or of uses of a code) out of a bucket, in the journal that they leave.
CREATE TABLE quota_moves (
    journal_id bigint      NOT NULL,
    move_id    uuid        NOT NULL, -- the id of the entry that asked for it
    status     text        COLLATE "C" NOT NULL,
    unit       text        COLLATE "C" NOT NULL,
    account    text        COLLATE "C" NOT NULL, -- that they leave
    from_lane  integer     NOT NULL,
    any_lane   boolean     NOT NULL, -- that lane gives for all, which may have given to it before
    to_journal bigint      NOT NULL,
    to_lane    integer     NOT NULL,
    to_account text        COLLATE "C" NOT NULL,
    quantity   bigint      NOT NULL, -- moved; of one that awaits approval, or was rejected: asked for
    up_to      boolean     NOT NULL, -- fewer will do
    cause      text        COLLATE "C" NOT NULL,
    reason     text        NOT NULL,
    principal  text        COLLATE "C" NOT NULL, -- who asked
    decided_by text        COLLATE "C", -- who approved or rejected; NULL when nobody needed to
    asked_at   timestamptz NOT NULL,
    moved_at   timestamptz,          -- NULL: not
    version    bigint      NOT NULL, -- seq of the last entry that changed it
    CONSTRAINT quota_moves_pkey PRIMARY KEY (journal_id, move_id),
    CONSTRAINT quota_moves_status CHECK (status IN ('awaiting_approval', 'rejected', 'moved')),
    CONSTRAINT quota_moves_moved CHECK ((status = 'moved') = (moved_at IS NOT NULL)),
    CONSTRAINT quota_moves_quantity CHECK (quantity > 0),
    CONSTRAINT quota_moves_elsewhere CHECK ((journal_id, account) <> (to_journal, to_account)),
    CONSTRAINT quota_moves_cause CHECK (cause IN ('operator', 'pull', 'rebalance', 'split', 'merge', 'collect', 'release'))
);

-- The history, newest last. The time alone: see holds_customer.
CREATE INDEX quota_moves_asked ON quota_moves (asked_at);

-- What may still be under way, after the last that certainly isn't. It's partial, so that
-- no lookup by the key can take it.
CREATE INDEX quota_moves_sent ON quota_moves (journal_id, version)
    WHERE status = 'moved' AND to_journal <> journal_id;

-- The other end of a move between lanes, in the journal that the tickets came to.
CREATE TABLE quota_arrivals (
    journal_id   bigint      NOT NULL,
    move_id      uuid        NOT NULL, -- tells the journal that they left
    from_journal bigint      NOT NULL,
    unit         text        COLLATE "C" NOT NULL,
    account      text        COLLATE "C" NOT NULL, -- that they came to
    quantity     bigint      NOT NULL,
    at           timestamptz NOT NULL,
    version      bigint      NOT NULL, -- seq of the entry
    CONSTRAINT quota_arrivals_pkey PRIMARY KEY (journal_id, move_id),
    CONSTRAINT quota_arrivals_quantity CHECK (quantity > 0)
);

-- From which allotment a line's tickets come is in the hold's items; the code that
-- opened it is the hold's.
ALTER TABLE holds
    ADD COLUMN code text COLLATE "C";

-- Moves of at least so many tickets need a second person.
ALTER TABLE events
    ADD COLUMN approve_moves_from bigint NOT NULL DEFAULT 1000,
    ADD CONSTRAINT events_approve_moves_from CHECK (approve_moves_from >= 1);

-- A lane's transit accounts have what it sent less what it got: over all lanes, what is
-- under way.
ALTER TABLE accounts
    DROP CONSTRAINT accounts_inventory,
    ADD CONSTRAINT accounts_inventory CHECK (type <> 'inventory' OR code LIKE 'transit%'
        OR CASE WHEN code = 'capacity' THEN balance <= 0 ELSE balance >= 0 END);

GRANT SELECT, INSERT ON lanes, allotments, access_codes, quota_moves, quota_arrivals TO tierledger_service;
GRANT UPDATE (generation, counts, journals, version) ON lanes TO tierledger_service;
GRANT UPDATE (closed_at, version) ON allotments TO tierledger_service;
GRANT UPDATE (status, quantity, reason, decided_by, moved_at, version) ON quota_moves TO tierledger_service;
