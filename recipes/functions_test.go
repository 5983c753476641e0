package recipes

import (
	"fmt"
	"testing"
)

// The results of functions in the form in which a creature gets them.
func TestExpressions(t *testing.T) {
	for expr, want := range map[string]string{
		`length("grüße")`:                                                 `5`,
		`length([1, 2])`:                                                  `2`,
		`length({ a = 1 })`:                                               `1`,
		`length(toset(["a", "a"]))`:                                       `1`,
		`merge({ a = 1 }, { b = 2 })`:                                     `{"a":1,"b":2}`,
		`format("%s-%03d", "a", 7)`:                                       `"a-007"`,
		`join(",", split(" ", "a b"))`:                                    `"a,b"`,
		`jsondecode(jsonencode({ a = [1, null] }))`:                       `{"a":[1,null]}`,
		`try(tonumber("x"), 3)`:                                           `3`,
		`can(tonumber("x"))`:                                              `false`,
		`coalesce(null, "a")`:                                             `"a"`,
		`lookup({ a = "x" }, "b", "y")`:                                   `"y"`,
		`regex("[0-9]+", "ab12")`:                                         `"12"`,
		`replace("a.b", ".", "-")`:                                        `"a-b"`,
		`replace("a1b22", "/[0-9]+/", "[$0]")`:                            `"a[1]b[22]"`,
		`replace("a/b", "/", "-")`:                                        `"a-b"`,
		`replace("a//b", "//", "-")`:                                      `"a-b"`,
		`replace("ab", "/(a)(b)/", "$2$1")`:                               `"ba"`,
		`[sum([1, 2.5, -1]), sum([])]`:                                    `[2.5,0]`,
		`sum(toset([1, 1, 2]))`:                                           `3`,
		`[alltrue([true, 1 < 2]), alltrue([]), alltrue([true, null])]`:    `[true,true,false]`,
		`[anytrue([false, 1 < 2]), anytrue([]), anytrue([null])]`:         `[true,false,false]`,
		`[one(["a"]), one([]), one(toset([1])), one(toset([]))]`:          `["a",null,1,null]`,
		`[strcontains("abc", "bc"), strcontains("abc", "x")]`:             `[true,false]`,
		`sha256("abc")`:                                                   `"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"`,
		`yamldecode("a: [1, true]\nb: &x {c: ~}\nd: *x")`:                 `{"a":[1,true],"b":{"c":null},"d":{"c":null}}`,
		`yamldecode(yamlencode({ a = ["x", 1.5, null, "two\nlines"] }))`:  `{"a":["x",1.5,null,"two\nlines"]}`,
		`yamlencode({ a = [1] })`:                                         `"\"a\":\n- 1\n"`,
		`[basename("a/b.txt"), dirname("a/b.txt"), dirname("b.txt")]`:     `["b.txt","a","."]`,
		`[fileexists("team.hcl"), fileexists("absent"), fileexists(".")]`: `[true,false,false]`,
		`fileset(".", "*.hcl")`:                                           `["team.hcl"]`,
		`fileset(path.recipe, "**/*.hcl")`:                                `["team.hcl"]`,
		`nonsensitive(1)`:                                                 `1`,
		`[timecmp("2020-01-01T00:00:00Z", "2020-01-01T01:00:00+01:00"), timecmp("2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z")]`: `[0,-1]`,
		`[max(1, 2), min(1, 2), abs(-1)]`:        `[2,1,1]`,
		`[upper("a"), lower("A"), title("a b")]`: `["A","a","A B"]`,
		`range(3)`:                               `[0,1,2]`,
		`tolist(toset(["b", "a"]))`:              `["a","b"]`,
		`tomap({ a = 1 })`:                       `{"a":1}`,
		`[tobool("true"), tostring(1)]`:          `[true,"1"]`,
		`[startswith("ab", "a"), startswith("a", "ab"), endswith("ab", "b")]`: `[true,false,true]`,
		`base64decode(base64encode("hé"))`:                                    `"hé"`,
		`{ for k, v in { a = 1, b = 2 } : v => k }`:                           `{"1":"a","2":"b"}`,
		`[for x in ["a", "b"] : upper(x) if x != "a"]`:                        `["B"]`,
		`local.numbers[*]`:                     `[1,2]`,
		`keys(var)`:                            `["n"]`,
		`length(local)`:                        `1`,
		`[for c in channel : c.name]`:          `["x"]`,
		`"${1 + 1}%{ if true } yes%{ endif }"`: `"2 yes"`,
		`1 < 2 ? "a" : "b"`:                    `"a"`,
	} {
		source := fmt.Sprintf(`
variable "n" { default = 1 }
locals { numbers = [1, 2] }
channel "x" {}
creature "a" {
  module = "builtin:relay"
  send   = [channel.x]
  config = { v = %s }
}`, expr)
		r, d := Load(t.Context(), write(t, source), Options{})
		if r == nil {
			t.Errorf("%s:\n%s", expr, render(t, d, ""))
			continue
		}
		if got := string(r.Deployment().Creatures[0].Config); got != `{"v":`+want+`}` {
			t.Errorf("%s: got %s, want %s", expr, got, want)
		}
	}
}

func TestExpressionMistakes(t *testing.T) {
	for _, expr := range []string{
		`length(1)`, `tonumber("x")`, `base64decode("%")`, `base64decode("/w==")`, `toset([1, "a", {}])`, `jsondecode("{")`,
		`templatefile("nowhere.tpl", {})`, `templatefile("team.hcl", 1)`, `range(1, 5000)`, `element([], 0)`, `sum([1, "x"])`, `sum([null])`, `one([1, 2])`, `one(toset([1, 2]))`, `one(1)`,
		`yamldecode("a: [")`, `yamldecode("a: *b")`, `yamldecode("&a [*a]")`, `yamldecode("x: .inf")`, `fileset("nowhere", "*")`, `fileset("team.hcl", "*")`,
		`fileset(".", "[")`, `fileset("..", "*")`, `fileexists("../x")`, `timecmp("noon", "2020-01-01T00:00:00Z")`, `replace("a", "/(/", "")`,
		`1 / 0`, `"a" + 1`, `[][0]`, `null.x`,
	} {
		if r, _ := Load(t.Context(), write(t, "creature \"a\" {\n  module = \"builtin:relay\"\n  config = { v = "+expr+" }\n}"), Options{}); r != nil {
			t.Errorf("%s gives %s", expr, r.Deployment().Creatures[0].Config)
		}
	}
}

// TestNullsOfNoType passes null, which has no type, to functions. Functions that a recipe
// declares accept it. If a function cannot determine its result, there is a finding.
func TestNullsOfNoType(t *testing.T) {
	const wrap = "function \"wrap\" {\n params = [x]\n variadic_param = rest\n result = [x == null, rest]\n}\n"
	r := mustLoad(t, write(t, wrap+`creature "a" {
  module = "builtin:relay"
  config = { got = wrap(null, null) }
}`), Options{Builtins: builtins{"relay"}})
	if got := string(r.Deployment().Creatures[0].Config); got != `{"got":[true,[null]]}` {
		t.Errorf("the configuration is %s", got)
	}
	_, diags := Load(t.Context(), write(t, `creature "a" {
  module = "builtin:relay"
  config = { got = contains(["a"], null) }
}`), Options{Builtins: builtins{"relay"}})
	if len(diags) != 1 || diags[0].Summary != "Value not known" {
		t.Errorf("of a function that knows no null: %v", diags)
	}
}
