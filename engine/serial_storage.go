package engine

import (
	"context"
	"sync"

	"github.com/seed47132306/terrarium/engine/journal"
)

// serialStorage sees to it that the methods of a storage that change something
// are called by one goroutine at a time, as [journal.Storage] promises.
type serialStorage struct {
	mu       sync.Mutex
	youngest journal.SessionID // of all that there are; guarded by mu
	journal.Storage
}

// last is the youngest session of the directory.
func (s *serialStorage) last() journal.SessionID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.youngest
}

// grow notes that sessions were made, the youngest last. The caller holds mu.
func (s *serialStorage) grow(stores ...journal.Store) {
	if len(stores) > 0 {
		s.youngest = stores[len(stores)-1].Info().Session
	}
}

func (s *serialStorage) Open(ctx context.Context, session journal.SessionID) (journal.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Storage.Open(ctx, session)
}

func (s *serialStorage) Create(ctx context.Context, specs ...journal.StoreSpec) ([]journal.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stores, err := s.Storage.Create(ctx, specs...)
	if err == nil {
		s.grow(stores...)
	}
	return stores, err
}

func (s *serialStorage) Cut(ctx context.Context, cut journal.Cut) ([]journal.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stores, err := s.Storage.Cut(ctx, cut)
	if err == nil {
		s.grow(stores...)
	}
	return stores, err
}

func (s *serialStorage) Retire(ctx context.Context, session journal.SessionID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Storage.Retire(ctx, session)
}
