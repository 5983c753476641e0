package files

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/internal/plainly"
)

// Sink is the kind file: it appends the messages of a channel to a file, one line for each.
// As JSON, each line has the event's id; after a kill, messages whose ids are near the end of
// the file are not written again. As text, the last messages before a kill may be written
// twice.
type Sink struct{}

// Name implements [connector.Kind].
func (Sink) Name() string { return "file" }

// Direction implements [connector.Kind].
func (Sink) Direction() connector.Direction { return connector.Sink }

// Settings implements [connector.Kind].
func (Sink) Settings() []capability.Setting {
	return []capability.Setting{
		{Name: "path", Type: capability.Path, Required: true, Doc: "the file, relative to the recipe's folder; it is created with permissions for its owner only"},
		{Name: "format", Type: capability.Text, Choices: []string{"json", "text"}, Default: `"json"`, Doc: "`json`: an object with the message and its id; `text`: the payload and a newline, without ids"},
		{Name: "sync", Type: capability.Flag, Default: "false", Doc: "sync the file before messages count as delivered, so that a power failure loses none of them"},
	}
}

// Open implements [connector.Kind].
func (Sink) Open(settings json.RawMessage) (connector.Connector, error) {
	s := &sink{Format: "json"}
	if err := json.Unmarshal(settings, s); err != nil {
		return nil, plainly.JSON(nil, err)
	}
	if s.Path == "" {
		return nil, noPath
	}
	return s, nil
}

type sink struct {
	Path   string `json:"path"`
	Format string `json:"format"`
	Sync   bool   `json:"sync"`
}

func (s *sink) Reaches() string { return "appends to " + s.Path + " as " + s.Format }

// Needs implements [connector.Exclusive].
func (s *sink) Needs() string { return "the file " + filepath.Clean(s.Path) }

func (s *sink) Endless() bool { return true }

// File implements [connector.UsesFile].
func (s *sink) File() string { return s.Path }

// record is a line of JSON.
type record struct {
	Channel string            `json:"channel"`
	Seq     uint64            `json:"seq"`
	ID      string            `json:"id"`
	TS      string            `json:"ts"`
	Sender  string            `json:"sender,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Payload any               `json:"payload"`
}

// batchBytes is how much is written before messages count as delivered.
const batchBytes = 64 << 10

const privateFile = 0o600

// Run implements [connector.Connector].
func (s *sink) Run(ctx context.Context, p connector.Port) (err error) {
	var file *os.File
	defer func() {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	var written map[string]bool
	open := func() error {
		if file != nil {
			_ = file.Close() // what was written has been checked
		}
		if file, written, err = s.open(); err == nil {
			p.Working()
		}
		return err
	}
	if err := open(); err != nil {
		return err
	}
	var batch bytes.Buffer
	for {
		d, err := p.Next(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		list := []connector.Delivery{d}
		// Messages that are already waiting are written together.
		for size := len(d.Payload); size < batchBytes; size += len(d.Payload) {
			next, err := nextNow(ctx, p)
			if err != nil {
				break
			}
			d, list = next, append(list, next)
		}
		// The write counts only if the file still has the path: it may have been renamed or
		// removed meanwhile.
		for done := false; !done; done = s.has(file) {
			if !s.has(file) {
				if err := open(); err != nil {
					return err
				}
			}
			batch.Reset()
			for _, d := range list {
				if !written[d.ID] {
					written = nil // what follows is new too
					s.append(&batch, d)
				}
			}
			if err := s.write(file, batch.Bytes()); err != nil {
				return err
			}
		}
		p.Ack(d.Seq)
	}
}

// open opens the file, and returns the ids of the messages near its end.
func (s *sink) open() (*os.File, map[string]bool, error) {
	file, err := os.OpenFile(s.Path, os.O_RDWR|os.O_CREATE|os.O_APPEND|syscall.O_NONBLOCK, privateFile)
	if err != nil {
		return nil, nil, cannot("write", s.Path, err, "create its folder, or correct the path and the permissions")
	}
	written, err := s.tail(file)
	if err != nil {
		file.Close()
		return nil, nil, cannot("read", s.Path, err, "name a file that can be read and written, so that no message is written twice")
	}
	return file, written, nil
}

// has reports whether a file is the one at the path.
func (s *sink) has(file *os.File) bool {
	mine, err := file.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(s.Path)
	return err == nil && os.SameFile(mine, now)
}

// nextNow returns a message that can be delivered without waiting for long.
func nextNow(ctx context.Context, p connector.Port) (connector.Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	return p.Next(ctx)
}

// appended is a file to which a sink appends.
type appended interface {
	io.Writer
	Stat() (os.FileInfo, error)
	Truncate(size int64) error
	Sync() error
}

// write appends a batch. After a failure, it removes the part that was written, unless
// another program has written to the file.
func (s *sink) write(file appended, batch []byte) error {
	if len(batch) == 0 {
		return nil
	}
	before, err := file.Stat()
	var n int
	if err == nil {
		n, err = file.Write(batch)
	}
	if err == nil && s.Sync {
		err = file.Sync()
	}
	if err == nil {
		return nil
	}
	if n > 0 {
		if now, failed := file.Stat(); failed == nil && now.Size() == before.Size()+int64(n) {
			err = errors.Join(err, file.Truncate(before.Size()))
		}
	}
	return cannot("write", s.Path, err, "check that the disk has space; delivery continues by itself")
}

// append adds a message to a batch.
func (s *sink) append(batch *bytes.Buffer, d connector.Delivery) {
	if s.Format == "text" {
		batch.Write(d.Payload)
		batch.WriteByte('\n')
		return
	}
	enc := json.NewEncoder(batch)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(record{
		Channel: d.Channel, Seq: d.Seq, ID: d.ID, TS: d.Time.Format(time.RFC3339Nano), Sender: d.Sender, Headers: d.Headers, Payload: payloadOf(d.Payload),
	}) // a buffer takes everything, and a record has only texts
}

// payloadOf returns a payload in the form of the API: a text, or an object with base64.
func payloadOf(b []byte) any {
	if utf8.Valid(b) {
		return string(b)
	}
	return map[string]string{"base64": base64.StdEncoding.EncodeToString(b)}
}
