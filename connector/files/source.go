package files

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/internal/plainly"
)

// Source is the kind file: each line of a file becomes a message. Offsets are positions in
// the file, so each line is taken once, even after a kill.
type Source struct{}

// Name implements [connector.Kind].
func (Source) Name() string { return "file" }

// Direction implements [connector.Kind].
func (Source) Direction() connector.Direction { return connector.Source }

// Settings implements [connector.Kind].
func (Source) Settings() []capability.Setting {
	return []capability.Setting{
		{Name: "path", Type: capability.Path, Required: true, Doc: "the file, relative to the recipe's folder; it may not exist yet"},
		{Name: "follow", Type: capability.Flag, Default: "true", Doc: "at the end, wait for more lines, and continue with the file that takes the path when a log is rotated"},
	}
}

type fileSettings struct {
	Path   string `json:"path"`
	Follow *bool  `json:"follow"`
}

// Open implements [connector.Kind].
func (Source) Open(settings json.RawMessage) (connector.Connector, error) {
	var s fileSettings
	if err := json.Unmarshal(settings, &s); err != nil {
		return nil, plainly.JSON(nil, err)
	}
	if s.Path == "" {
		return nil, noPath
	}
	return &source{path: s.Path, follow: s.Follow == nil || *s.Follow}, nil
}

var noPath = &abi.Error{Code: abi.InvalidArgument, Message: "the path is empty", Remedy: "name a file"}

type source struct {
	path   string
	follow bool
}

func (s *source) Reaches() string {
	if s.follow {
		return "follows " + s.path
	}
	return "reads " + s.path
}

func (s *source) Endless() bool { return s.follow }

// File implements [connector.UsesFile].
func (s *source) File() string { return s.path }

// Run implements [connector.Connector].
func (s *source) Run(ctx context.Context, p connector.Port) error {
	info, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && s.follow: // which waits for it
	case err != nil:
		return cannot("read", s.path, err, "create it, or correct the path in the recipe")
	case !info.Mode().IsRegular():
		return &abi.Error{Code: abi.InvalidArgument, Message: s.path + " is not a regular file", Remedy: "name a regular file; directories and devices have no offsets"}
	}
	l := linesOf(s.path, p)
	l.LeaveOut = true
	if s.follow {
		p.Working()
		return l.Follow(ctx, s.path)
	}
	file, err := openRegular(s.path)
	if err != nil {
		return cannot("read", s.path, err, "correct the permissions of the file")
	}
	defer file.Close()
	p.Working()
	known, err := l.Known()
	if err != nil {
		return err
	}
	return l.feedFile(ctx, file, known, false)
}

// linesOf sends lines to a port.
func linesOf(name string, p connector.Port) *Lines {
	return &Lines{Name: name, Known: p.Producers, LeftOut: p.Refused, Now: p.Now, Take: func(ctx context.Context, line []byte, producer string, offset uint64) error {
		_, err := p.Send(ctx, connector.Message{Payload: line, Producer: producer, Offset: offset})
		if err != nil && ctx.Err() == nil && connector.Final(err) {
			p.Refused(err)
			return nil
		}
		return err
	}, Mark: func(ctx context.Context, producer string, offset uint64) error {
		_, err := p.Send(ctx, connector.Message{Producer: producer, Offset: offset, Mark: true})
		if ctx.Err() != nil {
			return nil
		}
		return err
	}}
}

func cannot(do, path string, err error, remedy string) error {
	return &abi.Error{Code: abi.Unavailable, Message: "cannot " + do + " " + path, Remedy: remedy, Err: err}
}

// Stdin is the kind stdin: each line of standard input becomes a message. Offsets are
// positions in the input, which is recognized by its beginning: if the same input is given
// again, lines that were taken before are skipped.
type Stdin struct {
	open func() io.ReadCloser
	used *sync.Once
}

// NewStdin returns the kind for an input, which is opened and read once, by the first source
// that runs. Closing it must end a blocked Read. Nil means that the program has no standard
// input for sources.
func NewStdin(open func() io.ReadCloser) Stdin { return Stdin{open, new(sync.Once)} }

// Name implements [connector.Kind].
func (Stdin) Name() string { return "stdin" }

// Direction implements [connector.Kind].
func (Stdin) Direction() connector.Direction { return connector.Source }

// Settings implements [connector.Kind].
func (Stdin) Settings() []capability.Setting { return nil }

// Open implements [connector.Kind].
func (k Stdin) Open(json.RawMessage) (connector.Connector, error) { return stdin{k}, nil }

type stdin struct{ Stdin }

func (stdin) Reaches() string { return "reads standard input" }

// Needs implements [connector.Exclusive].
func (stdin) Needs() string { return "standard input" }

func (s stdin) Endless() bool { return s.open == nil }

// Run implements [connector.Connector].
func (s stdin) Run(ctx context.Context, p connector.Port) error {
	if s.open == nil {
		return &abi.Error{Code: abi.Unsupported, Message: "this command has no standard input for sources", Remedy: "use terrarium run or resume, without an --input that reads standard input; or use another kind of source"}
	}
	first := false
	s.used.Do(func() { first = true })
	if !first {
		return &abi.Error{Code: abi.Conflict, Message: "standard input has been read by another source, or before the recipe changed", Remedy: "declare one source of the kind stdin, and start the command again"}
	}
	input := s.open()
	defer input.Close()
	unhook := context.AfterFunc(ctx, func() { input.Close() })
	defer unhook()
	p.Working()
	return linesOf("standard input", p).Feed(ctx, input)
}
