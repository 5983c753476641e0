package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/recipes"
	"github.com/seed47132306/terrarium/recipes/editor"
)

// Options say what the server knows of the program around it.
type Options struct {
	// Validate reports the findings about a recipe. It is called by one goroutine at a
	// time, must return soon after ctx ends, and must run nothing of the recipe.
	Validate func(ctx context.Context, v Validation) recipes.Diagnostics
	Builtins []string // names of the creatures that ship with the program
	Version  string   // of the program
}

// Validation says what to validate.
type Validation struct {
	Path    string            // of the recipe: a folder or a file
	Root    string            // the folder outside which nothing may be read
	Unsaved map[string][]byte // the texts of open files, by path
}

// maxWaiting bounds how many messages wait; with more, the server stops reading.
const maxWaiting = 64

// ErrNoExit says that the client closed the connection without asking the server to shut
// down and exit.
var ErrNoExit = &abi.Error{Code: abi.Unavailable, Op: "lsp", Message: "the editor closed the connection without the notification exit"}

// Serve serves one editor until it sends exit, in ends, or ctx ends. It returns nil after
// shutdown and exit. It reads from in only as long as it runs, and closes in.
func Serve(ctx context.Context, in io.ReadCloser, out io.Writer, o Options) error {
	ctx, stop := context.WithCancel(ctx)
	s := newServer(o, out)
	var wait sync.WaitGroup
	wait.Go(func() { s.read(ctx, newFrames(in)) })
	err := s.run(ctx)
	stop()
	err = errors.Join(err, ignoreClosed(in.Close()))
	s.validating.Wait()
	wait.Wait()
	return err
}

func newServer(o Options, out io.Writer) *server {
	return &server{
		o: o, out: &sender{out: out}, queue: make(chan *work, maxWaiting), pending: &pending{cancel: map[string]context.CancelFunc{}},
		docs: map[string]*document{}, moved: true, ws: editor.NewWorkspace(nil, editor.Auto), diagnosis: newDiagnosis(),
	}
}

// ignoreClosed drops the error of closing an input that its owner has already closed.
func ignoreClosed(err error) error {
	if errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

// server is one connection. Its fields belong to the goroutine of run, unless they say
// otherwise.
type server struct {
	o       Options
	out     *sender    // for all goroutines
	queue   chan *work // from read to run
	pending *pending   // for all goroutines

	ws          *editor.Workspace
	docs        map[string]*document // by path
	moved       bool                 // see options
	snippets    bool                 // the client understands them
	watches     bool                 // the client can watch files
	initialized bool
	shut        bool // shutdown was requested

	*diagnosis
}

// document is an open text.
type document struct {
	uri     string
	version int
	*lines
}

// work is a message that waits, or the end of the input.
type work struct {
	*message
	ctx  context.Context // of a request
	done func()
	err  error // the end of the input; the message is nil
}

// pending has the requests that have no response yet, so that they can be cancelled. It
// can be used by several goroutines.
type pending struct {
	mu     sync.Mutex
	cancel map[string]context.CancelFunc // by id
}

// add registers a request. It is not ok if another one with its id has no response yet.
func (p *pending) add(ctx context.Context, id string) (_ context.Context, done func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancel[id] != nil {
		return nil, nil, false
	}
	ctx, cancel := context.WithCancel(ctx)
	p.cancel[id] = cancel
	return ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.cancel, id)
		cancel()
	}, true
}

func (p *pending) stop(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cancel := p.cancel[id]; cancel != nil {
		cancel()
	}
}

