package losevfs

import (
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// The result codes of SQLite that the layer returns.
const (
	ok          = 0
	ioErr       = 10
	Full        = 13         // for [Disk.Fail]: the disk is full; only writes fail
	WriteFails  = 10 | 3<<8  // for [Disk.Fail]: only writes fail
	SyncFails   = 10 | 4<<8  // for [Disk.Fail]: only syncs fail
	openCreate  = 0x00000004 // flags of opening
	openWAL     = 0x00080000
	openJournal = 0x00000800
)

var (
	errNoPower   = errors.New("there is no power")
	errNotSynced = errors.New("the sync has failed")
)

// Disk is a mounted directory with everything below it. Its methods may be called by any
// goroutine.
type Disk struct {
	dir    string
	random *rand.Rand

	mu      sync.Mutex
	entries map[string]*entry
	known   map[string]bool // files whose names are durable, and which SQLite has not opened yet
	plain   []plain
	ops     int
	syncs   map[string]int
	dieAt   int
	dead    bool
	died    chan struct{}   // closed when the power fails
	there   map[string]bool // files at the moment of death
	frozen  string          // the directory as it was then, beside it
	failed  error           // what has kept it from being frozen
	renames []renaming      // not durable yet
	fault   int
	skip    int
	left    int
}

// entry is a name in a directory.
type entry struct {
	current *file // what the name stands for; nil: nothing
	durable *file // what it stands for after a power loss
}

// renaming is the renaming of a directory or of a file.
type renaming struct{ from, to string }

// plain is a file that the program wrote without SQLite, as it was when it was last
// synced. It may have another name by now.
type plain struct {
	info    fs.FileInfo
	content []byte
}

type handle struct {
	disk *Disk
	path string
	file *file
	// linked says that the next sync also makes the name durable: SQLite does so for the
	// journals that it makes.
	linked bool
}

var mounts struct {
	sync.Mutex
	disks   map[string]*Disk
	handles map[int64]*handle
	last    int64
}

// Mount begins to simulate a directory, whose present content is durable. SQLite must not
// have any file in it open.
func Mount(dir string, seed uint64) *Disk {
	d := &Disk{dir: dir, random: rand.New(rand.NewPCG(seed, 1)), entries: map[string]*entry{}, known: map[string]bool{}, syncs: map[string]int{}, died: make(chan struct{})}
	for path := range d.files() {
		d.known[path] = true
		d.keep(path)
	}
	mounts.Lock()
	defer mounts.Unlock()
	if mounts.disks == nil {
		mounts.disks, mounts.handles = map[string]*Disk{}, map[int64]*handle{}
	}
	mounts.disks[dir] = d
	return d
}

// files lists the existing files.
func (d *Disk) files() map[string]bool {
	out := map[string]bool{}
	_ = filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			out[path] = true
		}
		return nil
	})
	return out
}

// DieAfter makes the power fail at the given number of operations from now.
func (d *Disk) DieAfter(operations int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dieAt = d.ops + operations
}

// Dead reports whether the power has failed. From then on every operation fails.
func (d *Disk) Dead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead
}

// Died returns a channel that is closed when the power fails.
func (d *Disk) Died() <-chan struct{} { return d.died }

// Operations returns how many writes, syncs and removals there were.
func (d *Disk) Operations() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ops
}

// Syncs returns how often a file was synced, by SQLite or by the program.
func (d *Disk) Syncs(path string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.syncs[path]
}

// LogSyncs returns how often write-ahead logs were synced.
func (d *Disk) LogSyncs() (sum int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for path, n := range d.syncs {
		if strings.HasSuffix(path, "-wal") {
			sum += n
		}
	}
	return sum
}

// Fail makes operations fail with a result code: after skip of them have
// succeeded, the next n do not. A sync that fails makes nothing durable.
func (d *Disk) Fail(code, skip, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault, d.skip, d.left = code, skip, n
}

// Failing returns how many operations are still to fail.
func (d *Disk) Failing() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.left
}

// Die makes the power fail now.
func (d *Disk) Die() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.dead {
		d.die()
	}
}

