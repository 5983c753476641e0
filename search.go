package terrarium

import (
	"context"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// Search finds events of the session directory by what they say, the newest first;
// see [sqlitestore.Directory.Search]. What was logged before the call is found.
func (t *Terrarium) Search(ctx context.Context, q sqlitestore.SearchQuery) (sqlitestore.SearchResult, error) {
	if t.storage == nil {
		return sqlitestore.SearchResult{}, &abi.Error{
			Code: abi.Unavailable, Op: "search", Message: "there is no session directory to be searched", Remedy: "run with one",
		}
	}
	return t.storage.Search(ctx, q)
}
