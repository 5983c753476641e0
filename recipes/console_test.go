package recipes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"
)

const consoleRecipe = `
variable "key" {
  type      = string
  sensitive = true
}
variable "fleet" { default = { north = 2, south = 10 } }
locals { greeting = "hello" }
channel "lines" {}
channel "shard" { for_each = var.fleet }
species "reader" { module = "absent.wasm" }
creature "census" {
  species = species.reader
  listen  = [channel.lines, channel.shard["north"], channel.shard["south"]]
}
function "twice" {
  params = [x]
  result = [x, x]
}
`

func openConsole(t testing.TB, source string) *Console {
	t.Helper()
	c, diags := OpenConsole(t.Context(), write(t, source), Options{Vars: map[string]string{"key": "hush"}, Shared: true})
	if c == nil {
		t.Fatal(diags.Err())
	}
	t.Cleanup(c.Close)
	return c
}

// TestConsole evaluates members and functions of a recipe; its modules need not exist.
func TestConsole(t *testing.T) {
	c := openConsole(t, consoleRecipe)
	dir := c.in.folder.abs
	if err := os.WriteFile(filepath.Join(dir, "late.txt"), []byte("read when asked"), 0o600); err != nil {
		t.Fatal(err)
	}
	for expr, want := range map[string]string{
		"  ":                                    "",
		"# 1 / 0":                               "",
		"// 1 / 0":                              "",
		"1 + 2 # three":                         "3",
		"var.fleet.south * 2":                   "20",
		"local.greeting":                        `"hello"`,
		`"a\nb ${local.greeting} $${"`:          `"a\nb hello $${"`,
		"channel.lines":                         "channel.lines",
		"channel.lines.name":                    `"lines"`,
		`channel.shard["north"]`:                `channel.shard["north"]`,
		"channel":                               "{\n  lines = channel.lines\n  shard = {\n    north = channel.shard[\"north\"]\n    south = channel.shard[\"south\"]\n  }\n}",
		"[creature.census]":                     "[creature.census]",
		"species.reader":                        "species.reader",
		"path.recipe":                           string(keyText(dir)),
		`contains(["a", null], tostring(null))`: "true",
		"twice(null)":                           "[null, null]",
		`file("late.txt")`:                      `"read when asked"`,
		"[for k, n in var.fleet : k if n > 5]":  `["south"]`,
		`{ "a b" = 1, long = [], c = { d = true } }`: "{\n  \"a b\" = 1\n  c = {\n    d = true\n  }\n  long = []\n}",
		"range(40)":                    "[\n  0,\n" + lines(1, 40) + "]",
		"var.key":                      hiddenValue,
		"length(var.key)":              hiddenValue,
		`{ a = 1, b = "${var.key}!" }`: "{\n  a = 1\n  b = (sensitive value)\n}",
		`toset([var.key])`:             hiddenValue,
	} {
		if got, diags := c.Evaluate(1, expr); got != want || len(diags) > 0 {
			t.Errorf("%s is\n%s\nand %v, want\n%s", expr, got, diags, want)
		}
	}
	if n := len(c.in.exprs); n > 20 {
		t.Errorf("it remembers %d expressions", n)
	}
}

// lines returns n numbers as elements of a list, each on its own line.
func lines(from, to int) string {
	var b strings.Builder
	for n := from; n < to; n++ {
		b.WriteString("  " + textOfValue(cty.NumberIntVal(int64(n))) + ",\n")
	}
	return b.String()
}

// TestConsoleTellsWhatIsWrong compares the console's findings with those of validate, and
// evaluates further expressions afterwards.
func TestConsoleTellsWhatIsWrong(t *testing.T) {
	c := openConsole(t, consoleRecipe)
	for expr, want := range map[string]string{
		"1 + var.flet.north":      "Error: Unknown variable\n  standard input:7:5\n  7 | 1 + var.flet.north\n    |     ^^^^^^^^\n  No variable named \"flet\" is declared.\n  Did you mean \"fleet\"?\n",
		"each.key":                "Error: No for_each here\n  standard input:7:1\n  7 | each.key\n    | ^^^^^^^^\n  each.key and each.value can only be used in a block with for_each.\n  = Give the block a for_each, or write the value itself.\n",
		`tonumber("x${var.key}")`: "Error: Invalid function argument\n  standard input:7:11\n  7 | tonumber(\"x${var.key}\")\n    |           ^\n  The reason is not shown because it involves a sensitive value.\n  - var.key is sensitive\n",
	} {
		got, diags := c.Evaluate(7, expr)
		if text := rendered(t, diags); got != "" || text != want {
			t.Errorf("%s is %q, and the findings are\n%s\nwant\n%s", expr, got, text, want)
		}
	}
	for _, expr := range []string{"1 +", "a b", "(", "\xff", "\u202e1", strings.Repeat("(", 1000), strings.Repeat(" ", defaultMaxFileBytes) + "1", "absent(1)", `contains(["a"], null)`} {
		if got, diags := c.Evaluate(3, expr); got != "" || !diags.HasErrors() || diags[0].Range.File != consoleName {
			t.Errorf("%.20q is %q, and the findings are %v", expr, got, diags)
		}
	}
	if got, diags := c.Evaluate(8, "1"); got != "1" || len(diags) > 0 {
		t.Errorf("afterwards, 1 is %q: %v", got, diags)
	}
}

