package host

import (
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/seed47132306/terrarium/host/internal/lines"
	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/meter"
	"github.com/seed47132306/terrarium/internal/scratch"
)

// Time for finding lines of source, which a guest is not charged for.
const (
	placesOnce  = time.Second      // after one trap
	placesEver  = 10 * time.Second // for one module; after that, traps at other places have no lines
	placesKnown = 1024             // places of a module that are remembered
)

// originals keeps the bytes of modules that tell lines of source in files, so
// that they take no memory until a guest traps.
type originals struct {
	mu  sync.Mutex // also held while lines are found, which takes memory
	dir *scratch.Dir
}

// keep writes a module into a file and returns its path.
func (o *originals) keep(h *Host, wasm []byte) (path string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dir == nil {
		if o.dir, err = scratch.Make(scratch.Code, h.opts.Log); err != nil {
			return "", err
		}
	}
	file, err := os.CreateTemp(o.dir.Path, "original-")
	if err != nil {
		return "", err
	}
	_, err = file.Write(wasm)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}

// keepOriginal keeps a module that tells lines. Without its file, traps have
// names only.
func (c *compiled) keepOriginal(m *wasmbin.Module, wasm []byte) {
	if lines.Of(m) == nil {
		return
	}
	file, err := c.host.originals.keep(c.host, wasm)
	if err != nil {
		c.host.opts.Log.Debug("traps of a module will have no lines", "module", hexSum(c.sum), "error", err)
		return
	}
	c.places.file = file
}

// dropOriginal removes what keepOriginal has kept.
func (c *compiled) dropOriginal() {
	if c.places.file != "" {
		_ = os.Remove(c.places.file) // the directory is removed with the host
	}
}

func (o *originals) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dir == nil {
		return nil
	}
	return o.dir.Remove()
}

// places finds the lines of source for the code of one module.
type places struct {
	file  string                   // of the original module; "" if it tells no lines
	spent time.Duration            // so far; guarded by originals.mu, as are those below
	known map[uint64][]lines.Frame // by offset in the metered code
}

// traced is a frame of wazero's stack trace.
type traced struct {
	name   string
	offset uint64 // in the metered code; 0 if the module tells no lines
}

// traceOf reads the frames of wazero's text, the innermost first.
func traceOf(text string) (trace []traced) {
	_, rest, _ := strings.Cut(text, stackTitle)
	for line := range strings.Lines(rest) {
		if offset, ok := lines.Offset(line); ok {
			if len(trace) > 0 {
				trace[len(trace)-1].offset = offset
			}
		} else if name := frameName(line); name != "" {
			trace = append(trace, traced{name: name})
		}
	}
	return trace
}

// framesOf returns the frames of a trace, with inlined calls; hasLines is false if
// there are no lines.
func (c *compiled) framesOf(trace []traced) (frames []lines.Frame, hasLines bool) {
	found := c.find(trace)
	for _, t := range trace {
		at := found[t.offset]
		if len(at) == 0 {
			frames = append(frames, lines.Frame{Function: lines.Demangled(t.name), Foreign: true})
		}
		for _, f := range at {
			hasLines = hasLines || !f.Foreign && f.Line > 0
			if f.Function == "" {
				f.Function = lines.Demangled(t.name)
			}
			frames = append(frames, f)
		}
	}
	return frames, hasLines
}

// find returns the frames by offset in the metered code.
func (c *compiled) find(trace []traced) map[uint64][]lines.Frame {
	if c.places.file == "" {
		return nil
	}
	c.host.originals.mu.Lock()
	defer c.host.originals.mu.Unlock()
	p := &c.places
	found, missing := map[uint64][]lines.Frame{}, []uint64(nil)
	for _, t := range trace {
		if frames, ok := p.known[t.offset]; ok {
			found[t.offset] = frames
		} else if t.offset > 0 {
			missing = append(missing, t.offset)
		}
	}
	if len(missing) == 0 || p.spent >= placesEver {
		return found
	}
	began := time.Now()
	frames, err := c.read(missing)
	p.spent += time.Since(began)
	if err != nil {
		c.host.opts.Log.Debug("the lines of a trap cannot be found", "module", hexSum(c.sum), "error", err)
	}
	if p.known == nil || len(p.known) > placesKnown {
		p.known = map[uint64][]lines.Frame{}
	}
	for i, offset := range missing {
		var at []lines.Frame
		if i < len(frames) {
			at = frames[i]
		}
		p.known[offset], found[offset] = at, at
	}
	return found
}

// read reads the original module and finds the frames for offsets in the
// metered code.
func (c *compiled) read(offsets []uint64) ([][]lines.Frame, error) {
	wasm, err := os.ReadFile(c.places.file)
	if err != nil {
		return nil, err
	}
	m, _, infos, err := c.host.check("trap", wasm)
	if err != nil {
		return nil, err
	}
	sections := lines.Of(m)
	takeStatic(m) // as before compiling
	_, origins, err := meter.Trace(m, infos)
	if err != nil {
		return nil, err
	}
	places := make([]lines.Place, len(offsets))
	for i, o := range offsets {
		if from, before, ok := origins.Of(int(o)); ok {
			places[i] = lines.Place{Offset: uint64(from), Before: before}
		}
	}
	return sections.Find(places, placesOnce)
}
