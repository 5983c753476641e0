package terrarium_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/recipes"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// written is a block of a recipe being written.
type written struct {
	kind, labels string
	attributes   map[string]string
	blocks       []*written
}

func (b *written) write(out *strings.Builder) {
	fmt.Fprintf(out, "%s %s {\n", b.kind, b.labels)
	for _, name := range slices.Sorted(maps.Keys(b.attributes)) {
		fmt.Fprintf(out, "%s = %s\n", name, b.attributes[name])
	}
	for _, nested := range b.blocks {
		nested.write(out)
	}
	out.WriteString("}\n")
}

// find looks for a block of a kind, and with labels if there are any, in another one,
// or in what that has.
func (b *written) find(kind, labels string) *written {
	if b.kind == kind && (labels == "" || b.labels == labels) {
		return b
	}
	for _, nested := range b.blocks {
		if found := nested.find(kind, labels); found != nil {
			return found
		}
	}
	return nil
}

// plot is a recipe that has every block of the language.
func plot() *written {
	block := func(kind, labels string, attributes map[string]string, blocks ...*written) *written {
		if attributes == nil {
			attributes = map[string]string{}
		}
		return &written{kind, labels, attributes, blocks}
	}
	type set = map[string]string
	return block("", "", nil,
		block("terrarium", "", set{"name": `"plot"`}),
		block("session", "", nil),
		block("variable", `"level"`, set{"default": `"a"`}, block("validation", "", set{"condition": "true", "error_message": `"no"`})),
		block("variable", `"hush"`, set{"default": `"a"`, "sensitive": "true"}),
		block("locals", "", set{"word": `"w"`}),
		block("function", `"twice"`, set{"params": "[x]", "result": `"${x}${x}"`}),
		block("channel", `"in"`, nil),
		block("channel", `"other"`, nil),
		block("channel", `"many"`, set{"for_each": `toset(["a"])`}),
		block("species", `"worker"`, set{"module": `"modules/a.wasm"`},
			block("limits", "", nil), block("restart", "", nil), block("mailbox", "", nil),
			block("grants", "", set{"http": `["api"]`, "llm": `["model"]`, "capabilities": `["weather.forecast"]`})),
		block("species", `"spare"`, set{"module": `"more/b.wasm"`}),
		block("catalog", `"shelf"`, set{"folder": `"modules"`, "spawnable": "2"}),
		block("creature", `"first"`, set{"species": "species.worker", "listen": "[channel.in, channel.other]",
			"config": `{ open = "${var.level}${local.word}${twice("x")}", loud = var.level }`},
			block("dynamic", `"wire"`, set{"for_each": `{ "made" = 1 }`, "labels": `["made"]`},
				block("content", "", set{"to": "creature.second", "prompt": `"made: {output}"`})),
			block("wire", `"w"`, set{"to": "creature.second"})),
		block("creature", `"second"`, set{"module": `"modules/a.wasm"`, "listen": "[channel.in]", "send": "[channel.other]"}),
		block("creature", `"third"`, set{"module": `"modules/a.wasm"`, "listen": "[channel.in]"}),
		block("creature", `"each"`, set{"module": `"modules/a.wasm"`, "listen": "values(channel.many)", "for_each": `toset(["a"])`}),
		block("predicate", `"loud"`, set{"run": `"output === 'x'"`}),
		block("predicate", `"quiet"`, set{"run": `"output === 'y'"`}),
		block("policy", `"send" "guard"`, set{"run": `"(event) => { if (event.size > 9) return deny('long'); }"`}),
		block("http", `"api"`, set{"allow": `["https://example.com/**"]`}),
		block("llm", `"model"`, set{"endpoint": `"https://example.com/v1"`, "models": `["small"]`}),
		block("capability", `"weather" "forecast"`, nil),
		block("source", `"cron" "newyear"`, set{"channel": "channel.in", "schedule": `"@yearly"`}),
		block("sink", `"file" "others"`, set{"channel": "channel.other", "path": `"others.jsonl"`}),
		block("stop_when", `"enough"`, set{"turns": "1000000"}),
		block("recipe", `"part"`, set{"source": `"./part"`}),
		block("output", `"o"`, set{"value": "1"}),
		block("moved", "", set{"from": "creature.gone", "to": "creature.second"}),
		block("check", `"c"`, nil, block("assert", "", set{"condition": "true"})),
		block("test", `"t"`, nil,
			block("mock", "", set{"creature": "creature.second"}, block("answer", "", set{"payload": `"x"`})),
			block("advance", "", set{"by": `"1s"`}),
			block("decide", "", set{"decision": `"approve"`}),
			block("send", "", set{"channel": "channel.in", "payload": `"x"`}),
			block("assert", "", set{"condition": "true"})),
	)
}

