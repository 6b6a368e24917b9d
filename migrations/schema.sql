-- The schema after all migrations, as pg_dump prints it. Don't edit it: change the
-- schema by a new migration, then run `go test ./migrations -update`.

CREATE TABLE public.access_codes (
    journal_id bigint NOT NULL,
    code text NOT NULL COLLATE pg_catalog."C",
    allotment text NOT NULL COLLATE pg_catalog."C",
    max_uses bigint NOT NULL,
    version bigint NOT NULL,
    CONSTRAINT access_codes_max_uses CHECK ((max_uses >= 1))
);

CREATE TABLE public.accounts (
    journal_id bigint NOT NULL,
    code text NOT NULL COLLATE pg_catalog."C",
    unit text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    control text COLLATE pg_catalog."C",
    balance bigint NOT NULL,
    version bigint NOT NULL,
    CONSTRAINT accounts_inventory CHECK (((type <> 'inventory'::text) OR (code ~~ 'transit%'::text) OR
CASE
    WHEN (code = 'capacity'::text) THEN (balance <= 0)
    ELSE (balance >= 0)
END)),
    CONSTRAINT accounts_type CHECK ((type = ANY (ARRAY['asset'::text, 'liability'::text, 'income'::text, 'expense'::text, 'equity'::text, 'inventory'::text, 'memo'::text]))),
    CONSTRAINT accounts_version CHECK ((version >= 1))
)
WITH (fillfactor='90');

CREATE TABLE public.allotments (
    journal_id bigint NOT NULL,
    allotment text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    opens_at timestamp with time zone,
    releases_at timestamp with time zone,
    code_required boolean NOT NULL,
    created_at timestamp with time zone NOT NULL,
    closed_at timestamp with time zone,
    version bigint NOT NULL,
    CONSTRAINT allotments_window CHECK ((opens_at < releases_at))
);

CREATE TABLE public.cases (
    journal_id bigint NOT NULL,
    case_id uuid NOT NULL,
    reason text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    amount bigint NOT NULL,
    currency text NOT NULL COLLATE pg_catalog."C",
    suspended bigint NOT NULL,
    hold_id uuid,
    order_id uuid,
    operation_id uuid,
    provider text NOT NULL COLLATE pg_catalog."C",
    told_at timestamp with time zone,
    opened_at timestamp with time zone NOT NULL,
    owner text NOT NULL COLLATE pg_catalog."C",
    last_fact text NOT NULL,
    deadline timestamp with time zone NOT NULL,
    due_at timestamp with time zone,
    resolution text NOT NULL COLLATE pg_catalog."C",
    resolved_reason text NOT NULL,
    evidence text NOT NULL,
    proposed_by text NOT NULL COLLATE pg_catalog."C",
    decided_by text NOT NULL COLLATE pg_catalog."C",
    resolved_at timestamp with time zone,
    version bigint NOT NULL,
    CONSTRAINT cases_four_eyes CHECK (((status <> ALL (ARRAY['resolving'::text, 'resolved'::text])) OR (proposed_by = 'system'::text) OR ((proposed_by <> ''::text) AND (decided_by <> ''::text) AND (proposed_by <> decided_by)))),
    CONSTRAINT cases_resolution CHECK ((resolution = ANY (ARRAY[''::text, 'honour'::text, 'refund'::text, 'write_off'::text, 'link'::text]))),
    CONSTRAINT cases_resolved CHECK ((((status = 'resolved'::text) = (resolved_at IS NOT NULL)) AND ((status = 'open'::text) OR (resolution <> ''::text)))),
    CONSTRAINT cases_status CHECK ((status = ANY (ARRAY['open'::text, 'awaiting_approval'::text, 'resolving'::text, 'resolved'::text]))),
    CONSTRAINT cases_suspended CHECK (((suspended >= 0) AND (suspended <= amount)))
);

CREATE TABLE public.checkouts (
    journal_id bigint NOT NULL,
    pending bigint NOT NULL,
    CONSTRAINT checkouts_pending CHECK ((pending >= 0))
)
WITH (fillfactor='20');

CREATE TABLE public.dead_letters (
    letter_id uuid NOT NULL,
    consumer text NOT NULL COLLATE pg_catalog."C",
    journal_id bigint NOT NULL,
    seq bigint NOT NULL,
    target text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    payload bytea NOT NULL,
    money boolean NOT NULL,
    reason text NOT NULL,
    attempts integer NOT NULL,
    died_at timestamp with time zone NOT NULL,
    status text DEFAULT 'dead'::text NOT NULL COLLATE pg_catalog."C",
    taken boolean DEFAULT false NOT NULL,
    replay_id uuid,
    ended_at timestamp with time zone,
    CONSTRAINT dead_letters_attempts CHECK ((attempts >= 1)),
    CONSTRAINT dead_letters_ended CHECK (((status = 'dead'::text) = (ended_at IS NULL))),
    CONSTRAINT dead_letters_replayed CHECK (((status = 'dead'::text) OR (replay_id IS NOT NULL))),
    CONSTRAINT dead_letters_seq CHECK ((seq >= 0)),
    CONSTRAINT dead_letters_status CHECK ((status = ANY (ARRAY['dead'::text, 'replayed'::text, 'discarded'::text]))),
    CONSTRAINT dead_letters_taken CHECK (((NOT taken) OR ((status = 'dead'::text) AND (replay_id IS NOT NULL))))
);

CREATE TABLE public.deliveries (
    subscription_id uuid NOT NULL,
    journal_id bigint NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    attempts integer DEFAULT 0 NOT NULL,
    spent integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone,
    ended_at timestamp with time zone,
    CONSTRAINT deliveries_attempts CHECK (((spent >= 0) AND (spent <= attempts))),
    CONSTRAINT deliveries_due CHECK (((status = 'pending'::text) = (due_at IS NOT NULL))),
    CONSTRAINT deliveries_ended CHECK (((status = 'pending'::text) = (ended_at IS NULL))),
    CONSTRAINT deliveries_status CHECK ((status = ANY (ARRAY['pending'::text, 'delivered'::text, 'dead'::text, 'dropped'::text])))
)
WITH (fillfactor='80');

