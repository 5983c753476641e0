// Package serialstore serializes the methods of a storage that change
// something, as [journal.Storage] promises. Read-only calls are passed on
// directly.
package serialstore

import (
	"context"
	"sync"

	"github.com/seed47132306/terrarium/engine/journal"
)

// Storage is a storage whose changes are made one at a time.
type Storage struct {
	mu       sync.Mutex
	youngest journal.SessionID // of all sessions; guarded by mu
	journal.Storage
}

// Of returns a storage that serializes changes to s. It does not know the
// existing sessions yet; see [Storage.SetLast].
func Of(s journal.Storage) *Storage { return &Storage{Storage: s} }

// Last returns the youngest session of the directory.
func (s *Storage) Last() journal.SessionID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.youngest
}

// SetLast sets the youngest session. Call it before any session is created.
func (s *Storage) SetLast(session journal.SessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.youngest = session
}

// grow records created sessions, the youngest last. Create and Cut call it.
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

// Pace waits as [journal.Pacer] says, if the storage is one. A nil storage never waits. The
// caller may be one of many, since nothing is changed.
func (s *Storage) Pace(ctx context.Context) error {
	if s == nil {
		return nil
	}
	if p, ok := s.Storage.(journal.Pacer); ok {
		return p.Pace(ctx)
	}
	return nil
}

// Behind reports what [journal.Pacer] says, if the storage is one.
func (s *Storage) Behind() bool {
	if s == nil {
		return false
	}
	p, ok := s.Storage.(journal.Pacer)
	return ok && p.Behind()
}

// Retire implements [journal.Storage].
func (s *Storage) Retire(ctx context.Context, session journal.SessionID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Storage.Retire(ctx, session)
}
