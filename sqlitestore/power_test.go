package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/losevfs"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
	"go.uber.org/goleak"
)

const (
	powerSeeds  = 2 // in a run of the tests; TERRARIUM_SEEDS requests more
	powerRounds = 3 // power losses in one directory
	faultSeeds  = 4
	faultSteps  = 40 // in one program with faults
	// powerOperations bounds when the power fails. A program below makes about as many writes
	// and syncs.
	powerOperations = 600
)

// seeds is how many seeds a test has: a quarter of its usual number in make test, or TERRARIUM_SEEDS.
func seeds(t *testing.T, usual int) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("TERRARIUM_SEEDS"))
	switch {
	case err == nil:
		return n
	case seeded.Part(1, 2):
		return usual
	}
	return (usual + 3) / 4
}

// TestPowerLoss lets the power fail at random moments of random programs. With the durability
// full, every acknowledged event is left afterwards. With both durabilities, each log has lost
// nothing but its end, in whole records; the live rows are those of the last record; each cut
// has happened as a whole or not at all; and the next start continues by itself.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	for _, durability := range []journal.Durability{journal.Full, journal.Normal} {
		t.Run(durability.String(), func(t *testing.T) {
			t.Parallel()
			lost := 0
			for seed := range uint64(seeds(t, powerSeeds)) {
				t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
					p := newPowerProgram(t, durability, seed)
					p.small = []int64{-1, 12, 40}[seed%3]
					for range powerRounds {
						p.round(t, 1+p.random.IntN(powerOperations))
						lost += p.restart(t, durability == journal.Full)
						if t.Failed() {
							return
						}
					}
				})
			}
			// If the disk never lost anything, the test would prove nothing.
			if durability == journal.Normal && lost == 0 {
				t.Error("no event was ever lost")
			}
		})
	}
}

// everyStepShare is how many seeds of the other tests count for one of
// TestPowerLossAtEveryStep, which runs a program for every failpoint.
const everyStepShare = 12

const everyStepPart = 5

// powerSteps is the number of steps in which a program reaches every failpoint, except those of
// operations that it does not use.
const powerSteps = 600

// TestPowerLossAtEveryStep lets the power fail at every failpoint, so that it fails right after
// one thing has become durable and before the next one has. make test tries one failpoint in
// everyStepPart.
func TestPowerLossAtEveryStep(t *testing.T) {
	t.Parallel()
	for seed := range uint64(seeds(t, everyStepShare)+everyStepShare-1) / everyStepShare {
		for point := range failpoint.Count {
			if !seeded.Part(int(point), everyStepPart) || isApart(point) || slices.Contains(upgrades, point) || point == failpoint.Retiring || point == failpoint.Retired {
				continue
			}
			t.Run(fmt.Sprintf("%s/seed=%d", point, seed), func(t *testing.T) {
				t.Parallel()
				durability := journal.Full - journal.Durability((uint64(point)+seed)%2)
				if slices.Contains(looses, point) {
					durability = journal.Normal
				}
				p := newPowerProgram(t, durability, seed<<8|uint64(point))
				var passes atomic.Int32
				pass := 1 + p.random.Int32N(3)
				p.reached = func(at failpoint.Point, _ string) error {
					if at == point && passes.Add(1) == pass {
						p.disk.Die()
					}
					return nil
				}
				p.round(t, 1<<30)
				p.restarts = 1 // so that restart waits for the background
				p.restart(t, durability == journal.Full)
			})
		}
	}
}

// ledger records what was acknowledged to the program, by origin.
type ledger map[journal.Origin]*account

type account struct {
	appended     uint64 // events
	acknowledged uint64 // by Wait
	handedOn     uint64 // to the children of a cut that has happened
}

type powerProgram struct {
	dir        string
	durability journal.Durability
	random     *rand.Rand
	ledger     ledger
	ended      map[journal.SessionID]int64 // events of stores that a cut has ended
	loose      []func()                    // promises of cuts, which count once the cuts are durable
	disk       *losevfs.Disk
	d          *Directory
	stores     []*Store
	restarts   int
	reached    func(failpoint.Point, string) error
	free       func() int64
	small      int64 // as in [failpoint.Hooks]
}