CREATE TABLE public.delivery_attempts (
    subscription_id uuid NOT NULL,
    journal_id bigint NOT NULL,
    seq bigint NOT NULL,
    attempt integer NOT NULL,
    at timestamp with time zone NOT NULL,
    milliseconds integer NOT NULL,
    status_code integer NOT NULL,
    error text NOT NULL,
    response text NOT NULL,
    CONSTRAINT delivery_attempts_attempt CHECK ((attempt >= 1))
);

CREATE TABLE public.entries (
    journal_id bigint NOT NULL,
    seq bigint NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    at timestamp with time zone NOT NULL,
    principal text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
    data json NOT NULL,
    hash bytea NOT NULL,
    CONSTRAINT entries_digest CHECK ((octet_length(digest) = 32)),
    CONSTRAINT entries_hash CHECK ((octet_length(hash) = 32)),
    CONSTRAINT entries_seq CHECK ((seq >= 1))
);

CREATE TABLE public.event_journals (
    journal_id bigint NOT NULL,
    event text NOT NULL COLLATE pg_catalog."C",
    event_journal_id bigint NOT NULL,
    lane integer DEFAULT 1 NOT NULL,
    CONSTRAINT event_journals_lane CHECK ((lane >= 1)),
    CONSTRAINT event_journals_system CHECK (((journal_id = 0) AND (event_journal_id > 0)))
);

CREATE TABLE public.events (
    journal_id bigint NOT NULL,
    event text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    currency text NOT NULL COLLATE pg_catalog."C",
    hold_seconds integer NOT NULL,
    grace_seconds integer NOT NULL,
    limit_per_customer bigint,
    sale_opens_at timestamp with time zone,
    sale_closes_at timestamp with time zone,
    organiser text NOT NULL COLLATE pg_catalog."C",
    late_payment_policy text NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone NOT NULL,
    version bigint NOT NULL,
    honour_until timestamp with time zone,
    approve_moves_from bigint DEFAULT 1000 NOT NULL,
    CONSTRAINT events_approve_moves_from CHECK ((approve_moves_from >= 1)),
    CONSTRAINT events_grace_seconds CHECK ((grace_seconds >= 0)),
    CONSTRAINT events_hold_seconds CHECK ((hold_seconds > 0)),
    CONSTRAINT events_honour_until CHECK ((honour_until >= sale_closes_at)),
    CONSTRAINT events_late_payment_policy CHECK ((late_payment_policy = ANY (ARRAY['honour_if_available'::text, 'refund'::text, 'review'::text]))),
    CONSTRAINT events_limit CHECK ((limit_per_customer > 0)),
    CONSTRAINT events_window CHECK ((sale_opens_at < sale_closes_at))
);

CREATE TABLE public.goose_db_version (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);

ALTER TABLE public.goose_db_version ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_db_version_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.holds (
    journal_id bigint NOT NULL,
    hold_id uuid NOT NULL,
    customer text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    items json NOT NULL,
    total bigint NOT NULL,
    version bigint NOT NULL,
    pay_until timestamp with time zone,
    code text COLLATE pg_catalog."C",
    CONSTRAINT holds_deadline CHECK ((expires_at > created_at)),
    CONSTRAINT holds_grace CHECK ((pay_until >= expires_at)),
    CONSTRAINT holds_paying CHECK (((pay_until IS NOT NULL) OR (status <> ALL (ARRAY['payment_pending'::text, 'reconciling'::text])))),
    CONSTRAINT holds_status CHECK ((status = ANY (ARRAY['held'::text, 'payment_pending'::text, 'reconciling'::text, 'confirmed'::text, 'released'::text, 'expired'::text]))),
    CONSTRAINT holds_total CHECK ((total >= 0))
);

CREATE TABLE public.inbox (
    consumer text NOT NULL COLLATE pg_catalog."C",
    journal_id bigint NOT NULL,
    seq bigint NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    retry_at timestamp with time zone,
    reason text DEFAULT ''::text NOT NULL,
    CONSTRAINT inbox_attempts CHECK (((attempts >= 0) AND ((attempts = 0) = (retry_at IS NULL)))),
    CONSTRAINT inbox_seq CHECK ((seq >= 0))
)
WITH (fillfactor='50');

CREATE TABLE public.journals (
    journal_id bigint NOT NULL,
    seq bigint DEFAULT 0 NOT NULL,
    at timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    hash bytea DEFAULT decode(repeat('00'::text, 32), 'hex'::text) NOT NULL,
    CONSTRAINT journals_hash CHECK ((octet_length(hash) = 32)),
    CONSTRAINT journals_id CHECK (((journal_id >= 0) AND (journal_id <= '4294967295'::bigint))),
    CONSTRAINT journals_seq CHECK ((seq >= 0))
)
WITH (fillfactor='20');

CREATE TABLE public.lanes (
    journal_id bigint NOT NULL,
    home bigint NOT NULL,
    lane integer NOT NULL,
    generation bigint NOT NULL,
    counts integer[] NOT NULL,
    journals bigint[] NOT NULL,
    version bigint NOT NULL,
    CONSTRAINT lanes_counts CHECK (((cardinality(counts) >= 1) AND (array_position(counts, NULL::integer) IS NULL))),
    CONSTRAINT lanes_generation CHECK ((generation >= 0)),
    CONSTRAINT lanes_home CHECK (((home = journals[1]) AND ((lane = 1) = (home = journal_id)))),
    CONSTRAINT lanes_lane CHECK (((lane >= 1) AND (lane <= cardinality(journals))))
);

