package engine_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/sqlitestore"
)

func TestNoStoreKeepsSecretAttributes(t *testing.T) {
	dir := t.TempDir()
	storage, err := sqlitestore.Open(t.Context(), dir, sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := newFakeHost()
	seen := make(chan string, 1)
	h.on("reader", func(tn abi.Turn, _ abi.Kind) error {
		config, _ := tn.Source(abi.SourceConfig)
		seen <- string(config)
		return nil
	})
	w := newWorld(t, engine.Options{Host: h, Storage: storage})
	w.add("a", "reader", func(s *engine.CreatureSpec) {
		s.Config, s.Secret = json.RawMessage(`{"token":"hush-hush","open":1}`), []string{"token"}
	})
	w.wait()
	if got := <-seen; got != `{"token":"hush-hush","open":1}` {
		t.Errorf("the creature got the configuration %s", got)
	}
	w.close()
	if err := storage.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "stores", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no store files: %v", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte("hush-hush")) {
			t.Errorf("%s has the secret", f)
		}
		if !bytes.Contains(b, []byte(`"open"`)) {
			t.Errorf("%s does not have the rest of the configuration", f)
		}
	}
}
