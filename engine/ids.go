package engine

import (
	crand "crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"math/rand/v2"
	"sync"

	"github.com/seed47132306/terrarium/engine/journal"
)

// idSource makes ids that are not in use. Ids are a letter for the kind and 80
// random bits, so that they are unique in all engines, not just in this one.
type idSource struct {
	e  *Engine
	mu sync.Mutex
	r  interface{ Read(p []byte) (int, error) }
}

func newIDSource(e *Engine, seed *uint64) *idSource {
	s := &idSource{e: e, r: crand.Reader}
	if seed != nil {
		var key [32]byte
		binary.LittleEndian.PutUint64(key[:], *seed)
		s.r = rand.NewChaCha8(key)
	}
	return s
}

var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

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
	var b [10]byte
	s.read(b[:])
	return prefix + idEncoding.EncodeToString(b[:])
}

// NewGraph implements topology.IDs. The caller holds the mutation lock, as for
// the other methods that look whether an id is in use.
func (s *idSource) NewGraph() journal.GraphID {
	for {
		id := journal.GraphID(s.id("g"))
		_, ended := s.e.topo.Current(id)
		if s.e.graphs[id] == nil && s.e.saved[id] == nil && !ended {
			return id
		}
	}
}

// NewChannel implements topology.IDs.
func (s *idSource) NewChannel() journal.ChannelID {
	for {
		if id := journal.ChannelID(s.id("h")); s.e.channels[id] == nil {
			return id
		}
	}
}

// newCreature returns a fresh creature id.
func (s *idSource) newCreature() journal.CreatureID {
	for {
		if id := journal.CreatureID(s.id("c")); s.e.creatures[id] == nil {
			return id
		}
	}
}

// newWire returns a fresh id of an output wire.
func (s *idSource) newWire() journal.WireID {
	for {
		if id := journal.WireID(s.id("w")); s.e.wires[id] == nil {
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
