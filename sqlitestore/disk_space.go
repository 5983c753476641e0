package sqlitestore

import (
	"fmt"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// spareRoom is the free disk space that copying a history leaves for appending.
const spareRoom = 64 << 20

// room returns an error if the disk has no space for a second, whole file of a session.
// Until it has space, the history is read from the existing files.
func (d *Directory) room(e catalog.Entry, sources []catalog.Entry) error {
	needs := sqlite.DiskSize(e.Path)
	for _, p := range sources {
		needs += sqlite.DiskSize(p.Path)
	}
	free, known := freeSpace(d.dir)
	if d.options.hooks.Free != nil {
		free, known = d.options.hooks.Free(), true
	}
	if !known || free >= needs+spareRoom {
		return nil
	}
	return &abi.Error{
		Code:    abi.Storage,
		Op:      "hydrate",
		Message: fmt.Sprintf("there is no space to copy a history of %d bytes: %d are free, %d of them reserved for appending", needs, free, spareRoom),
		Remedy:  "free some space, or bound what is kept; until then the history is read where it is, and nothing is lost",
		IDs:     map[string]string{"path": d.dir, "session": string(e.Session)},
	}
}