// Synced records that the program itself has synced a directory, a file that SQLite does
// not have open, or a write-ahead log. It returns an error where the disk would have: for
// a log, when syncs are to fail, and for anything when there is no power.
func (d *Disk) Synced(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return errNoPower
	}
	if strings.HasSuffix(path, "-wal") { // which SQLite has open, or has removed
		if d.operate(flush) != ok {
			return errNotSynced
		}
		d.syncs[path]++
		if e := d.entries[path]; e != nil && e.current != nil {
			e.current.sync()
		}
		return nil
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		if e := d.entries[path]; e != nil && e.current != nil {
			e.current.sync()
			if content, err := os.ReadFile(path); err == nil && e.current.opens == 0 {
				e.current.durable = content // the program may have written to it since SQLite had it open
			}
		}
		d.keep(path)
		return nil
	}
	d.link(path)
	return nil
}

// Renamed records that the program has renamed a directory, or a file that SQLite has had
// open. SQLite has none of these open.
func (d *Disk) Renamed(from, to string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return
	}
	rename(d.entries, from, to)
	rename(d.known, from, to)
	d.renames = append(d.renames, renaming{from, to})
}

// rename moves the records of a file, or of those in a directory.
func rename[T any](of map[string]T, from, to string) {
	for path, kept := range maps.Clone(of) {
		if path == from || strings.HasPrefix(path, from+string(filepath.Separator)) {
			delete(of, path)
			of[to+strings.TrimPrefix(path, from)] = kept
		}
	}
}

// Linked records that the program has given a file an additional name. SQLite does not
// have the file open.
func (d *Disk) Linked(from, to string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.entries[from]; !d.dead && e != nil {
		d.entries[to] = &entry{current: e.current}
	}
}

// keep records that a file is durable as it is.
func (d *Disk) keep(path string) {
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return
	}
	for i, p := range d.plain {
		if os.SameFile(p.info, info) {
			d.plain[i].content = content
			return
		}
	}
	d.plain = append(d.plain, plain{info, content})
}

// read returns a file that SQLite has not opened yet: what the program has written to it
// since the last sync is not durable. The file is not open, so reading it does not drop
// any locks.
func (d *Disk) read(path string) (*file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &file{}
	for _, p := range d.plain {
		if os.SameFile(p.info, info) {
			f.durable = p.content
		}
	}
	f.become(content)
	return f, nil
}

// link makes the names in a directory durable.
func (d *Disk) link(dir string) {
	d.renames = slices.DeleteFunc(d.renames, func(r renaming) bool { return filepath.Dir(r.to) == dir })
	files := d.files()
	for path := range files {
		if filepath.Dir(path) == dir && d.entries[path] == nil {
			d.known[path] = true
		}
	}
	for path, e := range d.entries {
		if filepath.Dir(path) != dir {
			continue
		}
		// A missing file was removed, unless SQLite has it open and is about to make it.
		if !files[path] && e.current != nil && e.current.opens == 0 {
			e.current = nil
		}
		e.durable = e.current
	}
}

// PowerOff ends the mount and leaves the files as they are found when the power
// is back. SQLite must have closed all of them.
func (d *Disk) PowerOff() error {
	mounts.Lock()
	delete(mounts.disks, d.dir)
	mounts.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.dead {
		d.die()
	}
	errs := []error{d.failed, d.thaw()}
	for _, path := range slices.Sorted(maps.Keys(d.files())) {
		if d.entries[path] != nil {
			continue
		}
		// Made by the program without a sync of its directory; or made while the power
		// was off.
		if strings.HasSuffix(path, "-shm") || !d.known[path] && (!d.there[path] || d.random.IntN(2) == 0) {
			errs = append(errs, os.Remove(path))
			continue
		}
		f, err := d.read(path)
		if err == nil && len(f.pending) > 0 {
			err = os.WriteFile(path, f.lose(d.random), 0o644)
		}
		errs = append(errs, err)
	}
	for _, path := range slices.Sorted(maps.Keys(d.entries)) {
		e := d.entries[path]
		if !d.there[path] && e.current != nil && e.current.opens == 0 {
			e.current = nil // the program has removed it
		}
		f := e.durable
		if d.random.IntN(2) == 0 {
			f = e.current
		}
		if f == nil {
			if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
			continue
		}
		errs = append(errs, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, f.lose(d.random), 0o644))
	}
	for _, r := range slices.Backward(d.renames) {
		if d.random.IntN(2) == 0 {
			if err := os.Rename(r.to, r.from); !errors.Is(err, fs.ErrNotExist) { // a file without a durable name may be missing
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// Unmount ends the mount and leaves the files as they are.
func (d *Disk) Unmount() {
	mounts.Lock()
	defer mounts.Unlock()
	delete(mounts.disks, d.dir)
}

func (d *Disk) die() {
	d.dead = true
	close(d.died)
	d.there = d.files()
	d.failed = d.freeze()
}

// freeze keeps a copy of the directory beside it, because the program continues for a
// while after the power has failed: it may remove and rename files, and write to files
// that SQLite does not use. For the files of SQLite, a hard link is enough.
func (d *Disk) freeze() (err error) {
	if d.frozen, err = os.MkdirTemp(filepath.Dir(d.dir), "frozen-"); err != nil {
		return err
	}
	return filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		to := d.frozen + strings.TrimPrefix(path, d.dir)
		switch {
		case errors.Is(err, fs.ErrNotExist) || path == d.dir:
			return nil
		case err != nil:
			return err
		case e.IsDir():
			return os.Mkdir(to, 0o755)
		}
		hold := os.Link
		if d.entries[path] == nil {
			hold = d.copy
		}
		if err := hold(path, to); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		delete(d.there, path)
		return nil
	})
}

// copy copies a file that the program has written, with its records.
func (d *Disk) copy(from, to string) error {
	was, err := os.Stat(from)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, content, was.Mode()); err != nil {
		return err
	}
	is, err := os.Stat(to)
	for _, p := range d.plain {
		if os.SameFile(p.info, was) {
			d.plain = append(d.plain, plain{is, p.content})
			break
		}
	}
	return err
}

