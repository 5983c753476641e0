package sqlitestore

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// damages are the ways in which a write-ahead log can be damaged.
var damages = map[string]func(content []byte, random *rand.Rand) []byte{
	"lost":   func([]byte, *rand.Rand) []byte { return nil },
	"halved": func(content []byte, _ *rand.Rand) []byte { return content[:len(content)/2] },
	"cut":    func(content []byte, random *rand.Rand) []byte { return content[:random.IntN(len(content))] },
	"bit": func(content []byte, random *rand.Rand) []byte {
		content[random.IntN(len(content))] ^= 1 << random.IntN(8)
		return content
	},
	"noise": func(content []byte, random *rand.Rand) []byte {
		for i := random.IntN(len(content)); i < len(content); i++ {
			content[i] = byte(random.Uint32())
		}
		return content
	},
}

// damageLog damages a log in every way, with fixed seeds, each time in a copy of a directory,
// and calls look. It returns the number of calls. make test runs one seed in three.
func damageLog(t *testing.T, dir, log string, look func(t *testing.T, dir string)) (times int) {
	t.Helper()
	for name, damage := range damages {
		for seed := range uint64(6) {
			if !seeded.Part(int(seed), 3) {
				continue
			}
			times++
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				dir := duplicate(t, dir)
				path := filepath.Join(dir, log)
				content, err := os.ReadFile(path)
				if err != nil || len(content) == 0 {
					t.Fatalf("%s: %d bytes, %v", path, len(content), err)
				}
				content = damage(content, rand.New(rand.NewPCG(seed, 1)))
				if err := os.WriteFile(path, content, 0o600); err != nil {
					t.Fatal(err)
				}
				if content == nil {
					if err := os.Remove(path); err != nil {
						t.Fatal(err)
					}
				}
				look(t, dir)
			})
		}
	}
	return times
}

