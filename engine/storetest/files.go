package storetest

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

const noFiles = "the store keeps no files in its directory"

// killed copies the files while the directory is in use, and continues with the copy, which is
// what a killed process would leave.
func killed(t T, open Opener) {
	b := newBench(t, open)
	j := b.create(journal.StoreSpec{})
	want := j.messages("c", 1, 300)
	j.put(everyRow())
	want = append(want, j.messages("c", 301, 1)...)
	j.wait()
	b.wantAfterKill(j, want)

	left, right := b.split(j)
	for _, side := range []*writer{left, right} {
		side.messages("d", 1, 3)
		side.wait()
	}
	leftWant, rightWant := left.history(journal.HistoryQuery{}), right.history(journal.HistoryQuery{})
	b.complete(map[journal.SessionID]bool{ids(left)[0]: true, ids(right)[0]: true})
	b.wantAfterKill(left, leftWant)
	b.wantAfterKill(right, rightWant)
}

// wantAfterKill checks what another process would find if this one were killed now.
func (b *bench) wantAfterKill(j *writer, want []journal.Event) {
	b.t.Helper()
	again := &bench{t: b.t, open: b.open, dir: b.copyFiles()}
	again.storage = b.open(b.t, again.dir)
	defer again.close()
	session := j.Info().Session
	k := again.reopen(session)
	equal(b.t, "History after the end of the process", k.history(journal.HistoryQuery{}), want)
	state, err := j.State(b.t.Context(), "a")
	if err != nil {
		b.t.Fatal(err)
	}
	wantState(b.t, k, "a", state)
	k.shut()
}

// copyFiles copies the directory at a moment when no file is changing.
func (b *bench) copyFiles() string {
	b.t.Helper()
	for range 200 {
		before := b.files()
		if len(before) == 0 {
			b.t.Skip(noFiles)
		}
		dir := b.t.TempDir()
		err := os.CopyFS(dir, plainFiles{os.DirFS(b.dir)})
		if err == nil && maps.Equal(before, b.files()) {
			return dir
		}
		select { // background work of the store is under way
		case <-b.t.Context().Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
	b.t.Fatal("the files of the directory keep changing")
	return ""
}

// files lists the files of the directory with their sizes and times. It leaves out the files
// that processes share while they use a database, because every process creates them again.
func (b *bench) files() map[string]string {
	out := map[string]string{}
	_ = fs.WalkDir(plainFiles{os.DirFS(b.dir)}, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				out[path] = fmt.Sprint(info.Size(), info.ModTime().UnixNano())
			}
		}
		return nil // on an error: the file has just been removed
	})
	return out
}

// plainFiles leaves out files in shared memory.
type plainFiles struct{ fs.FS }

// ReadDir implements [fs.ReadDirFS].
func (p plainFiles) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(p.FS, name)
	var out []fs.DirEntry
	for _, d := range list {
		if !strings.HasSuffix(d.Name(), "-shm") {
			out = append(out, d)
		}
	}
	return out, err
}

// altered changes a byte of one event in the files of a closed directory.
func altered(t T, open Opener) {
	b := newBench(t, open)
	j := b.create(journal.StoreSpec{})
	j.messages("c", 1, 5)
	marker := []byte("this text is in one event, and one of its bytes will be altered")
	ev := message("c", 6)
	ev.Payload = marker
	j.put(journal.Record{Events: []journal.Event{ev}, Heads: []journal.HeadRow{{Channel: "c", Seq: 6}}})
	j.messages("c", 7, 5)
	session := j.Info().Session
	j.shut()
	b.close()
	if !b.alter(marker) {
		t.Skip("no file of the store has the payload of an event as it is")
	}
	b.storage = open(t, b.dir)
	events, err := b.storage.History(t.Context(), session, journal.HistoryQuery{})
	if err != nil {
		wantCode(t, "History with an altered event", err, abi.Storage)
		return
	}
	// A store that has the event elsewhere too may return it as it was.
	if n := len(events); n != 11 || !bytes.Equal(events[5].Payload, marker) {
		t.Errorf("History returns %d events of 11 and no error, although one was altered", n)
	}
}

// alter changes a byte of every occurrence of the text in the files, and reports whether
// there was any.
func (b *bench) alter(text []byte) (found bool) {
	b.t.Helper()
	for name := range b.files() {
		path := filepath.Join(b.dir, name)
		content, err := os.ReadFile(path)
		if err != nil {
			b.t.Fatal(err)
		}
		if !bytes.Contains(content, text) {
			continue
		}
		other := bytes.Clone(text)
		other[len(other)-1] ^= 1
		if err := os.WriteFile(path, bytes.ReplaceAll(content, text, other), 0o600); err != nil {
			b.t.Fatal(err)
		}
		found = true
	}
	return found
}