// read reads messages until exit or the end of the input.
func (s *server) read(ctx context.Context, in *frames) {
	put := func(w *work) bool {
		select {
		case s.queue <- w:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for {
		data, err := in.next()
		if errors.Is(err, errTooLong) {
			err = s.out.respond(nil, nil, &rpcError{invalidRequest, fmt.Sprintf("The message has more than %d bytes.", maxMessage)})
			if err == nil {
				continue
			}
		}
		if err != nil {
			put(&work{err: err})
			return
		}
		m, failure := decode(data)
		if failure != nil {
			if err := s.out.respond(nil, nil, failure); err != nil {
				put(&work{err: err})
				return
			}
			continue
		}
		if m.Method == "$/cancelRequest" {
			var p cancelParams
			if json.Unmarshal(m.Params, &p) == nil {
				s.pending.stop(string(p.ID))
			}
			continue
		}
		w := &work{message: m}
		if len(m.ID) > 0 && m.Method != "" {
			var ok bool
			if w.ctx, w.done, ok = s.pending.add(ctx, string(m.ID)); !ok {
				if err := s.out.respond(m.ID, nil, &rpcError{invalidRequest, "A request with this id has no response yet."}); err != nil {
					put(&work{err: err})
					return
				}
				continue
			}
		}
		if !put(w) || m.Method == "exit" {
			return // an editor need not close its end after exit
		}
	}
}

// run handles messages and the results of validations.
func (s *server) run(ctx context.Context) error {
	defer s.timer.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case w := <-s.queue:
			if w.err != nil {
				if errors.Is(w.err, io.EOF) {
					return ErrNoExit
				}
				return w.err
			}
			if w.Method == "exit" {
				if !s.shut {
					return ErrNoExit
				}
				return nil
			}
			err = s.handle(w)
		case <-s.timer.C:
			s.validate(ctx)
		case r := <-s.results:
			err = s.publish(r)
			s.validate(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// handle handles a request or a notification; responses need no handling. The error is
// that of writing.
func (s *server) handle(w *work) error {
	switch {
	case w.Method == "":
		return nil
	case w.done == nil:
		return s.notification(w.message)
	}
	defer w.done()
	result, failure := s.request(w)
	if w.ctx.Err() != nil {
		result, failure = nil, &rpcError{requestCancelled, "The request was cancelled."}
	}
	return s.out.respond(w.ID, result, failure)
}

// request answers a request. A panic, for example of a library that gets an unusual text,
// becomes the error of this request.
func (s *server) request(w *work) (result any, failure *rpcError) {
	defer func() {
		if r := recover(); r != nil {
			result, failure = nil, &rpcError{internalError, fmt.Sprintf("The request failed: %v.", r)}
		}
	}()
	switch {
	case w.ctx.Err() != nil:
		return nil, nil
	case w.Method == "initialize" && s.initialized:
		return nil, &rpcError{invalidRequest, "The server is initialized already."}
	case w.Method != "initialize" && !s.initialized:
		return nil, &rpcError{notInitialized, "The first request must be initialize."}
	case s.shut:
		return nil, &rpcError{invalidRequest, "The server is shutting down."}
	}
	answer := requests[w.Method]
	if answer == nil {
		return nil, &rpcError{methodNotFound, fmt.Sprintf("There is no method %.80q.", w.Method)}
	}
	result, err := answer(s, w.Params)
	var refused *rpcError
	switch {
	case err == nil:
		return result, nil
	case errors.As(err, &refused):
		return nil, refused
	}
	message := err.Error()
	var e *abi.Error
	if errors.As(err, &e) {
		message = e.Message
		if e.Remedy != "" {
			message += "; " + e.Remedy
		}
	}
	return nil, &rpcError{requestFailed, message}
}

// notification handles a notification. One that is not valid is logged, because it has no
// response.
func (s *server) notification(m *message) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = s.log(fmt.Sprintf("%s failed: %v.", m.Method, r))
		}
	}()
	handle := notifications[m.Method]
	if handle == nil || !s.initialized || s.shut {
		return nil
	}
	if err := handle(s, m.Params); err != nil {
		return s.log(fmt.Sprintf("%s: %v", m.Method, err))
	}
	return nil
}

// log shows a text in the log of the editor.
func (s *server) log(text string) error {
	return s.out.notify("window/logMessage", object{"type": severityWarning, "message": text})
}