CREATE TABLE public.operations (
    journal_id bigint NOT NULL,
    operation_id uuid NOT NULL,
    order_id uuid NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    attempt integer NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    provider text NOT NULL COLLATE pg_catalog."C",
    method text NOT NULL COLLATE pg_catalog."C",
    return_url text NOT NULL,
    payment text NOT NULL COLLATE pg_catalog."C",
    reference text NOT NULL COLLATE pg_catalog."C",
    amount bigint NOT NULL,
    currency text NOT NULL COLLATE pg_catalog."C",
    authorized bigint NOT NULL,
    taken bigint NOT NULL,
    face bigint NOT NULL,
    fee bigint NOT NULL,
    tax bigint NOT NULL,
    disputed bigint NOT NULL,
    reason text NOT NULL COLLATE pg_catalog."C",
    next_action json,
    sends integer NOT NULL,
    sent_at timestamp with time zone,
    told_at timestamp with time zone,
    due_at timestamp with time zone,
    answered bigint NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    version bigint NOT NULL,
    CONSTRAINT operations_amount CHECK ((amount >= 0)),
    CONSTRAINT operations_authorized CHECK ((((authorized >= 0) AND (authorized <= amount)) AND ((authorized = 0) OR (kind = 'authorize'::text)))),
    CONSTRAINT operations_disputed CHECK ((((disputed >= 0) AND (disputed <= amount)) AND ((disputed = 0) OR (kind = 'chargeback'::text)))),
    CONSTRAINT operations_due CHECK (((due_at IS NOT NULL) OR (status = ANY (ARRAY['succeeded'::text, 'declined'::text, 'not_attempted'::text])) OR (sends = 0))),
    CONSTRAINT operations_kind CHECK ((kind = ANY (ARRAY['authorize'::text, 'capture'::text, 'void'::text, 'refund'::text, 'cancel'::text, 'chargeback'::text]))),
    CONSTRAINT operations_parts CHECK (((face >= 0) AND (fee >= 0) AND (tax >= 0) AND (((face + fee) + tax) <= amount))),
    CONSTRAINT operations_sent CHECK (((sent_at IS NULL) = (sends = 0))),
    CONSTRAINT operations_status CHECK ((status = ANY (ARRAY['prepared'::text, 'sent'::text, 'requires_action'::text, 'pending'::text, 'unknown'::text, 'succeeded'::text, 'declined'::text, 'not_attempted'::text]))),
    CONSTRAINT operations_taken CHECK (((taken = 0) OR (kind = 'authorize'::text)))
);

CREATE TABLE public.orders (
    journal_id bigint NOT NULL,
    order_id uuid NOT NULL,
    hold_id uuid NOT NULL,
    customer text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    reconciling boolean NOT NULL,
    payment_status text NOT NULL COLLATE pg_catalog."C",
    items json NOT NULL,
    face bigint NOT NULL,
    fee bigint NOT NULL,
    tax bigint NOT NULL,
    captured bigint NOT NULL,
    refunded_face bigint NOT NULL,
    refunded_fee bigint NOT NULL,
    refunded_tax bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    pay_until timestamp with time zone NOT NULL,
    due_at timestamp with time zone,
    version bigint NOT NULL,
    CONSTRAINT orders_captured CHECK (((captured >= 0) AND (captured <= ((face + fee) + tax)))),
    CONSTRAINT orders_parts CHECK (((face >= 0) AND (fee >= 0) AND (tax >= 0))),
    CONSTRAINT orders_payment_status CHECK ((payment_status = ANY (ARRAY['authorizing'::text, 'requires_action'::text, 'authorized'::text, 'declined'::text, 'capturing'::text, 'captured'::text, 'voiding'::text, 'voided'::text, 'refunding'::text, 'refunded'::text, 'partially_refunded'::text, 'unknown'::text]))),
    CONSTRAINT orders_refunded CHECK ((((refunded_face >= 0) AND (refunded_face <= face)) AND ((refunded_fee >= 0) AND (refunded_fee <= fee)) AND ((refunded_tax >= 0) AND (refunded_tax <= tax)) AND (((refunded_face + refunded_fee) + refunded_tax) <= captured))),
    CONSTRAINT orders_status CHECK ((status = ANY (ARRAY['pending'::text, 'confirmed'::text, 'captured'::text, 'partially_refunded'::text, 'refunded'::text, 'cancelled'::text])))
);

CREATE TABLE public.postings (
    journal_id bigint NOT NULL,
    seq bigint NOT NULL,
    leg smallint NOT NULL,
    account text NOT NULL COLLATE pg_catalog."C",
    unit text NOT NULL COLLATE pg_catalog."C",
    amount bigint NOT NULL,
    balance bigint NOT NULL,
    CONSTRAINT postings_amount CHECK ((amount <> 0)),
    CONSTRAINT postings_leg CHECK ((leg >= 0))
);

CREATE TABLE public.prices (
    journal_id bigint NOT NULL,
    tier text NOT NULL COLLATE pg_catalog."C",
    price_version bigint NOT NULL,
    amount bigint NOT NULL,
    fee bigint NOT NULL,
    tax_rate numeric NOT NULL,
    CONSTRAINT prices_amounts CHECK (((amount >= 0) AND (fee >= 0))),
    CONSTRAINT prices_tax_rate CHECK (((tax_rate >= (0)::numeric) AND (tax_rate <= (1)::numeric)))
);

CREATE TABLE public.quota_arrivals (
    journal_id bigint NOT NULL,
    move_id uuid NOT NULL,
    from_journal bigint NOT NULL,
    unit text NOT NULL COLLATE pg_catalog."C",
    account text NOT NULL COLLATE pg_catalog."C",
    quantity bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    version bigint NOT NULL,
    CONSTRAINT quota_arrivals_quantity CHECK ((quantity > 0))
);

