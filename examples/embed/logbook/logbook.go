// Package logbook is a capability: a creature with a grant can write lines to a file that no
// creature can reach otherwise.
package logbook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
)

// New returns the capability, for terrarium.Options.Capabilities.
func New() capability.Kind { return kind{} }

type kind struct{}

func (kind) Name() string { return "logbook" }

func (kind) Settings() []capability.Setting {
	return []capability.Setting{
		{Name: "file", Type: capability.Text, Required: true, Doc: "the file; it is created if it does not exist"},
		{Name: "line", Type: capability.Size, Default: `"1KiB"`, Doc: "the longest line"},
	}
}

func (kind) Open(settings json.RawMessage) (capability.Grant, error) {
	b := &book{Line: 1 << 10}
	if err := json.Unmarshal(settings, b); err != nil {
		return nil, err
	}
	if b.File == "" {
		return nil, &abi.Error{Code: abi.InvalidArgument, Message: "the logbook has no file", Remedy: `set file = "PATH"`}
	}
	return b, nil
}

// book is a logbook as a recipe declares it.
type book struct {
	File string `json:"file"`
	Line int    `json:"line"`

	mu sync.Mutex // one attempt at a time reads and writes the file
}

// Check refuses a text that is too long, or has several lines.
func (b *book) Check(r capability.Request) error {
	switch {
	case len(r.Body) > b.Line:
		return &abi.Error{Code: abi.TooLarge, Message: fmt.Sprintf("a line has at most %d bytes, and this one has %d", b.Line, len(r.Body)), Remedy: "write less"}
	case bytes.ContainsAny(r.Body, "\n\r"):
		return &abi.Error{Code: abi.InvalidArgument, Message: "the text has several lines", Remedy: "write one line for each request"}
	}
	return nil
}

// View is what policies see as event.request.
func (b *book) View(r capability.Request) map[string]any {
	return map[string]any{"text": string(r.Body)}
}

// Amend is for policies that return patch({request: {text: "…"}}).
func (b *book) Amend(r capability.Request, members json.RawMessage) (capability.Request, error) {
	changed := struct {
		Text *string `json:"text"`
	}{}
	if err := json.Unmarshal(members, &changed); err != nil {
		return r, err
	}
	if changed.Text != nil {
		r.Body = []byte(*changed.Text)
	}
	return r, nil
}

// Do writes the key of a request and its line. If the program ends before the result is in
// the log, Do is called again with the same key. The line is still written only once.
func (b *book) Do(_ context.Context, call capability.Call) capability.Result {
	b.mu.Lock()
	defer b.mu.Unlock()
	written, err := os.ReadFile(b.File)
	if err != nil && !os.IsNotExist(err) {
		return failed(err)
	}
	lines := bytes.Count(written, []byte("\n"))
	whole := written[:bytes.LastIndexByte(written, '\n')+1] // a crash may have left an incomplete line
	key := []byte(call.Key + " ")
	if bytes.HasPrefix(whole, key) || bytes.Contains(whole, append([]byte("\n"), key...)) {
		return capability.Result{Payload: fmt.Append(nil, lines)}
	}
	f, err := os.OpenFile(b.File, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return failed(err)
	}
	line := fmt.Appendf(nil, "%s%s\n", key, call.Body)
	_, err = f.WriteAt(line, int64(len(whole)))
	if err == nil {
		err = f.Truncate(int64(len(whole) + len(line)))
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return failed(err)
	}
	return capability.Result{Payload: fmt.Append(nil, lines+1)}
}

// failed is a result after which the engine tries again.
func failed(err error) capability.Result {
	r := capability.Failure(abi.Unavailable, err.Error())
	r.Again = true
	return r
}

func (b *book) Limits() capability.Limits      { return capability.Limits{Concurrency: 1, Retries: 5} }
func (b *book) Allows() []string               { return []string{"lines in " + b.File} }
func (b *book) Warnings() []capability.Warning { return nil }
