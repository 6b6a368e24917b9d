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
	fmt.Fprintf(l.w, "arrived %d of %d, held %d, sold %d, left %d, paid %d, open %d, expired %d, released %d, refused %d%s\n",
		p.Arrived, p.Buyers, p.Held, p.Sold, p.Left, p.Paid, p.Open, p.Expired, p.Released, p.Refused, waiting(p))
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
	list []*mpb.Bar // in the order of values
}

func newBars(w io.Writer, plan sale.Plan) *bars {
	b := &bars{w: w, all: mpb.New(mpb.WithOutput(w), mpb.WithWidth(48))}
	b.add("arrived", int64(plan.Buyers))
	b.add("held", plan.Capacity())
	b.add("sold", plan.Capacity())
	b.add("left", plan.Capacity())
	b.add("orders paid", 0)
	b.add("outcome open", 0)
	b.add("refused", 0)
	b.add("expired", 0)
	b.add("released", 0)
	return b
}

// values are what the bars show, in their order.
func (b *bars) values(p sale.Progress) []int64 {
	return []int64{int64(p.Arrived), p.Held, p.Sold, p.Left, p.Paid, p.Open, p.Refused, p.Expired, p.Released}
}

// add adds a bar of so many, or a bare count without a total.
func (b *bars) add(name string, total int64) {
	var style mpb.BarFillerBuilder = mpb.BarStyle().Lbound("[").Filler("=").Tip(">").Padding(" ").Rbound("]")
	number := func(s decor.Statistics) string { return thousands(s.Current) + " of " + thousands(s.Total) }
	if total == 0 {
		style = mpb.NopStyle()
		number = func(s decor.Statistics) string { return thousands(s.Current) }
	}
	// A bar made with a total would end, and stay, when it's full.
	bar := b.all.New(0, style,
		mpb.PrependDecorators(decor.Name(name, decor.WCSyncWidthR), decor.Any(number, decor.WCSyncSpace)))
	bar.SetTotal(total, false)
	b.list = append(b.list, bar)
}

// update sets every bar; what it shows is drawn a few times a second.
func (b *bars) update(p sale.Progress) {
	for i, value := range b.values(p) {
		b.list[i].SetCurrent(value)
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