// besides are the attributes that change along with one, in what it is before and in
// what it becomes: one may replace the other.
var besides = map[string][2]map[string]string{
	"policy.file":            {{"run": ""}, {"run": ""}},
	"predicate.file":         {{"run": ""}, {"run": ""}},
	"send.json":              {{"payload": ""}, {"payload": ""}},
	"send.lines":             {{"payload": ""}, {"payload": ""}},
	"answer.json":            {{"payload": ""}, {"payload": ""}},
	"llm.money_per_creature": {{"prices": `{ small = "1 2" }`}, {"prices": `{ small = "1 2" }`}},
	"llm.money_per_graph":    {{"prices": `{ small = "1 2" }`}, {"prices": `{ small = "1 2" }`}},
	"function.params":        {{}, {"result": `"${y}${y}"`}},
}

// labelled are the blocks whose attributes are edited, where the first of its kind
// is not the right one.
var labelled = map[string]string{"channel.for_each": `"many"`, "creature.for_each": `"each"`}

// silent are attributes that nothing depends on once the recipe has been read, or, as for
// moved, only where something exists at the former address.
var silent = []string{
	"moved.from", "moved.to", "check.description",
	"terrarium.required_version", "variable.description", "variable.type", "validation.condition", "validation.error_message",
	"function.description", "function.params", "function.variadic_param",
	"test.variables", "test.timeout", "test.description", "send.channel", "send.payload", "send.json", "send.lines", "send.headers",
	"test.expect_failures", "mock.creature", "answer.channel", "answer.payload", "answer.json", "answer.reply", "answer.send", "answer.output",
	"answer.fail", "advance.by", "decide.decision", "decide.policy", "decide.reason", "assert.condition", "assert.error_message", "dynamic.iterator",
}

