package recipes

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/capability/httpcap"
	"github.com/seed47132306/terrarium/capability/llmcap"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/internal/contain"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// httpKind is the capability for which the ABI has a function of its own.
const httpKind = string(deploy.HTTPCapability)

// ownKinds are the capabilities that have blocks of their own.
var ownKinds = []capability.Kind{httpcap.New(), llmcap.New()}

// OwnCapabilities returns the kinds of capabilities that have blocks of their own. Every
// program has them.
func OwnCapabilities() []capability.Kind { return slices.Clone(ownKinds) }

// ownDocs describe their blocks.
var ownDocs = map[string]string{
	"http": "servers that creatures may [send requests to](http.md)",
	"llm":  "a language model that creatures may [use](llm.md)",
}

// HasSettingType reports whether a setting of a kind can have a type.
func HasSettingType(t capability.SettingType) bool {
	_, known := settingTypes[t]
	return known
}

// isOwn reports whether a kind has a block of its own.
func isOwn(kind string) bool {
	return slices.ContainsFunc(ownKinds, func(k capability.Kind) bool { return k.Name() == kind })
}

// capabilityWords are the blocks that declare capabilities: those of the kinds with blocks of
// their own, and the one for others.
func capabilityWords() []string { return append(ownNames(), "capability") }

func ownNames() (out []string) {
	for _, k := range ownKinds {
		out = append(out, k.Name())
	}
	return out
}

// settingTypes are the types of settings as types of attributes.
var settingTypes = map[capability.SettingType]ValueType{
	capability.Text: TextValue, capability.Path: TextValue, capability.Texts: TextsValue, capability.TextMap: TextMapValue, capability.Flag: FlagValue,
	capability.Count: WholeValue, capability.Size: SizeValue, capability.Duration: DurationValue,
}

// SettingAttributes describe the settings of a capability or a connector as attributes of its
// block.
func SettingAttributes(settings []capability.Setting) []Attribute {
	var out []Attribute
	for _, s := range settings {
		a := Attribute{Name: s.Name, Type: settingTypes[s.Type], Required: s.Required, Choices: s.Choices, Default: s.Default, Without: s.Without, Sensitive: s.Sensitive && s.Type == capability.Text, Doc: s.Doc}
		if len(s.Choices) > 0 {
			a.Type, a.Default = ChoiceValue, strings.Trim(s.Default, `"`)
		}
		out = append(out, a)
	}
	return out
}

// capabilityBlocks are the blocks that declare capabilities.
func capabilityBlocks() []Block {
	var out []Block
	for _, k := range ownKinds {
		out = append(out, Block{Name: k.Name(), Labels: named, Repeated: true, Doc: ownDocs[k.Name()], Attributes: append(SettingAttributes(k.Settings()), attrDescription)})
	}
	return append(out,
		Block{Name: "capability", Labels: []string{"kind", "name"}, Repeated: true, Doc: "a capability of another [kind](../how-to/add-a-capability.md), which the program has added", Attributes: []Attribute{
			{Name: "settings", Type: "object", Default: "{}", Doc: "the settings that the kind describes"},
			attrDescription,
		}})
}

// kindNamed finds a kind of capability that the program has.
func (dec *decoder) kindNamed(name string) capability.Kind {
	for _, k := range dec.opts.Capabilities {
		if k.Name() == name {
			return k
		}
	}
	for _, k := range ownKinds {
		if k.Name() == name {
			return k
		}
	}
	return nil
}

// declaredKind is the kind that a block declares.
func declaredKind(block string, d *declaration) string {
	if block == "capability" {
		return d.event
	}
	return block
}

