package recipes

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// envPrefix begins the names of environment variables that give a variable of
// the recipe its value.
const envPrefix = "TERRARIUM_VAR_"

// sensitiveMark marks values that messages and stores must not show.
type sensitiveMark struct{}

// givenEarlier is where values come from that were kept with a copy.
const givenEarlier = "the values given earlier"

// input is a value that was given to a variable: a text, or an expression of a
// variables file.
type input struct {
	from string // for messages
	text string
	expr hcl.Expression
	// static is what expr stands in, if that is not a variables file
	static string
	// of a sub-recipe: the recipe in which expr stands, and where
	owner *loader
	scope scope
	name  hcl.Range
}

// at gives a finding about the value its place.
func (in input) at(l *loader, s scope, d Diagnostic) Diagnostic {
	if in.owner != nil {
		l, s = in.owner, in.scope
	}
	return l.at(s, in.expr.Range(), d)
}

// readInputs collects what was given to variables; later sources go before
// earlier ones.
func (l *loader) readInputs() {
	for name, data := range l.opts.Given {
		if jsonTooDeep(data, maxJSONDepth) >= 0 {
			continue
		}
		if ty, err := ctyjson.ImpliedType(data); err == nil {
			if v, err := ctyjson.Unmarshal(data, ty); err == nil {
				l.inputs[name] = input{from: givenEarlier, expr: hcl.StaticExpr(v, hcl.Range{Filename: givenEarlier})}
			}
		}
	}
	for _, entry := range l.opts.Env {
		key, value, _ := strings.Cut(entry, "=")
		if name, ok := strings.CutPrefix(key, envPrefix); ok {
			l.inputs[name] = input{from: "environment variable " + key, text: value}
		}
	}
	for _, path := range l.opts.VarFiles {
		l.readVarFile(path)
	}
	for name, value := range l.opts.Vars {
		l.inputs[name] = input{from: fmt.Sprintf("--var %q", name), text: value}
	}
}

func (l *loader) readVarFile(path string) {
	src, err := readBounded(path, l.opts.MaxFileBytes)
	if err != nil {
		d := Diagnostic{Summary: "Variables file cannot be read", Detail: sentence(cause(err)), Range: Range{File: path}}
		if errors.Is(err, fs.ErrNotExist) {
			d.Detail = "There is no such file."
		}
		l.add(d)
		l.givenLess = true
		return
	}
	l.extra[path] = src
	var file *hcl.File
	var diags hcl.Diagnostics
	if strings.HasSuffix(path, ".json") {
		file, diags = parseJSON(src, path)
	} else {
		file, diags = parseNative(src, path)
	}
	if file != nil && file.Body != nil {
		attrs, more := file.Body.JustAttributes()
		diags = append(diags, more...)
		l.givenLess = l.givenLess || diags.HasErrors()
		for name, a := range attrs {
			if !diags.HasErrors() {
				l.inputs[name] = input{from: path, expr: a.Expr}
			}
		}
	}
	for _, d := range diags {
		l.hcl("", d)
	}
}

func readBounded(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() > limit:
		return nil, fmt.Errorf("it has %d bytes; at most %d are allowed", info.Size(), limit)
	}
	return os.ReadFile(path)
}

// checkInputs reports values for variables that do not exist. The environment
// may be meant for other recipes, so it is not checked.
func (l *loader) checkInputs() {
	for _, name := range slices.Sorted(maps.Keys(l.inputs)) {
		in := l.inputs[name]
		if l.decls["variable"][name] != nil || in.from == givenEarlier || strings.HasPrefix(in.from, "environment") || l.broken || l.opts.Shared {
			continue
		}
		d := Diagnostic{Summary: "Value for an unknown variable", Detail: fmt.Sprintf("The recipe declares no variable %q, to which %s gives a value.", name, in.from),
			Suggestion: nearest(name, l.declared("variable"))}
		switch {
		case in.owner != nil:
			d.Summary, d.Detail = "Unknown input", fmt.Sprintf("%s declares no variable %q.", l.place, name)
			d = in.owner.at(in.scope, in.name, d)
		case in.expr != nil:
			d = in.at(l, scope{}, d)
		}
		l.add(d)
	}
}