func newPowerProgram(t *testing.T, durability journal.Durability, seed uint64) *powerProgram {
	return &powerProgram{
		dir: t.TempDir(), durability: durability, random: rand.New(rand.NewPCG(seed, uint64(durability))),
		ledger: ledger{}, ended: map[journal.SessionID]int64{}, small: -1,
	}
}

// round runs until the power fails, at the latest after a number of operations.
func (p *powerProgram) round(t *testing.T, operations int) {
	t.Helper()
	p.disk = losevfs.Mount(p.dir, p.random.Uint64())
	p.disk.DieAfter(operations)
	p.stores, p.loose = nil, nil
	err := p.open()
	defer p.abandon()()
	for steps := 0; err == nil && steps < powerSteps; steps++ {
		err = p.step()
	}
	if !p.disk.Dead() {
		t.Errorf("an operation failed, although there is power: %v", err)
	}
	if p.d != nil {
		_ = p.d.Close() // there is no power, so it fails
		p.d = nil
	}
	if err := p.disk.PowerOff(); err != nil {
		t.Fatal(err)
	}
	rebooted(t, p.dir)
}

// abandon ends the work in the background once the power has failed. Otherwise the background
// would keep trying to find out the outcome of a change, and block other changes.
func (p *powerProgram) abandon() (wait func()) {
	d, died, over, done := p.d, p.disk.Died(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-died:
			if d != nil {
				d.hydrator.close()
			}
		case <-over:
		}
	}()
	return func() { close(over); <-done }
}

func (p *powerProgram) open() (err error) {
	ctx := context.Background()
	if p.d, err = Open(ctx, p.dir, Options{naps: fewAwake, hooks: failpoint.Hooks{Synced: p.disk.Synced, Reached: p.reached, Free: p.free, CopyChunk: 16 << 10, UniteChunk: 20, SmallEvents: p.small, Outgrown: 48 << 10}}); err != nil {
		return err
	}
	graphs, problems, err := p.d.Saved(ctx)
	problems = slices.DeleteFunc(problems, excusedLoss)
	if err = errors.Join(append(problems, err)...); err != nil {
		return err
	}
	for _, g := range graphs {
		if err := p.openStore(g.Session); err != nil {
			return err
		}
	}
	if len(p.stores) > 0 {
		return nil
	}
	return p.create(1)
}

// create makes n stores at once. Their first records are durable then.
func (p *powerProgram) create(n int) error {
	spec := journal.StoreSpec{Graph: "g", Durability: p.durability, First: func(o journal.Origin) *journal.Record { return whole(o, 0, 2, 100) }}
	stores, err := p.d.Create(context.Background(), slices.Repeat([]journal.StoreSpec{spec}, n)...)
	for _, s := range stores {
		p.add(s)
	}
	return err
}

func (p *powerProgram) openStore(session journal.SessionID) error {
	s, err := p.d.Open(context.Background(), session)
	if err == nil {
		p.add(s)
	}
	return err
}

func (p *powerProgram) add(s journal.Store) {
	p.stores = append(p.stores, s.(*Store))
	written := s.(*Store).highest.Load()
	p.ledger[s.Origin()] = &account{appended: written, acknowledged: written, handedOn: written}
}

// firm applies the promises of cuts that are durable by now.
func (p *powerProgram) firm() {
	if len(p.d.loose.waiting()) > 0 {
		return
	}
	for _, promise := range p.loose {
		promise()
	}
	p.loose = nil
}