// capabilities evaluates the capabilities that the recipe declares.
func (dec *decoder) capabilities() {
	dec.reachable = map[string]*deploy.Capability{}
	for _, block := range capabilityWords() {
		for _, d := range dec.ordered[block] {
			s := scope{title: d.title}
			dec.checkDescription(s, d)
			kind, own := declaredKind(block, d), block != "capability"
			id := kind + "." + d.name
			k := dec.kindNamed(kind)
			if k == nil {
				dec.report(s, d.at, Diagnostic{Summary: "Unknown kind of capability", Detail: fmt.Sprintf("This program has no capability of the kind %q.", kind),
					Suggestion: nearest(kind, dec.kindNames()), Remedy: "Use a program that has it, or remove the block."})
				dec.reachable[id] = nil
				if a := d.attr("settings"); a != nil {
					dec.eval(s.secretly(), a.Expr) // for its mistakes
				}
				continue
			}
			if !own && isOwn(kind) {
				dec.report(s, d.at, Diagnostic{Summary: "Wrong block", Detail: fmt.Sprintf("The capability %s has a block of its own.", kind), Remedy: fmt.Sprintf("Write %s %q { … }.", kind, d.name)})
				dec.reachable[id] = nil
				continue
			}
			dec.reachable[id] = dec.capability(s, d, k, own)
		}
	}
}

func (dec *decoder) kindNames() []string {
	out := ownNames()
	for _, k := range dec.opts.Capabilities {
		out = append(out, k.Name())
	}
	return out
}

// capability evaluates one declaration; nil after an error.
func (dec *decoder) capability(s scope, d *declaration, k capability.Kind, own bool) *deploy.Capability {
	out := &deploy.Capability{Kind: deploy.CapabilityKind(k.Name()), Name: dec.names + d.name}
	settings, ok := map[string]json.RawMessage{}, true
	if own {
		for _, setting := range k.Settings() {
			ok = dec.setting(s, d, setting, settings, &out.Secret) && ok
			if a := d.attr(setting.Name); a != nil && setting.Sensitive {
				comesFrom(out, setting.Name, a.Expr)
			}
		}
	} else {
		ok = dec.settingsObject(s, d, k, settings, out)
	}
	if !ok {
		return nil
	}
	if data, err := json.Marshal(settings); err == nil {
		out.Settings = data
	}
	var warnings []capability.Warning
	err := contain.Call("the capability "+out.ID(), func() error {
		grant, err := k.Open(out.Settings)
		if err == nil && grant == nil {
			err = contain.Nothing("the capability " + out.ID())
		}
		if err == nil {
			warnings = grant.Warnings()
		}
		return err
	})
	if err != nil {
		dec.invalidSettings(s, d, err)
		return nil
	}
	for _, w := range warnings {
		at := d.at
		if a := d.attr(w.Setting); w.Setting != "" && a != nil {
			at = a.Range
		}
		dec.report(s, at, Diagnostic{Severity: Warning, Summary: "Dangerous setting", Detail: w.Text, Remedy: w.Remedy})
	}
	return out
}

// invalidSettings reports why a kind has not accepted its settings.
func (dec *decoder) invalidSettings(s scope, d *declaration, err error) {
	if !dec.opts.ShapeOnly {
		dec.report(s, d.at, Diagnostic{Summary: "Invalid settings", Detail: sentence(capital(messageOf(err))), Remedy: sentence(capital(remedyOf(err)))})
	}
}

// comesFrom notes the variables of a setting that may be secret, even while they have no value.
func comesFrom(c *deploy.Capability, setting string, expr hcl.Expression) {
	var from []string
	for _, t := range expr.Variables() {
		if text := traversalText(t); (t.RootName() == "var" || t.RootName() == "local") && !slices.Contains(from, text) {
			from = append(from, text)
		}
	}
	if len(from) == 0 {
		return
	}
	if c.From == nil {
		c.From = map[string][]string{}
	}
	c.From[setting] = from
}

