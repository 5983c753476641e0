package sdk_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/internal/guesttools"
	"github.com/seed47132306/terrarium/sdk/internal/kits"
)

// TestLines proves for every language with debugging information that the dead letter of
// a creature built with it names the file and the line, both of a trap and of a loop that
// uses up the fuel. The other languages tell the place of a panic; see TestBadInput.
func TestLines(t *testing.T) {
	for _, k := range kits.All {
		t.Run(k.Language, func(t *testing.T) {
			if k.Lines == nil {
				t.Skipf("%s has no debugging information for modules", k.Language)
			}
			guesttools.Use(t)
			if missing := k.Missing(root); missing != "" {
				guesttools.Missing(t, missing+" is missing")
			}
			top, err := filepath.Abs(root)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := k.Lines(t.Context(), top, dir); err != nil {
				t.Fatal(err)
			}
			letters := deadLetters(t, filepath.Join(dir, "picky.wasm"))
			for payload, place := range map[string]string{
				"panic": `the guest trapped: unreachable \(in [^<]* at [^ ]*\b(picky|lib)\.\w+:\d+`,
				"loop":  `the limit fuel, [^(]*\(in [^<]* at [^ ]*\b(picky|lib)\.\w+:\d+`,
			} {
				letter := letters[slices.IndexFunc(badInputs, func(c badInput) bool { return c.payload == payload })]
				if found, err := regexp.MatchString(place, letter.Error); err != nil || !found {
					t.Errorf("the dead letter has no place like %s (%v): %s", place, err, letter.Error)
				}
			}
		})
	}
}