// step does something to one of the stores.
func (p *powerProgram) step() error {
	p.firm()
	ctx := context.Background()
	i := p.random.IntN(len(p.stores))
	s := p.stores[i]
	a := p.ledger[s.Origin()]
	switch p.random.IntN(18) {
	case 0:
		sqlite.Checkpoint(s.path())
		return nil
	case 1:
		p.stores = append(p.stores[:i:i], p.stores[i+1:]...)
		if err := s.Close(ctx); err != nil {
			return err
		}
		a.acknowledged = a.appended
		return p.openStore(s.info.Session)
	case 2:
		return p.cut()
	case 3:
		return p.d.Settle(ctx)
	case 4:
		if len(p.stores) < 4 {
			return p.create(1 + p.random.IntN(3))
		}
	}
	for range 1 + p.random.IntN(4) {
		r := whole(s.Origin(), a.appended, 1+p.random.IntN(4), p.random.IntN(6000))
		s.Append(r)
		a.appended += uint64(len(r.Events))
	}
	if p.random.IntN(3) == 0 {
		return nil
	}
	if err := s.Wait(ctx, a.appended); err != nil {
		return err
	}
	a.acknowledged = a.appended
	return nil
}

// cut splits a single store or merges several.
func (p *powerProgram) cut() error {
	p.random.Shuffle(len(p.stores), func(i, j int) { p.stores[i], p.stores[j] = p.stores[j], p.stores[i] })
	n := len(p.stores)
	if n < 4 {
		n = 1 + p.random.IntN(n)
	}
	ended, others := p.stores[:n:n], p.stores[n:]
	cut := journal.Cut{Kind: "merge", At: 1}
	var parents []journal.SessionID
	for _, s := range ended {
		cut.Parents = append(cut.Parents, s)
		parents = append(parents, s.info.Session)
	}
	children := 1
	if len(parents) == 1 {
		cut.Kind, children = "split", 2
	}
	for range children {
		cut.Children = append(cut.Children, journal.CutChild{
			Parents:   parents,
			StoreSpec: journal.StoreSpec{Graph: "g", Durability: p.durability, First: func(o journal.Origin) *journal.Record { return whole(o, 0, 2, 100) }},
		})
	}
	made, err := p.d.Cut(context.Background(), cut)
	if err != nil {
		return err
	}
	for _, s := range ended {
		a := p.ledger[s.Origin()]
		inherited, err := p.d.catalog.Inherited(context.Background(), s.info.Session)
		if err != nil {
			return err // the power has failed already
		}
		var events int64
		for _, n := range inherited {
			events += int64(n)
		}
		p.loose = append(p.loose, func() {
			p.ended[s.info.Session] = events
			a.acknowledged, a.handedOn = a.appended, a.appended
		})
	}
	p.stores = slices.Clone(others)
	for _, s := range made {
		p.add(s)
		a := p.ledger[s.Origin()]
		promised := *a
		a.acknowledged, a.handedOn = 0, 0
		p.loose = append(p.loose, func() {
			a.acknowledged, a.handedOn = max(a.acknowledged, promised.acknowledged), promised.handedOn
		})
	}
	p.firm()
	return nil
}

// whole makes a record of several messages. Each message has a row, and the rows agree only if
// the record was written as a whole.
func whole(o journal.Origin, after uint64, events, size int) *journal.Record {
	channel := journal.ChannelID("channel-" + o.String())
	last := after + uint64(events)
	r := &journal.Record{
		Channels: []journal.ChannelRow{{ID: channel}},
		Cursors:  []journal.CursorRow{{Reader: "reader:x", Channel: channel, Seq: last}},
		Heads:    []journal.HeadRow{{Channel: channel, Seq: last}},
		Meta:     map[string]string{"last-" + o.String(): strconv.FormatUint(last, 10)},
	}
	for seq := after + 1; seq <= last; seq++ {
		r.Events = append(r.Events, journal.Event{
			ID: journal.EventID{Origin: o, Seq: seq}, Time: int64(seq), Kind: journal.EventTimer, Channel: channel, Seq: seq, Payload: make([]byte, size),
		})
	}
	return r
}