// secretIsHidden refuses a secret that plans would show and stores would keep, because
// its value is not sensitive. A secret is the value of a text setting that is declared
// sensitive, or an entry of such a map if its name is that of a secret.
func (dec *decoder) secretIsHidden(s scope, a *hcl.Attribute, setting capability.Setting, v cty.Value) bool {
	if !setting.Sensitive || dec.opts.ShapeOnly || v.IsMarked() || v.IsNull() || !v.IsKnown() {
		return true
	}
	what := capital(setting.Name)
	switch ty := v.Type(); {
	case setting.Type == capability.Text:
	case ty.IsObjectType() || ty.IsMapType():
		i := slices.IndexFunc(slices.Sorted(maps.Keys(v.AsValueMap())), func(name string) bool {
			return namesSecret(name) && !v.AsValueMap()[name].ContainsMarked()
		})
		if i < 0 {
			return true
		}
		what += fmt.Sprintf(" has the secret %q, which", slices.Sorted(maps.Keys(v.AsValueMap()))[i])
	default:
		return true
	}
	dec.hide(setting.Name, a) // from the source in messages
	dec.report(s, a.Range, Diagnostic{Summary: "Secret in the recipe", Detail: what + " is not sensitive here, so plans would show it, and the session would store it.",
		Remedy: fmt.Sprintf("Declare variable %q { sensitive = true }, refer to it with var.%s, and give its value by --var-file or TERRARIUM_VAR_%s.", setting.Name, setting.Name, setting.Name)})
	return false
}

// namesSecret reports whether the name of a header indicates that its value is a secret.
func namesSecret(header string) bool {
	switch name := strings.ToLower(header); name {
	case "authorization", "proxy-authorization", "cookie":
		return true
	default:
		return slices.ContainsFunc([]string{"api-key", "apikey", "token", "secret", "password"}, func(part string) bool { return strings.Contains(name, part) })
	}
}

// setting evaluates an attribute that is a setting.
func (dec *decoder) setting(s scope, d *declaration, setting capability.Setting, out map[string]json.RawMessage, secret *[]string) bool {
	a := d.attr(setting.Name)
	if a == nil {
		return !setting.Required // the lack of a required one has been reported
	}
	if setting.Sensitive {
		s = s.secretly()
		v, ok := dec.evalAny(s, a.Expr)
		if plain, _ := v.Unmark(); ok && plain.IsNull() && !setting.Required {
			return true // as if it were left out
		}
		if ok && v.ContainsMarked() {
			*secret = append(*secret, setting.Name)
		}
		if ok && !dec.secretIsHidden(s, a, setting, v) {
			return false
		}
	}
	errors := len(dec.diags)
	var value any
	switch setting.Type {
	case capability.Text:
		if len(setting.Choices) > 0 {
			value, _ = dec.choiceAttr(s, d, setting.Name)
		} else {
			value, _ = dec.stringAttr(s, d, setting.Name)
		}
	case capability.Path:
		value = dec.pathAttr(s, d, setting.Name)
	case capability.Flag:
		value = dec.boolAttr(s, d, setting.Name)
	case capability.Count:
		value, _ = dec.wholeAttr(s, d, setting.Name)
	case capability.Size:
		value, _ = dec.sizeAttr(s, d, setting.Name)
	case capability.Duration:
		value, _ = dec.durationAttr(s, d, setting.Name)
	case capability.Texts, capability.TextMap:
		if v, _, ok := dec.plain(s, d, setting.Name); ok {
			if data, err := jsonOf(v); err == nil {
				out[setting.Name] = data
			}
		}
		return len(dec.diags) == errors
	}
	if len(dec.diags) > errors {
		return false
	}
	if data, err := json.Marshal(value); err == nil {
		out[setting.Name] = data
	}
	return true
}

