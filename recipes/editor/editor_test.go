package editor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pond is a recipe with most kinds of blocks. The tests put the cursor at words in it.
const pond = `terrarium {
  name = "pond"
}

variable "limit" {
  description = "how warm it may get"
  type        = number
  default     = 30
}

variable "token" {
  default   = "hush"
  sensitive = true
}

locals {
  field = "field:2"
}

function "alarm" {
  params = [bench, limit]
  result = "${bench} ${limit}"
}

channel "lines" { description = "readings" }
channel "alarms" {}

creature "guard" {
  for_each = toset(["north", "south"])
  module   = "builtin:gate"
  listen   = [channel.lines]
  send     = { out = channel.alarms }
  config   = { match = alarm(each.key, var.limit), field = local.field }

  wire "out" {
    to = creature.census
  }
  dynamic "wire" {
    for_each = { a = 1 }
    labels   = [wire.key]
    content {
      to = creature.census
    }
  }
}

creature "census" {
  module = "builtin:tally"
  listen = [channel.alarms]
}

policy "send" "short" {
  channel = channel.alarms
  match   = event.size > var.limit
  run     = <<-JS
    (event) => deny(` + "`${event.size} is too long`" + `)
  JS
}

test "warm" {
  variables = { limit = 3 }
  send {
    channel = channel.lines
    payload = "40"
  }
  assert {
    condition = length(result.dead_letters) == 0
  }
}
`

// at returns the offset behind the first occurrence of a text, or of the part of it before
// a bar.
func at(t *testing.T, text, mark string) int {
	t.Helper()
	before, after, _ := strings.Cut(mark, "|")
	i := strings.Index(text, before+after)
	if i < 0 {
		t.Fatalf("%q is not in the text", mark)
	}
	return i + len(before)
}

// opened returns a workspace with one open text, and its path.
func opened(t *testing.T, text string) (*Workspace, string) {
	t.Helper()
	dir := t.TempDir()
	w := NewWorkspace([]string{dir}, Auto)
	path := filepath.Join(dir, "pond.hcl")
	w.Set(path, []byte(text))
	return w, path
}

func TestHover(t *testing.T) {
	w, path := opened(t, pond)
	for mark, want := range map[string]string{
		"crea|ture \"guard\"":    "`creature \"NAME\"`: a creature and its wiring.",
		"mod|ule   =":            "that of the species",
		"dese|":                  "",
		"var.lim|it)":            "how warm it may get",
		"var.|limit)":            "default = 30",
		"\"gua|rd\"":             "for_each",
		"local.fie|ld":           "local.field = \"field:2\"",
		"chan|nel.lines]":        "`channel.NAME`: a channel that the recipe declares",
		"channel.lin|es]":        "readings",
		"each.k|ey":              "its key",
		"toset(|[":               "`toset(value)`: as a set.",
		"al|arm(each":            "params = [bench, limit]",
		"event.si|ze >":          "size of the payload",
		"policy \"se|nd\"":       "a message is sent on a channel",
		"to|ken":                 "variable \"token\"",
		"con|tent {":             "",
		"      t|o = creature.c": "the creature that gets the output",
	} {
		if want == "for_each" {
			want = "creature \"guard\""
		}
		if mark == "dese|" || mark == "toset(|[" {
			mark = strings.Replace(mark, "dese|", "pond|\"", 1)
			mark = strings.Replace(mark, "toset(|[", "tos|et([", 1)
		}
		got, span, ok := w.Hover(path, at(t, pond, mark))
		if !strings.Contains(got, want) || want != "" && !ok {
			t.Errorf("at %q the text is %q, which should have %q", mark, got, want)
		}
		if ok && (span.Start >= span.End || span.Start > at(t, pond, mark) || span.End < at(t, pond, mark)) {
			t.Errorf("at %q the span is %v", mark, span)
		}
	}
	if got, _, _ := w.Hover(path, at(t, pond, "to|ken")); strings.Contains(got, "hush") {
		t.Errorf("the text shows the default of a sensitive variable: %q", got)
	}
}

func labelsOf(p Proposals) []string {
	var out []string
	for _, i := range p.Items {
		out = append(out, i.Label)
	}
	return out
}

