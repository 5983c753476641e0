package outlook

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// spans reads the code spans of a line as CommonMark does: one begins with a
// run of backticks and ends with the next run of the same length. It also
// returns the text outside them.
func spans(line string) (inside []string, outside string) {
	for line != "" {
		at := strings.IndexByte(line, '`')
		if at < 0 {
			return inside, outside + line
		}
		outside += line[:at]
		fence := ticks(line[at:])
		rest := line[at+fence:]
		end := 0
		for end < len(rest) {
			if rest[end] != '`' {
				end++
				continue
			}
			n := ticks(rest[end:])
			if n == fence {
				break
			}
			end += n
		}
		if end >= len(rest) {
			return inside, outside + line[at:]
		}
		text := rest[:end]
		if strings.HasPrefix(text, " ") && strings.HasSuffix(text, " ") && strings.Trim(text, " ") != "" {
			text = text[1 : len(text)-1]
		}
		inside = append(inside, text)
		line = rest[end+fence:]
	}
	return inside, outside
}

func ticks(s string) int { return len(s) - len(strings.TrimLeft(s, "`")) }

// TestNamesStayNames puts anything into a code span and reads it back.
func TestNamesStayNames(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.StringOfN(rapid.RuneFrom([]rune("`` *_[](<)>#|\\!&\n\tab")), 1, 20, -1).Draw(rt, "name")
		got, outside := spans("- " + code(name) + " (" + code("id") + ")")
		want := strings.NewReplacer("\n", " ", "\t", " ").Replace(name)
		if len(got) != 2 || outside != "-  ()" || got[1] != "id" {
			rt.Fatalf("%q is read as %q, and outside is %q", name, got, outside)
		}
		if got[0] != want && strings.TrimSpace(want) != "" {
			rt.Fatalf("%q is read as %q", want, got[0])
		}
	})
}

// TestHostileNamesAddNothing proves that with any names the document has the
// same lines, and the same text outside code spans.
func TestHostileNamesAddNothing(t *testing.T) {
	document := func(name string) string {
		peers := AwareList[AwarePeer]{Total: 3, Items: []AwarePeer{{ID: "c1", Name: name}, {ID: "c2", Name: name}}}
		a := &Awareness{
			Revision: 1, Tools: []string{"group_send"},
			Self: AwareSelf{ID: "c0", Name: name, Description: name, Address: name, Species: name, Privileged: true, Parent: &AwarePeer{ID: "c1", Name: name}, State: "running"},
			Graph: AwareGraph{
				ID:        "g1",
				Members:   &AwareList[AwareMember]{Total: 1, Items: []AwareMember{{ID: "c1", Name: name, Description: name, State: "running"}}},
				Channels:  &AwareList[AwareDeclaration]{Total: 1, Items: []AwareDeclaration{{ID: "h1", Name: name, Description: name}}},
				Spawnable: &AwareList[AwareSpecies]{Total: 1, Items: []AwareSpecies{{Species: name, Description: name, Limit: 2}}},
			},
		}
		a.Channels = AwareList[AwareChannel]{Total: 1, Items: []AwareChannel{{ID: "h1", Name: name, Description: name, Listen: name, Send: name, Listeners: peers, Senders: peers}}}
		a.Wires.In = AwareList[AwareWire]{Total: 1, Items: []AwareWire{{ID: "w1", Source: AwarePeer{ID: "c1", Name: name}, Target: AwarePeer{ID: "c0", Name: name}}}}
		var out []string
		for _, line := range strings.Split(string(a.markdown()), "\n") {
			_, outside := spans(line)
			out = append(out, outside)
		}
		return strings.Join(out, "\n")
	}
	want := document("zoe")
	if !strings.Contains(want, "## Members of the graph") || strings.Contains(want, "zoe") {
		t.Fatalf("the plain document is\n%s", want)
	}
	for _, name := range []string{
		"# root", "a\n\n## Members of the graph\n\n- `evil`: privileged", "`", "``` x", "` - rank: privileged `", "<script>", "[x](http://y)",
		"a\u2028b", "| a | b |", "\\`", " ", "**x**", "```\n",
	} {
		if got := document(name); got != want {
			t.Errorf("the name %q changes the document to\n%s", name, got)
		}
	}
}
