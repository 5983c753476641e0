package sqlitestore

import (
	"encoding/binary"
	"io"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// Wear describes how the write-ahead logs of a directory have worn its disk since it was
// opened: the logs of its open stores, of files that are kept in reserve for new ones,
// and of the catalogue. Emptying a log into its file writes at most as many bytes again.
type Wear struct {
	Since, Until time.Time // when the directory was opened, and now
	Syncs        int64     // of logs
	WrittenBytes int64     // to logs
}

// Wear returns the wear until now. It reads some bytes of each log.
func (d *Directory) Wear() Wear {
	d.wear.measure(d.catalog.Path())
	for _, s := range d.allOpen() {
		d.wear.measure(s.path())
	}
	return Wear{Since: d.wear.since, Until: d.options.Now(), Syncs: d.wear.syncs.Load(), WrittenBytes: d.wear.written.Load()}
}

// wear counts the syncs of logs where they are made, and measures what was written to
// logs. SQLite reports neither. It syncs a log for a commit of a store of the durability
// full, before it empties the log, and when it begins the log again; the last follows from
// the log itself. Other syncs are those of [failpoint.Hooks].
type wear struct {
	since          time.Time
	syncs, written atomic.Int64

	mu   sync.Mutex
	logs map[string]logMark // by store
}

// logMark is how far a log was measured.
type logMark struct {
	salt   [8]byte // changes when SQLite begins the log again
	frames int64
}

func newWear(since time.Time) *wear { return &wear{since: since, logs: map[string]logMark{}} }

// observe counts the syncs of logs that pass the hooks.
func (w *wear) observe(h *failpoint.Hooks) {
	tell := h.Synced
	h.Synced = func(path string) error {
		if store, ok := strings.CutSuffix(path, logSuffix); ok {
			w.syncs.Add(1)
			w.measure(store)
		}
		if tell == nil {
			return nil
		}
		return tell(path)
	}
}

// committed counts the sync of a writer's commit. It does nothing if w is nil.
func (w *wear) committed(durability journal.Durability) {
	if w != nil && durability != journal.Normal {
		w.syncs.Add(1)
	}
}

const (
	logSuffix      = "-wal"
	logHeaderSize  = 32
	logFrameHeader = 24
	logMagic       = 0x377f0682 // the lowest bit is the byte order of the log's checksums
)

// found records the end of the log that another process has left.
func (w *wear) found(path string) {
	if mark, _, ok := readLog(path); ok {
		w.mu.Lock()
		w.logs[path] = mark
		w.mu.Unlock()
	}
}

// measure adds what was written to a log since it was last measured. A log is measured
// before SQLite can begin it again, so that nothing is left out.
func (w *wear) measure(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	mark, page, ok := readLog(path)
	if !ok {
		return
	}
	before := w.logs[path]
	if before.salt != mark.salt {
		before = logMark{}
		w.syncs.Add(1) // of the header
		w.written.Add(logHeaderSize)
	}
	w.written.Add(max(mark.frames-before.frames, 0) * (logFrameHeader + page))
	w.logs[path] = mark
}

// checkpoint empties a log, as far as it can.
func (w *wear) checkpoint(path string) {
	w.measure(path)
	sqlite.Checkpoint(path)
	w.syncs.Add(1)
	w.measure(path)
}

// closing measures the log of a store that is about to be closed. SQLite syncs the log once
// more, and removes it.
func (w *wear) closing(path string) (closed func()) {
	w.measure(path)
	w.mu.Lock()
	frames := w.logs[path].frames
	w.mu.Unlock()
	return func() {
		if frames > 0 && missing(path+logSuffix) {
			w.syncs.Add(1)
		}
		w.mu.Lock()
		delete(w.logs, path)
		w.mu.Unlock()
	}
}

// readLog finds the end of the log of a store. The frames of the present log come first, and
// have its salt; older ones follow them. Nothing of the log is trusted, apart from its size.
func readLog(path string) (mark logMark, page int64, ok bool) {
	f, err := files.OpenFile(path+logSuffix, os.O_RDONLY)
	if err != nil {
		return mark, 0, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return mark, 0, false
	}
	return parseLog(f, info.Size())
}

func parseLog(f io.ReaderAt, size int64) (mark logMark, page int64, ok bool) {
	var header [logHeaderSize]byte
	if _, err := f.ReadAt(header[:], 0); err != nil || binary.BigEndian.Uint32(header[:])&^1 != logMagic {
		return mark, 0, false
	}
	page = int64(binary.BigEndian.Uint32(header[8:]))
	if page < 512 || page > 65536 {
		return mark, 0, false
	}
	mark.salt = [8]byte(header[16:24])
	all := (size - logHeaderSize) / (logFrameHeader + page)
	older := func(n int) bool {
		var salt [8]byte
		_, err := f.ReadAt(salt[:], logHeaderSize+int64(n)*(logFrameHeader+page)+8)
		return err != nil || salt != mark.salt
	}
	mark.frames = int64(sort.Search(int(min(all, 1<<30)), older))
	return mark, page, true
}