// pairsOf are values for attributes that their types say too little about: what it is
// before, and what it becomes; nothing for what is left out.
var pairsOf = map[string][2]string{
	"terrarium.name":             {`"plot"`, `"plat"`},
	"terrarium.required_version": {"", `">= 0"`},
	"variable.type":              {"", "string"},
	"variable.default":           {`"a"`, `"b"`},
	"function.params":            {"[x]", "[y]"},
	"function.result":            {`"${x}${x}"`, `"${x}-${x}"`},
	"function.variadic_param":    {"", "rest"},
	"channel.for_each":           {`toset(["a"])`, `toset(["a", "b"])`},
	"creature.for_each":          {`toset(["a"])`, `toset(["b"])`},
	"creature.species":           {"species.worker", "species.spare"},
	"creature.module":            {"", `"more/b.wasm"`},
	"creature.listen":            {"[channel.in, channel.other]", "{ ear = channel.in, other = channel.other }"},
	"creature.send":              {"", "[channel.other]"},
	"creature.config":            {`{ open = 1 }`, `{ open = 2 }`},
	"creature.workers":           {"", `"remove"`},
	"creature.name":              {"", `"premier"`},
	"species.module":             {`"modules/a.wasm"`, `"more/b.wasm"`},
	"species.config":             {"", `{ open = 2 }`},
	"catalog.config":             {"", `{ open = 2 }`},
	"catalog.folder":             {`"modules"`, `"more"`},
	"grants.http":                {`["api"]`, "[]"},
	"grants.capabilities":        {`["weather.forecast"]`, "[]"},
	"http.allow":                 {`["https://example.com/**"]`, `["https://example.com/a"]`},
	"http.methods":               {"", `["POST"]`},
	"http.headers":               {`{ x-key = "a" }`, `{ x-key = "b" }`},
	"http.addresses":             {"", `["10.1.2.0/24"]`},
	"http.redirects":             {"", "2"},
	"http.retries":               {"", "2"},
	"http.retry_on":              {"", `["500"]`},
	"http.rate":                  {"", "10"},
	"http.concurrency":           {"", "2"},
	"http.proxy":                 {"", `"environment"`},
	"http.ca":                    {"", `file("ca.pem")`},
	"grants.llm":                 {`["model"]`, "[]"},
	"llm.endpoint":               {`"https://example.com/v1"`, `"https://example.com/v2"`},
	"llm.models":                 {`["small"]`, `["small", "large"]`},
	"llm.key":                    {"", "var.hush"},
	"llm.headers":                {`{ x-key = "a" }`, `{ x-key = "b" }`},
	"llm.prices":                 {"", `{ small = "1 2" }`},
	"llm.max_tokens":             {"", "100"},
	"llm.retries":                {"", "2"},
	"llm.rate":                   {"", "10"},
	"llm.concurrency":            {"", "2"},
	"llm.tokens_per_creature":    {"", "1000000"},
	"llm.tokens_per_graph":       {"", "1000000"},
	"llm.money_per_creature":     {"", `"2.50"`},
	"llm.money_per_graph":        {"", `"2.50"`},
	"llm.addresses":              {"", `["10.1.2.0/24"]`},
	"llm.proxy":                  {"", `"environment"`},
	"llm.scripted":               {"", `jsonencode([{ when = ["hello"], say = "good day" }])`},
	"llm.ca":                     {"", `file("ca.pem")`},
	"capability.settings":        {"", "{ key = var.hush }"},
	"source.channel":             {"channel.in", "channel.other"},
	"sink.channel":               {"channel.other", "channel.in"},
	"stop_when.money":            {"", `"2.50"`},
	"stop_when.match":            {"", "event.turns > 1000000"},
	"predicate.run":              {`"output === 'x'"`, `"output === 'z'"`},
	"predicate.file":             {`"loud.js"`, `"quiet.js"`},
	"policy.file":                {`"guard.js"`, `"gate.js"`},
	"policy.run":                 {`"(event) => {}"`, `"(event) => { return deny('no'); }"`},
	"policy.match":               {"event.size > 1", "event.size > 2"},
	"policy.channel":             {"", "channel.in"},
	"policy.creature":            {"", "creature.first"},
	"policy.species":             {"", "species.worker"},
	"wire.to":                    {"creature.second", "creature.third"},
	"wire.when":                  {"predicate.loud", "predicate.quiet"},
	"wire.prompt":                {`"a {output}"`, `"b {output}"`},
	"recipe.for_each":            {"", `{ a = 1 }`},
	"recipe.source":              {`"./part"`, `"./piece"`},
	"dynamic.for_each":           {`{ "made" = 1 }`, "{}"},
	"dynamic.iterator":           {"", "it"},
	"output.value":               {"1", "2"},
	"moved.from":                 {"creature.gone", "creature.past"},
	"moved.to":                   {"creature.second", "creature.third"},
	"dynamic.labels":             {`["made"]`, `["other"]`},
	"test.variables":             {"", `{ level = "b" }`},
	"test.expect_failures":       {"", "[creature.first]"},
	"mock.creature":              {"creature.second", "creature.third"},
	"answer.channel":             {"", "channel.in"},
	"answer.json":                {`{ a = 1 }`, `{ a = 2 }`},
	"answer.reply":               {`"a"`, `"b"`},
	"answer.send":                {`{ other = "a" }`, `{ other = "b" }`},
	"answer.output":              {`"a"`, `"b"`},
	"send.channel":               {"channel.in", "channel.other"},
	"send.payload":               {`"x"`, `"y"`},
	"send.json":                  {`{ a = 1 }`, `{ a = 2 }`},
	"send.lines":                 {`"x"`, `"y"`},
	"send.headers":               {"", `{ a = "b" }`},
	"assert.condition":           {"true", "1 == 1"},
	"validation.condition":       {"true", "1 == 1"},
}

