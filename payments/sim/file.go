package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// file keeps the history, a change a line. A line is written before its change counts.
// It isn't synced: it outlives the program, not the machine.
type file struct {
	f    *os.File
	size int64
}

// openFile reads the history of a file into the book. A line that a crash left half
// written was never answered, and is cut off.
func openFile(path string, b *book) (*file, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	size, err := replay(f, b)
	if err == nil {
		err = f.Truncate(size)
	}
	if err == nil {
		_, err = f.Seek(size, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &file{f, size}, nil
}

// replay applies every whole line, and gives the length of them all.
func replay(r io.Reader, b *book) (size int64, err error) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return 0, err
		}
		var c change
		if err := json.Unmarshal(bytes.TrimSpace(line), &c); err != nil {
			return 0, fmt.Errorf("line %d: %w", b.changes+1, err)
		}
		b.apply(&c)
		size += int64(len(line))
	}
}

// add writes a change. After an error the file is as it was before.
func (f *file) add(c *change) error {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if _, err := f.f.Write(line); err != nil {
		_ = f.f.Truncate(f.size) // the write's error is the one to tell
		_, _ = f.f.Seek(f.size, io.SeekStart)
		return err
	}
	f.size += int64(len(line))
	return nil
}
