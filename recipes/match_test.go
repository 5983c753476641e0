package recipes

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/zclconf/go-cty/cty"
)

func matching(t testing.TB, match string) deploy.Policy {
	t.Helper()
	return mustLoad(t, write(t, `creature "a" { module = "builtin:relay" }
locals { names = toset(["tasks", "reviews"]) }
policy "send" "p" {
  match = `+match+`
  run   = "() => deny('no')"
}`), Options{}).Deployment().Policy
}

func sample() *deploy.SendEvent {
	return &deploy.SendEvent{Graph: "g", Deployment: "team", ChannelName: "tasks", ChannelAddress: "channel.tasks",
		SenderName: "writer", SenderAddress: "creature.writer", Payload: []byte("hello"), Headers: map[string]string{"k": "v"}}
}

func TestMatch(t *testing.T) {
	for match, want := range map[string]bool{
		`true`:                        true,
		`false`:                       false,
		`event.channel == "tasks"`:    true,
		`event.channel != "tasks"`:    false,
		`"tasks" == event.channel`:    true,
		`!(event.sender == "writer")`: false,
		`event.size >= 5`:             true,
		`event.size < 5`:              false,
		`event.size == 5 && event.sender == "x" || event.kind == "send"`: true,
		`contains(local.names, event.channel)`:                           true,
		`lookup(event.headers, "k", "") == "v"`:                          true,
		`event.headers["k"] == "v"`:                                      true,
		`event.payload == "hello"`:                                       true,
		`can(regex("^h", event.payload))`:                                true,
		`event.channel_address == "channel.tasks" ? true : false`:        true,
	} {
		d := matching(t, match).Send(t.Context(), sample())
		if got := len(d.Denials) == 1 && d.Denials[0].Reason == "no"; got != want {
			t.Errorf("%s: got %v (%+v)", match, got, d.Denials)
		}
	}
}

// Conditions are bounded in each evaluation, not in total.
func TestMatchesAreBounded(t *testing.T) {
	const most = `length(flatten([for a in range(event.size) : [for b in range(event.size) : a if b < event.size]])) == `
	p := matching(t, most+"625")
	for range 100 {
		e := sample()
		e.Payload = []byte(strings.Repeat("x", 25))
		if d := p.Send(t.Context(), e); len(d.Denials) != 1 || d.Denials[0].Reason != "no" {
			t.Fatalf("it does not hold: %+v", d.Denials)
		}
	}
	e := sample()
	e.Payload = []byte(strings.Repeat("x", 1000))
	for range 2 {
		if d := p.Send(t.Context(), e); len(d.Denials) != 1 || !strings.Contains(d.Denials[0].Reason, "Values too large") {
			t.Fatalf("it was not refused: %+v", d.Denials)
		}
	}
}

// Compiled conditions and the evaluator agree.
func TestQuickMatchAgrees(t *testing.T) {
	fields := []string{"channel", "sender", "deployment", "graph", "channel_address", "sender_address", "sender_species"}
	var all []string
	for _, f := range fields {
		for _, op := range []string{"==", "!="} {
			all = append(all, fmt.Sprintf(`event.%s %s "tasks"`, f, op), fmt.Sprintf(`"writer" %s event.%s`, op, f),
				fmt.Sprintf(`contains(["tasks", "creature.writer"], event.%s)`, f))
		}
	}
	for _, op := range []string{"==", "!=", "<", "<=", ">", ">="} {
		for _, n := range []string{"4", "5", "6", "4.5"} {
			all = append(all, "event.size "+op+" "+n, n+" "+op+" event.size")
		}
	}
	for i, a := range slices.Clone(all) {
		all = append(all, fmt.Sprintf("!(%s) && (%s)", a, all[(i*7+3)%len(all)]), fmt.Sprintf("%s || !(%s)", a, all[(i*5+1)%len(all)]))
	}
	ctx := &hcl.EvalContext{Functions: (&folder{}).functions(), Variables: map[string]cty.Value{}}
	known := slices.Sorted(maps.Keys(sendFields))
	for _, source := range all {
		expr, diags := hclsyntax.ParseExpression([]byte(source), "", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		q := quickSend
		q.ctx = ctx
		fast, slow := q.condition(expr), matcher(expr, ctx, known, sendFields)
		if fast == nil {
			t.Errorf("%s is not known to the quick way", source)
			continue
		}
		a, errA := fast(sample())
		b, errB := slow(sample())
		if a != b || errA != nil || errB != nil {
			t.Errorf("%s: quick %v %v, general %v %v", source, a, errA, b, errB)
		}
	}
}

// A condition that cannot be decided denies, like any policy that fails.
func TestMatchFails(t *testing.T) {
	e := sample()
	e.Headers = nil
	d := matching(t, `event.headers["k"] == "v"`).Send(t.Context(), e)
	if len(d.Denials) != 1 || d.Denials[0].Reason == "no" {
		t.Errorf("got %+v", d)
	}
}

func BenchmarkMatchFalse(b *testing.B) {
	for name, match := range map[string]string{
		"equal":    `event.sender == "absent"`,
		"size":     `event.size > 1000`,
		"and":      `event.channel == "tasks" && event.sender == "absent"`,
		"contains": `contains(local.names, event.sender)`,
	} {
		b.Run(name, func(b *testing.B) {
			p, e := matching(b, match), sample()
			b.ReportAllocs()
			for b.Loop() {
				p.Send(b.Context(), e)
			}
		})
	}
}
