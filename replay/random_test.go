package replay_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
	"github.com/seed47132306/terrarium/replay"
)

// program is a creature that does something different for each delivery, depending only
// on what it can ask the host for. For the payload named by poison, it also does
// something that it never does otherwise.
func program(poison func(payload []byte) int) behaviour {
	return func(t abi.Turn, kind abi.Kind, _ *int) error {
		payload := get(t, abi.SourcePayload)
		h := fnv.New64a()
		for _, s := range []abi.Source{abi.SourcePayload, abi.SourceChannel, abi.SourceSender, abi.SourceMessageID, abi.SourceHeaders, abi.SourceDetail, abi.SourceConfig, abi.SourceSelf} {
			h.Write(get(t, s))
		}
		var dice [8]byte
		t.Random(dice[:])
		fmt.Fprint(h, t.Now(), dice, kind)
		for _, list := range []string{"", "k1"} {
			t.StateList([]byte(list), func(keys []byte) { h.Write(keys) })
		}
		r := rand.New(rand.NewPCG(h.Sum64(), 0))
		for range r.IntN(5) {
			step(t, r, kind)
		}
		if poison != nil {
			if n := poison(payload); n >= 0 {
				return strike(t, n)
			}
		}
		if r.IntN(9) == 0 {
			return &abi.Error{Code: abi.Trapped, Message: "unreachable"}
		}
		return nil
	}
}

func get(t abi.Turn, s abi.Source) []byte {
	b, _ := t.Source(s)
	return append([]byte{}, b...)
}

// step does one thing.
func step(t abi.Turn, r *rand.Rand, kind abi.Kind) {
	key := fmt.Appendf(nil, "k%d", r.IntN(4))
	value := fmt.Appendf(nil, "v%d", r.IntN(1000))
	switch r.IntN(10) {
	case 0:
		t.Send(abi.AllChannels, value, nil)
	case 1:
		t.Send(t.Channel([]byte("next")), value, []byte("a\x00b\x00"))
	case 2:
		t.StateSet(key, value)
	case 3:
		if existed, _ := t.StateDelete(key); existed {
			t.Output([]byte("gone"))
		}
	case 4:
		old, code := t.StateGet(key)
		t.Output(append([]byte(code.String()), old...))
	case 5:
		t.Log(abi.LevelInfo, value)
	case 6:
		t.TimerSet(key, time.Hour, 0, value)
	case 7:
		if existed, _ := t.TimerCancel(key); existed {
			t.Log(abi.LevelWarn, key)
		}
	case 8:
		code := t.SendTo([]byte([]string{"a", "b", "c", "nobody"}[r.IntN(4)]), value)
		t.Log(abi.LevelDebug, []byte(code.String()+t.LastError()))
	case 9:
		if kind == abi.KindMessage && r.IntN(4) == 0 {
			t.Request([]byte("b"), value, time.Hour, int64(r.IntN(9)))
		} else if kind == abi.KindRequest {
			t.Reply(value)
		}
	}
}

// strike does the n-th of the things that the program never does.
func strike(t abi.Turn, n int) error {
	switch n {
	case 0:
		t.StateSet([]byte("poison"), []byte("1"))
	case 1:
		t.Output([]byte("poison"))
	case 2:
		t.Log(abi.LevelError, []byte("poison"))
	case 3:
		t.TimerSet([]byte("poison"), time.Hour, time.Hour, nil)
	case 4:
		t.SendTo([]byte("a"), []byte("poison"))
		t.SendTo([]byte("b"), []byte("poison"))
		t.SendTo([]byte("c"), []byte("poison"))
		t.Output([]byte("x"))
	case 5:
		return &abi.Error{Code: abi.OutOfFuel, Message: "poison"}
	}
	return nil
}

const strikes = 6

