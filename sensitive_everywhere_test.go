package terrarium_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/recipes"
)

// hush is a value that may appear only in the configuration that a creature gets.
const hush = "hush-5180274639"

// secretly is the recipe of plot with another value of one attribute, and a sensitive
// variable that it can use.
func secretly(b recipes.Block, a recipes.Attribute, value string) string {
	r := plot()
	r.blocks = append(r.blocks, &written{kind: "variable", labels: `"secret"`, attributes: map[string]string{"sensitive": "true", "type": "string"}})
	name := b.Name + "." + a.Name
	block := r.find(b.Name, labelled[name])
	for other := range besides[name][0] {
		delete(block.attributes, other)
	}
	if name == "creature.module" {
		delete(block.attributes, "species")
	}
	if block.attributes[a.Name] = value; name == "variable.default" {
		block.attributes[a.Name], block.attributes["sensitive"] = fmt.Sprintf("%q", hush), "true"
	}
	var text strings.Builder
	for _, top := range r.blocks {
		top.write(&text)
	}
	return text.String()
}

// TestNothingTellsASensitiveValue gives every attribute of the language a sensitive value,
// applies the recipes that take it and runs their tests. The test looks for the value in
// everything that is reported, and in the end in every file of the session.
func TestNothingTellsASensitiveValue(t *testing.T) {
	dir, session := t.TempDir(), filepath.Join(t.TempDir(), "s")
	part := "channel \"c\" {}\ncreature \"part\" {\n  module = \"builtin:echo\"\n  listen = [channel.c]\n}\n"
	writeFiles(t, dir, map[string]string{"part/r.hcl": part})
	writeModules(t, dir)
	var log bytes.Buffer
	o := terrarium.Options{Dir: session, Capabilities: plottingOptions.Capabilities, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	tm, err := terrarium.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tm.Close(t.Context()) }()
	events := tm.Subscribe(engine.Filter{}, engine.MaxSubscriptionBuffer)
	s := &secretive{t: t, tm: tm, cache: filepath.Join(t.TempDir(), "cache"), path: filepath.Join(dir, "plot.hcl"), options: plottingOptions}
	s.options.Vars = map[string]string{"secret": hush}
	var taken []string
	for _, b := range recipes.Language() {
		for i, a := range b.Attributes {
			if !seeded.Part(i, attributePart) && !slices.Contains([]string{"config", "headers", "settings", "payload", "variables", "default"}, a.Name) {
				continue
			}
			for _, value := range []string{"var.secret", `"${var.secret}!"`, "{ key = var.secret }", `var.secret == "x"`} {
				s.name = b.Name + "." + a.Name + " = " + value
				writeFiles(t, dir, map[string]string{"plot.hcl": secretly(b, a, value)})
				if s.apply(slices.Contains([]string{"variable", "test", "mock", "answer", "advance", "decide", "send", "assert"}, b.Name)) {
					taken = append(taken, s.name)
				}
			}
		}
	}
	for _, want := range []string{"creature.config = { key = var.secret }", "http.headers = { key = var.secret }", "capability.settings = { key = var.secret }", "send.payload = var.secret", "test.variables = { key = var.secret }", "variable.default = var.secret"} {
		if !slices.Contains(taken, want) {
			t.Errorf("%s was not applied: of all only %q", want, taken)
		}
	}
	events.Close()
	for {
		ob, err := events.Next(t.Context())
		if err != nil {
			break
		}
		s.say(ob)
	}
	s.name = "the session"
	if err := tm.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.hear(log.String())
	s.files(session)
}

type secretive struct {
	t       *testing.T
	tm      *terrarium.Terrarium
	path    string
	cache   string // of compiled modules
	name    string // of what is tried
	options terrarium.RecipeOptions
}

// hear looks for the secret in a text that is reported.
func (s *secretive) hear(text string) {
	s.t.Helper()
	if at := strings.Index(strings.ToLower(text), hush); at >= 0 {
		s.t.Errorf("%s: the value is told:\n%s", s.name, text[max(0, at-200):min(len(text), at+100)])
	}
}

// say looks for it in something that programs get, and in its JSON form.
func (s *secretive) say(v any) {
	s.t.Helper()
	s.hear(fmt.Sprintf("%+v", v))
	text, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	s.hear(string(text))
}

// apply plans and applies the recipe, runs its tests if told to, and reports whether it
// is valid.
func (s *secretive) apply(run bool) bool {
	t := s.t
	tests, diags := terrarium.LoadTests(t.Context(), s.path, s.options)
	s.findings(diags)
	for _, test := range tests {
		if !run {
			break
		}
		result, err := terrarium.RunTest(t.Context(), test, terrarium.Options{CacheDir: s.cache})
		if err != nil {
			t.Fatal(err)
		}
		s.say(result)
		s.findings(result.Findings)
	}
	r, diags := terrarium.LoadRecipe(t.Context(), s.path, s.options)
	s.findings(diags)
	plan, err := s.tm.PlanApply(t.Context(), s.path, s.options)
	s.say(plan)
	s.hear(fmt.Sprint(err))
	applied, err := s.tm.Apply(t.Context(), s.path, s.options)
	if s.hear(fmt.Sprint(err)); (err == nil) != (r != nil) {
		t.Errorf("%s: it is loaded with %v, and applied with %v", s.name, diags.Err(), err)
	}
	if err != nil {
		return false
	}
	_, err = s.tm.Send(t.Context(), applied.Channels["channel.in"], terrarium.Outgoing{Payload: []byte("x")})
	s.hear(fmt.Sprint(err))
	if err := s.tm.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	status, err := operations.Do(t.Context(), s.tm, "status", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.say(status)
	return true
}

func (s *secretive) findings(diags terrarium.Diagnostics) {
	s.t.Helper()
	var out bytes.Buffer
	if err := recipes.WriteText(&out, diags, 100, false); err != nil {
		s.t.Fatal(err)
	}
	if err := recipes.WriteJSON(&out, diags); err != nil {
		s.t.Fatal(err)
	}
	s.hear(out.String())
}

// files looks for it in every file of a session directory.
func (s *secretive) files(session string) {
	read := 0
	err := filepath.WalkDir(session, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(bytes.ToLower(data), []byte(hush)) {
			at := bytes.Index(bytes.ToLower(data), []byte(hush))
			s.t.Errorf("%s has the value: %q", filepath.Base(path), data[max(0, at-200):at])
		}
		read++
		return err
	})
	if err != nil || read < 2 {
		s.t.Fatalf("%d files were read: %v", read, err)
	}
}