func TestComplete(t *testing.T) {
	for name, c := range map[string]struct {
		text     string // with a bar for the cursor
		has, not string // labels, separated by spaces
		first    string
	}{
		"top level":            {"|", "creature policy root terrarium", "limits wire", ""},
		"part of a block":      {"crea|", "creature", "channel", "creature"},
		"only one":             {"session {\n}\n|", "creature", "session", ""},
		"attributes":           {"creature \"a\" {\n  module = \"x\"\n  |\n}\n", "listen limits wire for_each", "module channel", ""},
		"required first":       {"variable \"a\" {\n  validation {\n    |\n  }\n}\n", "condition error_message", "default", "condition"},
		"choices":              {"session {\n  durability = |\n}\n", "\"full\" \"none\"", "", "\"full\""},
		"choices in quotes":    {"session {\n  durability = \"f|\"\n}\n", "full", "normal", "full"},
		"unclosed quotes":      {"session {\n  durability = \"f|\n}\ncreature \"a\" {\n}\n", "full", "normal", "full"},
		"builtins":             {"creature \"a\" {\n  module = \"builtin:t|\"\n}\n", "builtin:tally", "builtin:gate", ""},
		"channels":             {"channel \"feed\" {}\ncreature \"a\" {\n  listen = [|]\n}\n", "channel.feed upper( channel", "var", "channel.feed"},
		"names of channels":    {"channel \"feed\" {}\ncreature \"a\" {\n  listen = [channel.|\n  send = []\n}\n", "feed", "creature upper", "feed"},
		"creatures":            {"creature \"a\" {\n  wire \"x\" {\n    to = |\n  }\n}\n", "root creature.a", "", "creature.a"},
		"elements":             {"creature \"a\" {\n  for_each = toset([])\n  module = each.|\n}\n", "key value", "", "key"},
		"no elements":          {"creature \"a\" {\n  module = |\n}\n", "\"builtin:tally\"", "each event", ""},
		"events":               {"policy \"|\" \"x\" {\n}\n", "send spawn", "", ""},
		"events, unfinished":   {"policy \"s|", "send spawn", "merge", ""},
		"counters":             {"stop_when \"x\" {\n  match = event.|\n}\n", "turns messages seconds", "", ""},
		"words of stop_when":   {"stop_when \"x\" {\n  match = e|\n}\n", "event", "result", "event"},
		"limits of stop_when":  {"stop_when \"x\" {\n  |\n}\n", "turns messages tokens money after match", "", ""},
		"fields of events":     {"policy \"send\" \"x\" {\n  match = event.|\n}\n", "size sender", "", ""},
		"dynamic":              {"creature \"a\" {\n  dynamic \"|\" {\n  }\n}\n", "wire limits", "dynamic channel", ""},
		"content":              {"creature \"a\" {\n  dynamic \"wire\" {\n    content {\n      |\n    }\n  }\n}\n", "to prompt", "module", "to"},
		"iterator":             {"creature \"a\" {\n  dynamic \"wire\" {\n    labels = [wire.|]\n  }\n}\n", "key value", "", ""},
		"in a template":        {"variable \"x\" {}\ncreature \"a\" {\n  name = \"a ${var.|}\"\n}\n", "x", "", "x"},
		"in a text":            {"variable \"x\" {}\ncreature \"a\" {\n  name = \"var.|\"\n}\n", "", "x", ""},
		"in a script":          {"variable \"x\" {}\npolicy \"send\" \"x\" {\n  run = <<-JS\n    var.|\n  JS\n}\n", "", "x", ""},
		"parameters":           {"function \"f\" {\n  params = [first, second]\n  result = |\n}\n", "first second", "", "first"},
		"functions":            {"variable \"x\" {\n  default = join|\n}\nfunction \"joined\" {\n  params = []\n  result = 1\n}\n", "join joined", "upper", ""},
		"keys of a test":       {"variable \"x\" {}\ntest \"t\" {\n  variables = { | }\n}\n", "x", "var", "x"},
		"behind a value":       {"variable \"x\" {\n  default = 1 |\n}\n", "", "var upper", ""},
		"behind an operator":   {"variable \"x\" {}\nlocals {\n  y = 1 + |\n}\n", "var.x max", "", "var.x"},
		"behind an index":      {"channel \"c\" {}\nlocals {\n  y = channel.c[\"a\"].|\n}\n", "", "c", ""},
		"comment":              {"# chan|\n", "", "channel", ""},
		"a block without end":  {"creature \"a\" {\n  config = {\n\ncreature \"b\" {\n  |\n}\n", "module", "creature", ""},
		"a value without end":  {"creature \"a\" {\n  listen = [channel.\n}\ncreature \"b\" {\n  |\n}\n", "module", "creature", ""},
		"one line":             {"channel \"c\" { | }\n", "description", "channel", ""},
		"names with a quote":   {"channel \"feed\" {}\ncreature \"a\" {\n  name   = \"a\n  listen = [channel.|]\n}\n", "feed", "", "feed"},
		"what a move is about": {"channel \"feed\" {}\nmoved {\n  from = channel.old\n  to = |\n}\n", "channel.feed", "", "channel.feed"},
	} {
		t.Run(name, func(t *testing.T) {
			w, path := opened(t, strings.Replace(c.text, "|", "", 1))
			p := w.Complete(path, strings.Index(c.text, "|"), []string{"gate", "tally"})
			got := labelsOf(p)
			for _, want := range strings.Fields(strings.ReplaceAll(c.has, "(", "")) {
				if !slices.Contains(got, want) {
					t.Errorf("%q is missing; there are %q", want, got)
				}
			}
			for _, not := range strings.Fields(c.not) {
				if slices.Contains(got, not) {
					t.Errorf("%q is there", not)
				}
			}
			if c.first != "" && (len(got) == 0 || got[0] != c.first) {
				t.Errorf("the first is not %q: %q", c.first, got)
			}
		})
	}
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// team is a recipe of two files, with a sub-recipe.
var team = map[string]string{
	"team.hcl": `channel "feed" {}
recipe "alerts" {
  source = "./alerts"
  input  = channel.feed
}
creature "reader" {
  module = "builtin:relay"
  listen = [channel.feed, recipe.alerts.channel.out]
  config = { seen = recipe.alerts.seen }
}
`,
	"tests.hcl": `test "t" {
  send {
    channel = channel.feed
    payload = "x"
  }
}
`,
	"alerts/alerts.hcl": `variable "input" { type = channel }
channel "out" {}
creature "bell" {
  module = "builtin:relay"
  listen = [var.input]
  send   = [channel.out]
}
output "seen" { value = 1 }
`,
}

func place(t *testing.T, dir string, p Place) string {
	t.Helper()
	name, err := filepath.Rel(dir, p.Path)
	if err != nil {
		t.Fatal(err)
	}
	text := team[name]
	return name + ":" + text[strings.LastIndexByte(text[:p.Start], '\n')+1:p.Start] + "|" + text[p.Start:p.End]
}

func TestDefinitionAndReferences(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, team)
	w := NewWorkspace([]string{dir}, Auto)
	for _, c := range []struct{ file, mark, declared, uses string }{
		{"tests.hcl", "channel.fe|ed", "team.hcl:channel \"|feed", "team.hcl:  input  = channel.|feed team.hcl:  listen = [channel.|feed tests.hcl:    channel = channel.|feed"},
		{"team.hcl", "recipe.alerts.channel.o|ut", "alerts/alerts.hcl:channel \"|out", "alerts/alerts.hcl:  send   = [channel.|out team.hcl:  listen = [channel.feed, recipe.alerts.channel.|out"},
		{"alerts/alerts.hcl", "channel \"o|ut\"", "alerts/alerts.hcl:channel \"|out", "alerts/alerts.hcl:  send   = [channel.|out team.hcl:  listen = [channel.feed, recipe.alerts.channel.|out"},
		{"team.hcl", "alerts.see|n", "alerts/alerts.hcl:output \"|seen", "team.hcl:  config = { seen = recipe.alerts.|seen"},
		{"team.hcl", "  inp|ut", "alerts/alerts.hcl:variable \"|input", "alerts/alerts.hcl:  listen = [var.|input team.hcl:  |input"},
		{"team.hcl", "./ale|rts", "alerts/alerts.hcl:|", ""},
	} {
		path := filepath.Join(dir, c.file)
		offset := at(t, team[c.file], c.mark)
		var declared, uses []string
		for _, p := range w.Definition(path, offset) {
			declared = append(declared, place(t, dir, p))
		}
		if got := strings.Join(declared, " "); got != c.declared {
			t.Errorf("%s at %q is declared at %q, not %q", c.file, c.mark, got, c.declared)
		}
		for _, p := range w.References(path, offset, false) {
			uses = append(uses, place(t, dir, p))
		}
		slices.Sort(uses)
		if got := strings.Join(uses, " "); got != c.uses {
			t.Errorf("%s at %q is used at %q, not %q", c.file, c.mark, got, c.uses)
		}
		if n := len(w.References(path, offset, true)); c.uses != "" && n != len(uses)+1 {
			t.Errorf("%s at %q: %d places with the declaration, %d without", c.file, c.mark, n, len(uses))
		}
	}
	if got := w.Outermost(filepath.Join(dir, "alerts/alerts.hcl")); got[0] != dir {
		t.Errorf("the outermost recipe of a sub-recipe is %s", got[0])
	}
}

