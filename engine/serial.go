package engine

import (
	"context"
	"sync"
)

// serialStorage sees to it that the methods of a storage are called by one
// goroutine at a time, as [Storage] promises: history is read from any.
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

func (s *serialStorage) Sessions(ctx context.Context) ([]SessionInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Storage.Sessions(ctx)
}

func (s *serialStorage) History(ctx context.Context, session SessionID, q HistoryQuery) ([]Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Storage.History(ctx, session, q)
}

func (s *serialStorage) Lineage(ctx context.Context, session SessionID) ([]SessionInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Storage.Lineage(ctx, session)
}

func (s *serialStorage) Verify(ctx context.Context, session SessionID) (VerifyReport, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Storage.Verify(ctx, session)
}