// killed copies a directory that is in use, at a moment when nothing happens in it: the copy is
// what a kill would leave.
func killed(t *testing.T, d *Directory) string {
	t.Helper()
	if err := errors.Join(d.makeFirm(), d.Settle(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, s := range d.openBySize() {
		if err := errors.Join(s.flush(t.Context()), s.park(t.Context())); err != nil {
			t.Fatal(err)
		}
		defer s.queue.resume()
	}
	d.spares.mu.Lock()
	defer d.spares.mu.Unlock()
	return duplicate(t, d.dir)
}

// acknowledgedEach makes a store, and waits for each of a number of events. The store is closed
// with the test.
func acknowledgedEach(t *testing.T, durability journal.Durability, events uint64) (*Directory, *Store) {
	t.Helper()
	d := mustOpen(t, t.TempDir())
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	stores, err := d.Create(t.Context(), journal.StoreSpec{Graph: "g", Durability: durability})
	if err != nil {
		t.Fatal(err)
	}
	s := stores[0].(*Store)
	for seq := uint64(1); seq <= events; seq++ {
		logged(s, seq, seq)
		if err := s.Wait(t.Context(), seq); err != nil {
			t.Fatal(err)
		}
	}
	return d, s
}

// TestDamagedLogOfAStore damages the write-ahead log of a live store. If acknowledged events
// are lost, the next start reports this and continues without them. Verifying names them before
// that start, and ever after.
func TestDamagedLogOfAStore(t *testing.T) {
	for _, durability := range []journal.Durability{journal.Normal, journal.Full} {
		t.Run(durability.String(), func(t *testing.T) {
			d, s := acknowledgedEach(t, durability, 32)
			session, losses := s.info.Session, 0
			times := damageLog(t, killed(t, d), filepath.Join(files.Stores, filepath.Base(s.path())+"-wal"), func(t *testing.T, dir string) {
				if wantLossReported(t, dir, session, 32) {
					losses++
				}
			})
			if losses < times/2 {
				t.Errorf("events were lost only %d times of %d", losses, times)
			}
		})
	}
}

// wantLossReported opens a directory whose session had a number of events, and returns whether
// some of them were lost.
func wantLossReported(t *testing.T, dir string, session journal.SessionID, had int64) bool {
	t.Helper()
	before, err := mustView(t, dir).Verify(t.Context(), session)
	if abi.CodeOf(err) == abi.Storage { // nothing is left of the session
		return true
	}
	if err != nil {
		t.Fatal(err)
	}
	lost := before.Events < had
	d := mustOpen(t, dir)
	defer d.Close()
	_, problems, err := d.Saved(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(problems); lost != strings.Contains(text, "which had been acknowledged") || lost && abi.CodeOf(problems[0]) != abi.Storage {
		t.Errorf("of %d events %d are left, and the problems are %s", had, before.Events, text)
	}
	s, err := d.Open(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	s.Append(&journal.Record{Events: []journal.Event{{ID: journal.EventID{Origin: s.Origin(), Seq: 1}, Time: 1 << 40, Kind: journal.EventLog}}})
	after, err := d.Verify(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	for when, r := range map[string]journal.VerifyReport{"before": before, "after": after} {
		if text := strings.Join(r.Damage, "\n"); lost != strings.Contains(text, "the end of the log is missing") || lost != (len(r.Missing) > 0) {
			t.Errorf("%s the directory was opened, of %d events %d are left, and Verify returns %+v", when, had, r.Events, r)
		}
	}
	return lost
}

// TestLossIsExcused is about a machine that has stopped in the meantime. If a store of the
// durability normal has lost events by that, this is reported, but does not count as damage. A
// store of the durability full may not lose any.
func TestLossIsExcused(t *testing.T) {
	for _, durability := range []journal.Durability{journal.Normal, journal.Full} {
		t.Run(durability.String(), func(t *testing.T) {
			d, s := acknowledgedEach(t, durability, 8)
			dir := killed(t, d)
			rebooted(t, dir)
			log := filepath.Join(dir, files.Stores, filepath.Base(s.path())+"-wal")
			info, err := os.Stat(log)
			if err == nil {
				err = os.Truncate(log, info.Size()-100)
			}
			if err != nil {
				t.Fatal(err)
			}
			again := mustOpen(t, dir)
			defer again.Close()
			_, problems, err := again.Saved(t.Context())
			if err != nil || len(problems) != 1 || excusedLoss(problems[0]) != (durability == journal.Normal) {
				t.Fatalf("problems %v, %v", problems, err)
			}
			if cut := len(journal.Damaged(problems)) == 1; cut != (durability == journal.Full) {
				t.Errorf("the loss counts as damage: %v", cut)
			}
			view, err := OpenReadOnly(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			defer view.Close()
			if _, seen, err := view.Live(t.Context()); err != nil || len(seen) != 1 || seen[0].Error() != problems[0].Error() {
				t.Errorf("a reader gets %v, %v, but the owner %v", seen, err, problems)
			}
			if _, err := again.Open(t.Context(), s.info.Session); err != nil {
				t.Fatal(err)
			}
			r, err := again.Verify(t.Context(), s.info.Session)
			if err != nil || (len(r.Missing) == 0) != (durability == journal.Normal) {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// TestDamagedLogOfTheCatalogue damages the write-ahead log of the catalogue of a directory in
// which there were cuts. Either nothing is lost, or the directory is refused and not changed,
// and rebuilding the catalogue restores everything.
func TestDamagedLogOfTheCatalogue(t *testing.T) {
	d := mustOpen(t, t.TempDir())
	defer d.Close()
	parent := createStore(t, d)
	logged(parent, 1, 10)
	halves, err := d.Cut(t.Context(), splitOf(parent))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range halves {
		logged(s.(*Store), 1, 5)
	}
	other := createStore(t, d)
	logged(other, 1, 5)
	dir := killed(t, d)
	want := liveAndSound(t, duplicate(t, dir))
	if len(want) != 3 {
		t.Fatalf("the live sessions are %v", want)
	}
	refused := 0
	times := damageLog(t, dir, catalog.Name+"-wal", func(t *testing.T, dir string) {
		content := bytesOfAll(t, dir)
		view, seen := OpenReadOnly(t.Context(), dir)
		if seen == nil {
			if err := view.Close(); err != nil {
				t.Fatal(err)
			}
		} else {
			wantError(t, "reading an older catalogue", seen, abi.Storage, catalog.Name, "session rebuild "+dir)
		}
		again, err := Open(t.Context(), dir, Options{})
		if (err == nil) != (seen == nil) {
			t.Errorf("a reader gets %v, but the owner %v", seen, err)
		}
		if err == nil {
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
		} else {
			refused++
			wantError(t, "an older catalogue", err, abi.Storage, catalog.Name, "session rebuild "+dir)
			for path, before := range content {
				if filepath.Base(path) != lockName && !strings.HasPrefix(filepath.Base(path), catalog.Name) && !bytes.Equal(before, bytesOfAll(t, dir)[path]) {
					t.Errorf("%s was changed", path)
				}
			}
			if _, err := Rebuild(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
		}
		if live := liveAndSound(t, dir); !slices.Equal(live, want) {
			t.Errorf("the live sessions are %v, want %v; the directory was refused: %v", live, want, err)
		}
	})
	if refused < times/2 {
		t.Errorf("the directory was refused %d times of %d", refused, times)
	}
}

// liveAndSound opens and closes a directory, and returns its live sessions. None of them lacks
// an event.
func liveAndSound(t *testing.T, dir string) (live []journal.SessionID) {
	t.Helper()
	d := mustOpen(t, dir)
	defer d.Close()
	graphs, problems, err := d.Saved(t.Context())
	if err != nil || len(problems) > 0 {
		t.Fatalf("problems %v, %v", problems, err)
	}
	for _, g := range graphs {
		live = append(live, g.Session)
		if r, err := d.Verify(t.Context(), g.Session); err != nil || r.Events < 5 || len(r.Missing) > 0 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	slices.Sort(live)
	return live
}

func bytesOfAll(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, f fs.DirEntry, err error) error {
		if err != nil || f.IsDir() || strings.HasSuffix(path, "-shm") {
			return err
		}
		out[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestVerifyFindsEveryBit flips single bits of texts, headers, states and changes in a file.
// SQLite finds nothing wrong with most of them.
func TestVerifyFindsEveryBit(t *testing.T) {
	dir, session := remembered(t)
	file := filepath.Join(files.Stores, string(session)+files.StoreSuffix)
	content, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	log := logOf(t, filepath.Join(dir, file))
	random := rand.New(rand.NewPCG(7, 7))
	for _, text := range []string{"message-text", "header-text", "state-text", "change-text"} {
		places := 0
		for at := 0; ; places++ {
			next := bytes.Index(content[at:], []byte(text))
			if next < 0 {
				break
			}
			at += next + 1
			bit := random.IntN(8 * len(text))
			t.Run(fmt.Sprintf("%s/%d", text, places), func(t *testing.T) {
				dir := duplicate(t, dir)
				damaged := bytes.Clone(content)
				damaged[at-1+bit/8] ^= 1 << (bit % 8)
				if err := os.WriteFile(filepath.Join(dir, file), damaged, 0o600); err != nil {
					t.Fatal(err)
				}
				r, err := mustView(t, dir).Verify(t.Context(), session)
				if err == nil && len(r.Damage)+len(r.Missing) == 0 && logOf(t, filepath.Join(dir, file)) != log {
					t.Errorf("bit %d: %+v", bit, r)
				}
			})
		}
		if places == 0 {
			t.Errorf("the file does not contain %s", text)
		}
	}
}

// logOf returns the log and the states in a file. Bits that SQLite has left in the pages of
// removed rows belong to neither.
func logOf(t *testing.T, path string) string {
	t.Helper()
	c, err := sqlite.Open(path, sqlite.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var out strings.Builder
	for _, query := range []string{"SELECT * FROM event", "SELECT * FROM change", "SELECT * FROM state_value"} {
		if err := c.Query(query, nil, func(v []driver.Value) error {
			fmt.Fprintf(&out, "%q\n", v)
			return nil
		}); err != nil {
			fmt.Fprintln(&out, err)
		}
	}
	return out.String()
}

// remembered makes a closed directory of one session whose file contains texts that a test can
// find.
func remembered(t *testing.T) (dir string, session journal.SessionID) {
	t.Helper()
	d := mustOpen(t, t.TempDir())
	s := createStore(t, d)
	for n := uint64(1); n <= 9; n++ {
		id := func(k uint64) journal.EventID { return journal.EventID{Origin: s.Origin(), Seq: 3*(n-1) + k} }
		value := fmt.Appendf(nil, "state-text-%d", n)
		s.Append(&journal.Record{
			Events: []journal.Event{
				{ID: id(1), Time: int64(10 * n), Kind: journal.EventChannelMessage, Channel: "c", Seq: n, Payload: fmt.Appendf(nil, "message-text-%d", n), Headers: []byte("header-text")},
				{ID: id(2), Time: int64(10*n + 1), Kind: journal.EventTurnEnded, Creature: "creature-name", Turn: id(2), Channel: "c", Seq: n, Attempt: 1, Cause: id(1)},
				{ID: id(3), Time: int64(10*n + 2), Kind: journal.EventState, Creature: "creature-name", Turn: id(2), Payload: append([]byte("n\x00="), value...)},
			},
			Channels:  []journal.ChannelRow{{ID: "c"}},
			Creatures: []journal.CreatureRow{{ID: "creature-name", Address: "change-text"}}, Heads: []journal.HeadRow{{Channel: "c", Seq: n}},
			Cursors: []journal.CursorRow{{Reader: "creature-name", Channel: "c", Seq: n}}, State: []journal.StateRow{{Creature: "creature-name", Key: "n", Value: value}},
		})
	}
	wantSound(t, d, s.info.Session)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return d.dir, s.info.Session
}

// TestAlteredEventIsNotRead alters a message in the file. Readers of history or of a backlog
// get an error that names the event, instead of the altered content.
func TestAlteredEventIsNotRead(t *testing.T) {
	dir, session := remembered(t)
	execute(t, filepath.Join(dir, files.Stores, string(session)+files.StoreSuffix), "UPDATE event SET payload = CAST('another' AS BLOB) WHERE id & 0xffffffffff = 4")
	v := mustView(t, dir)
	_, err := v.History(t.Context(), session, journal.HistoryQuery{})
	wantError(t, "History", err, abi.Storage, "-4", "checksum", "session verify")
	_, err = v.Messages(t.Context(), session, "c", 0, 9, 0, 1<<20)
	wantError(t, "Messages", err, abi.Storage, "-4", "checksum")
	if events, err := v.Messages(t.Context(), session, "c", 2, 9, 0, 1<<20); err != nil || len(events) != 7 {
		t.Errorf("after the altered message there are %d messages, %v", len(events), err)
	}
}

// TestNoAdviceToRemove reads all texts in the packages that touch files. None may advise to
// remove data.
func TestNoAdviceToRemove(t *testing.T) {
	removal := regexp.MustCompile(`(?i)\b(remov|delet|eras|discard|wip)(e|ing)\b.* (it|them|that|file|files|store|stores|session|sessions|director(y|ies)|cache|index|catalogue|what)\b`)
	var files []string
	for _, pattern := range []string{"*.go", "internal/*/*.go", "../*.go", "../host/*.go", "../cmd/terrarium/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, err)
		}
		files = append(files, found...)
	}
	remedies := 0
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING || strings.Contains(literal.Value, "DELETE FROM") {
				return true
			}
			remedies++
			if removal.MatchString(literal.Value) {
				t.Errorf("%s says %s", path, literal.Value)
			}
			return true
		})
	}
	if remedies < 500 {
		t.Errorf("only %d texts were read", remedies)
	}
}