// pairOf is what an attribute is before, and what it becomes.
func pairOf(b recipes.Block, a recipes.Attribute) (before, after string, ok bool) {
	if pair, known := pairsOf[b.Name+"."+a.Name]; known {
		return pair[0], pair[1], pair[0] != pair[1] || pair[0] != ""
	}
	switch a.Type {
	case recipes.FlagValue:
		if a.Default == "true" {
			return "", "false", true
		}
		return "", "true", true
	case recipes.CountValue:
		return "70", "80", true
	case recipes.SizeValue:
		return `"2MiB"`, `"3MiB"`, true
	case recipes.DurationValue:
		return `"100ms"`, `"200ms"`, true
	case recipes.TextValue:
		return `"before"`, `"afterwards"`, true
	case recipes.ChoiceValue:
		other := func(c string) bool { return c != a.Default }
		return "", fmt.Sprintf("%q", a.Choices[slices.IndexFunc(a.Choices, other)]), true
	}
	return "", "", false
}

// attributePart is the part of the attributes of each block that make test has.
const attributePart = 4

// TestAPlanShowsEveryAttribute edits each attribute of the language in a recipe that runs. The
// plan shows the change if applying it makes a difference. Once it has been applied, neither a
// plan of the running engine nor one of the stored session shows a change.
func TestAPlanShowsEveryAttribute(t *testing.T) {
	dir, session := t.TempDir(), filepath.Join(t.TempDir(), "s")
	files := map[string]string{"loud.js": "output === 'x'", "quiet.js": "output === 'y'", "guard.js": "(event) => {}", "gate.js": "(event) => deny('no')"}
	for _, sub := range []string{"part", "piece"} {
		files[sub+"/r.hcl"] = "channel \"c\" {}\ncreature \"" + sub + "\" {\n  module = \"builtin:echo\"\n  listen = [channel.c]\n}\n"
	}
	server := httptest.NewTLSServer(nil)
	files["ca.pem"] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	server.Close()
	writeFiles(t, dir, files)
	writeModules(t, dir)
	tm, err := terrarium.New(t.Context(), terrarium.Options{Dir: session, Capabilities: plottingOptions.Capabilities})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tm.Close(t.Context()) }()
	p := &plotting{t: t, dir: dir, session: session, tm: tm}
	for _, b := range recipes.Language() {
		for i, a := range b.Attributes {
			name := b.Name + "." + a.Name
			before, after, ok := pairOf(b, a)
			switch _, known := pairsOf[name]; {
			case !ok && !known:
				t.Errorf("no values are known for %s: add a pair", name)
			case !ok:
				t.Errorf("%s is not edited", name)
			case !seeded.Part(i, attributePart):
			default:
				p.edit(name, b.Name, a.Name, before, after)
			}
		}
	}
}

// Changes of scripts in files of their own are found by the contents of these files.
func TestPlansShowFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "plot.hcl")
	files := map[string]string{"guard.js": "(event) => {}", "loud.js": "output === 'x'"}
	writeFiles(t, dir, files)
	writeFiles(t, dir, map[string]string{"plot.hcl": `
channel "in" {}
channel "out" {}
creature "first" {
  module = "builtin:echo"
  listen = [channel.in]
  wire "on" {
    to   = creature.second
    when = predicate.loud
  }
}
creature "second" {
  module = "builtin:echo"
  listen = [channel.in, channel.out]
}
predicate "loud" { file = "loud.js" }
policy "send" "guard" { file = "guard.js" }
`})
	tm, err := terrarium.New(t.Context(), terrarium.Options{Dir: filepath.Join(t.TempDir(), "s")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tm.Close(t.Context()) }()
	if _, err := tm.Apply(t.Context(), path, plottingOptions); err != nil {
		t.Fatal(err)
	}
	if plan, err := tm.PlanApply(t.Context(), path, plottingOptions); err != nil || !plan.Empty() {
		t.Fatalf("the same files are planned as %+v, %v", plan, err)
	}
	for file, c := range map[string]struct{ address, text string }{
		"guard.js": {"policy.send.guard", "(event) => deny('no')"},
		"loud.js":  {"predicate.loud", "output === 'y'"},
	} {
		writeFiles(t, dir, map[string]string{file: c.text})
		plan, err := tm.PlanApply(t.Context(), path, plottingOptions)
		if err != nil {
			t.Fatal(err)
		}
		found := slices.ContainsFunc(plan.Declared, func(d diff.DeclarationPlan) bool { return d.Address == c.address && len(d.Changes) > 0 })
		if !found || plan.Empty() {
			t.Errorf("an edit of %s is planned as %+v", file, plan.Declared)
		}
		writeFiles(t, dir, map[string]string{file: files[file]})
	}
}