CREATE TABLE public.quota_moves (
    journal_id bigint NOT NULL,
    move_id uuid NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    unit text NOT NULL COLLATE pg_catalog."C",
    account text NOT NULL COLLATE pg_catalog."C",
    from_lane integer NOT NULL,
    any_lane boolean NOT NULL,
    to_journal bigint NOT NULL,
    to_lane integer NOT NULL,
    to_account text NOT NULL COLLATE pg_catalog."C",
    quantity bigint NOT NULL,
    up_to boolean NOT NULL,
    cause text NOT NULL COLLATE pg_catalog."C",
    reason text NOT NULL,
    principal text NOT NULL COLLATE pg_catalog."C",
    decided_by text COLLATE pg_catalog."C",
    asked_at timestamp with time zone NOT NULL,
    moved_at timestamp with time zone,
    version bigint NOT NULL,
    CONSTRAINT quota_moves_cause CHECK ((cause = ANY (ARRAY['operator'::text, 'pull'::text, 'rebalance'::text, 'split'::text, 'merge'::text, 'collect'::text, 'release'::text]))),
    CONSTRAINT quota_moves_elsewhere CHECK (((journal_id <> to_journal) OR (account <> to_account))),
    CONSTRAINT quota_moves_moved CHECK (((status = 'moved'::text) = (moved_at IS NOT NULL))),
    CONSTRAINT quota_moves_quantity CHECK ((quantity > 0)),
    CONSTRAINT quota_moves_status CHECK ((status = ANY (ARRAY['awaiting_approval'::text, 'rejected'::text, 'moved'::text])))
);

CREATE TABLE public.relays (
    journal_id bigint NOT NULL,
    seq bigint DEFAULT 0 NOT NULL,
    stream text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    stream_seq bigint DEFAULT 0 NOT NULL,
    reached bigint DEFAULT 0 NOT NULL,
    suspect boolean DEFAULT false NOT NULL,
    holder uuid,
    held_until timestamp with time zone,
    problem text DEFAULT ''::text NOT NULL,
    CONSTRAINT relays_held CHECK (((holder IS NULL) = (held_until IS NULL))),
    CONSTRAINT relays_seq CHECK (((seq >= 0) AND (stream_seq >= 0) AND (reached >= 0)))
)
WITH (fillfactor='50');

CREATE TABLE public.replay_steps (
    step_id uuid NOT NULL,
    replay_id uuid NOT NULL,
    step text NOT NULL COLLATE pg_catalog."C",
    principal text NOT NULL COLLATE pg_catalog."C",
    at timestamp with time zone NOT NULL,
    reason text NOT NULL,
    CONSTRAINT replay_steps_step CHECK ((step = ANY (ARRAY['requested'::text, 'approved'::text, 'rejected'::text, 'stopped'::text, 'resumed'::text, 'taken_over'::text, 'done'::text])))
);

CREATE TABLE public.replays (
    replay_id uuid NOT NULL,
    action text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    chosen json NOT NULL,
    rate integer NOT NULL,
    canary boolean NOT NULL,
    reason text NOT NULL,
    requested_by text NOT NULL COLLATE pg_catalog."C",
    requested_at timestamp with time zone NOT NULL,
    decided_by text COLLATE pg_catalog."C",
    changed_at timestamp with time zone NOT NULL,
    note text DEFAULT ''::text NOT NULL,
    letters integer DEFAULT 0 NOT NULL,
    money integer DEFAULT 0 NOT NULL,
    done integer DEFAULT 0 NOT NULL,
    failed integer DEFAULT 0 NOT NULL,
    freed integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone,
    CONSTRAINT replays_action CHECK ((action = ANY (ARRAY['replay'::text, 'discard'::text]))),
    CONSTRAINT replays_approved CHECK (((money = 0) OR ((done + failed) = 0) OR (decided_by IS NOT NULL))),
    CONSTRAINT replays_counts CHECK (((LEAST(money, done, failed, freed, (((letters - done) - failed) - freed)) >= 0) AND (money <= letters))),
    CONSTRAINT replays_due CHECK (((status = 'running'::text) = (due_at IS NOT NULL))),
    CONSTRAINT replays_rate CHECK (((rate >= 1) AND (rate <= 1000))),
    CONSTRAINT replays_second_person CHECK ((decided_by <> requested_by)),
    CONSTRAINT replays_status CHECK ((status = ANY (ARRAY['awaiting_approval'::text, 'rejected'::text, 'running'::text, 'stopped'::text, 'done'::text])))
)
WITH (fillfactor='50');

CREATE TABLE public.report_lines (
    journal_id bigint NOT NULL,
    provider text NOT NULL COLLATE pg_catalog."C",
    line_id text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    payment text NOT NULL COLLATE pg_catalog."C",
    operation_id uuid,
    created_at timestamp with time zone NOT NULL,
    gross bigint NOT NULL,
    fee bigint NOT NULL,
    net bigint NOT NULL,
    currency text NOT NULL COLLATE pg_catalog."C",
    result text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    CONSTRAINT report_lines_net CHECK ((net = (gross - fee))),
    CONSTRAINT report_lines_operation CHECK (((operation_id IS NOT NULL) OR (result = 'missing_here'::text) OR ((type = 'fee'::text) AND (result = 'matched'::text)))),
    CONSTRAINT report_lines_result CHECK ((result = ANY (ARRAY['matched'::text, 'missing_here'::text, 'amount_differs'::text, 'currency_differs'::text, 'duplicate'::text, 'unsettled'::text]))),
    CONSTRAINT report_lines_type CHECK (
CASE type
    WHEN 'charge'::text THEN (gross > 0)
    WHEN 'capture'::text THEN (gross > 0)
    WHEN 'capture_failed'::text THEN (gross < 0)
    WHEN 'refund'::text THEN (gross < 0)
    WHEN 'chargeback'::text THEN (gross < 0)
    WHEN 'fee'::text THEN (gross = 0)
    ELSE false
END)
);

CREATE TABLE public.seat_changes (
    journal_id bigint NOT NULL,
    seq bigint NOT NULL,
    line smallint NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    hold_id uuid,
    seats text[] NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT seat_changes_seats CHECK ((cardinality(seats) > 0)),
    CONSTRAINT seat_changes_state CHECK ((state = ANY (ARRAY['available'::text, 'held'::text, 'sold'::text, 'blocked'::text])))
);

CREATE TABLE public.seat_rows (
    journal_id bigint NOT NULL,
    row_number integer NOT NULL,
    section text NOT NULL COLLATE pg_catalog."C",
    tier text NOT NULL COLLATE pg_catalog."C",
    states text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    CONSTRAINT seat_rows_states CHECK ((states ~ '^[ahsb]+$'::text))
)
WITH (fillfactor='50');

