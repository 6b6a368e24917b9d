package chartfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/tierledger/tierledger/seats"
)

// MaxSize bounds a file: several times what the largest chart takes as text.
const MaxSize = 64 << 20

// File is what a file says.
type File struct {
	// Event is the event that the file describes; "" if it's a chart alone.
	Event string
	// Spec is that event as POST /v1/events takes it, without its chart; nil for a chart
	// alone.
	Spec []byte
	// Chart is valid, and every seat has its place.
	Chart seats.Chart

	sum [sha256.Size]byte
}

// Read reads a file to its end. The error is a *Problems if the file itself is wrong.
func Read(r io.Reader) (*File, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > MaxSize:
		return nil, fmt.Errorf("it's larger than %d MiB", MaxSize>>20)
	}
	return parse(text)
}

// The marks that some programs put before text to tell its encoding.
var (
	markUTF8  = []byte("\xef\xbb\xbf")
	markUTF16 = [][]byte{[]byte("\xff\xfe"), []byte("\xfe\xff")}
)

func parse(text []byte) (*File, error) {
	f := &File{sum: sha256.Sum256(text)}
	var found finder
	for _, mark := range markUTF16 {
		if bytes.HasPrefix(text, mark) {
			found.add(1, "is UTF-16; save it as UTF-8")
			return nil, found.err()
		}
	}
	text = bytes.TrimPrefix(text, markUTF8)
	if line := notUTF8(text); line > 0 {
		found.add(line, "isn't UTF-8")
		return nil, found.err()
	}
	var from source
	switch begins := bytes.TrimLeft(text, " \t\r\n"); {
	case len(begins) == 0:
		found.add(0, "it's empty")
	case begins[0] == '{':
		from = f.readJSON(text, &found)
	case begins[0] == '[':
		found.add(1, "must be one JSON object")
	default:
		from = f.readCSV(text, &found)
	}
	if from != nil {
		found.check(&f.Chart, from)
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	if unplaced(&f.Chart) {
		arrange(&f.Chart)
	}
	return f, nil
}

// notUTF8 is the first line that has something else; 0 if none has.
func notUTF8(text []byte) int {
	if utf8.Valid(text) {
		return 0
	}
	line := 0
	for l := range bytes.Lines(text) {
		if line++; !utf8.Valid(l) {
			break
		}
	}
	return line
}

// EventKey is the idempotency key under which the event is created: the same for the
// same event, whatever its chart. So a chart that was refused can be mended, and the
// file imported again.
func (f *File) EventKey() string { return "import-event-" + digest(sha256.Sum256(f.Spec)) }

// ChartKey is the idempotency key under which the file's chart is loaded into an event:
// the same for the same content.
func (f *File) ChartKey(event string) string {
	return "import-chart-" + digest(sha256.Sum256([]byte(strconv.Quote(event)+string(f.sum[:]))))
}

// digest is half of a sum as text, which nobody meets twice either.
func digest(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:len(sum)/2]) }
