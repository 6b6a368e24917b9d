package httpapi

import (
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/tierledger/tierledger/seats"
)

// streamTimeout bounds one write to a follower; the sockets' buffers have been full for as
// long.
const streamTimeout = 5 * time.Second

// streamLife is about how long a stream lasts; whoever follows comes again where it was. A
// key that's no longer good ends with it, and followers spread over new processes.
const streamLife = 15 * time.Minute

// reconnect tells a browser how long to wait before it comes again, in milliseconds.
const reconnect = "retry: 2000\n\n"

// stream tells a follower the changes of a map as Server-Sent Events (WHATWG HTML, section
// 9.2): an event's id is the version that it comes to, its data the changes since the one
// before; none, as a sign of life.
type stream struct{ follower *seats.Follower }

// ServeHTTP writes events until the follower goes away or is cut off.
func (s *stream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.follower.Stop()
	control := http.NewResponseController(w)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // for nginx, which would keep events back
	w.WriteHeader(http.StatusOK)
	if _, err := w.Write([]byte(reconnect)); err != nil {
		return
	}
	over := time.NewTimer(streamLife + rand.N(streamLife/4)) // not all at once
	defer over.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-over.C:
			return
		case b, ok := <-s.follower.Batches:
			if !ok || control.SetWriteDeadline(time.Now().Add(streamTimeout)) != nil {
				return
			}
			if writeEvent(w, b) != nil || control.Flush() != nil {
				return
			}
			if control.SetWriteDeadline(time.Time{}) != nil { // over HTTP/2 it would end a quiet stream
				return
			}
		}
	}
}

// writeEvent writes a batch as an event. The data is one for all followers, and isn't
// copied.
func writeEvent(w io.Writer, b seats.Batch) error {
	head := make([]byte, 0, 64)
	head = append(head, "id: "...)
	head = strconv.AppendInt(head, int64(b.Version), 10)
	head = append(head, "\nevent: changes\ndata: "...)
	for _, part := range [][]byte{head, b.Data, []byte("\n\n")} { // JSON has no line breaks
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}
