package recipes

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/internal/seeded"
)

const harmless = `
creature "a" {
  module = "builtin:relay"
  listen = [channel.in]
}
channel "in" {}
`

// hostileRecipes lists recipes that try to stop, overload or mislead the loader. Each is
// refused with a diagnostic, and none ends the process.
var hostileRecipes = map[string]string{
	"brackets":               "locals { a = " + strings.Repeat("[", 100_000),
	"closed brackets":        "locals { a = " + strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000) + " }",
	"parentheses":            "locals { a = " + strings.Repeat("(", 100_000),
	"objects":                "locals { a = " + strings.Repeat("{a=", 100_000),
	"templates":              `locals { a = "` + strings.Repeat("${\"", 50_000),
	"negations":              "locals { a = " + strings.Repeat("!", 200_000) + "true }",
	"minus signs":            "locals { a = " + strings.Repeat("-", 200_000) + "1 }",
	"conditionals":           "locals { a = " + strings.Repeat("true ? 1 : ", 100_000) + "1 }",
	"sums":                   "locals { a = 1" + strings.Repeat("+1", 200_000) + " }",
	"attributes":             "locals { a = local" + strings.Repeat(".a", 200_000) + " }",
	"indexes":                "locals { a = local" + strings.Repeat("[0]", 200_000) + " }",
	"splats":                 "locals { a = local.b" + strings.Repeat("[*]", 100_000) + " }",
	"calls":                  "locals { a = " + strings.Repeat("upper(", 100_000),
	"for expressions":        "locals { a = " + strings.Repeat("[for x in ", 50_000),
	"nested blocks":          strings.Repeat("creature \"a\" {\n", 50_000),
	"heredocs":               "locals { a = <<-A\n" + strings.Repeat("${<<-B\n", 20_000),
	"a quote":                "locals { a = \"",
	"no text":                "\xff\xfe\x00\x00",
	"NUL":                    "locals { a = \"\x00\" }\ncreature",
	"nested for":             harmless + `locals { a = [for a in range(1024) : [for b in range(1024) : [for c in range(1024) : "x"]]] }`,
	"nested for of nothing":  harmless + `locals { a = [for a in range(1024) : [for b in range(1024) : [for c in range(1024) : 1 if false]]] }`,
	"nested for of keys":     harmless + `locals { a = { for a in range(1024) : a => { for b in range(1024) : b => { for c in range(1024) : c => c } } } }`,
	"a for of a large local": harmless + "locals {\n x = [for a in range(1024) : range(200)]\n y = [for a in local.x : [for b in local.x : a]]\n z = jsonencode(local.y)\n}",
	"nested for, tried":      harmless + `locals { a = try([for a in range(1024) : try([for b in range(1024) : [for c in range(1024) : c]], 1)], 2) }`,
	"nested for, called":     harmless + "function \"f\" {\n params = [n]\n result = [for a in range(1024) : a]\n}\nlocals { a = [for a in range(1024) : [for b in range(1024) : f(b)]] }",
	"nested for, counted":    harmless + `creature "b" {` + "\n for_each = length([for a in range(1024) : [for b in range(1024) : [for c in range(1024) : c]]]) > 0 ? {} : {}\n}",
	"nested for, as default": harmless + `variable "v" { default = [for a in range(1024) : [for b in range(1024) : [for c in range(1024) : c]]] }`,
	"nested for, configured": harmless + "creature \"b\" {\n module = \"builtin:relay\"\n listen = [channel.in]\n config = { a = [for a in range(1024) : [for b in range(1024) : [for c in range(1024) : c]]] }\n}",
	"nested for, checked":    harmless + `check "c" {` + "\n assert { condition = length([for a in range(1024) : [for b in range(1024) : [for c in range(1024) : c]]]) > 0 }\n}",
	"many moves":             harmless + strings.Repeat("moved {\n from = creature.x\n to = creature.a\n}\n", 5_000),
	"a circle of moves":      harmless + circleOfMoves(1_000),
	"nested for, dynamic": harmless + "creature \"b\" {\n module = \"builtin:relay\"\n listen = [channel.in]\n dynamic \"wire\" {\n" +
		"for_each = [for a in range(1024) : [for b in range(1024) : [for c in range(1024) : c]]]\n content {\n to = creature.a\n }\n }\n}",
	"nested for, matched":      harmless + "policy \"send\" \"p\" {\n match = length([for a in range(1024) : [for b in range(1024) : [for c in range(1024) : c]]]) > 0\n run = \"() => {}\"\n}",
	"nested for in a template": harmless + `locals { a = "%{ for a in range(1024) }%{ for b in range(1024) }%{ for c in range(1024) }x%{ endfor }%{ endfor }%{ endfor }" }`,
	"a large template":         harmless + large4MiB + `locals { a = "` + strings.Repeat("${local.x18}", 1000) + `" }`,
	"many large calls":         harmless + large4MiB + `locals { a = [` + strings.Repeat("upper(local.x18), ", 1000) + `] }`,
	"a joined text":            harmless + large4MiB + `locals { a = join(local.x18, range(1024)) }`,
	"a replaced text":          harmless + large4MiB + `locals { a = replace(local.x18, "x", local.x18) }`,
	"a split text":             harmless + large4MiB + `locals { a = split("", local.x18) }`,
	"a formatted text":         harmless + large4MiB + `locals { a = formatlist("%s%s%s", local.x18, range(1024), 1) }`,
	"matches":                  harmless + large4MiB + `locals { a = regexall("(((x)))", local.x18) }`,
	"many ranges":              harmless + `locals { a = [` + strings.Repeat("range(1024), ", 2000) + `] }`,
	"a number":                 harmless + `locals { a = "${1e99999999}" }`,
	"a small number":           harmless + `locals { a = "${1e-99999999}" }`,
	"a number as a text":       harmless + `locals { a = upper(1e99999999) }`,
	"a number from a text":     harmless + `locals { a = "${tonumber("1e99999999")}" }`,
	"a number as JSON":         harmless + `locals { a = "${jsondecode("1e99999999")}" }`,
	"a number as a key":        harmless + `locals { a = { (1e99999999) = 1 } }`,
	"a squared number":         harmless + doubling(`local.x%d * local.x%d`, `1e1000`),
	"a power":                  harmless + `locals { a = "${` + strings.Repeat("1e4000 * ", 1000) + `1}" }`,
	"a configured number":      harmless + "creature \"b\" {\n module = \"builtin:relay\"\n listen = [channel.in]\n config = { a = 1e99999999 }\n}",
	"a long range":             harmless + "locals { a = range(1000000000) }",
	"a product":                harmless + "locals { a = setproduct(range(1000), range(1000), range(1000)) }",
	"a format":                 harmless + `locals { a = format("%1000000000d", 1) }`,
	"an indent":                harmless + `locals { a = indent(1000000000, "a\nb") }`,
	"a doubled text":           harmless + doubling(`"${local.x%d}${local.x%d}"`, `"xxxxxxxx"`),
	"a doubled list":           harmless + doubling(`[local.x%d, local.x%d]`, `[1]`),
	"a cycle":                  harmless + "locals {\n a = local.b\n b = local.a\n}",
	"a cycle by itself":        harmless + "locals { a = [local.a, local.a] }",
	"a file above":             harmless + `locals { a = file("../../../../etc/passwd") }`,
	"an absolute file":         harmless + `locals { a = file("/etc/passwd") }`,
	"a device":                 harmless + `locals { a = file("/dev/zero") }`,
	"a link outside":           harmless + `locals { a = file("link") }`,
	"a linked folder":          harmless + `locals { a = file("folder/passwd") }`,
	"a template outside":       harmless + `locals { a = templatefile("link", {}) }`,
	"a script outside":         harmless + `policy "send" "p" { file = "../x.js" }`,
	"a linked script":          harmless + `policy "send" "p" { file = "link" }`,
	"a script's depth":         harmless + "policy \"send\" \"p\" {\n  run = <<-JS\n    () => " + strings.Repeat("(", 10_000) + "\n  JS\n}",
	"a script's length":        harmless + "policy \"send\" \"p\" {\n  run = <<-JS\n    () => '" + strings.Repeat("x", 100_000) + "'\n  JS\n}",
	"two functions":            harmless + `policy "send" "p" { run = "() => {}, () => {}" }`,
	"a loop outside":           harmless + `policy "send" "p" { run = "for (;;) {}" }`,
	"a match that loops":       harmless + "policy \"send\" \"p\" {\n match = event.size == " + strings.Repeat("(", 5_000) + "1\n run = \"() => {}\"\n}",
	"a large file":             harmless + "#" + strings.Repeat("x", 2<<20),
	"many creatures":           `creature "a" {` + "\n for_each = toset([for i in range(1024) : tostring(i)])\n module = \"missing.wasm\"\n}",
}

