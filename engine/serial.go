package engine

import (
	"context"
	"sync"
)

// serialStorage sees to it that the methods of a storage that change something
// are called by one goroutine at a time, as [Storage] promises.
type serialStorage struct {
	mu sync.Mutex
	Storage
}

func (s *serialStorage) Open(ctx context.Context, session SessionID) (Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Storage.Open(ctx, session)
}

func (s *serialStorage) Create(ctx context.Context, spec StoreSpec) (Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Storage.Create(ctx, spec)
}

func (s *serialStorage) Cut(ctx context.Context, cut Cut) ([]Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Storage.Cut(ctx, cut)
}

func (s *serialStorage) Retire(ctx context.Context, session SessionID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Storage.Retire(ctx, session)
}
