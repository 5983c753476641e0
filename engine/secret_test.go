package engine_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
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
	w.add("a", "reader", func(s *deploy.CreatureSpec) {
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

// A guest knows its configuration, and may quote it when it fails. The sensitive values do not
// appear in errors, log lines, dead letters and reports.
func TestWhatAGuestSaysOfItsSecrets(t *testing.T) {
	const secret = "hush-\"hush\"-481516"
	h := newFakeHost()
	h.on("teller", func(tn abi.Turn, _ abi.Kind) error {
		config, _ := tn.Source(abi.SourceConfig)
		tn.Log(abi.LevelInfo, append([]byte("my configuration: "), config...))
		tn.Log(abi.LevelInfo, []byte("my token: "+secret))
		return &abi.Error{Code: abi.InvalidArgument, Message: "cannot use " + secret + ", 4815162342 and xy", Remedy: "not " + secret}
	})
	s := newSaved(t, engine.Options{Host: h})
	d := &deploy.Deployment{Name: "d", Channels: []deploy.ChannelSpec{{Address: "channel.in", Name: "in"}}}
	c := spec("a", "teller")
	c.Address, c.Listen = "creature.a", []deploy.WireSpec{{Channel: "channel.in"}}
	c.Config = mustJSON(t, map[string]any{"token": secret, "deep": map[string]any{"list": []any{int64(4815162342), "xy"}}, "open": "in plain sight"})
	c.Secret = []string{"token", "deep"}
	c.Restart = deploy.RestartPolicy{Attempts: 1}
	d.Creatures = append(d.Creatures, c)
	a := s.apply(d)
	s.send(a.Channels["channel.in"], "work")
	s.wait()
	s.shut()
	storage, err := sqlitestore.Open(t.Context(), s.dir, sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	archive, err := readArchive(t.Context(), storage)
	if err != nil {
		t.Fatal(err)
	}
	if err := storage.Close(); err != nil {
		t.Fatal(err)
	}
	var said []byte
	for _, events := range archive.events {
		for _, ev := range events {
			said = append(append(said, ev.Kind.String()+" "...), ev.Payload...)
		}
	}
	for _, want := range []string{"in plain sight", "cannot use", deploy.HiddenValue} {
		if !bytes.Contains(said, []byte(want)) {
			t.Errorf("no event contains %q", want)
		}
	}
	err = filepath.WalkDir(s.dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, text := range []string{secret, `hush-\"hush\"-481516`, `hush-\\\"hush\\\"-481516`, "4815162342"} {
			if bytes.Contains(b, []byte(text)) {
				t.Errorf("%s contains %s", path, text)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