// restart checks what is left, and continues every live store. Events that a cut has handed on
// must be left. If acknowledged is set, so must all events that were acknowledged. It returns
// how many events were lost.
func (p *powerProgram) restart(t *testing.T, acknowledged bool) int {
	rebooted(t, p.dir)
	d := mustOpen(t, p.dir)
	defer d.Close()
	graphs, problems, err := d.Saved(t.Context())
	if !acknowledged {
		problems = slices.DeleteFunc(problems, excusedLoss)
	}
	if err != nil || len(problems) > 0 {
		t.Fatalf("Saved: problems %v, %v", problems, err)
	}
	kept := map[journal.Origin]uint64{}
	infos, err := d.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		report, err := d.Verify(t.Context(), info.Session)
		if n := len(report.Missing) + len(report.Duplicate) + len(report.OutOfOrder) + len(report.Damage); n > 0 || err != nil {
			t.Errorf("Verify: %+v, %v", report, err)
		}
		if n, ended := p.ended[info.Session]; ended && report.Events != n {
			t.Errorf("%s has %d events, but had %d when a cut ended it", info.Session, report.Events, n)
		}
	}
	for _, g := range graphs {
		p.rowsAgree(t, d, g, kept)
		s, err := d.Open(t.Context(), g.Session)
		if err != nil {
			t.Fatal(err)
		}
		s.Append(whole(s.Origin(), 0, 3, 10))
		if err := s.Wait(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		p.ledger[s.Origin()] = &account{appended: 3, acknowledged: 3, handedOn: 3}
		kept[s.Origin()] = 3
	}
	if p.restarts++; p.restarts%2 == 0 { // the other times, families grow
		if err := d.Settle(t.Context()); err != nil {
			t.Errorf("Settle: %v", err)
		}
		p.alone(t, d)
	}
	lost := 0
	for o, a := range p.ledger {
		promised := a.handedOn
		if acknowledged {
			promised = a.acknowledged
		}
		if kept[o] < promised || kept[o] > a.appended {
			t.Errorf("%s: %d events are left of %d; %d were acknowledged, %d were handed on by a cut", o, kept[o], a.appended, a.acknowledged, a.handedOn)
		}
		lost += int(a.appended - kept[o])
		// Events that were lost do not reappear, and those that are left are not lost later.
		p.ledger[o] = &account{appended: kept[o], acknowledged: kept[o], handedOn: kept[o]}
	}
	return lost
}

// alone checks that every live store is complete, and that nothing else is left.
func (p *powerProgram) alone(t *testing.T, d *Directory) {
	t.Helper()
	infos, err := d.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, info := range infos {
		if info.Live && !info.Complete {
			t.Errorf("%s is not complete", info.Session)
		}
		if info.Path != "" {
			want[info.Path] = true
		}
	}
	d.spares.mu.Lock()
	for _, spare := range d.spares.ready {
		want[spare.path] = true
	}
	d.spares.mu.Unlock()
	files, err := filepath.Glob(filepath.Join(p.dir, files.Stores, "*"+files.StoreSuffix))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if !want[path] && !storefile.IsUnused(t.Context(), path) {
			t.Errorf("%s is left over", path)
		}
	}
}

