package wasmbin_test

import (
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/host/wasmbin"
)

// tableRow is a row of the table of limits: its name, six measured amounts, the
// default and the margin.
var tableRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\|((?: [\\d,]+ \\|){6}) ([\\d,]+) \\| ([\\d.]+) \\|$")

func TestReadmeTellsTheDefaults(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	defaults := reflect.ValueOf(wasmbin.DefaultLimits())
	rows := tableRow.FindAllStringSubmatch(string(readme), -1)
	if len(rows) != defaults.NumField() {
		t.Errorf("the table has %d rows, there are %d limits", len(rows), defaults.NumField())
	}
	for _, row := range rows {
		field := defaults.FieldByName(row[1])
		if !field.IsValid() {
			t.Errorf("there is no limit %s", row[1])
			continue
		}
		if said := number(t, row[3]); said != field.Int() {
			t.Errorf("%s: the table says %d, the default is %d", row[1], said, field.Int())
		}
		for _, measured := range strings.Split(strings.Trim(row[2], " |"), " | ") {
			if number(t, measured) > field.Int() {
				t.Errorf("%s: %s was found, the default is %d", row[1], measured, field.Int())
			}
		}
	}
}

func TestZeroLimitsAreTheDefaults(t *testing.T) {
	defaults := reflect.ValueOf(wasmbin.DefaultLimits())
	for i := range defaults.NumField() {
		if defaults.Field(i).Int() <= 0 {
			t.Errorf("%s has no default", defaults.Type().Field(i).Name)
		}
	}
	// The limits for which a module that exceeds them is made quickly.
	for _, name := range []string{"CustomSections", "ModuleNameBytes", "NameBytes", "Types", "Params", "Results", "Imports", "Tables",
		"TableElements", "Exports", "Globals", "ElementSegments", "Locals", "BlockDepth", "Blocks", "BranchTable", "StackHeight"} {
		most := int(defaults.FieldByName(name).Int())
		wasm := capped[name](t, most+1).Write()
		if _, err := valid(wasm, wasmbin.Limits{}); err == nil || !strings.Contains(err.Error(), "raise wasmbin.Limits."+name) {
			t.Errorf("%s: one more than the default is not refused: %v", name, err)
		}
	}
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.ReplaceAll(s, ",", ""), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
