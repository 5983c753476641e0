package main

import (
	"strings"
	"testing"
)

const program = `package p

func f(a, b int, s string) (n int) {
	if a < b && s != "x" {
		n++
	}
	n += a * b
	return n << 1
}

var text = "a" + "b"
`

func TestSites(t *testing.T) {
	sites, err := sitesIn("p.go", []byte(program))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range sites {
		mutated, err := sites[i].mutate([]byte(program))
		if err != nil {
			t.Fatal(err)
		}
		lines, wrong := strings.Split(program, "\n"), strings.Split(mutated, "\n")
		for n := range lines {
			if lines[n] != wrong[n] {
				got = append(got, strings.TrimSpace(wrong[n]))
			}
		}
	}
	want := `if a < b || s != "x" {
if a <= b && s != "x" {
if a < b && s == "x" {
n--
n -= a * b
n += a + b
return n >> 1`
	if strings.Join(got, "\n") != want {
		t.Errorf("the mutants have\n%s", strings.Join(got, "\n"))
	}
	if _, err := sites[0].mutate([]byte("package p")); err == nil {
		t.Error("a site of another text is exchanged")
	}
}

// TestOwnSites finds the operators of this package, and draws none without a package.
func TestOwnSites(t *testing.T) {
	sites, err := sitesOf(".")
	if err != nil || len(sites) < 10 {
		t.Errorf("%d sites, %v", len(sites), err)
	}
	for _, s := range sites {
		if strings.HasSuffix(s.file, "_test.go") {
			t.Errorf("%v is in a test", &s)
		}
	}
	var out strings.Builder
	if err := run(t.Context(), nil, &out); err == nil || !strings.Contains(err.Error(), "name packages") {
		t.Errorf("%v, %s", err, out.String())
	}
}