func (l *loader) sensitive(d *declaration) bool {
	return l.boolAttr(scope{title: d.title, static: "a variable block"}, d, "sensitive")
}

// variable returns the value of a variable: what was given, else its default.
func (l *loader) variable(d *declaration) (cty.Value, bool) {
	s := scope{title: d.title, static: "a variable block"}
	ty, defaults, ok := l.variableType(d)
	if !ok {
		return cty.DynamicVal, false
	}
	var v cty.Value
	given := false
	if in, found := l.inputs[d.name]; found {
		v, ok = l.inputValue(s, d, in, ty)
		given = true
	} else if a := d.attr("default"); a != nil {
		v, ok = l.eval(s.secretly(), a.Expr)
	} else if l.opts.ShapeOnly && !l.forConsole && l.sensitive(d) {
		return unknownSecret(ty).Mark(sensitiveMark{}), true
	} else if l.givenLess {
		return cty.DynamicVal, false // the file in error may have had it
	} else if l.parent != nil {
		l.inputMissing(d)
		return cty.DynamicVal, false
	} else {
		l.add(l.at(s, d.at, Diagnostic{Summary: "No value for variable " + d.name,
			Detail: "The variable has no default, so it needs a value.",
			Remedy: fmt.Sprintf("Give --var %s=…, set %s%s, or add a default.", d.name, envPrefix, d.name)}))
		return cty.DynamicVal, false
	}
	if !ok {
		return cty.DynamicVal, false
	}
	if defaults != nil && !v.IsNull() {
		v = defaults.Apply(v)
	}
	out, err := convert.Convert(v, ty)
	if err != nil {
		l.wrongType(s, d, given, ty, v, err)
		return cty.DynamicVal, false
	}
	if huge(out) {
		l.wrongType(s, d, given, ty, v, errHuge)
		return cty.DynamicVal, false
	}
	if !l.checkReferences(d, out) {
		return cty.DynamicVal, false
	}
	if l.sensitive(d) {
		out = out.Mark(sensitiveMark{})
	}
	return out, true
}

// notType finds the word in what the HCL library says of one that is no type.
var notType = regexp.MustCompile(`^(?:The )?[Kk]eyword "([^"]*)" is not a valid type`)

// typeWords are the words of types, the likeliest first.
var typeWords = []string{"string", "number", "bool", "any", "list", "set", "map", "object", "tuple", "optional", "channel", "creature", "species", "predicate"}

// variableType returns the type of a variable. It knows which attributes are
// optional, which converting to it needs; no value has such a type.
func (l *loader) variableType(d *declaration) (cty.Type, *typeexpr.Defaults, bool) {
	a := d.attr("type")
	if a == nil {
		return cty.DynamicPseudoType, nil, true
	}
	if ty, ok := l.referenceVariable(d, a.Expr); ok {
		return ty, nil, true
	}
	ty, defaults, diags := typeexpr.TypeConstraintWithDefaults(a.Expr)
	for _, h := range diags {
		if m := notType.FindStringSubmatch(h.Detail); m != nil {
			if near := nearest(m[1], typeWords); near != "" {
				h.Detail += fmt.Sprintf(" Did you mean %q?", near)
			}
		}
		l.hcl(d.title, h)
	}
	return ty, defaults, !diags.HasErrors()
}

