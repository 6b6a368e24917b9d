package outbox_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/tierledger/tierledger/outbox"
)

// Of many who decide at once, one does.
func TestOneDecides(t *testing.T) {
	m := openMail(t)
	m.bury("tickets", m.entry(true, "a payment"), "")
	r := m.replayAll("k")
	var race sync.WaitGroup
	outcomes := make([]error, 8)
	for i := range outcomes {
		race.Go(func() {
			who := fmt.Sprint("p", i)
			if i%2 == 0 {
				_, _, outcomes[i] = m.store.Approve(m.ctx, who, "k", r.ID)
			} else {
				_, _, outcomes[i] = m.store.Reject(m.ctx, who, "k", r.ID, "no")
			}
		})
	}
	race.Wait()
	decided := 0
	for _, err := range outcomes {
		if err == nil {
			decided++
		} else {
			m.refused(err, outbox.ErrReplayStatus)
		}
	}
	if decided != 1 {
		t.Errorf("%d have decided", decided)
	}
}

// Operators who choose the same letters at once share them: no letter is two replays'.
func TestNoLetterIsTwoReplays(t *testing.T) {
	m := openMail(t)
	ids := m.dead(30)
	var race sync.WaitGroup
	made := make([]outbox.Replay, 12)
	for i := range made {
		race.Go(func() {
			request := all(outbox.ActReplay)
			switch i % 3 {
			case 1:
				request.Filter.Kind = "test.remarked"
			case 2:
				request = these(outbox.ActReplay, ids[i], ids[29-i])
			}
			var err error
			made[i], _, err = m.store.Request(m.ctx, "ann", fmt.Sprint("k", i), request)
			if err != nil && !errors.Is(err, outbox.ErrNothingChosen) && !errors.Is(err, outbox.ErrLetterTaken) {
				t.Error(err)
			}
		})
	}
	race.Wait()
	letters := 0
	for _, r := range made {
		letters += r.Letters
	}
	if letters != len(ids) {
		t.Errorf("%d letters in all replays, there are %d", letters, len(ids))
	}
	for range 3 {
		m.work()
	}
	if n := m.text(`SELECT count(*) || ' ' || count(DISTINCT letter) FROM redone`); n != "30 30" {
		t.Errorf("effects, of letters: %s", n)
	}
}

// Of two who chose the same letters before either took them, one gets them.
func TestWhoeverTakesALetterHasIt(t *testing.T) {
	t.Parallel()
	for name, named := range map[string]bool{"by a filter": false, "by name": true} {
		t.Run(name, func(t *testing.T) {
			m := openMail(t)
			request, late := all(outbox.ActReplay), error(outbox.ErrNothingChosen)
			if ids := m.dead(3); named {
				request, late = these(outbox.ActReplay, ids...), outbox.ErrLetterTaken
			}
			m.exec(`BEGIN`)
			m.exec(`SELECT FROM dead_letters FOR UPDATE`)
			var race sync.WaitGroup
			outcomes := make([]error, 2)
			for i := range outcomes {
				race.Go(func() { _, _, outcomes[i] = m.store.Request(m.ctx, "ann", fmt.Sprint("k", i), request) })
			}
			m.untilLockWaits(len(outcomes))
			m.exec(`COMMIT`)
			race.Wait()
			if outcomes[0] != nil {
				slices.Reverse(outcomes)
			}
			m.must(outcomes[0])
			m.refused(outcomes[1], late)
		})
	}
}