// circleOfMoves moves one address to the next, and the last to the first.
func circleOfMoves(n int) string {
	var b strings.Builder
	for k := range n {
		fmt.Fprintf(&b, "moved {\n from = creature.m%d\n to = creature.m%d\n}\n", k, (k+1)%n)
	}
	return b.String()
}

// doubling is a chain of values, each twice as large as the one before.
func doubling(next, first string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "locals {\n x0 = %s\n", first)
	for n := range 50 {
		fmt.Fprintf(&b, " x%d = "+next+"\n", n+1, n, n)
	}
	return b.String() + "}"
}

// large4MiB is a local value of the maximum size.
var large4MiB = doubling4MiB()

func doubling4MiB() string {
	var b strings.Builder
	b.WriteString("locals {\n x0 = \"xxxxxxxx\"\n")
	for n := range 18 {
		fmt.Fprintf(&b, " x%d = \"${local.x%d}${local.x%d}\"\n", n+1, n, n)
	}
	return b.String() + "}\n"
}

// Expressions in JSON are bounded in the same way.
func TestHostileExpressionsInJSONAreRefused(t *testing.T) {
	for i, expr := range []string{
		`${[for a in range(1024) : [for b in range(1024) : [for c in range(1024) : c]]]}`,
		`%{ for a in range(1024) }%{ for b in range(1024) }%{ for c in range(1024) }x%{ endfor }%{ endfor }%{ endfor }`,
		`${1e99999999}!`, `${join(join(",", range(1000, 2024)), range(1024))}`, `${setproduct(range(1024), range(1024))}`,
	} {
		for j, around := range []string{`%s`, `[[%s]]`, `{"k": %s}`, `{%s: 1}`} {
			if !seeded.Part(i+j, 4) {
				continue
			}
			source := fmt.Sprintf(`{"channel": {"in": {}}, "creature": {"a": {"module": "builtin:relay", "listen": ["${channel.in}"], "config": {"v": `+around+`}}}}`, strconv.Quote(expr))
			path := writeJSON(t, source)
			if r, diags := Load(t.Context(), path, Options{Inspector: &inspector{}, Builtins: builtins{"relay"}}); r != nil || !diags.HasErrors() {
				t.Errorf("%s was loaded, with %v", source, diags)
			}
		}
	}
}