// rendered returns findings as users see them.
func rendered(t *testing.T, d Diagnostics) string {
	t.Helper()
	var b strings.Builder
	if err := WriteText(&b, d, 100, false); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestConsoleBoundsEachExpression exceeds the budget of one expression, and then spends
// more in many expressions than a whole recipe may.
func TestConsoleBoundsEachExpression(t *testing.T) {
	c := openConsole(t, harmless+"locals { big = join(\"\", [for n in range(1000) : \"0123456789012345678901234567890123456789\"]) }\n"+
		"function \"deep\" {\n params = [x]\n result = deep([x])\n}")
	many := "[" + strings.Repeat("local.big, ", 200) + "]"
	for expr, want := range map[string]string{
		many:      "Value too large",
		"deep(1)": "Error in function call",
		"[for a in range(1000) : [for b in range(1000) : [for c in range(1000) : 1]]]": "Values too large",
	} {
		got, diags := c.Evaluate(1, expr)
		if got != "" || len(diags) != 1 || diags[0].Summary != want {
			t.Errorf("%.30s is %.30q, and the findings are %v", expr, got, diags)
		}
	}
	for line := range 40 { // each takes about a fifth of a recipe's budget
		if _, diags := c.Evaluate(line, `length([for n in range(40) : "${local.big}"])`); len(diags) > 0 {
			t.Fatalf("line %d: %v", line, diags)
		}
	}
	for _, expr := range endless {
		if got, diags := c.Evaluate(1, expr); !diags.HasErrors() {
			t.Errorf("%s is %.30q", clipped(expr), got)
		}
	}
}

// TestTextOfValueIsAFormattedExpression proves for random values that their text is
// formatted, and evaluates to the same value.
func TestTextOfValueIsAFormattedExpression(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawValue(t, 3)
		text := textOfValue(v)
		expr, diags := hclsyntax.ParseExpression([]byte(text), "", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatalf("%s: %v", text, diags)
		}
		back, diags := expr.Value(nil)
		if diags.HasErrors() || !back.RawEquals(v) {
			t.Errorf("%#v is written\n%s\nand read as %#v, %v", v, text, back, diags)
		}
		file := "x = " + text + "\n"
		if formatted, found := Format("team.hcl", []byte(file)); string(formatted) != file {
			t.Errorf("written:\n%s\nformatted:\n%s\n%v", file, formatted, found)
		}
	})
}

// drawValue draws a value that an expression can have.
func drawValue(t *rapid.T, depth int) cty.Value {
	kinds := 4
	if depth > 0 {
		kinds = 6
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return cty.StringVal(rapid.String().Draw(t, "text"))
	case 1:
		return cty.NumberIntVal(rapid.Int64().Draw(t, "number"))
	case 2:
		return cty.BoolVal(rapid.Bool().Draw(t, "flag"))
	case 3:
		return cty.NullVal(cty.DynamicPseudoType)
	case 4:
		var list []cty.Value
		for range rapid.IntRange(0, 6).Draw(t, "length") {
			list = append(list, drawValue(t, depth-1))
		}
		return cty.TupleVal(list)
	}
	key := rapid.OneOf(rapid.SampledFrom([]string{"a", "for", "if", "true", "null", "in", "a-b", "long_name", "界", ""}), rapid.StringMatching(`[a-zé界 ."${}]*`))
	object := map[string]cty.Value{}
	for range rapid.IntRange(0, 6).Draw(t, "size") {
		object[cty.StringVal(key.Draw(t, "key")).AsString()] = drawValue(t, depth-1)
	}
	return cty.ObjectVal(object)
}

// FuzzConsole evaluates expressions one after another: each has a value or a finding, or
// is blank.
func FuzzConsole(f *testing.F) {
	addExpressions(f)
	f.Fuzz(func(t *testing.T, expr string) {
		c := openConsole(t, harmless+"locals {\n b = [1, \"x\"]\n}\nfunction \"double\" {\n params = [x]\n result = [x, x]\n}\n")
		started := time.Now()
		got, diags := c.Evaluate(1, expr)
		if (got == "") != (diags.HasErrors() || isBlank(expr)) {
			t.Errorf("%q is %q, and the findings are %v", expr, got, diags)
		}
		if one, diags := c.Evaluate(2, "1"); one != "1" || len(diags) > 0 {
			t.Errorf("afterwards, 1 is %q: %v", one, diags)
		}
		if time.Since(started) > patience {
			t.Errorf("%q took too long", expr)
		}
	})
}