CREATE TABLE public.seat_sections (
    journal_id bigint NOT NULL,
    section text NOT NULL COLLATE pg_catalog."C",
    "position" integer NOT NULL,
    name text NOT NULL,
    tier text NOT NULL COLLATE pg_catalog."C",
    rows json NOT NULL,
    version bigint NOT NULL
);

CREATE TABLE public.seats (
    journal_id bigint NOT NULL,
    seat text NOT NULL COLLATE pg_catalog."C",
    row_number integer NOT NULL,
    place smallint NOT NULL,
    tier text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    hold_id uuid,
    until timestamp with time zone,
    allotment text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    CONSTRAINT seats_allotment CHECK (((allotment = ''::text) OR (state = 'blocked'::text))),
    CONSTRAINT seats_hold CHECK (((hold_id IS NOT NULL) OR (state <> ALL (ARRAY['held'::text, 'sold'::text])))),
    CONSTRAINT seats_state CHECK ((state = ANY (ARRAY['available'::text, 'held'::text, 'sold'::text, 'blocked'::text]))),
    CONSTRAINT seats_until CHECK (((until IS NOT NULL) = (state = 'held'::text)))
)
WITH (fillfactor='50');

CREATE TABLE public.subscription_changes (
    change_id uuid NOT NULL,
    subscription_id uuid NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
    answer json,
    changed_by text NOT NULL COLLATE pg_catalog."C",
    changed_at timestamp with time zone NOT NULL
);

CREATE TABLE public.subscriptions (
    subscription_id uuid NOT NULL,
    url text NOT NULL,
    kinds text[] NOT NULL COLLATE pg_catalog."C",
    event text COLLATE pg_catalog."C",
    description text NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    reason text NOT NULL,
    secret bytea NOT NULL,
    old_secret bytea,
    old_until timestamp with time zone,
    active_since timestamp with time zone NOT NULL,
    created_by text NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone NOT NULL,
    changed_by text NOT NULL COLLATE pg_catalog."C",
    changed_at timestamp with time zone NOT NULL,
    CONSTRAINT subscriptions_old CHECK (((old_secret IS NULL) = (old_until IS NULL))),
    CONSTRAINT subscriptions_status CHECK ((status = ANY (ARRAY['active'::text, 'disabled'::text])))
);

CREATE TABLE public.ticketed_orders (
    journal_id bigint NOT NULL,
    order_id uuid NOT NULL,
    seq bigint NOT NULL,
    CONSTRAINT ticketed_orders_seq CHECK ((seq >= 1))
)
WITH (fillfactor='80');

CREATE TABLE public.tickets (
    journal_id bigint NOT NULL,
    order_id uuid NOT NULL,
    number integer NOT NULL,
    line integer NOT NULL,
    ticket_id uuid NOT NULL,
    tier text NOT NULL COLLATE pg_catalog."C",
    seat text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    token text NOT NULL COLLATE pg_catalog."C",
    issued_seq bigint NOT NULL,
    issued_at timestamp with time zone NOT NULL,
    revoked_seq bigint,
    CONSTRAINT tickets_number CHECK (((number >= 1) AND (line >= 1))),
    CONSTRAINT tickets_revoked CHECK ((revoked_seq > issued_seq))
);

CREATE TABLE public.tiers (
    journal_id bigint NOT NULL,
    tier text NOT NULL COLLATE pg_catalog."C",
    "position" smallint NOT NULL,
    name text NOT NULL,
    price_version bigint NOT NULL,
    limit_per_customer bigint,
    version bigint NOT NULL,
    seated boolean DEFAULT false NOT NULL,
    CONSTRAINT tiers_limit CHECK ((limit_per_customer > 0))
);

CREATE TABLE public.webhooks (
    journal_id bigint NOT NULL,
    provider text NOT NULL COLLATE pg_catalog."C",
    event_id text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    operation_id uuid,
    body bytea NOT NULL,
    received_at timestamp with time zone NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    tries integer NOT NULL,
    due_at timestamp with time zone,
    version bigint NOT NULL,
    CONSTRAINT webhooks_due CHECK (((status = 'parked'::text) = (due_at IS NOT NULL))),
    CONSTRAINT webhooks_status CHECK ((status = ANY (ARRAY['applied'::text, 'parked'::text, 'unidentified'::text])))
);

ALTER TABLE ONLY public.access_codes
    ADD CONSTRAINT access_codes_pkey PRIMARY KEY (journal_id, code);

ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (journal_id, code, unit);

ALTER TABLE ONLY public.allotments
    ADD CONSTRAINT allotments_pkey PRIMARY KEY (journal_id, allotment);

ALTER TABLE ONLY public.cases
    ADD CONSTRAINT cases_pkey PRIMARY KEY (journal_id, case_id);

ALTER TABLE ONLY public.checkouts
    ADD CONSTRAINT checkouts_pkey PRIMARY KEY (journal_id);

ALTER TABLE ONLY public.dead_letters
    ADD CONSTRAINT dead_letters_pkey PRIMARY KEY (letter_id);

ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (subscription_id, journal_id, seq);

ALTER TABLE ONLY public.delivery_attempts
    ADD CONSTRAINT delivery_attempts_pkey PRIMARY KEY (subscription_id, journal_id, seq, attempt);

ALTER TABLE ONLY public.entries
    ADD CONSTRAINT entries_id_key UNIQUE (journal_id, id);

ALTER TABLE ONLY public.entries
    ADD CONSTRAINT entries_pkey PRIMARY KEY (journal_id, seq);

ALTER TABLE ONLY public.event_journals
    ADD CONSTRAINT event_journals_number_key UNIQUE (journal_id, event_journal_id);

ALTER TABLE ONLY public.event_journals
    ADD CONSTRAINT event_journals_pkey PRIMARY KEY (journal_id, event, lane);

ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (journal_id);

ALTER TABLE ONLY public.goose_db_version
    ADD CONSTRAINT goose_db_version_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.holds
    ADD CONSTRAINT holds_pkey PRIMARY KEY (journal_id, hold_id);

ALTER TABLE ONLY public.inbox
    ADD CONSTRAINT inbox_pkey PRIMARY KEY (consumer, journal_id);