// TestFolderOfLargeFiles puts more text in a folder than is kept in memory.
func TestFolderOfLargeFiles(t *testing.T) {
	dir := t.TempDir()
	text := "channel \"a\" {}\n#" + strings.Repeat("x", 10_000) + "\n"
	for i := range 12 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%02d.hcl", i)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w := NewWorkspace([]string{dir}, Folders)
	w.most = 8 * int64(len(text))
	open := filepath.Join(dir, "open.hcl")
	w.Set(open, []byte("creature \"b\" { listen = [channel.a] }\n"))
	if got := w.Outermost(open); got[0] != dir {
		t.Errorf("the recipe is %s", got[0])
	}
	if len(w.saved) != 8 || w.bytes > w.most {
		t.Errorf("%d files with %d bytes are kept", len(w.saved), w.bytes)
	}
	for i := range 12 { // the same, with each file in a folder of its own
		sub := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(sub, "one.hcl")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		w.Outermost(path)
		if w.saved[path].file == nil || w.bytes > w.most {
			t.Errorf("%d: %d files with %d bytes are kept", i, len(w.saved), w.bytes)
		}
	}
}

// applied returns the texts of a recipe after edits.
func applied(t *testing.T, texts map[string]string, dir string, edits []Edit) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, text := range texts {
		path := filepath.Join(dir, name)
		mine := slices.DeleteFunc(slices.Clone(edits), func(e Edit) bool { return e.Path != path })
		slices.SortStableFunc(mine, func(a, b Edit) int { return b.Start - a.Start })
		for _, e := range mine {
			text = text[:e.Start] + e.Text + text[e.End:]
		}
		out[name] = text
	}
	return out
}

