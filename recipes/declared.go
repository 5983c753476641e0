package recipes

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/zclconf/go-cty/cty"
)

// maxDeclared bounds the text of a value in a declaration; a longer text is replaced by a
// hash.
const maxDeclared = 200

// declared lists the blocks whose attributes all become declarations. The attributes of
// other blocks are in the specifications of creatures and channels, except for
// descriptions.
var declared = []string{"session", "policy", "predicate", "species", "catalog", "output", "http", "llm", "capability", "source", "sink", stopWhen}

// describer describes the attributes of the blocks of one recipe.
type describer struct{ *scripts }

// declareAll adds the settings that no creature or channel shows to the deployment. It
// follows the description of the language, so that it includes new attributes. The recipe
// must have no error.
func declareAll(all []*scripts, d *deploy.Deployment) {
	found := len(all[0].diags)
	for _, sc := range all {
		ds := &describer{sc}
		for _, kind := range declared {
			for _, decl := range sc.ordered[kind] {
				ds.declareBlockOf(decl, d)
			}
		}
		if b := sc.singles["session"]; b != nil {
			ds.declareBlockOf(b, d)
		}
	}
	all[0].diags = all[0].diags[:found] // the second evaluation has no new findings
}

func (ds *describer) declareBlockOf(b *declaration, d *deploy.Deployment) {
	s := scope{title: b.title, secret: true}
	out := deploy.Declaration{Address: ds.prefix + addressOf(b), Settings: map[string]deploy.DeclaredValue{}}
	ds.declareAttributes(s, b, "", out.Settings)
	if b.kind != "session" && !isConnector(b.kind) {
		for _, nested := range ds.blocks(s, b) {
			ds.declareAttributes(s, ds.blockContent(b.title, nested), nested.Type+".", out.Settings)
		}
	}
	ds.declareContents(b, d, out.Settings)
	d.Declared = append(d.Declared, out)
}

// addressOf returns the address of a block within its recipe.
func addressOf(b *declaration) string {
	switch {
	case b.event != "":
		return b.kind + "." + b.event + "." + b.name
	case b.name != "":
		return b.kind + "." + b.name
	}
	return b.kind
}

func (ds *describer) declareAttributes(s scope, h holder, prefix string, out map[string]deploy.DeclaredValue) {
	for i := range h.shape().Attributes {
		a := &h.shape().Attributes[i]
		at := h.attr(a.Name)
		if at == nil {
			continue
		}
		v := ds.declaredValue(s, at)
		if a.Sensitive && !v.Sensitive && v.Text != "" {
			v = deploy.DeclaredValue{Text: deploy.HiddenValue, Sensitive: true, Value: v.Text}
		}
		if v.Text != "" && v.Text != fmt.Sprintf("%q", a.Default) && v.Text != a.Default {
			out[prefix+a.Name] = v
		}
	}
}

// declaredValue returns the value of an attribute. For a condition on an event, it
// returns the text and the values in it.
func (ds *describer) declaredValue(s scope, a *hcl.Attribute) deploy.DeclaredValue {
	if p := ds.prepared(a.Expr); p != nil && p.ctx != nil && usesEvent(a.Expr) {
		return ds.declaredCondition(s, a.Expr, p)
	}
	v, ok := ds.evalAny(s, a.Expr)
	if !ok || v.IsNull() {
		return deploy.DeclaredValue{}
	}
	return declaredText(v)
}

func usesEvent(expr hcl.Expression) bool {
	return slices.ContainsFunc(expr.Variables(), func(t hcl.Traversal) bool { return t.RootName() == "event" })
}

func (ds *describer) declaredCondition(s scope, expr hcl.Expression, p *prepared) deploy.DeclaredValue {
	r := expr.Range()
	var out deploy.DeclaredValue
	if src, ok := ds.sourceOf(r.Filename); ok && r.End.Byte <= len(src) && r.Start.Byte < r.End.Byte {
		out.Text = shortened(string(src[r.Start.Byte:r.End.Byte]))
	}
	for _, t := range expr.Variables() {
		if t.RootName() == "event" || contextOf(p.ctx, t.RootName()) == nil {
			continue
		}
		if t, v := reachable(t, s.context(p)); len(t) > 1 && v.IsWhollyKnown() {
			value := declaredText(v)
			out.Text += "; " + traversalText(t) + " = " + value.Text
			out.Value += value.Value
			out.Sensitive = out.Sensitive || value.Sensitive
		}
	}
	return out
}

// declaredText returns a value as one line.
func declaredText(v cty.Value) deploy.DeclaredValue {
	if v.ContainsMarked() {
		data, _ := jsonOf(v) // a value that is not JSON is only hidden
		return deploy.DeclaredValue{Text: deploy.HiddenValue, Sensitive: true, Value: string(data)}
	}
	text := textOfValue(v)
	if strings.Contains(text, "\n") {
		if data, err := jsonOf(v); err == nil {
			text = string(data)
		}
	}
	return deploy.DeclaredValue{Text: shortened(text)}
}

// shortened returns a short single line as it is, and the number of lines and a hash of
// any other text. Plans show it and stores keep it.
func shortened(text string) string {
	if len(text) <= maxDeclared && !strings.Contains(text, "\n") && !strings.Contains(text, `\n`) {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	lines := max(strings.Count(text, `\n`), strings.Count(text, "\n")) + 1
	return fmt.Sprintf("%s, sha256 %s…", counted(lines, "line"), hex.EncodeToString(sum[:6]))
}

// declareContents declares the content of files: scripts, and the modules of species.
func (ds *describer) declareContents(b *declaration, d *deploy.Deployment, out map[string]deploy.DeclaredValue) {
	switch b.kind {
	case "output":
		if v, ok := ds.value(node{"output", b.name}); ok {
			out["value"] = declaredText(v) // which is sensitive if the output is
		}
	case "policy", "predicate":
		if b.attr("file") == nil {
			return
		}
		if source, ok := ds.script(scope{title: b.title}, b); ok {
			out["script"] = deploy.DeclaredValue{Text: shortened(source.text)}
		}
	case "species", "catalog":
		name := ds.names + b.name
		for i := range d.Species {
			species := &d.Species[i]
			module, inCatalog := strings.CutPrefix(species.Name, name+"/")
			if species.Spec.Wasm == nil || species.Name != name && !inCatalog {
				continue
			}
			key := "sha256"
			if inCatalog {
				key += " of " + module
			}
			sum := sha256.Sum256(species.Spec.Wasm)
			out[key] = deploy.DeclaredValue{Text: hex.EncodeToString(sum[:])}
		}
	}
}

// declareBesides records what specifications do not have: the descriptions of creatures and
// of output wires, and which creatures and channels may not be removed.
func (dec *decoder) declareBesides(s scope, h holder, address string) {
	settings := map[string]deploy.DeclaredValue{}
	if text, ok := dec.stringAttr(s, h, "description"); ok && h.shape().Name != "channel" {
		settings["description"] = declaredText(cty.StringVal(text))
	}
	if h.attr(deploy.PreventDestroy) != nil && dec.boolAttr(s, h, deploy.PreventDestroy) {
		settings[deploy.PreventDestroy] = declaredText(cty.True)
	}
	if len(settings) > 0 {
		dec.described = append(dec.described, deploy.Declaration{Address: address, Settings: settings})
	}
}