ALTER TABLE ONLY public.journals
    ADD CONSTRAINT journals_pkey PRIMARY KEY (journal_id);

ALTER TABLE ONLY public.lanes
    ADD CONSTRAINT lanes_pkey PRIMARY KEY (journal_id);

ALTER TABLE ONLY public.operations
    ADD CONSTRAINT operations_pkey PRIMARY KEY (journal_id, operation_id);

ALTER TABLE ONLY public.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (journal_id, order_id);

ALTER TABLE ONLY public.postings
    ADD CONSTRAINT postings_account_key UNIQUE (journal_id, account, unit, seq);

ALTER TABLE ONLY public.postings
    ADD CONSTRAINT postings_pkey PRIMARY KEY (journal_id, seq, leg);

ALTER TABLE ONLY public.prices
    ADD CONSTRAINT prices_pkey PRIMARY KEY (journal_id, tier, price_version);

ALTER TABLE ONLY public.quota_arrivals
    ADD CONSTRAINT quota_arrivals_pkey PRIMARY KEY (journal_id, move_id);

ALTER TABLE ONLY public.quota_moves
    ADD CONSTRAINT quota_moves_pkey PRIMARY KEY (journal_id, move_id);

ALTER TABLE ONLY public.relays
    ADD CONSTRAINT relays_pkey PRIMARY KEY (journal_id);

ALTER TABLE ONLY public.replay_steps
    ADD CONSTRAINT replay_steps_pkey PRIMARY KEY (step_id);

ALTER TABLE ONLY public.replays
    ADD CONSTRAINT replays_pkey PRIMARY KEY (replay_id);

ALTER TABLE ONLY public.report_lines
    ADD CONSTRAINT report_lines_pkey PRIMARY KEY (journal_id, provider, line_id);

ALTER TABLE ONLY public.seat_changes
    ADD CONSTRAINT seat_changes_pkey PRIMARY KEY (journal_id, seq, line);

ALTER TABLE ONLY public.seat_rows
    ADD CONSTRAINT seat_rows_pkey PRIMARY KEY (journal_id, row_number);

ALTER TABLE ONLY public.seat_sections
    ADD CONSTRAINT seat_sections_pkey PRIMARY KEY (journal_id, "position");

ALTER TABLE ONLY public.seat_sections
    ADD CONSTRAINT seat_sections_section_key UNIQUE (section, journal_id);

ALTER TABLE ONLY public.seats
    ADD CONSTRAINT seats_pkey PRIMARY KEY (journal_id, seat);

ALTER TABLE ONLY public.subscription_changes
    ADD CONSTRAINT subscription_changes_pkey PRIMARY KEY (change_id);

ALTER TABLE ONLY public.subscriptions
    ADD CONSTRAINT subscriptions_pkey PRIMARY KEY (subscription_id);

ALTER TABLE ONLY public.ticketed_orders
    ADD CONSTRAINT ticketed_orders_pkey PRIMARY KEY (journal_id, order_id);

ALTER TABLE ONLY public.tickets
    ADD CONSTRAINT tickets_pkey PRIMARY KEY (journal_id, order_id, number);

ALTER TABLE ONLY public.tickets
    ADD CONSTRAINT tickets_ticket_id_key UNIQUE (ticket_id);

ALTER TABLE ONLY public.tiers
    ADD CONSTRAINT tiers_pkey PRIMARY KEY (journal_id, tier);

ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_pkey PRIMARY KEY (journal_id, provider, event_id);

CREATE INDEX cases_due ON public.cases USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX cases_open ON public.cases USING btree (journal_id, opened_at) WHERE (status <> 'resolved'::text);

CREATE INDEX cases_order ON public.cases USING btree (order_id);

CREATE INDEX dead_letters_dead ON public.dead_letters USING btree (consumer) WHERE (status = 'dead'::text);

CREATE INDEX dead_letters_died ON public.dead_letters USING btree (died_at);

CREATE INDEX dead_letters_taken ON public.dead_letters USING btree (replay_id, journal_id, seq) WHERE taken;

CREATE INDEX deliveries_log ON public.deliveries USING btree (subscription_id, created_at, journal_id, seq);

CREATE INDEX deliveries_pending ON public.deliveries USING btree (((subscription_id)::text) COLLATE "C", due_at, journal_id, seq) WHERE (due_at IS NOT NULL);

CREATE INDEX holds_customer ON public.holds USING btree (customer);

CREATE INDEX holds_due ON public.holds USING btree (journal_id, expires_at) WHERE (status = 'held'::text);

CREATE INDEX operations_due ON public.operations USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX operations_order ON public.operations USING btree (order_id);

CREATE INDEX operations_payment ON public.operations USING btree (provider, payment) WHERE (payment <> ''::text);

CREATE INDEX orders_customer ON public.orders USING btree (customer);

CREATE INDEX orders_due ON public.orders USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX quota_moves_asked ON public.quota_moves USING btree (asked_at);

CREATE INDEX quota_moves_sent ON public.quota_moves USING btree (journal_id, version) WHERE ((status = 'moved'::text) AND (to_journal <> journal_id));

CREATE INDEX replay_steps_replay ON public.replay_steps USING btree (replay_id, at);

CREATE INDEX replays_due ON public.replays USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX replays_open ON public.replays USING btree (status) WHERE (status = ANY (ARRAY['awaiting_approval'::text, 'running'::text, 'stopped'::text]));

CREATE INDEX replays_requested ON public.replays USING btree (requested_at);

CREATE INDEX report_lines_created ON public.report_lines USING btree (provider, created_at);

CREATE INDEX report_lines_line ON public.report_lines USING btree (provider, line_id);

CREATE INDEX report_lines_operation_id ON public.report_lines USING btree (operation_id) WHERE (operation_id IS NOT NULL);

CREATE UNIQUE INDEX seats_place_key ON public.seats USING btree (journal_id, row_number, place) WHERE (row_number >= 0);

CREATE INDEX subscriptions_status ON public.subscriptions USING btree (status);

CREATE INDEX webhooks_due ON public.webhooks USING btree (due_at) WHERE (due_at IS NOT NULL);