// TestRandomPrograms records creatures that do random things while graphs merge and
// split, and while the engine is closed, killed and opened again. It replays them:
// nothing differs, whether instances are kept or not. Then it makes one random turn do
// something else, and exactly that turn is found.
func TestRandomPrograms(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 7))
			w := newWorld(t, map[string]behaviour{"program": program(nil)})
			sent := tumble(t, w, r)
			chosen := sent[r.IntN(len(sent))]
			for _, fresh := range []bool{false, true} {
				same(t, w.replay(replay.Options{Fresh: fresh, All: true}), len(sent))
			}
			n := r.IntN(strikes)
			w.host.behaviours["changed"] = program(func(payload []byte) int {
				if string(payload) == chosen.payload {
					return n
				}
				return -1
			})
			report := w.replay(replay.Options{Module: []byte("changed"), Creatures: []string{"*"}})
			want := w.turnOf(chosen.to, chosen.message)
			if len(report.Differences) != 1 || report.Differences[0].Turn != want {
				t.Fatalf("with strike %d the report is %+v, want turn %s to differ", n, report, want)
			}
			d := report.Differences[0]
			if string(d.Delivery.Payload) != chosen.payload || d.Creature != chosen.to {
				t.Errorf("the delivery is %+v of %s, want %+v", d.Delivery, d.Creature, chosen)
			}
			again := w.replay(replay.Options{Module: []byte("changed"), Creatures: []string{"*"}, From: d.Cursor})
			if len(again.Differences) != 1 || again.Differences[0].Turn != want {
				t.Errorf("from its cursor on, the report is %+v", again)
			}
		})
	}
}

type sentMessage struct {
	to      journal.CreatureID
	message journal.EventID
	payload string
}

// tumble runs three creatures for a while.
func tumble(t *testing.T, w *world, r *rand.Rand) []sentMessage {
	var ids []journal.CreatureID
	for _, name := range []string{"a", "b", "c"} {
		ids = append(ids, w.add(name, "program"))
		w.wait() // a start finds creatures by name that were added while it ran
	}
	var all []sentMessage
	for n := range 100 {
		from, to := ids[r.IntN(3)], ids[r.IntN(3)]
		switch r.IntN(12) {
		case 0, 1:
			if from != to {
				w.change(topology.Connect{From: from, To: to, Name: "next"})
			}
		case 2, 3:
			if from != to {
				_, err := w.Change(t.Context(), topology.Disconnect{From: from, To: to})
				if err != nil && abi.CodeOf(err) != abi.NotConnected {
					t.Fatal(err)
				}
			}
		case 4:
			if r.IntN(3) == 0 { // with turns that have not been handled yet
				restart(t, w, r.IntN(2) == 0)
			}
		default:
			payload := fmt.Sprintf("message %d", n)
			all = append(all, sentMessage{to, w.tell(to, payload), payload})
		}
	}
	w.wait()
	return all
}

// restart ends the run and begins another, either in the directory or in a copy as a
// process would leave it that is killed while nothing happens in the background.
func restart(t *testing.T, w *world, killed bool) {
	left := w.dir
	if killed {
		w.wait()
		if err := w.storage.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, g := range mustStatus(t, w) { // reading waits for what is still to be written
			if _, err := w.History(t.Context(), string(g.ID), journal.HistoryQuery{Limit: 1}); err != nil {
				t.Fatal(err)
			}
		}
		left = t.TempDir()
		copyAsIs(t, left, w.dir)
	}
	w.close()
	w.dir = left
	w.open()
}

// copyAsIs copies a directory. Meanwhile, a file may be prepared there, which gets
// another name when it is complete.
func copyAsIs(t *testing.T, to, from string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && strings.HasSuffix(path, ".new") {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil || entry.IsDir() {
			return errors.Join(err, os.MkdirAll(filepath.Join(to, name), 0o755))
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return errors.Join(err, os.WriteFile(filepath.Join(to, name), b, 0o600))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func mustStatus(t *testing.T, w *world) []inspect.GraphStatus {
	graphs, err := w.Status("")
	if err != nil {
		t.Fatal(err)
	}
	return graphs
}

func TestLabels(t *testing.T) {
	long := strings.Repeat("é", 500)
	for want, text := range map[string]replay.Text{
		`"plain"`:                            replay.Text("plain"),
		"00ff":                               replay.Text("\x00\xff"),
		`"` + long[:400] + `"… (1000 bytes)`: replay.Text(long),
	} {
		if got := text.String(); got != want {
			t.Errorf("%.20q is shown as %s, want %s", text, got, want)
		}
	}
}
