package sqlitestore

import (
	"context"

	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// visitor reads databases that it must not change. Even a connection that only
// reads makes a write-ahead log and its shared memory where there is none, and
// cannot remove them; so the visitor notes what it has found.
type visitor struct {
	lone  map[string]bool // files by path: had no write-ahead log when first looked at
	plain map[string]bool // files by path: could be read as any other, and need no second try
}

func newVisitor() *visitor { return &visitor{lone: map[string]bool{}, plain: map[string]bool{}} }

// visit answers how a file can be read.
func (v *visitor) visit(ctx context.Context, path string) (fileMode, error) {
	if v.plain[path] {
		return readOnly, nil
	}
	if _, seen := v.lone[path]; !seen {
		v.lone[path] = missing(path + "-wal")
	}
	mode, err := readingMode(ctx, path)
	v.plain[path] = err == nil && mode == readOnly
	return mode, err
}

// leave removes what reading has left beside the files, when they have been
// closed. SQLite does it, when a connection that may write is closed and is the
// last: who uses a file meanwhile loses nothing. What cannot be removed holds
// nothing, and goes when the file is next used.
func (v *visitor) leave() {
	for path, lone := range v.lone {
		if info, err := files.Stat(path + "-wal"); lone && err == nil && info.Size() == 0 {
			_ = probe(context.Background(), path, leaving) // a reader that has been interrupted leaves as well
		}
	}
}
