package sqlitestore

import (
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"

	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rebooted changes the acknowledgements of a directory to those of a machine that has stopped
// since.
func rebooted(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, catalog.AcknowledgedName)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	const size, boot, length = 128, 32, 36 // the size of a slot, and where its fields are
	for at := size; at+size <= len(content); at += size {
		if slot := content[at : at+size]; slot[length] > 0 {
			slot[boot]++
			binary.LittleEndian.PutUint32(slot, crc32.Checksum(slot[4:], crc32.MakeTable(crc32.Castagnoli)))
		}
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// excusedLoss reports whether an error is about data that a power loss may lose.
func excusedLoss(err error) bool {
	return strings.Contains(err.Error(), "the machine has stopped since")
}