// pathAttr reads the path of a file of the machine.
func (dec *decoder) pathAttr(s scope, d *declaration, name string) string {
	text, ok := dec.stringAttr(s, d, name)
	switch {
	case !ok:
		return ""
	case strings.ContainsRune(text, 0) || text == "":
		dec.fault(s, d.attr(name).Expr, "Not a path", fmt.Sprintf("%q is not the path of a file.", text), "Write the path of a file, such as \"ca.pem\".")
		return ""
	}
	path := filepath.FromSlash(text)
	if filepath.IsAbs(path) {
		return path
	}
	if path = under(dec.folder.abs, path); !filepath.IsAbs(path) {
		dec.fault(s, d.attr(name).Expr, "Not a file of the machine", "The recipe is in a file system of the program, which has no files to follow or to write.", "Write an absolute path.")
	}
	return path
}

// wholeAttr reads a whole number of at least 0.
func (ev *evaluator) wholeAttr(s scope, h holder, name string) (int64, bool) {
	v, expr, ok := ev.plain(s, h, name)
	if !ok {
		return 0, false
	}
	n, exact := v.AsBigFloat().Int64()
	if exact != big.Exact || n < 0 {
		ev.fault(s, expr, "Number out of range", fmt.Sprintf("%s must be a whole number from 0; this is %s.", capital(name), describe(v)), "Write a number such as 10, or leave the attribute out.")
		return 0, false
	}
	return n, true
}

// settingsObject evaluates the settings of a kind that has no block of its own.
func (dec *decoder) settingsObject(s scope, d *declaration, k capability.Kind, out map[string]json.RawMessage, c *deploy.Capability) bool {
	known := map[string]capability.Setting{}
	for _, setting := range k.Settings() {
		known[setting.Name] = setting
	}
	a := d.attr("settings")
	given := map[string]cty.Value{}
	if a != nil {
		v, ok := dec.eval(s.secretly(), a.Expr)
		if !ok {
			return false
		}
		v, marks := v.Unmark()
		if v.IsNull() || !v.Type().IsObjectType() && !v.Type().IsMapType() {
			dec.fault(s, a.Expr, "Settings are not an object", fmt.Sprintf("The settings must be an object; this is %s.", describeUnless(len(marks) > 0, v)), "Write settings = { name = value }.")
			return false
		}
		for name, e := range v.AsValueMap() {
			given[name] = e.WithMarks(marks)
		}
	}
	errors := len(dec.diags)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		setting, ok := known[name]
		if setting.Sensitive {
			comesFrom(c, name, a.Expr)
		}
		switch v := given[name]; {
		case !ok:
			dec.faultMeaning(s, a.Expr, "Unknown setting", fmt.Sprintf("A capability of the kind %s has no setting %q.", k.Name(), name), "", nearest(name, slices.Sorted(maps.Keys(known))))
		case v.ContainsMarked() && !setting.Sensitive:
			dec.refuseSensitive(s, a.Expr, capital(name))
		case !dec.secretIsHidden(s, a, setting, v):
		default:
			if v.ContainsMarked() {
				c.Secret = append(c.Secret, name)
			}
			plain, _ := v.UnmarkDeep()
			if data, err := settingJSON(plain, setting); err != nil {
				dec.fault(s, a.Expr, "Wrong setting", fmt.Sprintf("The setting %s must be %s: %s", name, article(string(setting.Type)), sentence(err.Error())), "")
			} else if data != nil {
				out[name] = data
			}
		}
	}
	for _, setting := range k.Settings() {
		if _, ok := given[setting.Name]; setting.Required && !ok {
			dec.report(s, d.at, Diagnostic{Summary: "Missing setting", Detail: fmt.Sprintf("A capability of the kind %s needs the setting %q: %s.", k.Name(), setting.Name, setting.Doc), Remedy: "Add it to settings."})
		}
	}
	return len(dec.diags) == errors
}

