package sqlitestore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rebooted makes what a directory says of acknowledgements that of a machine that has
// stopped since.
func rebooted(t *testing.T, dir string) {
	t.Helper()
	acks, slots, err := readAcks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(acks) == 0 {
		return
	}
	f, err := os.OpenFile(filepath.Join(dir, ackName), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for session, a := range acks {
		var b [ackSize]byte
		a.boot = bootNumber() + 1
		if !a.encode(b[:]) {
			t.Fatalf("%+v has no room", a)
		}
		if _, err := f.WriteAt(b[:], slots[session]*ackSize); err != nil {
			t.Fatal(err)
		}
	}
}

// excusedLoss reports whether a problem tells of what a power loss may take.
func excusedLoss(err error) bool {
	return strings.Contains(err.Error(), "the machine has stopped since")
}
