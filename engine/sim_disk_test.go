package engine_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/sim"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// onDisk is an engine without goroutines on a disk that keeps only what it is ordered to write.
type onDisk struct {
	*testing.T
	*engine.Stepper
	disk  *sim.Disk
	clock *sim.Clock
	host  *fakeHost
	boots uint64
}

func newOnDisk(t *testing.T) *onDisk {
	d := &onDisk{T: t, disk: sim.NewDisk(1), clock: sim.NewClock(), host: newFakeHost()}
	d.disk.Manual = true
	d.boot()
	t.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return d
}

// start starts an engine, which does not restore anything yet.
func (d *onDisk) start() {
	d.Helper()
	d.boots++
	seed := d.boots
	e, err := engine.NewStepper(d.T.Context(), engine.Options{
		Host: d.host, Storage: d.disk.Boot(), Clock: d.clock, Seed: &seed,
		Load: func(_ context.Context, m string) ([]byte, error) { return []byte(m), nil },
	}, rand.New(rand.NewPCG(seed, 1)))
	if err != nil {
		d.Fatal(err)
	}
	d.Stepper = e
}

func (d *onDisk) restore() {
	d.Helper()
	if _, problems, err := d.Restore(d.T.Context()); err != nil || len(problems) > 0 {
		d.Fatalf("Restore: %v, problems %v", err, problems)
	}
}

func (d *onDisk) boot() {
	d.Helper()
	d.start()
	d.restore()
}

// reboot kills the process, which loses everything that is not written, and starts it again.
func (d *onDisk) reboot() {
	d.Helper()
	d.disk.Kill()
	d.boot()
}

// serve runs every creature that can run.
func (d *onDisk) serve() {
	for d.Serve(d.T.Context(), func(int) int { return 0 }) {
	}
}

func stopped(c *deploy.CreatureSpec) { c.Stopped = true }

func (d *onDisk) add(name, module string, more ...func(*deploy.CreatureSpec)) journal.CreatureID {
	d.Helper()
	s := spec(name, module)
	s.Limits.Mailbox = 16
	for _, f := range more {
		f(&s)
	}
	added, err := d.AddCreature(d.T.Context(), s)
	if err != nil {
		d.Fatal(err)
	}
	return added.Creature
}

func (d *onDisk) change(ops ...topology.Op) []engine.Outcome {
	d.Helper()
	out, err := d.Change(d.T.Context(), ops...)
	if err != nil {
		d.Fatal(err)
	}
	return out
}

func (d *onDisk) connect(from, to journal.CreatureID) journal.ChannelID {
	d.Helper()
	return d.change(topology.Connect{From: from, To: to})[0].Channel
}

func (d *onDisk) send(ch journal.ChannelID, payload string) {
	d.Helper()
	if _, err := d.Send(d.T.Context(), ch, engine.Outgoing{Payload: []byte(payload)}); err != nil {
		d.Fatal(err)
	}
}

func (d *onDisk) sendTo(c journal.CreatureID, payload string) {
	d.Helper()
	if _, err := d.SendTo(d.T.Context(), c, engine.Outgoing{Payload: []byte(payload)}); err != nil {
		d.Fatal(err)
	}
}

func (d *onDisk) letters(g journal.GraphID) []journal.DeadLetterRow {
	d.Helper()
	letters, err := d.DeadLetters(d.T.Context(), g, "", journal.EventID{}, 0)
	if err != nil {
		d.Fatal(err)
	}
	return letters
}

func (d *onDisk) state(c journal.CreatureID, key string) string {
	d.Helper()
	entries, err := d.State(d.T.Context(), c, key)
	if err != nil {
		d.Fatal(err)
	}
	if len(entries) == 0 {
		return ""
	}
	return string(entries[0].Value)
}
