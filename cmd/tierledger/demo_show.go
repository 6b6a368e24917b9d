package main

import (
	"fmt"
	"io"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/tierledger/tierledger/internal/sale"
)

// lineEvery is how often progress is told where nobody looks at bars.
const lineEvery = 2 * time.Second

// show shows the progress of a sale: bars on a terminal, elsewhere a line now and
// then.
type show interface {
	update(sale.Progress) // from one goroutine
	end()                 // nothing is shown after it
}

func newShow(w io.Writer, plan sale.Plan) show {
	if isTerminal(w) {
		return newBars(w, plan)
	}
	return &lines{w: w}
}

// lines tells the progress in plain lines.
type lines struct {
	w    io.Writer
	last time.Time
}

// update tells a line, if the last one is old enough.
func (l *lines) update(p sale.Progress) {
	if time.Since(l.last) < lineEvery {
		return
	}
	l.last = time.Now()
	fmt.Fprintf(l.w, "arrived %d of %d, held %d, sold %d, left %d, %spaid %d, open %d, expired %d, released %d, refused %d%s\n",
		p.Arrived, p.Buyers, p.Held, p.Sold, p.Left, seatsTaken(p), p.Paid, p.Open, p.Expired, p.Released, p.Refused, waiting(p))
}

// seatsTaken says how many seats are held or sold; "" when there are none.
func seatsTaken(p sale.Progress) string {
	if p.Seats == 0 {
		return ""
	}
	return fmt.Sprintf("seats taken %d of %d, ", p.SeatsTaken, p.Seats)
}

// waiting says until when the sale waits for orders whose outcome isn't known; "" when
// it doesn't.
func waiting(p sale.Progress) string {
	if p.Due.IsZero() {
		return ""
	}
	return fmt.Sprintf("; waiting for the outcome of payments, %.0f s at most", max(0, time.Until(p.Due).Seconds()))
}

func (l *lines) end() { fmt.Fprintln(l.w) }

// bars shows the progress as bars and counts, all of which may go down again.
type bars struct {
	w    io.Writer
	all  *mpb.Progress
	list []bar
}

// bar shows one number of the progress.
type bar struct {
	*mpb.Bar
	value func(sale.Progress) int64
}

func newBars(w io.Writer, plan sale.Plan) *bars {
	b := &bars{w: w, all: mpb.New(mpb.WithOutput(w), mpb.WithWidth(48))}
	b.add("arrived", int64(plan.Buyers), func(p sale.Progress) int64 { return int64(p.Arrived) })
	b.add("held", plan.Capacity(), func(p sale.Progress) int64 { return p.Held })
	b.add("sold", plan.Capacity(), func(p sale.Progress) int64 { return p.Sold })
	b.add("left", plan.Capacity(), func(p sale.Progress) int64 { return p.Left })
	if plan.Seats > 0 {
		b.add("seats taken", int64(plan.Seats), func(p sale.Progress) int64 { return p.SeatsTaken })
	}
	b.add("orders paid", 0, func(p sale.Progress) int64 { return p.Paid })
	b.add("outcome open", 0, func(p sale.Progress) int64 { return p.Open })
	b.add("refused", 0, func(p sale.Progress) int64 { return p.Refused })
	b.add("expired", 0, func(p sale.Progress) int64 { return p.Expired })
	b.add("released", 0, func(p sale.Progress) int64 { return p.Released })
	return b
}

// add adds a bar of so many, or a bare count without a total.
func (b *bars) add(name string, total int64, value func(sale.Progress) int64) {
	var style mpb.BarFillerBuilder = mpb.BarStyle().Lbound("[").Filler("=").Tip(">").Padding(" ").Rbound("]")
	number := func(s decor.Statistics) string { return thousands(s.Current) + " of " + thousands(s.Total) }
	if total == 0 {
		style = mpb.NopStyle()
		number = func(s decor.Statistics) string { return thousands(s.Current) }
	}
	// A bar made with a total would end, and stay, when it's full.
	drawn := b.all.New(0, style,
		mpb.PrependDecorators(decor.Name(name, decor.WCSyncWidthR), decor.Any(number, decor.WCSyncSpace)))
	drawn.SetTotal(total, false)
	b.list = append(b.list, bar{drawn, value})
}

// update sets every bar; what it shows is drawn a few times a second.
func (b *bars) update(p sale.Progress) {
	for _, bar := range b.list {
		bar.SetCurrent(bar.value(p))
	}
}

// end leaves the bars as they are and the cursor below them.
func (b *bars) end() {
	for _, bar := range b.list {
		bar.Abort(false) // as it is: that's its end
	}
	b.all.Wait()
	fmt.Fprintln(b.w)
}