// rowsAgree checks that the rows of a store are those of its last records.
func (p *powerProgram) rowsAgree(t *testing.T, d *Directory, g journal.SavedGraph, kept map[journal.Origin]uint64) {
	t.Helper()
	events, err := d.History(t.Context(), g.Session, journal.HistoryQuery{Limit: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	highest := map[string]uint64{}
	for _, e := range events {
		highest[e.ID.Origin.String()] = max(e.ID.Seq, highest[e.ID.Origin.String()])
		kept[e.ID.Origin] = max(e.ID.Seq, kept[e.ID.Origin])
	}
	for _, c := range g.Cursors {
		if o := strings.TrimPrefix(string(c.Channel), "channel-"); c.Seq != highest[o] {
			t.Errorf("%s: the cursor of %s is at %d, but its last event is %d", g.Session, o, c.Seq, highest[o])
		}
	}
	for key, value := range g.Meta {
		if o := strings.TrimPrefix(key, "last-"); value != strconv.FormatUint(highest[o], 10) {
			t.Errorf("%s: the last record of %s ends at %s, but its last event is %d", g.Session, o, value, highest[o])
		}
	}
}

// TestFaults lets writes and syncs fail now and then, because the disk is full for a while, or
// broken. After each failure it is unknown what was written. No event is lost or written twice,
// and appending continues by itself, even if the power fails in the end.
func TestFaults(t *testing.T) {
	defer goleak.VerifyNone(t)
	for seed := range uint64(seeds(t, faultSeeds)) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			p := newPowerProgram(t, journal.Full-journal.Durability(seed%2), seed)
			p.disk = losevfs.Mount(p.dir, seed)
			if err := p.open(); err != nil {
				t.Fatal(err)
			}
			failures := 0
			for range faultSteps {
				code := []int{losevfs.Full, losevfs.WriteFails, losevfs.SyncFails}[p.random.IntN(3)]
				p.disk.Fail(code, p.random.IntN(20), 1+p.random.IntN(3))
				if err := p.step(); err != nil {
					failures++
					p.endure(t, err)
				}
			}
			p.disk.Fail(0, 0, 0)
			for _, s := range p.stores {
				p.goesOn(t, s)
			}
			if failures == 0 {
				t.Error("no step has failed")
			}
			crash := p.random.IntN(2) == 0
			if crash {
				p.disk.DieAfter(1)
			}
			if err := p.d.Close(); err != nil && !crash {
				t.Error(err)
			}
			if crash {
				if err := p.disk.PowerOff(); err != nil {
					t.Fatal(err)
				}
				rebooted(t, p.dir)
			}
			p.disk.Unmount()
			p.restart(t, !crash || p.durability == journal.Full)
		})
	}
}

// endure checks an error, and lets the disk work again.
func (p *powerProgram) endure(t *testing.T, err error) {
	t.Helper()
	if code := abi.CodeOf(err); code != abi.Storage && code != abi.UnknownOutcome {
		t.Fatalf("%v; want the code storage or unknown_outcome", err)
	}
	p.disk.Fail(0, 0, 0)
	for _, s := range p.stores {
		if abi.CodeOf(s.flush(t.Context())) == abi.Stopped {
			err = errors.Join(err, catalog.ErrUnknown)
		}
	}
	if !errors.Is(err, catalog.ErrUnknown) && len(p.stores) > 0 {
		return
	}
	// A cut whose outcome is unknown has closed both sides. A store that could not be written
	// when it was closed must be opened again.
	if err := p.d.Close(); err != nil {
		t.Fatal(err)
	}
	p.stores = nil
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
}

// goesOn waits until a store has written everything.
func (p *powerProgram) goesOn(t *testing.T, s *Store) {
	t.Helper()
	a := p.ledger[s.Origin()]
	recovered(t, s, a.appended)
	a.acknowledged = a.appended
}

// TestSyncFails lets the syncs of one commit fail, and those that closing the file makes then.
// The file has the commit, but the disk does not. The commit must not be acknowledged before
// the disk has it too.
func TestSyncFails(t *testing.T) {
	for failures := 1; failures <= 5; failures++ {
		p := newPowerProgram(t, journal.Full, uint64(failures))
		p.disk = losevfs.Mount(p.dir, uint64(failures))
		if err := p.open(); err != nil {
			t.Fatal(err)
		}
		s := p.stores[0]
		a := p.ledger[s.Origin()]
		for range 2 {
			s.Append(whole(s.Origin(), a.appended, 10, 10))
			a.appended += 10
			p.goesOn(t, s)
			p.disk.Fail(losevfs.SyncFails, 0, failures)
		}
		p.disk.DieAfter(1)
		_ = p.d.Close() // there is no power, so it fails
		if err := p.disk.PowerOff(); err != nil {
			t.Fatal(err)
		}
		rebooted(t, p.dir)
		p.restart(t, true)
	}
}
