package sqlitestore

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/sqlitestore/internal/losevfs"
)

// TestLooseCut cuts a store of the durability normal, and what has come out of it, and
// lets the power fail before any of the cuts is durable; in every other program it
// fails once more while the next start takes them back. Whatever has reached the disk,
// the cuts have happened as a whole or not at all, an earlier one if a later one has,
// and it goes on by itself.
func TestLooseCut(t *testing.T) {
	t.Parallel()
	var whole, back atomic.Int32
	t.Run("programs", func(t *testing.T) {
		for seed := range uint64(4 * seeds(t, outcomeSeeds)) {
			t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
				t.Parallel()
				p := newPowerProgram(t, engine.Normal, seed)
				parent := p.cutLoosely(t, 1+int(seed%3))
				again := []failpoint{failpoints, pointTakingBack, failpoints, pointTakenBack}[seed%4]
				p.openAndDie(t, again)
				if p.isLive(t, parent) {
					back.Add(1)
				} else {
					whole.Add(1)
				}
				p.restarts = 1 // so that it waits for the background
				p.restart(t, false)
			})
		}
	})
	if whole.Load() == 0 || back.Load() == 0 {
		t.Errorf("cuts were whole in %d programs and taken back in %d; want both", whole.Load(), back.Load())
	}
}

// cutLoosely makes so many cuts, one after the other, none of which becomes durable
// before the power fails. It answers the first store.
func (p *powerProgram) cutLoosely(t *testing.T, cuts int) engine.SessionID {
	t.Helper()
	p.disk = losevfs.Mount(p.dir, p.random.Uint64())
	reached, released := make(chan struct{}, 1), make(chan struct{})
	p.reached = func(at failpoint, _ string) error {
		if at == pointLoose {
			nudge(reached)
			<-released
		}
		return nil
	}
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	parent := p.stores[0]
	for range cuts {
		for _, s := range p.stores {
			a := p.ledger[s.Origin()]
			s.Append(whole(s.Origin(), a.appended, 3, 1000))
			a.appended += 3
		}
		if err := p.cut(); err != nil {
			t.Fatal(err)
		}
	}
	<-reached
	p.disk.Die()
	close(released)
	_ = p.d.Close() // there is no power, so it fails
	if err := p.disk.PowerOff(); err != nil {
		t.Fatal(err)
	}
	p.loose = nil
	return parent.info.Session
}

// openAndDie opens the directory. If that passes a point, the power fails there.
func (p *powerProgram) openAndDie(t *testing.T, point failpoint) {
	t.Helper()
	p.disk = losevfs.Mount(p.dir, p.random.Uint64())
	d, err := Open(t.Context(), p.dir, Options{hooks: hooks{synced: p.disk.Synced, reached: func(at failpoint, _ string) error {
		if at == point {
			p.disk.Die()
		}
		return nil
	}}})
	if err != nil && !p.disk.Dead() {
		t.Fatal(err)
	}
	if d != nil {
		if err := d.Close(); err != nil && !p.disk.Dead() {
			t.Error(err)
		}
	}
	if err := p.disk.PowerOff(); err != nil {
		t.Fatal(err)
	}
}

// isLive opens the directory once more to see whether a session is live.
func (p *powerProgram) isLive(t *testing.T, session engine.SessionID) bool {
	t.Helper()
	d := mustOpen(t, p.dir)
	defer d.Close()
	e, err := d.catalog.entry("test", session)
	if err != nil {
		t.Fatal(err)
	}
	return e.Live
}
