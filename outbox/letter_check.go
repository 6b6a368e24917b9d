package outbox

import "github.com/tierledger/tierledger/ledger"

// letterChecks are the invariants of dead letters and their replays. Replays are of no
// journal: they're checked with all of them.
var letterChecks = []ledger.Check{
	{Name: "replays_counted", Says: "a replay's letters are those it did, those that died again, those it let go of and those it still has", SQL: `
SELECT format('replay %s is %s: %s letters, %s done, %s failed, %s freed, has %s', r.replay_id, r.status, r.letters, r.done,
              r.failed, r.freed, coalesce(d.taken, 0))
FROM replays r
FULL JOIN (SELECT replay_id, count(*) FILTER (WHERE taken) AS taken, count(*) FILTER (WHERE status <> 'dead') AS ended
           FROM dead_letters
           WHERE replay_id IS NOT NULL
           GROUP BY replay_id) d USING (replay_id)
WHERE $1::bigint IS NULL
  AND (r.replay_id IS NULL
       OR r.letters <> r.done + r.failed + r.freed + coalesce(d.taken, 0)
       OR coalesce(d.ended, 0) > r.done
       OR r.letters < 1)`},

	{Name: "replays_decided", Says: "nothing is done by a replay before it may begin, and nothing is left when it has ended", SQL: `
SELECT format('replay %s is %s: %s letters about money, %s done, %s failed, %s freed of %s, decided by %s', replay_id, status,
              money, done, failed, freed, letters, decided_by)
FROM replays
WHERE $1::bigint IS NULL
  AND CASE status
      WHEN 'awaiting_approval' THEN money = 0 OR done + failed + freed > 0 OR decided_by IS NOT NULL
      WHEN 'rejected' THEN done + failed > 0 OR freed <> letters OR decided_by IS NULL
      WHEN 'done' THEN done + failed + freed <> letters
      ELSE money > 0 AND decided_by IS NULL OR done + failed + freed >= letters
      END`},

	{Name: "replays_stepped", Says: "every replay has the steps that led to its state, by those who it names", SQL: `
SELECT format('replay %s is %s: its steps are %s', r.replay_id, r.status, s.steps)
FROM replays r
LEFT JOIN LATERAL (SELECT string_agg(step || ' by ' || principal, ', ' ORDER BY at, step_id) AS steps,
                          bool_or(step = 'requested' AND principal = r.requested_by AND step_id = r.replay_id) AS asked,
                          bool_or(step IN ('approved', 'rejected') AND principal = r.decided_by) AS decided,
                          bool_or(step IN ('approved', 'rejected')) AS judged,
                          bool_or(step = 'rejected') AS rejected,
                          bool_or(step = 'stopped') AS stopped,
                          bool_or(step IN ('done', 'taken_over')) AS ended
                   FROM replay_steps
                   WHERE replay_id = r.replay_id) s ON true
WHERE $1::bigint IS NULL
  AND (s.asked IS NOT TRUE
       OR CASE WHEN r.decided_by IS NULL THEN s.judged ELSE NOT s.decided END
       OR s.rejected <> (r.status = 'rejected')
       OR r.status = 'stopped' AND NOT s.stopped
       OR r.status = 'done' AND NOT s.ended)`},

	{Name: "letters_ended_by_replays", Says: "a letter that isn't dead was ended by a replay that does that, and one that's taken has a replay that hasn't ended", SQL: `
SELECT format('letter %s of %s, journal %s entry %s, is %s: replay %s of it is %s and %s', d.letter_id, d.consumer, d.journal_id, d.seq,
              d.status, d.replay_id, r.action, r.status)
FROM dead_letters d
LEFT JOIN replays r USING (replay_id)
WHERE ($1::bigint IS NULL OR d.journal_id = $1)
  AND CASE WHEN d.status = 'replayed' THEN r.action IS DISTINCT FROM 'replay'
           WHEN d.status = 'discarded' THEN r.action IS DISTINCT FROM 'discard'
           WHEN d.taken THEN r.status IS NULL OR r.status IN ('rejected', 'done')
           ELSE false END`},

	{Name: "letters_let_go", Says: "the consumer of a dead letter has gone on past its entry", SQL: `
SELECT format('letter %s: consumer %s is at %s of journal %s, the letter is of entry %s', d.letter_id, d.consumer, i.seq, d.journal_id, d.seq)
FROM dead_letters d
LEFT JOIN inbox i ON i.consumer = d.consumer AND i.journal_id = d.journal_id
WHERE d.seq > coalesce(i.seq, 0)
  AND ($1::bigint IS NULL OR d.journal_id = $1)`},

	{Name: "letters_of_entries", Says: "a dead letter has its entry, says whether that moved money, and is the only one of its consumer, entry and target", SQL: `
SELECT format('letter %s of %s: journal %s entry %s %s %s', d.letter_id, d.consumer, d.journal_id, d.seq, d.kind, d.target)
FROM (SELECT *, count(*) OVER (PARTITION BY consumer, journal_id, seq, target) AS alike
      FROM dead_letters
      WHERE $1::bigint IS NULL OR journal_id = $1) d
LEFT JOIN entries e ON e.journal_id = d.journal_id AND e.seq = d.seq
WHERE d.alike > 1
   OR d.seq > 0 AND (e.kind IS DISTINCT FROM d.kind)
   OR d.money <> EXISTS (SELECT FROM postings p
                         WHERE p.journal_id = d.journal_id AND p.seq = d.seq AND p.unit ~ '^[A-Z]{3}(\.|$)')`},
}