func TestRename(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, team)
	w := NewWorkspace([]string{dir}, Auto)
	rename := func(file, mark, name string) map[string]string {
		t.Helper()
		texts := map[string]string{}
		for file := range team {
			data, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			texts[file] = string(data)
		}
		edits, err := w.Rename(filepath.Join(dir, file), at(t, texts[file], mark), name, true)
		if err != nil {
			t.Fatal(err)
		}
		texts = applied(t, texts, dir, edits)
		write(t, dir, texts)
		return texts
	}
	got := rename("tests.hcl", "channel.fe|ed", "lines")
	if !strings.Contains(got["team.hcl"], `channel "lines" {}`) || !strings.Contains(got["team.hcl"], "listen = [channel.lines, recipe") || !strings.Contains(got["tests.hcl"], "channel = channel.lines") {
		t.Errorf("the channel has not been renamed everywhere:\n%s\n%s", got["team.hcl"], got["tests.hcl"])
	}
	if !strings.HasSuffix(got["team.hcl"], "}\n\nmoved {\n  from = channel.feed\n  to   = channel.lines\n}\n") {
		t.Errorf("there is no block moved:\n%s", got["team.hcl"])
	}
	got = rename("team.hcl", "channel \"li|nes\"", "rows")
	if want := "moved {\n  from = channel.feed\n  to   = channel.lines\n}\n\nmoved {\n  from = channel.lines\n  to   = channel.rows\n}\n"; !strings.HasSuffix(got["team.hcl"], want) {
		t.Errorf("the moves do not follow one another:\n%s", got["team.hcl"])
	}
	got = rename("team.hcl", "channel \"ro|ws\"", "feed")
	if strings.Contains(got["team.hcl"], "from = channel.feed") || !strings.Contains(got["team.hcl"], "from = channel.rows\n  to   = channel.feed") {
		t.Errorf("the moves lead in a circle:\n%s", got["team.hcl"])
	}
	got = rename("alerts/alerts.hcl", "var.inp|ut", "source_channel")
	if !strings.Contains(got["team.hcl"], "\n  source_channel  = channel.feed") || !strings.Contains(got["alerts/alerts.hcl"], `variable "source_channel"`) || strings.Contains(got["alerts/alerts.hcl"], "moved") {
		t.Errorf("the input has not been renamed:\n%s\n%s", got["team.hcl"], got["alerts/alerts.hcl"])
	}
	got = rename("team.hcl", "recipe.al|erts.seen", "bells")
	if !strings.Contains(got["team.hcl"], "recipe.bells.seen") || !strings.Contains(got["team.hcl"], "from = recipe.alerts\n  to   = recipe.bells") {
		t.Errorf("the sub-recipe has not been renamed:\n%s", got["team.hcl"])
	}
}

func TestRenameRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, name, want string }{
		"a keyword":         {"cha|nnel \"a\" {}\n", "b", "no name here"},
		"not declared":      {"locals {\n  a = var.no|ne\n}\n", "b", "declares no variable"},
		"declared twice":    {"channel \"a|\" {}\nchannel \"a\" {}\n", "b", "declared twice"},
		"taken":             {"channel \"a|\" {}\nchannel \"b\" {}\n", "b", "already a channel"},
		"not a name":        {"channel \"a|\" {}\n", "two words", "not a name"},
		"a function's name": {"function \"a|\" {\n  params = []\n  result = 1\n}\n", "upper", "already a function"},
	} {
		t.Run(name, func(t *testing.T) {
			w, path := opened(t, strings.Replace(c.text, "|", "", 1))
			edits, err := w.Rename(path, strings.Index(c.text, "|"), c.name, true)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the edits are %v, and the error %v does not say %q", edits, err, c.want)
			}
		})
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.hcl": "channel \"a\" {}\n", "b.hcl.json": `{"creature": {"b": {"module": "builtin:echo", "listen": ["${channel.a}"]}}}`})
	w := NewWorkspace([]string{dir}, Folders)
	if _, err := w.Rename(filepath.Join(dir, "a.hcl"), 10, "b", true); err == nil || !strings.Contains(err.Error(), "JSON") {
		t.Errorf("a recipe with a file in JSON: %v", err)
	}
}

func TestLayouts(t *testing.T) {
	alone := map[string]string{
		"north.hcl": "channel \"a\" {}\ncreature \"x\" {\n  module = \"builtin:echo\"\n  listen = [channel.a]\n}\n",
		"south.hcl": "channel \"a\" {}\ncreature \"y\" {\n  module = \"builtin:echo\"\n  listen = [channel.a]\n}\n",
	}
	for _, c := range []struct {
		files  map[string]string
		layout Layout
		folder bool
	}{{alone, Auto, false}, {alone, Folders, true}, {team, Auto, true}, {team, Files, false}} {
		dir := t.TempDir()
		write(t, dir, c.files)
		w := NewWorkspace([]string{dir}, c.layout)
		name := "north.hcl"
		if c.files["team.hcl"] != "" {
			name = "team.hcl"
		}
		if got := w.Outermost(filepath.Join(dir, name)); got[0] == dir != c.folder {
			t.Errorf("with the layout %s, %s belongs to %s", c.layout, name, got)
		}
	}
}

func TestSymbols(t *testing.T) {
	w, path := opened(t, pond)
	var names []string
	for _, s := range w.Symbols(path) {
		names = append(names, s.Name)
		for _, n := range s.Within {
			names = append(names, "  "+n.Name)
			if n.Whole.Start < s.Whole.Start || n.Whole.End > s.Whole.End {
				t.Errorf("%s is not within %s", n.Name, s.Name)
			}
		}
		if s.At.Start < s.Whole.Start || s.At.End > s.Whole.End {
			t.Errorf("the name of %s is not within it", s.Name)
		}
	}
	want := []string{"terrarium", `variable "limit"`, `variable "token"`, "locals", "  local.field", `function "alarm"`, `channel "lines"`, `channel "alarms"`,
		`creature "guard"`, `  wire "out"`, `  dynamic "wire"`, `creature "census"`, `policy "send" "short"`, `test "warm"`, "  send", "  assert"}
	if !slices.Equal(names, want) {
		t.Errorf("the outline is %q", names)
	}
}