// inputValue reads a given value. A text is the value itself where a string is
// wanted, otherwise an expression; without a type, whichever it can be.
func (l *loader) inputValue(s scope, d *declaration, in input, ty cty.Type) (cty.Value, bool) {
	if in.owner != nil {
		return in.owner.eval(in.scope.secretly(), in.expr)
	}
	if in.expr != nil {
		return l.eval(scope{title: d.title, static: cmp.Or(in.static, "a variables file"), secret: true}, in.expr)
	}
	invalid := func(detail string) (cty.Value, bool) {
		shown := ", " + describe(cty.StringVal(in.text)) + ","
		if l.sensitive(d) {
			shown = ""
		}
		l.add(l.at(s, d.at, Diagnostic{Summary: "Unusable value for variable " + d.name,
			Detail: fmt.Sprintf("The value from %s%s %s.", in.from, shown, detail), Remedy: inputRemedy(ty)}))
		return cty.DynamicVal, false
	}
	if !utf8.ValidString(in.text) {
		return invalid("is not UTF-8 text")
	}
	if ty == cty.String {
		return cty.StringVal(in.text), true
	}
	src := []byte(in.text)
	if int64(len(src)) > l.opts.MaxFileBytes || measure(hclsyntax.LexExpression, src, "") != nil {
		return invalid("is too large, nests too deeply, or has too large a number")
	}
	expr, diags := hclsyntax.ParseExpression(src, in.from, hcl.InitialPos)
	if !diags.HasErrors() {
		v, more := meterTree(expr).Value(nil)
		if diags = append(diags, more...); !diags.HasErrors() {
			return v, true
		}
	}
	if ty == cty.DynamicPseudoType {
		return cty.StringVal(in.text), true
	}
	return invalid("is not an expression of type " + typeexpr.TypeString(ty))
}

func inputRemedy(ty cty.Type) string {
	switch {
	case ty.IsMapType(), ty.IsObjectType():
		return `Write it as an expression, for example {a = 1}; texts stand in quotes.`
	case ty.IsListType(), ty.IsSetType(), ty.IsTupleType():
		return `Write it as an expression, for example ["a", "b"]; texts stand in quotes.`
	default:
		return "Write it as an expression of type " + typeexpr.TypeString(ty) + "."
	}
}

func (l *loader) wrongType(s scope, d *declaration, given bool, ty cty.Type, v cty.Value, err error) {
	shown := describe(v)
	if l.sensitive(d) {
		shown = "sensitive"
	}
	detail := fmt.Sprintf("Its type is %s, but the value is %s: %s.", typeexpr.TypeString(ty), shown, err)
	if d.refersTo != "" {
		detail = fmt.Sprintf("It takes references to %ss, but the value is %s.", d.refersTo, shown)
	}
	f := Diagnostic{Summary: "Wrong type for variable " + d.name, Detail: detail}
	switch in := l.inputs[d.name]; {
	case !given:
		f = l.at(s, d.attr("default").Expr.Range(), f)
	case in.expr != nil:
		f = in.at(l, s, f)
	default:
		f.Detail = fmt.Sprintf("The value comes from %s. %s", in.from, detail)
		f = l.at(s, d.at, f)
	}
	if l.sensitive(d) {
		f.Snippet = nil // which may be a line of a file of values
	}
	l.add(f)
}

// validate checks the conditions of a variable's validation blocks.
func (l *loader) validate(d *declaration) {
	if d.content == nil || l.opts.ShapeOnly && !l.forConsole {
		return
	}
	for _, b := range d.content.Blocks {
		c := l.blockContent(d.title, b)
		cond := c.attr("condition")
		if cond == nil || c.attr("error_message") == nil {
			continue
		}
		s := scope{title: d.title, secret: true}
		l.prepare(s, c.attr("error_message").Expr) // whether it is needed or not
		v, expr, ok := l.plain(s, c, "condition")
		if !ok || v.True() {
			continue
		}
		message, ok := l.stringAttr(s, c, "error_message")
		if !ok || message == "" {
			message = "The condition does not hold."
		}
		if v, _ := l.eval(s, c.attr("error_message").Expr); v.ContainsMarked() {
			message = "The message is sensitive, so it is not shown."
		}
		remedy := ""
		if in, given := l.inputs[d.name]; given {
			remedy = fmt.Sprintf("The value comes from %s.", in.from)
		}
		l.fault(s, expr, "Invalid value for variable "+d.name, message, remedy)
	}
}
