package engine

import (
	crand "crypto/rand"
	"encoding/binary"
	"math/rand/v2"
	"sync"

	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
)

// idSource makes ids that are not in use. Ids are a letter for the kind and 80
// random bits, so that they are unique in all engines, not just in this one.
type idSource struct {
	mu sync.Mutex
	r  interface{ Read(p []byte) (int, error) }
}

func newIDSource(seed *uint64) *idSource {
	s := &idSource{r: crand.Reader}
	if seed != nil {
		var key [32]byte
		binary.LittleEndian.PutUint64(key[:], *seed)
		s.r = rand.NewChaCha8(key)
	}
	return s
}

func (s *idSource) read(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.r.Read(p); err != nil {
		// Neither source of randomness fails: crypto/rand ends the process
		// rather than return an error, and ChaCha8 cannot.
		clear(p)
	}
}

func (s *idSource) id(prefix string) string {
	var b [draft.IDBytes]byte
	s.read(b[:])
	return draft.FormatID(prefix, b[:])
}

// NewGraph implements [draft.IDs], as the methods below do: they look whether an id is
// in use.
func (e locked) NewGraph() journal.GraphID {
	for {
		id := journal.GraphID(e.ids.id("g"))
		_, ended := e.topo.Current(id)
		if e.graphs[id] == nil && e.saved[id] == nil && !ended {
			return id
		}
	}
}

// NewChannel implements topology.IDs.
func (e locked) NewChannel() journal.ChannelID {
	for {
		if id := journal.ChannelID(e.ids.id("h")); e.channels[id] == nil {
			return id
		}
	}
}

// NewCreature returns a fresh creature id.
func (e locked) NewCreature() journal.CreatureID {
	for {
		if id := journal.CreatureID(e.ids.id("c")); e.creatures[id] == nil {
			return id
		}
	}
}

// NewWire returns a fresh id of an output wire.
func (e locked) NewWire() journal.WireID {
	for {
		if id := journal.WireID(e.ids.id("w")); e.wires[id] == nil {
			return id
		}
	}
}

// origin returns a fresh origin for the log of a volatile graph. (Stores make
// their own, which never come from a seed: two runs with the same seed must not
// write the same event ids into copies of one store.)
func (s *idSource) origin() journal.Origin {
	var o journal.Origin
	s.read(o[:])
	return o
}
