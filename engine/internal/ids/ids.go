// Package ids draws ids at random.
package ids

import (
	crand "crypto/rand"
	"encoding/binary"
	"math/rand/v2"
	"sync"

	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Source makes ids that are not in use. Ids are a letter for the kind and 80
// random bits, so that they are unique in all engines, not just in this one.
type Source struct {
	mu sync.Mutex
	r  interface{ Read(p []byte) (int, error) }
}

// New returns a source whose ids are repeatable if there is a seed.
func New(seed *uint64) *Source {
	s := &Source{r: crand.Reader}
	if seed != nil {
		var key [32]byte
		binary.LittleEndian.PutUint64(key[:], *seed)
		s.r = rand.NewChaCha8(key)
	}
	return s
}

func (s *Source) read(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.r.Read(p); err != nil {
		// Neither source of randomness fails: crypto/rand ends the process
		// rather than return an error, and ChaCha8 cannot.
		clear(p)
	}
}

// ID returns a fresh id that begins with a prefix.
func (s *Source) ID(prefix string) string {
	var b [draft.IDBytes]byte
	s.read(b[:])
	return draft.FormatID(prefix, b[:])
}

// Fresh draws ids that begin with a prefix until one is not used.
func Fresh[T ~string](s *Source, prefix string, used func(T) bool) T {
	for {
		if id := T(s.ID(prefix)); !used(id) {
			return id
		}
	}
}

// Origin returns a fresh origin for the log of a volatile graph. (Stores make
// their own, which never come from a seed: two runs with the same seed must not
// write the same event ids into copies of one store.)
func (s *Source) Origin() journal.Origin {
	var o journal.Origin
	s.read(o[:])
	return o
}