// Expressions are also bounded in blocks that a dynamic block makes from JSON.
func TestHostileExpressionsInDynamicJSONAreRefused(t *testing.T) {
	for _, prompt := range []string{
		`${join(",", [for a in range(1024) : join(",", [for b in range(1024) : join(",", range(1024))])])}`,
		`%{ for a in range(1024) }%{ for b in range(1024) }%{ for c in range(1024) }x%{ endfor }%{ endfor }%{ endfor }`,
		`${wire.value * 1e900}`,
	} {
		path := writeJSON(t, dynamicJSON(`[1e900]`, prompt))
		r, diags := Load(t.Context(), path, Options{Inspector: &inspector{}, Builtins: builtins{"relay"}})
		if r != nil || !diags.HasErrors() {
			t.Errorf("%s was loaded, with %v", prompt, diags)
		}
	}
}

// dynamicJSON returns a recipe with a dynamic block for each argument.
func dynamicJSON(each, prompt string) string {
	return fmt.Sprintf(`{"channel": {"in": {}}, "creature": {
		"a": {"module": "builtin:relay", "listen": ["${channel.in}"]},
		"b": {"module": "builtin:relay", "send": ["${channel.in}"],
			"dynamic": {"wire": {"for_each": %s, "labels": ["w${wire.key}"], "content": {"to": "${creature.a}", "prompt": %s}}}}
	}}`, each, strconv.Quote(prompt))
}

// make test has one of these recipes in three.
func TestHostileRecipesAreRefused(t *testing.T) {
	for i, name := range slices.Sorted(maps.Keys(hostileRecipes)) {
		if !seeded.Part(i, 3) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			source := hostileRecipes[name]
			path := write(t, source)
			for link, to := range map[string]string{"link": "/etc/passwd", "folder": "/etc"} {
				if err := os.Symlink(to, filepath.Join(filepath.Dir(path), link)); err != nil {
					t.Fatal(err)
				}
			}
			r, diags := Load(t.Context(), path, Options{Inspector: &inspector{}, Builtins: builtins{"relay"}})
			if r != nil || !diags.HasErrors() {
				t.Fatalf("it was loaded, with %v", diags)
			}
			text := render(t, diags, "")
			if strings.Contains(text, "root:") {
				t.Error("the diagnostics show a file from elsewhere")
			}
		})
	}
}

// The package policy bounds policies at run time. Here such a policy comes from a recipe,
// and the next message still passes.
func TestAHostilePolicyOfARecipeDenies(t *testing.T) {
	p := matchingRun(t, `for (;;) {}`)
	for range 2 {
		d := p.Send(t.Context(), &deploy.SendEvent{ChannelAddress: "channel.in", Payload: []byte("x")})
		if len(d.Denials) != 1 || !strings.HasPrefix(d.Denials[0].Where, "team.hcl:") {
			t.Fatalf("got %+v", d)
		}
	}
}

// matchingRun loads a recipe with a policy with that body.
func matchingRun(t *testing.T, body string) deploy.Policy {
	t.Helper()
	source := harmless + fmt.Sprintf("policy \"send\" \"p\" {\n  timeout = \"20ms\"\n  run = <<-JS\n    () => { %s }\n  JS\n}", body)
	return mustLoad(t, write(t, source), Options{Builtins: builtins{"relay"}}).Deployment().Policy
}
