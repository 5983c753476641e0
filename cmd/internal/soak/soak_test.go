package main

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSoak runs two short lives with everything in them.
func TestSoak(t *testing.T) {
	var said bytes.Buffer
	out := t.TempDir()
	c := config{rounds: 6, lives: 2, interval: time.Second, pause: time.Millisecond, pairs: 2, retain: 100_000, seed: 1,
		dir: filepath.Join(t.TempDir(), "S"), out: out}
	if err := c.soak(t.Context(), &said); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	if !strings.Contains(said.String(), "life 2: 960 messages") { // of 4 lanes, 6 bursts of 20 in each life
		t.Errorf("it says\n%s", said.String())
	}
	table, err := os.ReadFile(filepath.Join(out, "soak.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if rows, err := csv.NewReader(bytes.NewReader(table)).ReadAll(); err != nil || len(rows) < 1 || len(rows[0]) != len(series)+1 {
		t.Errorf("the table is %q, %v", table, err)
	}
	picture, err := os.ReadFile(filepath.Join(out, "soak.svg"))
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, picture)
}

func wellFormed(t *testing.T, picture []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(picture)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, picture)
		}
	}
}

// TestBooks makes each mistake that the records are meant to find.
func TestBooks(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(b *books)
		want []string
	}{
		"all arrived": {do: func(b *books) {
			b.send("00", 1)
			b.send("00", 2)
			b.arrive("00", "00", 1, true)
			b.arrive("00", "00", 2, true)
		}},
		"lost": {do: func(b *books) { b.send("00", 1) }, want: []string{"lane 00: 1 messages were sent, and 0 arrived"}},
		"left out": {do: func(b *books) { b.send("00", 1); b.send("00", 2); b.arrive("00", "00", 2, true) },
			want: []string{"00 from 00: number 2 came after 0"}},
		"twice": {do: func(b *books) { b.send("00", 1); b.arrive("00", "00", 1, true); b.arrive("00", "00", 1, true) },
			want: []string{"00 from 00: number 1 came after 1"}},
		"a gap that is allowed": {do: func(b *books) { b.arrive("01", "00", 1, false); b.arrive("01", "00", 7, false) }},
		"back":                  {do: func(b *books) { b.arrive("01", "00", 7, false); b.arrive("01", "00", 6, false) }, want: []string{"01 from 00: number 6 came after 7"}},
	} {
		b := newBooks()
		c.do(b)
		b.balance()
		if _, got := b.done(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestGrowth distinguishes a curve that rises from one that has levelled off.
func TestGrowth(t *testing.T) {
	soaked := func(value func(n int) float64) (all []sample) {
		for n := range 100 {
			s := sample{at: time.Duration(n) * time.Second}
			s.values[2] = value(n) // goroutines
			all = append(all, s)
		}
		return all
	}
	for name, c := range map[string]struct {
		samples []sample
		grows   bool
	}{
		"rises":    {soaked(func(n int) float64 { return 100 + float64(n) }), true},
		"level":    {soaked(func(n int) float64 { return min(float64(n)*50, 500) }), false},
		"peaks":    {soaked(func(n int) float64 { return 100 + float64(n%20)*20 }), false},
		"too few":  {soaked(func(n int) float64 { return float64(n) })[:99], false},
		"by a few": {soaked(func(n int) float64 { return 30 + float64(n)/10 }), false},
	} {
		if grown := growth(c.samples); (len(grown) > 0) != c.grows {
			t.Errorf("%s: %v", name, grown)
		}
		var drawn bytes.Buffer
		if err := picture(&drawn, "a <title>", c.samples); err != nil {
			t.Error(err)
		}
		wellFormed(t, drawn.Bytes())
	}
}
