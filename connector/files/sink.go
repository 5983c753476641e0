package files

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/connector"
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
		return nil, err
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

func (s *sink) Endless() bool { return true }

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

// How much is written before messages count as delivered, and the part at the end of the
// file whose ids are known. The second has room for everything that can be in the file and
// not yet in the log of the session.
const (
	batchBytes = 64 << 10
	tailBytes  = 8 << 20
)

const privateFile = 0o600

// Run implements [connector.Connector].
func (s *sink) Run(ctx context.Context, p connector.Port) (err error) {
	file, err := os.OpenFile(s.Path, os.O_RDWR|os.O_CREATE|os.O_APPEND, privateFile)
	if err != nil {
		return cannot("write", s.Path, err, "create its folder, or correct the path and the permissions")
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	written, err := s.tail(file)
	if err != nil {
		return cannot("read", s.Path, err, "name a file that can be read and written, so that no message is written twice")
	}
	p.Working()
	var batch bytes.Buffer
	for {
		d, err := p.Next(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		batch.Reset()
		// Further messages that are there already are written together.
		for more := true; more; {
			if !written[d.ID] {
				written = nil // what follows is new too
				s.append(&batch, d)
			}
			if batch.Len() >= batchBytes {
				break
			}
			next, err := nextNow(ctx, p)
			if more = err == nil; more {
				d = next
			}
		}
		if err := s.write(file, batch.Bytes()); err != nil {
			return err
		}
		p.Ack(d.Seq)
	}
}

// nextNow returns a message that can be delivered without waiting for long.
func nextNow(ctx context.Context, p connector.Port) (connector.Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	return p.Next(ctx)
}

func (s *sink) write(file *os.File, batch []byte) error {
	if len(batch) == 0 {
		return nil
	}
	_, err := file.Write(batch)
	if err == nil && s.Sync {
		err = file.Sync()
	}
	if err != nil {
		return cannot("write", s.Path, err, "make room on the disk; delivery continues by itself")
	}
	return nil
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

// payloadOf is a payload as the API has it: a text, or an object with base64.
func payloadOf(b []byte) any {
	if utf8.Valid(b) {
		return string(b)
	}
	return map[string]string{"base64": base64.StdEncoding.EncodeToString(b)}
}

// tail reads the ids at the end of the file. It takes away a last line that a killed process
// has not finished: the message is delivered again.
func (s *sink) tail(file *os.File) (map[string]bool, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &abi.Error{Code: abi.InvalidArgument, Message: "it is not a regular file"}
	}
	start := max(0, info.Size()-tailBytes)
	data, err := io.ReadAll(io.NewSectionReader(file, start, info.Size()-start))
	if err != nil {
		return nil, err
	}
	if i := bytes.LastIndexByte(data, '\n') + 1; i < len(data) {
		if s.Format == "text" {
			_, err = file.Write([]byte{'\n'}) // it cannot be known whose the line is
			return nil, err
		}
		if i == 0 && start > 0 || !bytes.HasPrefix(data[i:], []byte(`{"channel":`)[:min(len(data)-i, len(`{"channel":`))]) {
			return nil, &abi.Error{Code: abi.Conflict, Message: "the file ends with a line that this sink has not written", Remedy: "name a file that only this sink writes"}
		}
		if err := file.Truncate(start + int64(i)); err != nil {
			return nil, err
		}
		data = data[:i]
	}
	ids := map[string]bool{}
	for line := range bytes.Lines(data) {
		var r struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(line, &r) == nil && r.ID != "" {
			ids[r.ID] = true
		}
	}
	return ids, nil
}
