-- Assigned seats: where they are, and what has become of each.

-- +goose Up

-- A tier that's sold by seat has as many tickets as its seats in the chart.
ALTER TABLE tiers ADD COLUMN seated boolean NOT NULL DEFAULT false;

-- The chart, a section a row. It's loaded once and never changes.
CREATE TABLE seat_sections (
    journal_id bigint   NOT NULL,
    section    text     COLLATE "C" NOT NULL,
    position   integer  NOT NULL, -- order in which they were loaded, from 0
    name       text     NOT NULL,
    tier       text     COLLATE "C" NOT NULL,
    rows       json     NOT NULL, -- [{row, rank, seats: [{seat, x, y, accessible, aisle}]}]
    version    bigint   NOT NULL, -- seq of the entry that loaded it
    CONSTRAINT seat_sections_pkey PRIMARY KEY (journal_id, position),
    CONSTRAINT seat_sections_section_key UNIQUE (section, journal_id)
);

-- One row per seat. No index is on what changes, so a change touches the row alone.
CREATE TABLE seats (
    journal_id bigint   NOT NULL,
    seat       text     COLLATE "C" NOT NULL, -- section-row-seat
    row_number integer  NOT NULL, -- of the chart's rows, in order, from 0
    place      smallint NOT NULL, -- in the row, from 0
    tier       text     COLLATE "C" NOT NULL,
    state      text     COLLATE "C" NOT NULL,
    hold_id    uuid,    -- that has the seat, or had it last; NULL when it was never held, or was blocked since
    until      timestamptz, -- of a held seat: end of its hold
    allotment  text     COLLATE "C" NOT NULL, -- of a blocked seat: whom it's set aside for, '' for nobody
    version    bigint   NOT NULL, -- seq of the last entry that changed it
    CONSTRAINT seats_pkey PRIMARY KEY (journal_id, seat),
    CONSTRAINT seats_state CHECK (state IN ('available', 'held', 'sold', 'blocked')),
    CONSTRAINT seats_hold CHECK (hold_id IS NOT NULL OR state NOT IN ('held', 'sold')),
    CONSTRAINT seats_until CHECK ((until IS NOT NULL) = (state = 'held')),
    CONSTRAINT seats_allotment CHECK (allotment = '' OR state = 'blocked')
) WITH (fillfactor = 50);

-- Partial, though no row is left out: what looks for a seat by its label doesn't say the
-- condition, so a plan that's made while the table is empty can't take this index for it.
CREATE UNIQUE INDEX seats_place_key ON seats (journal_id, row_number, place) WHERE row_number >= 0;

-- The states of a row's seats, a letter a seat, computed from them in the commit that
-- changes them: for whatever looks at many seats at once.
CREATE TABLE seat_rows (
    journal_id bigint  NOT NULL,
    row_number integer NOT NULL,
    section    text    COLLATE "C" NOT NULL,
    tier       text    COLLATE "C" NOT NULL,
    states     text    COLLATE "C" NOT NULL,
    version    bigint  NOT NULL, -- seq of the last entry that changed a seat of it
    CONSTRAINT seat_rows_pkey PRIMARY KEY (journal_id, row_number),
    CONSTRAINT seat_rows_states CHECK (states ~ '^[ahsb]+$')
) WITH (fillfactor = 50);

-- What entries did to seats, for good: the seats' postings.
CREATE TABLE seat_changes (
    journal_id bigint   NOT NULL,
    seq        bigint   NOT NULL,
    line       smallint NOT NULL, -- in the order in which the entry changed seats
    state      text     COLLATE "C" NOT NULL, -- that the seats came to
    hold_id    uuid,
    seats      text[]   COLLATE "C" NOT NULL,
    CONSTRAINT seat_changes_seats CHECK (cardinality(seats) > 0),
    CONSTRAINT seat_changes_pkey PRIMARY KEY (journal_id, seq, line),
    CONSTRAINT seat_changes_state CHECK (state IN ('available', 'held', 'sold', 'blocked'))
);

GRANT SELECT, INSERT ON seat_sections, seats, seat_rows, seat_changes TO tierledger_service;
GRANT UPDATE (state, hold_id, until, allotment, version) ON seats TO tierledger_service;
GRANT UPDATE (states, version) ON seat_rows TO tierledger_service;