// thaw restores the directory as it was when the power failed.
func (d *Disk) thaw() error {
	if err := os.RemoveAll(d.dir); err != nil {
		return err
	}
	return os.Rename(d.frozen, d.dir)
}

type kind uint8

const (
	write kind = iota
	flush
	remove
)

// operate counts an operation and returns its result.
func (d *Disk) operate(k kind) int {
	if d.dead {
		return ioErr
	}
	d.ops++
	if d.ops == d.dieAt {
		d.die()
		return ioErr
	}
	if d.left == 0 || k == remove || (k == flush) != (d.fault == SyncFails) {
		return ok
	}
	if d.skip > 0 {
		d.skip--
		return ok
	}
	d.left--
	return d.fault
}

func mountOf(path string) *Disk {
	for dir, d := range mounts.disks {
		if strings.HasPrefix(path, dir+string(filepath.Separator)) {
			return d
		}
	}
	return nil
}

// opened returns the handle of a file, 0 if it is not ours, or a negative result code.
func opened(path string, flags int) int64 {
	mounts.Lock()
	defer mounts.Unlock()
	d := mountOf(path)
	if d == nil {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return -ioErr
	}
	e := d.entries[path]
	if e == nil || e.current == nil {
		f, err := d.read(path)
		switch {
		case err != nil && flags&openCreate == 0:
			return 0
		case err != nil:
			f = &file{}
		}
		if e == nil {
			e = &entry{}
			d.entries[path] = e
		}
		e.current = f
		if d.known[path] {
			e.durable = e.current
		}
		delete(d.known, path)
	}
	e.current.opens++
	mounts.last++
	mounts.handles[mounts.last] = &handle{
		disk: d, path: path, file: e.current, linked: flags&openCreate != 0 && flags&(openWAL|openJournal) != 0,
	}
	return mounts.last
}

func closed(id int64) {
	mounts.Lock()
	defer mounts.Unlock()
	if h := mounts.handles[id]; h != nil {
		h.disk.mu.Lock()
		h.file.opens--
		h.disk.mu.Unlock()
	}
	delete(mounts.handles, id)
}

func lookup(id int64) *handle {
	mounts.Lock()
	defer mounts.Unlock()
	return mounts.handles[id]
}

func (h *handle) write(o op) int {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	before := h.disk.dead
	rc := h.disk.operate(write)
	if rc == ok || h.disk.dead && !before { // the last one may have arrived
		h.file.pending = append(h.file.pending, o)
	}
	return rc
}

func (h *handle) sync() int {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	rc := h.disk.operate(flush)
	if rc != ok {
		return rc
	}
	h.file.sync()
	h.disk.syncs[h.path]++
	if h.linked {
		h.linked = false
		h.disk.link(filepath.Dir(h.path))
	}
	return ok
}

func removed(path string, syncDirectory bool) int {
	mounts.Lock()
	d := mountOf(path)
	mounts.Unlock()
	if d == nil {
		return ok
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if rc := d.operate(remove); rc != ok {
		return rc
	}
	if e := d.entries[path]; e != nil {
		e.current = nil
	}
	if syncDirectory {
		d.link(filepath.Dir(path))
	}
	return ok
}
