package terrarium

import (
	"context"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// Search finds events of the session directory by their text, newest first; see
// [sqlitestore.Directory.Search]. It covers all events that were logged before the call.
func (t *Terrarium) Search(ctx context.Context, q sqlitestore.SearchQuery) (sqlitestore.SearchResult, error) {
	dir := t.Directory()
	if dir == nil {
		return sqlitestore.SearchResult{}, &abi.Error{
			Code: abi.Unavailable, Op: "search", Message: "there is no session directory to search", Remedy: "run with a session directory",
		}
	}
	return dir.Search(ctx, q)
}
