package sessions

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
)

// thing is something that can replace a file.
type thing struct {
	name, what, says string
	make             func(d Directory, path string) error
}

func things() []thing {
	return []thing{
		{"link", "a symbolic link to a file outside", "symbolic link", func(d Directory, path string) error { return os.Symlink(d.Notes(), path) }},
		{"dangling", "a symbolic link to a file outside that is not there", "symbolic link", func(d Directory, path string) error {
			return os.Symlink(filepath.Join(d.Outside, "made"), path)
		}},
		{"hard-link", "a hard link of a file outside", "", func(d Directory, path string) error { return os.Link(d.Notes(), path) }},
		{"pipe", "a named pipe", "named pipe", func(_ Directory, path string) error { return pipe(path) }},
		{"device", "a link to a device without an end", "symbolic link", func(_ Directory, path string) error { return os.Symlink("/dev/zero", path) }},
		{"directory", "a directory", "directory", func(_ Directory, path string) error { return os.Mkdir(path, 0o755) }},
	}
}

// places returns cases in which something else replaces a file.
func places() (out []Case) {
	for _, at := range []struct {
		name string
		path func(d Directory) (string, error)
		some bool
	}{
		{"lock", func(d Directory) (string, error) { return filepath.Join(d.Path, "lock"), nil }, false},
		{"catalog", func(d Directory) (string, error) { return d.Catalog(), nil }, false},
		{"catalog-wal", func(d Directory) (string, error) { return d.Catalog() + "-wal", nil }, true},
		{"catalog-shm", func(d Directory) (string, error) { return d.Catalog() + "-shm", nil }, true},
		{"store", Directory.Store, false},
		{"store-wal", func(d Directory) (string, error) { s, err := d.Store(); return s + "-wal", err }, true},
		{"search", func(d Directory) (string, error) { return d.Search(), nil }, false},
		{"leftover", func(d Directory) (string, error) { return filepath.Join(d.Path, "stores", "left.db.new"), nil }, true},
		{"stranger", func(d Directory) (string, error) { return filepath.Join(d.Path, "stores", "stranger.db"), nil }, true},
	} {
		for i, t := range things() {
			if at.some && i%2 == 1 { // links, hard links and devices are enough there
				continue
			}
			says := t.says
			if at.name == "stranger" && t.name == "hard-link" || at.name == "leftover" && t.name == "hard-link" {
				says = ""
			}
			out = append(out, Case{
				Name: at.name + "-is-" + t.name, Attacks: "the opening of files: " + t.what + " in the place of " + at.name, Says: says,
				Spoil: func(_ context.Context, d Directory) error {
					path, err := at.path(d)
					if err != nil {
						return err
					}
					return replace(path, func(path string) error { return t.make(d, path) })
				},
			})
		}
	}
	return append(out,
		Case{"stores-is-link", "the way to the stores: stores is a link to a directory outside", func(_ context.Context, d Directory) error {
			return replace(filepath.Join(d.Path, "stores"), func(path string) error { return os.Symlink(d.Outside, path) })
		}, "symbolic link"},
		Case{"stores-is-file", "the way to the stores: stores is a file", func(_ context.Context, d Directory) error {
			return replace(filepath.Join(d.Path, "stores"), func(path string) error { return os.WriteFile(path, nil, 0o644) })
		}, ""},
		Case{"catalog-journal", "SQLite itself: a rollback journal that names the file to be removed after it was played back", func(_ context.Context, d Directory) error {
			return os.WriteFile(d.Catalog()+"-journal", journalOf(d.Notes()), 0o644)
		}, "rollback journal"},
		Case{"store-journal", "SQLite itself: such a journal of a store", func(_ context.Context, d Directory) error {
			path, err := d.Store()
			if err != nil {
				return err
			}
			return os.WriteFile(path+"-journal", journalOf(d.Notes()), 0o644)
		}, "rollback journal"},
		Case{"lock-is-huge", "the reading of the lock: it has a terabyte", func(_ context.Context, d Directory) error {
			path := filepath.Join(d.Path, "lock")
			if err := os.WriteFile(path, []byte("1 stranger"), 0o644); err != nil {
				return err
			}
			return os.Truncate(path, 1<<40)
		}, ""},
	)
}

// journalOf returns a hot rollback journal without pages, of a transaction in
// several databases that names another file as the common journal.
func journalOf(super string) []byte {
	const sector, page = 512, 4096
	header := make([]byte, sector)
	copy(header, "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7")
	binary.BigEndian.PutUint32(header[12:], 1)  // a nonce
	binary.BigEndian.PutUint32(header[16:], 10) // pages before
	binary.BigEndian.PutUint32(header[20:], sector)
	binary.BigEndian.PutUint32(header[24:], page)
	var sum uint32
	for _, c := range []byte(super) {
		sum += uint32(int8(c))
	}
	out := binary.BigEndian.AppendUint32(header, 0x40000000/page+1)
	out = append(out, super...)
	out = binary.BigEndian.AppendUint32(out, uint32(len(super)))
	out = binary.BigEndian.AppendUint32(out, sum)
	return append(out, header[:8]...)
}