type plotting struct {
	t            *testing.T
	dir, session string
	tm           *terrarium.Terrarium
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// writeModules makes two folders for a catalog.
func writeModules(t *testing.T, dir string) {
	t.Helper()
	wasm, err := os.ReadFile("testdata/voice.wasm")
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string]string{"modules/a.wasm": string(wasm), "more/b.wasm": string(wasm)})
}

// edit applies a recipe, and then the same with another value of one attribute.
func (p *plotting) edit(name, block, attribute, before, after string) {
	t := p.t
	t.Helper()
	write := func(value string, besides map[string]string) {
		r := plot()
		b := r.find(block, labelled[name])
		if b == nil {
			t.Fatalf("the recipe has no block %s", block)
		}
		if delete(b.attributes, attribute); value != "" {
			b.attributes[attribute] = value
		}
		if name == "creature.module" && value != "" {
			delete(b.attributes, "species")
		}
		for other, text := range besides {
			if delete(b.attributes, other); text != "" {
				b.attributes[other] = text
			}
		}
		var text strings.Builder
		for _, top := range r.blocks {
			top.write(&text)
		}
		writeFiles(t, p.dir, map[string]string{"plot.hcl": text.String()})
	}
	path := filepath.Join(p.dir, "plot.hcl")
	write(before, besides[name][0])
	if _, err := p.tm.Apply(t.Context(), path, plottingOptions); err != nil {
		t.Errorf("%s = %s: %v", name, before, err)
		return
	}
	write(after, besides[name][1])
	running, saved := p.plans(path)
	quiet := slices.Contains(silent, name)
	if running == nil || running.Empty() != quiet || saved.Empty() != quiet {
		t.Errorf("%s becomes %s: the plan of what runs is empty: %v; of what is stored: %v; want %v", name, after, running.Empty(), saved.Empty(), quiet)
		return
	}
	if name == "terrarium.name" {
		return // another deployment, which cannot have the same creatures
	}
	if _, err := p.tm.Apply(t.Context(), path, plottingOptions); err != nil {
		t.Errorf("%s = %s: %v", name, after, err)
		return
	}
	if running, saved = p.plans(path); !running.Empty() || !saved.Empty() {
		t.Errorf("%s has become %s, and there is something left to do:\n%+v\n%+v", name, after, running, saved)
	}
}

// plans are what the engine says of a recipe, and what the session directory says.
func (p *plotting) plans(path string) (running, saved *diff.Plan) {
	t := p.t
	t.Helper()
	running, err := p.tm.PlanApply(t.Context(), path, plottingOptions)
	if err != nil {
		t.Fatalf("planning: %v", err)
	}
	r, diags := terrarium.LoadRecipe(t.Context(), path, plottingOptions)
	if r == nil {
		t.Fatal(diags.Err())
	}
	if err := p.tm.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	v, err := sqlitestore.OpenReadOnly(t.Context(), p.session)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = v.Close() }()
	if saved, err = terrarium.PlanRecipeIn(t.Context(), v, r); err != nil {
		t.Fatal(err)
	}
	return running, saved.About(r.Deployment().Name)
}

// plottingOptions name a command for policies in a process of their own, which is not
// started, as nothing is judged here, and the kind of capability that plot declares.
var plottingOptions = terrarium.RecipeOptions{PolicyProcess: []string{"true"}, Capabilities: []capability.Kind{weather{}}}

// weather is a kind of capability. No creature requests anything of it.
type weather struct{}

func (weather) Name() string { return "weather" }
func (weather) Settings() []capability.Setting {
	return []capability.Setting{{Name: "key", Type: capability.Text, Sensitive: true, Doc: "the key"}}
}
func (weather) Open(json.RawMessage) (capability.Grant, error) { return weatherGrant{}, nil }

type weatherGrant struct{ capability.Grant }

func (weatherGrant) Limits() capability.Limits      { return capability.Limits{} }
func (weatherGrant) Warnings() []capability.Warning { return nil }
func (weatherGrant) Allows() []string               { return nil }