GRANT SELECT,INSERT ON TABLE public.access_codes TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.accounts TO tierledger_service;

GRANT UPDATE(balance) ON TABLE public.accounts TO tierledger_service;

GRANT UPDATE(version) ON TABLE public.accounts TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.allotments TO tierledger_service;

GRANT UPDATE(closed_at) ON TABLE public.allotments TO tierledger_service;

GRANT UPDATE(version) ON TABLE public.allotments TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.cases TO tierledger_service;

GRANT UPDATE(status) ON TABLE public.cases TO tierledger_service;

GRANT UPDATE(amount) ON TABLE public.cases TO tierledger_service;

GRANT UPDATE(suspended) ON TABLE public.cases TO tierledger_service;

GRANT UPDATE(told_at) ON TABLE public.cases TO tierledger_service;

GRANT UPDATE(owner) ON TABLE public.cases TO tierledger_service;

GRANT UPDATE(last_fact) ON TABLE public.cases TO tierledger_service;

GRANT UPDATE(due_at) ON TABLE public.cases TO tierledger_service;

GRANT UPDATE(resolution) ON TABLE public.cases TO tierledger_service;

GRANT UPDATE(resolved_reason) ON TABLE public.cases TO tierledger_service;

GRANT UPDATE(evidence) ON TABLE public.cases TO tierledger_service;

GRANT UPDATE(proposed_by) ON TABLE public.cases TO tierledger_service;

GRANT UPDATE(decided_by) ON TABLE public.cases TO tierledger_service;

GRANT UPDATE(resolved_at) ON TABLE public.cases TO tierledger_service;

GRANT UPDATE(version) ON TABLE public.cases TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.checkouts TO tierledger_service;

GRANT UPDATE(pending) ON TABLE public.checkouts TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.dead_letters TO tierledger_service;

GRANT UPDATE(reason) ON TABLE public.dead_letters TO tierledger_service;

GRANT UPDATE(attempts) ON TABLE public.dead_letters TO tierledger_service;

GRANT UPDATE(died_at) ON TABLE public.dead_letters TO tierledger_service;

GRANT UPDATE(status) ON TABLE public.dead_letters TO tierledger_service;

GRANT UPDATE(taken) ON TABLE public.dead_letters TO tierledger_service;

GRANT UPDATE(replay_id) ON TABLE public.dead_letters TO tierledger_service;

GRANT UPDATE(ended_at) ON TABLE public.dead_letters TO tierledger_service;

GRANT SELECT,INSERT,DELETE ON TABLE public.deliveries TO tierledger_service;

GRANT UPDATE(status) ON TABLE public.deliveries TO tierledger_service;

GRANT UPDATE(attempts) ON TABLE public.deliveries TO tierledger_service;

GRANT UPDATE(spent) ON TABLE public.deliveries TO tierledger_service;

GRANT UPDATE(due_at) ON TABLE public.deliveries TO tierledger_service;

GRANT UPDATE(ended_at) ON TABLE public.deliveries TO tierledger_service;

GRANT SELECT,INSERT,DELETE ON TABLE public.delivery_attempts TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.entries TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.event_journals TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.events TO tierledger_service;

GRANT SELECT ON TABLE public.goose_db_version TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.holds TO tierledger_service;

GRANT UPDATE(status) ON TABLE public.holds TO tierledger_service;

GRANT UPDATE(version) ON TABLE public.holds TO tierledger_service;

GRANT UPDATE(pay_until) ON TABLE public.holds TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.inbox TO tierledger_service;

GRANT UPDATE(seq) ON TABLE public.inbox TO tierledger_service;

GRANT UPDATE(attempts) ON TABLE public.inbox TO tierledger_service;

GRANT UPDATE(retry_at) ON TABLE public.inbox TO tierledger_service;

GRANT UPDATE(reason) ON TABLE public.inbox TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.journals TO tierledger_service;

GRANT UPDATE(seq) ON TABLE public.journals TO tierledger_service;

GRANT UPDATE(at) ON TABLE public.journals TO tierledger_service;

GRANT UPDATE(hash) ON TABLE public.journals TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.lanes TO tierledger_service;

GRANT UPDATE(generation) ON TABLE public.lanes TO tierledger_service;

GRANT UPDATE(counts) ON TABLE public.lanes TO tierledger_service;

GRANT UPDATE(journals) ON TABLE public.lanes TO tierledger_service;

GRANT UPDATE(version) ON TABLE public.lanes TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.operations TO tierledger_service;

GRANT UPDATE(status) ON TABLE public.operations TO tierledger_service;

GRANT UPDATE(payment) ON TABLE public.operations TO tierledger_service;

GRANT UPDATE(reference) ON TABLE public.operations TO tierledger_service;

GRANT UPDATE(authorized) ON TABLE public.operations TO tierledger_service;

GRANT UPDATE(taken) ON TABLE public.operations TO tierledger_service;

GRANT UPDATE(face) ON TABLE public.operations TO tierledger_service;

GRANT UPDATE(fee) ON TABLE public.operations TO tierledger_service;

GRANT UPDATE(tax) ON TABLE public.operations TO tierledger_service;

GRANT UPDATE(disputed) ON TABLE public.operations TO tierledger_service;

GRANT UPDATE(reason) ON TABLE public.operations TO tierledger_service;

GRANT UPDATE(next_action) ON TABLE public.operations TO tierledger_service;

GRANT UPDATE(sends) ON TABLE public.operations TO tierledger_service;

GRANT UPDATE(sent_at) ON TABLE public.operations TO tierledger_service;

GRANT UPDATE(told_at) ON TABLE public.operations TO tierledger_service;

GRANT UPDATE(due_at) ON TABLE public.operations TO tierledger_service;

GRANT UPDATE(answered) ON TABLE public.operations TO tierledger_service;

GRANT UPDATE(updated_at) ON TABLE public.operations TO tierledger_service;

GRANT UPDATE(version) ON TABLE public.operations TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.orders TO tierledger_service;

GRANT UPDATE(status) ON TABLE public.orders TO tierledger_service;

GRANT UPDATE(reconciling) ON TABLE public.orders TO tierledger_service;

