// Package serialstore has the methods of a storage that change something called by one
// goroutine at a time, as [journal.Storage] promises. What only reads is passed on as it
// comes.
package serialstore

import (
	"context"
	"sync"

	"github.com/seed47132306/terrarium/engine/journal"
)

// Storage is a storage whose changes come one at a time.
type Storage struct {
	mu       sync.Mutex
	youngest journal.SessionID // of all that there are; guarded by mu
	journal.Storage
}

// Of returns a storage that changes another one. It does not know the sessions that there
// are yet; see [Storage.SetLast].
func Of(s journal.Storage) *Storage { return &Storage{Storage: s} }

// Last is the youngest session of the directory.
func (s *Storage) Last() journal.SessionID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.youngest
}

// SetLast says which one it is before any is made.
func (s *Storage) SetLast(session journal.SessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.youngest = session
}

// grow notes that sessions were made, the youngest last. It is a part of Create
// and Cut.
func (s *Storage) grow(stores ...journal.Store) {
	if len(stores) > 0 {
		s.youngest = stores[len(stores)-1].Info().Session
	}
}

// Open implements [journal.Storage].
func (s *Storage) Open(ctx context.Context, session journal.SessionID) (journal.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Storage.Open(ctx, session)
}

// Create implements [journal.Storage].
func (s *Storage) Create(ctx context.Context, specs ...journal.StoreSpec) ([]journal.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stores, err := s.Storage.Create(ctx, specs...)
	if err == nil {
		s.grow(stores...)
	}
	return stores, err
}

// Cut implements [journal.Storage].
func (s *Storage) Cut(ctx context.Context, cut journal.Cut) ([]journal.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stores, err := s.Storage.Cut(ctx, cut)
	if err == nil {
		s.grow(stores...)
	}
	return stores, err
}

// Retire implements [journal.Storage].
func (s *Storage) Retire(ctx context.Context, session journal.SessionID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Storage.Retire(ctx, session)
}
