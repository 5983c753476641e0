package recipes

import (
	"testing"
	"time"
)

var tested = map[string]string{
	"team.hcl": `
variable "size" { type = number }
variable "token" {
  default   = "hunter2"
  sensitive = true
}
channel "in" {}
channel "each" { for_each = toset(["a", "b"]) }
recipe "sub" {
  source   = "./sub"
  for_each = toset(["x"])
}
creature "boss" {
  module = "builtin:relay"
  listen = concat([channel.in], values(channel.each))
}
root = creature.boss
test "holds" {
  variables = { size = 2 }
  timeout   = "1s"
  send {
    channel = channel.each["b"]
    lines   = [for n in range(var.size) : "line ${n}"]
    headers = { kind = "test" }
  }
  send {
    channel = recipe.sub["x"].channel.own
    json    = { a = [1] }
  }
  assert { condition = length(result.channel.each["a"]) == 0 && result.channel.each["b"][1].payload == "two" }
  assert { condition = result.channel.in[0].json.n == 3 && result.channel.in[0].headers.h == "v" && result.channel.in[0].sender == "" }
  assert { condition = result.channel.in[1].json == null && result.channel.in[1].payload == null }
  assert { condition = result.recipe.sub["x"].creature.c.state.k == "v" && result.recipe.sub["x"].creature.c.output[0].json == 7 }
  assert { condition = result.channel.report_to_root[0].payload == "told" }
  assert { condition = result.dead_letters[0].reason == "trap" && result.denials[0].policy == "p" && var.size == 2 }
}
test "fails" {
  variables = { size = 1 }
  assert { condition = false }
  assert { condition = null }
  assert { condition = "perhaps" }
  assert { condition = result.channel.in[9].payload == "x" }
  assert { condition = result.channel.in[0].json.missing == 1 }
  assert {
    condition     = length(result.channel.in) == 0
    error_message = "There are ${length(result.channel.in)}."
  }
  assert {
    condition     = var.token == ""
    error_message = "It is ${var.token}."
  }
}
`,
	"sub/sub.hcl": `
channel "own" {}
creature "c" {
  module = "builtin:relay"
  listen = [channel.own]
}
test "of the sub-recipe" {
  assert { condition = true }
}
`,
}

var outcome = TestOutcome{
	Messages: map[string][]TestMessage{
		`channel.each["b"]`:      {{Payload: []byte("one")}, {Payload: []byte("two")}},
		"channel.in":             {{Payload: []byte(`{"n": 3}`), Headers: map[string]string{"h": "v"}}, {Payload: []byte{0xff}}},
		"channel.report_to_root": {{Payload: []byte("told"), Sender: "creature.boss"}},
	},
	State:       map[string]map[string][]byte{`recipe.sub["x"].creature.c`: {"k": []byte("v"), "binary": {0xff}}},
	Outputs:     map[string][][]byte{`recipe.sub["x"].creature.c`: {[]byte("7")}},
	DeadLetters: []TestDeadLetter{{Creature: "creature.boss", Reason: "trap"}},
	Denials:     []TestDenial{{Policy: "p", Effect: "denied"}},
}

// A test is loaded with its own variables, has its messages, and refers to the outcome by
// the names of the recipe. The names of tests in sub-recipes include the sub-recipe.
func TestTests(t *testing.T) {
	tests, d := LoadTests(t.Context(), writeAll(t, tested), Options{Vars: map[string]string{"size": "3"}})
	if len(tests) != 3 {
		t.Fatal(render(t, d, ""))
	}
	holds := tests[0]
	if holds.Name != "holds" || holds.Where != "team.hcl:18" || holds.Timeout != time.Second || tests[1].Timeout != DefaultTestTimeout {
		t.Errorf("%+v, %v", holds, tests[1].Timeout)
	}
	if part := tests[2]; part.Name != `recipe.sub["x"]: of the sub-recipe` || len(part.Check(outcome)) > 0 || len(part.Recipe.Deployment().Creatures) != 2 {
		t.Errorf("the test of the sub-recipe is %q, in a recipe with %+v", part.Name, part.Recipe.Deployment().Creatures)
	}
	var sends []string
	for _, step := range holds.Steps {
		s := step.Send
		sends = append(sends, s.Channel+" "+string(s.Payload)+" "+s.Headers["kind"])
	}
	want := []string{`channel.each["b"] line 0 test`, `channel.each["b"] line 1 test`, `recipe.sub["x"].channel.own {"a":[1]} `}
	if len(sends) != len(want) || sends[0] != want[0] || sends[1] != want[1] || sends[2] != want[2] {
		t.Errorf("it sends %q, want %q", sends, want)
	}
	if d := holds.Check(outcome); len(d) > 0 {
		t.Error(render(t, d, ""))
	}
}

// Every assertion that is false or invalid is a separate finding.
func TestAssertionsFail(t *testing.T) {
	tests, d := LoadTests(t.Context(), writeAll(t, tested), Options{Vars: map[string]string{"size": "3"}})
	if len(tests) != 3 {
		t.Fatal(render(t, d, ""))
	}
	found := tests[1].Check(outcome)
	want := []struct{ summary, detail string }{
		{"Assertion failed", "The condition does not hold."},
		{"Wrong type", "A condition must be true or false; this is null."},
		{"Wrong type", `A condition must be true or false; this is "perhaps".`},
		{"Invalid index", ""}, {"Unsupported attribute", ""},
		{"Assertion failed", "There are 2."},
		{"Assertion failed", "The message is sensitive, so it is not shown."},
	}
	if len(found) != len(want) {
		t.Fatal(render(t, found, ""))
	}
	for i, w := range want {
		if found[i].Summary != w.summary || w.detail != "" && found[i].Detail != w.detail {
			t.Errorf("finding %d is %v, want %v", i, found[i], w)
		}
	}
}

// A mistake in a test block affects only tests and validation.
func TestMistakesInTestsStopNothingElse(t *testing.T) {
	path := writeAll(t, map[string]string{"r.hcl": `
channel "in" {}
creature "a" {
  module = "builtin:relay"
  listen = [channel.in]
}
test "wrong" {
  assert { condition = length(result.channel.nowhere) == 0 }
}
`})
	mustLoad(t, path, Options{})
	if _, d := Load(t.Context(), path, Options{Tests: true}); !d.HasErrors() {
		t.Error("validation does not find it")
	}
	if _, d := LoadTests(t.Context(), path, Options{}); !d.HasErrors() {
		t.Error("the test is executed")
	}
}

// An output wire does not join graphs.
func TestWiresBetweenGraphs(t *testing.T) {
	const text = `
channel "left" {}
channel "right" {}
creature "a" {
  module = "builtin:relay"
  listen = [channel.left]
  wire "w" { to = creature.b }
}
creature "b" {
  module = "builtin:relay"
  listen = [channel.right]
}
`
	_, d := Load(t.Context(), writeAll(t, map[string]string{"r.hcl": text}), Options{})
	if len(d) != 1 || d[0].Summary != "Wire between graphs" || d[0].Range.Start.Line != 7 {
		t.Errorf("found %v", d)
	}
	for _, joined := range []string{text + "root = creature.b\n", text + "creature \"c\" {\n module = \"builtin:relay\"\n listen = [channel.left]\n send = [channel.right]\n}\n"} {
		mustLoad(t, writeAll(t, map[string]string{"r.hcl": joined}), Options{})
	}
}