GRANT UPDATE(payment_status) ON TABLE public.orders TO tierledger_service;

GRANT UPDATE(items) ON TABLE public.orders TO tierledger_service;

GRANT UPDATE(captured) ON TABLE public.orders TO tierledger_service;

GRANT UPDATE(refunded_face) ON TABLE public.orders TO tierledger_service;

GRANT UPDATE(refunded_fee) ON TABLE public.orders TO tierledger_service;

GRANT UPDATE(refunded_tax) ON TABLE public.orders TO tierledger_service;

GRANT UPDATE(due_at) ON TABLE public.orders TO tierledger_service;

GRANT UPDATE(version) ON TABLE public.orders TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.postings TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.prices TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.quota_arrivals TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.quota_moves TO tierledger_service;

GRANT UPDATE(status) ON TABLE public.quota_moves TO tierledger_service;

GRANT UPDATE(quantity) ON TABLE public.quota_moves TO tierledger_service;

GRANT UPDATE(reason) ON TABLE public.quota_moves TO tierledger_service;

GRANT UPDATE(decided_by) ON TABLE public.quota_moves TO tierledger_service;

GRANT UPDATE(moved_at) ON TABLE public.quota_moves TO tierledger_service;

GRANT UPDATE(version) ON TABLE public.quota_moves TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.relays TO tierledger_service;

GRANT UPDATE(seq) ON TABLE public.relays TO tierledger_service;

GRANT UPDATE(stream) ON TABLE public.relays TO tierledger_service;

GRANT UPDATE(stream_seq) ON TABLE public.relays TO tierledger_service;

GRANT UPDATE(reached) ON TABLE public.relays TO tierledger_service;

GRANT UPDATE(suspect) ON TABLE public.relays TO tierledger_service;

GRANT UPDATE(holder) ON TABLE public.relays TO tierledger_service;

GRANT UPDATE(held_until) ON TABLE public.relays TO tierledger_service;

GRANT UPDATE(problem) ON TABLE public.relays TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.replay_steps TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.replays TO tierledger_service;

GRANT UPDATE(status) ON TABLE public.replays TO tierledger_service;

GRANT UPDATE(decided_by) ON TABLE public.replays TO tierledger_service;

GRANT UPDATE(changed_at) ON TABLE public.replays TO tierledger_service;

GRANT UPDATE(note) ON TABLE public.replays TO tierledger_service;

GRANT UPDATE(letters) ON TABLE public.replays TO tierledger_service;

GRANT UPDATE(money) ON TABLE public.replays TO tierledger_service;

GRANT UPDATE(done) ON TABLE public.replays TO tierledger_service;

GRANT UPDATE(failed) ON TABLE public.replays TO tierledger_service;

GRANT UPDATE(freed) ON TABLE public.replays TO tierledger_service;

GRANT UPDATE(due_at) ON TABLE public.replays TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.report_lines TO tierledger_service;

GRANT UPDATE(operation_id) ON TABLE public.report_lines TO tierledger_service;

GRANT UPDATE(result) ON TABLE public.report_lines TO tierledger_service;

GRANT UPDATE(version) ON TABLE public.report_lines TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.seat_changes TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.seat_rows TO tierledger_service;

GRANT UPDATE(states) ON TABLE public.seat_rows TO tierledger_service;

GRANT UPDATE(version) ON TABLE public.seat_rows TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.seat_sections TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.seats TO tierledger_service;

GRANT UPDATE(state) ON TABLE public.seats TO tierledger_service;

GRANT UPDATE(hold_id) ON TABLE public.seats TO tierledger_service;

GRANT UPDATE(until) ON TABLE public.seats TO tierledger_service;

GRANT UPDATE(allotment) ON TABLE public.seats TO tierledger_service;

GRANT UPDATE(version) ON TABLE public.seats TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.subscription_changes TO tierledger_service;

GRANT UPDATE(answer) ON TABLE public.subscription_changes TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.subscriptions TO tierledger_service;

GRANT UPDATE(url) ON TABLE public.subscriptions TO tierledger_service;

GRANT UPDATE(kinds) ON TABLE public.subscriptions TO tierledger_service;

GRANT UPDATE(event) ON TABLE public.subscriptions TO tierledger_service;

GRANT UPDATE(description) ON TABLE public.subscriptions TO tierledger_service;

GRANT UPDATE(status) ON TABLE public.subscriptions TO tierledger_service;

GRANT UPDATE(reason) ON TABLE public.subscriptions TO tierledger_service;

GRANT UPDATE(secret) ON TABLE public.subscriptions TO tierledger_service;

GRANT UPDATE(old_secret) ON TABLE public.subscriptions TO tierledger_service;

GRANT UPDATE(old_until) ON TABLE public.subscriptions TO tierledger_service;

GRANT UPDATE(active_since) ON TABLE public.subscriptions TO tierledger_service;

GRANT UPDATE(changed_by) ON TABLE public.subscriptions TO tierledger_service;

GRANT UPDATE(changed_at) ON TABLE public.subscriptions TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.ticketed_orders TO tierledger_service;

GRANT UPDATE(seq) ON TABLE public.ticketed_orders TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.tickets TO tierledger_service;

GRANT UPDATE(revoked_seq) ON TABLE public.tickets TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.tiers TO tierledger_service;

GRANT UPDATE(name) ON TABLE public.tiers TO tierledger_service;

GRANT UPDATE(price_version) ON TABLE public.tiers TO tierledger_service;

GRANT UPDATE(limit_per_customer) ON TABLE public.tiers TO tierledger_service;

GRANT UPDATE(version) ON TABLE public.tiers TO tierledger_service;

GRANT SELECT,INSERT ON TABLE public.webhooks TO tierledger_service;

GRANT UPDATE(status) ON TABLE public.webhooks TO tierledger_service;

GRANT UPDATE(tries) ON TABLE public.webhooks TO tierledger_service;

GRANT UPDATE(due_at) ON TABLE public.webhooks TO tierledger_service;

GRANT UPDATE(version) ON TABLE public.webhooks TO tierledger_service;