// Nothing outside the folder of an open text is read through a link.
func TestLinksLeadNowhere(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"secret.hcl": "channel \"secret\" {}\n"})
	if err := os.Symlink(filepath.Join(outside, "secret.hcl"), filepath.Join(dir, "link.hcl")); err != nil {
		t.Skip("there are no links here:", err)
	}
	w := NewWorkspace([]string{dir}, Folders)
	path := filepath.Join(dir, "team.hcl")
	text := "creature \"a\" {\n  listen = [channel.|]\n}\n"
	w.Set(path, []byte(strings.Replace(text, "|", "", 1)))
	if got := labelsOf(w.Complete(path, strings.Index(text, "|"), nil)); slices.Contains(got, "secret") {
		t.Errorf("the file behind a link was read: %q", got)
	}
}

// Splitting a text again after a change gives the same result as splitting it as a new
// text.
func FuzzRescan(f *testing.F) {
	f.Add(pond, pond[:100]+"<<-JS\n"+pond[100:])
	f.Add(pond, strings.Replace(pond, "JS\n}", "\n}", 1))
	f.Add(pond, strings.Replace(pond, "readings", "read\"ings", 1))
	f.Add(pond, strings.Replace(pond, "readings", "read${ings", 1))
	f.Add("a = 1\n/* b\n", "a = 1\n/* b\n*/ c = 2\n")
	f.Add("a = <<X\n${b}\nX\n", "a = <<X\n${b\nX\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		old := scan("x.hcl", []byte(before))
		got, want := rescan(old, []byte(after)), scan("x.hcl", []byte(after))
		if strings.Count(after, "\"") > maxRestarts || strings.Contains(after, "<<") && strings.Contains(after, "#") {
			return // unclosed quotes, or comments that look like heredocs, may make a difference
		}
		if !slices.Equal(got.lexemes, want.lexemes) || !slices.Equal(got.comments, want.comments) {
			t.Errorf("%q becomes %v %v, and is %v %v", after, got.lexemes, got.comments, want.lexemes, want.comments)
		}
	})
}

func TestRescan(t *testing.T) {
	for n := 0; n < len(pond); n += 5 {
		for _, insert := range []string{"", "x", "\"", "\n", "}", "# ", "${"} {
			after := pond[:n] + insert + pond[min(n+1, len(pond)):]
			got, want := rescan(scan("x.hcl", []byte(pond)), []byte(after)), scan("x.hcl", []byte(after))
			if !slices.Equal(got.lexemes, want.lexemes) || !slices.Equal(got.comments, want.comments) {
				t.Fatalf("with %q at %d the tokens differ", insert, n)
			}
		}
	}
}

// Every offset of a recipe, and of the recipe cut there, has answers without a panic.
func FuzzAnswers(f *testing.F) {
	f.Add(pond, 100)
	for _, text := range team {
		f.Add(text, 50)
	}
	f.Add("a = \"${\n} = [\n\"b\" {", 4)
	f.Fuzz(func(t *testing.T, text string, offset int) {
		w := NewWorkspace([]string{"/nowhere"}, Files)
		path := "/nowhere/x.hcl"
		w.Set(path, []byte(text))
		offset = max(0, min(offset, len(text)))
		_, at, ok := w.Hover(path, offset)
		if ok && (at.Start < 0 || at.End > len(text) || at.Start > at.End) {
			t.Errorf("the span of a hover is %v", at)
		}
		p := w.Complete(path, offset, []string{"gate"})
		if p.Replaces.Start > offset || p.Replaces.End != offset || len(p.Items) > MaxItems {
			t.Errorf("the proposals replace %v", p.Replaces)
		}
		for _, p := range w.References(path, offset, true) {
			if p.Start < 0 || p.End > len(text) || p.Start > p.End {
				t.Errorf("a reference is at %v", p.Span)
			}
		}
		w.Definition(path, offset)
		edits, _ := w.Rename(path, offset, "other", true)
		for _, e := range edits {
			if e.Start < 0 || e.End > len(text) || e.Start > e.End {
				t.Errorf("an edit is at %v", e.Span)
			}
		}
		w.Symbols(path)
	})
}

func TestCutRecipes(t *testing.T) {
	for n := 0; n < len(pond); n += 3 {
		w, path := NewWorkspace([]string{"/nowhere"}, Files), "/nowhere/x.hcl"
		w.Set(path, []byte(pond[:n]))
		w.Hover(path, n)
		if p := w.Complete(path, n, nil); p.Replaces.End != n {
			t.Fatalf("cut at %d, the proposals replace %v", n, p.Replaces)
		}
	}
}
