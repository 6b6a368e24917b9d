-- Reports: what providers' settlement reports told, line by line.

-- +goose Up

-- A line of a report: one change of the provider's balance, and what it was found to
-- be here. Amounts are minor units of its currency, signed as the provider's balance
-- changed; a fee is what it cost.
CREATE TABLE report_lines (
    journal_id   bigint      NOT NULL, -- of what it's about; the system journal when that isn't ours
    provider     text        COLLATE "C" NOT NULL,
    line_id      text        COLLATE "C" NOT NULL, -- the provider's; every report has the same
    type         text        COLLATE "C" NOT NULL,
    payment      text        COLLATE "C" NOT NULL, -- the provider's reference of it, '' for none
    operation_id uuid,       -- ours that moved the money; NULL when none is known
    created_at   timestamptz NOT NULL, -- by the provider's clock
    gross        bigint      NOT NULL,
    fee          bigint      NOT NULL,
    net          bigint      NOT NULL,
    currency     text        COLLATE "C" NOT NULL,
    result       text        COLLATE "C" NOT NULL,
    version      bigint      NOT NULL, -- seq of the entry that booked it, or that judged it last
    CONSTRAINT report_lines_pkey PRIMARY KEY (journal_id, provider, line_id),
    CONSTRAINT report_lines_type CHECK (CASE type
        WHEN 'charge' THEN gross > 0
        WHEN 'capture' THEN gross > 0
        WHEN 'capture_failed' THEN gross < 0
        WHEN 'refund' THEN gross < 0
        WHEN 'chargeback' THEN gross < 0
        WHEN 'fee' THEN gross = 0
        ELSE false END),
    CONSTRAINT report_lines_net CHECK (net = gross - fee),
    CONSTRAINT report_lines_result CHECK (result IN
        ('matched', 'missing_here', 'amount_differs', 'currency_differs', 'duplicate', 'unsettled')),
    CONSTRAINT report_lines_operation CHECK (operation_id IS NOT NULL
        OR result = 'missing_here' OR type = 'fee' AND result = 'matched')
);

-- A line that comes again is looked for in every journal: what it's about may have
-- become known since.
CREATE INDEX report_lines_line ON report_lines (provider, line_id);
-- The lines that an operation has.
CREATE INDEX report_lines_operation_id ON report_lines (operation_id) WHERE operation_id IS NOT NULL;
-- Where the reports before and after one end and begin.
CREATE INDEX report_lines_created ON report_lines (provider, created_at);

-- Lines that name no operation of ours are matched by their payment.
CREATE INDEX operations_payment ON operations (provider, payment) WHERE payment <> '';

-- What a report told never changes; what it was found to be may.
GRANT SELECT, INSERT ON report_lines TO tierledger_service;
GRANT UPDATE (operation_id, result, version) ON report_lines TO tierledger_service;