// settingJSON converts a value to the form that a kind gets.
func settingJSON(v cty.Value, setting capability.Setting) ([]byte, error) {
	if v.IsNull() {
		return nil, nil
	}
	v, err := convert.Convert(v, converted[settingTypes[setting.Type]])
	if err != nil {
		return nil, err
	}
	switch setting.Type {
	case capability.Size:
		n, ok := parseSize(v.AsString())
		if !ok {
			return nil, fmt.Errorf("%q is not a size", v.AsString())
		}
		return json.Marshal(n)
	case capability.Duration:
		d, err := time.ParseDuration(v.AsString())
		if err != nil || d <= 0 {
			return nil, fmt.Errorf("%q is not a duration", v.AsString())
		}
		return json.Marshal(d)
	case capability.Count:
		if n, exact := v.AsBigFloat().Int64(); exact != big.Exact || n < 0 {
			return nil, fmt.Errorf("it is not a whole number from 0")
		}
	case capability.Text:
		if len(setting.Choices) > 0 && !slices.Contains(setting.Choices, v.AsString()) {
			return nil, fmt.Errorf("it is not one of %s", strings.Join(setting.Choices, ", "))
		}
	}
	return jsonOf(v)
}

// reach reads the capabilities that are listed in a grants block. Where an attribute is
// absent, the capabilities of the species stay.
func (dec *decoder) reach(s scope, c blockBody, spec *deploy.CreatureSpec) {
	for _, attribute := range append(ownNames(), "capabilities") {
		a := c.attr(attribute)
		if a == nil {
			continue
		}
		of := func(c deploy.Capability) bool {
			return string(c.Kind) == attribute || attribute == "capabilities" && !isOwn(string(c.Kind))
		}
		spec.Capabilities = slices.DeleteFunc(slices.Clone(spec.Capabilities), of)
		v, _, ok := dec.plain(s, c, attribute)
		if !ok {
			continue
		}
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			if e.IsNull() {
				continue
			}
			id := e.AsString()
			if isOwn(attribute) {
				id = attribute + "." + id
			}
			found, declared := dec.reachable[id]
			dec.granted[id] = true
			switch {
			case !declared:
				dec.faultMeaning(s, a.Expr, "Undeclared capability", fmt.Sprintf("The recipe declares no capability %s.", id), declareRemedy(attribute, e.AsString()), nearest(id, slices.Sorted(maps.Keys(dec.reachable))))
			case found != nil && !slices.ContainsFunc(spec.Capabilities, func(of deploy.Capability) bool { return of.ID() == found.ID() }):
				spec.Capabilities = append(spec.Capabilities, *found)
			}
		}
	}
	slices.SortFunc(spec.Capabilities, func(a, b deploy.Capability) int { return strings.Compare(a.ID(), b.ID()) })
}

func declareRemedy(attribute, name string) string {
	switch attribute {
	case httpKind:
		return fmt.Sprintf(`Declare it: http %q { allow = ["https://…"] }.`, name)
	case "llm":
		return fmt.Sprintf(`Declare it: llm %q { endpoint = "https://…" … }.`, name)
	}
	return "Declare it in a capability block, and name it KIND.NAME."
}

// checkGranted warns of capabilities that no creature has.
func (dec *decoder) checkGranted() {
	for _, block := range capabilityWords() {
		for _, d := range dec.ordered[block] {
			if id := declaredKind(block, d) + "." + d.name; dec.reachable[id] != nil && !dec.granted[id] {
				dec.report(scope{title: d.title}, d.at, Diagnostic{Severity: Warning, Summary: "Unused capability", Detail: "It is granted to no creature.",
					Remedy: "Grant it to the creatures that need it, or remove the block."})
			}
		}
	}
}

// messageOf and remedyOf are the parts of an error with a code.
func messageOf(err error) string {
	if e, ok := err.(*abi.Error); ok { //nolint:errorlint // a text around it belongs to the message
		return e.Message
	}
	return err.Error()
}

func remedyOf(err error) string {
	if e, ok := err.(*abi.Error); ok { //nolint:errorlint // see messageOf
		return e.Remedy
	}
	return ""
}
