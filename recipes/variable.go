package recipes

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
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

// envPrefix is the prefix of environment variables that set variables of the recipe.
const envPrefix = "TERRARIUM_VAR_"

// sensitiveMark marks values that messages and stores must not show.
type sensitiveMark struct{}

// givenEarlier is the source of values that were stored with a copy.
const givenEarlier = "the values given earlier"

// input is a value for a variable: a text, or an expression of a variables file.
type input struct {
	from string // for messages
	text string
	expr hcl.Expression
	// static says where expr is, if it is not in a variables file
	static string
	// of a sub-recipe: the recipe that has expr, and the scope there
	owner *evaluator
	scope scope
	name  hcl.Range
}

// at sets the place of a finding about the value.
func (in input) at(ev *evaluator, s scope, d Diagnostic) Diagnostic {
	if in.owner != nil {
		ev, s = in.owner, in.scope
	}
	return ev.at(s, in.expr.Range(), d)
}

// variables are the variables of one recipe and their sources.
type variables struct {
	*evaluator
	opts      *settings
	inputs    map[string]input
	givenLess bool // a variables file could not be read, so values may be missing
}

// readInputs collects the values for variables; later sources take precedence.
func (vs *variables) readInputs() {
	for name, data := range vs.opts.Given {
		if jsonTooDeep(data, maxJSONDepth) >= 0 {
			continue
		}
		if ty, err := ctyjson.ImpliedType(data); err == nil {
			if v, err := ctyjson.Unmarshal(data, ty); err == nil {
				vs.inputs[name] = input{from: givenEarlier, expr: hcl.StaticExpr(v, hcl.Range{Filename: givenEarlier})}
			}
		}
	}
	for _, entry := range vs.opts.Env {
		key, value, _ := strings.Cut(entry, "=")
		if name, ok := strings.CutPrefix(key, envPrefix); ok {
			vs.inputs[name] = input{from: "environment variable " + key, text: value}
		}
	}
	for _, path := range vs.opts.VarFiles {
		vs.readVarFile(path)
	}
	for name, value := range vs.opts.Vars {
		vs.inputs[name] = input{from: fmt.Sprintf("--var %q", name), text: value}
	}
}

func (vs *variables) readVarFile(path string) {
	src, err := vs.opts.readBounded(path)
	if err != nil {
		d := Diagnostic{Summary: "Variables file cannot be read", Detail: sentence(cause(err)), Range: Range{File: path}}
		if errors.Is(err, fs.ErrNotExist) {
			d.Detail = "There is no such file."
		}
		vs.add(d)
		vs.givenLess = true
		return
	}
	vs.extra[path] = src
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
		vs.givenLess = vs.givenLess || diags.HasErrors()
		for name, a := range attrs {
			if !diags.HasErrors() {
				vs.inputs[name] = input{from: path, expr: a.Expr}
			}
		}
	}
	for _, d := range diags {
		vs.hcl("", d)
	}
}

func (o *Options) readBounded(path string) ([]byte, error) {
	at, err := o.at(path)
	if err != nil {
		return nil, err
	}
	info, err := at.stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() > o.MaxFileBytes:
		return nil, fmt.Errorf("it has %d bytes; at most %d are allowed", info.Size(), o.MaxFileBytes)
	}
	f, err := at.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, o.MaxFileBytes)) // also if it has grown
}

// checkInputs reports values for variables that do not exist, except those from the
// environment, which may be meant for other recipes.
func (vs *variables) checkInputs() {
	for _, name := range slices.Sorted(maps.Keys(vs.inputs)) {
		in := vs.inputs[name]
		if vs.decls["variable"][name] != nil || in.from == givenEarlier || strings.HasPrefix(in.from, "environment") || vs.broken || vs.opts.Shared {
			continue
		}
		d := Diagnostic{Summary: "Value for an unknown variable", Detail: fmt.Sprintf("The recipe declares no variable %q; the value comes from %s.", name, in.from),
			Suggestion: nearest(name, vs.declared("variable"))}
		switch {
		case in.owner != nil:
			d.Summary, d.Detail = "Unknown input", fmt.Sprintf("%s declares no variable %q.", vs.place, name)
			d = in.owner.at(in.scope, in.name, d)
		case in.expr != nil:
			d = in.at(vs.evaluator, scope{}, d)
		}
		vs.add(d)
	}
}

func (vs *variables) sensitive(d *declaration) bool {
	return vs.boolAttr(scope{title: d.title, static: "a variable block"}, d, "sensitive")
}

// variable returns the value of a variable: its input, else its default.
func (vs *variables) variable(d *declaration) (cty.Value, bool) {
	s := scope{title: d.title, static: "a variable block"}
	ty, defaults, ok := vs.variableType(d)
	if !ok {
		return cty.DynamicVal, false
	}
	var v cty.Value
	given := false
	if in, found := vs.inputs[d.name]; found {
		v, ok = vs.inputValue(s, d, in, ty)
		given = true
	} else if a := d.attr("default"); a != nil {
		v, ok = vs.eval(s.secretly(), a.Expr)
	} else if vs.opts.ShapeOnly && !vs.opts.forConsole && vs.sensitive(d) {
		return unknownSecret(ty).Mark(sensitiveMark{}), true
	} else if vs.givenLess {
		return cty.DynamicVal, false // a file with errors may have had it
	} else if vs.parent != nil {
		vs.inputMissing(d)
		return cty.DynamicVal, false
	} else {
		vs.report(s, d.at, Diagnostic{Summary: "No value for variable " + d.name,
			Detail: "The variable has no default, so it needs a value.",
			Remedy: fmt.Sprintf("Pass --var %s=…, set the environment variable %s%s, or add a default.", d.name, envPrefix, d.name)})
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
		vs.wrongType(s, d, given, ty, v, err)
		return cty.DynamicVal, false
	}
	if huge(out) {
		vs.wrongType(s, d, given, ty, v, errHuge)
		return cty.DynamicVal, false
	}
	if !vs.checkReferences(d, out) {
		return cty.DynamicVal, false
	}
	if vs.sensitive(d) {
		out = out.Mark(sensitiveMark{})
	}
	return out, true
}

// notType finds the unknown type in a message of the HCL library.
var notType = regexp.MustCompile(`^(?:The )?[Kk]eyword "([^"]*)" is not a valid type`)

// typeWords are the words for types, the likeliest first.
var typeWords = []string{"string", "number", "bool", "any", "list", "set", "map", "object", "tuple", "optional", "channel", "creature", "species", "predicate"}

// variableType returns the type of a variable, and the defaults of its optional
// attributes, which the type does not have.
func (vs *variables) variableType(d *declaration) (cty.Type, *typeexpr.Defaults, bool) {
	a := d.attr("type")
	if a == nil {
		return cty.DynamicPseudoType, nil, true
	}
	if ty, ok := vs.referenceVariable(d, a.Expr); ok {
		return ty, nil, true
	}
	ty, defaults, diags := typeexpr.TypeConstraintWithDefaults(a.Expr)
	for _, h := range diags {
		if m := notType.FindStringSubmatch(h.Detail); m != nil {
			if near := nearest(m[1], typeWords); near != "" {
				h.Detail += fmt.Sprintf(" Did you mean %q?", near)
			}
		}
		vs.hcl(d.title, h)
	}
	return ty, defaults, !diags.HasErrors()
}

// inputValue reads an input. For the type string, the text is the value; for other types
// it is an expression; without a type, it is an expression if it is a valid one.
func (vs *variables) inputValue(s scope, d *declaration, in input, ty cty.Type) (cty.Value, bool) {
	if in.owner != nil {
		return in.owner.eval(in.scope.secretly(), in.expr)
	}
	if in.expr != nil {
		return vs.eval(scope{title: d.title, static: cmp.Or(in.static, "a variables file"), secret: true}, in.expr)
	}
	invalid := func(detail string) (cty.Value, bool) {
		shown := ", " + describe(cty.StringVal(in.text)) + ","
		if vs.sensitive(d) {
			shown = ""
		}
		vs.report(s, d.at, Diagnostic{Summary: "Unusable value for variable " + d.name,
			Detail: fmt.Sprintf("The value from %s%s %s.", in.from, shown, detail), Remedy: inputRemedy(ty)})
		return cty.DynamicVal, false
	}
	if !utf8.ValidString(in.text) {
		return invalid("is not UTF-8 text")
	}
	if ty == cty.String {
		return cty.StringVal(in.text), true
	}
	src := []byte(in.text)
	if int64(len(src)) > vs.opts.MaxFileBytes || measure(hclsyntax.LexExpression, src, "") != nil {
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
		return `Write it as an expression, for example {a = 1}; put texts in quotes.`
	case ty.IsListType(), ty.IsSetType(), ty.IsTupleType():
		return `Write it as an expression, for example ["a", "b"]; put texts in quotes.`
	default:
		return "Write it as an expression of type " + typeexpr.TypeString(ty) + "."
	}
}

func (vs *variables) wrongType(s scope, d *declaration, given bool, ty cty.Type, v cty.Value, err error) {
	shown := describe(v)
	if vs.sensitive(d) {
		shown = "sensitive"
	}
	detail := fmt.Sprintf("Its type is %s, but the value is %s: %s.", typeexpr.TypeString(ty), shown, err)
	if d.refersTo != "" {
		detail = fmt.Sprintf("It takes references to %ss, but the value is %s.", d.refersTo, shown)
	}
	f := Diagnostic{Summary: "Wrong type for variable " + d.name, Detail: detail}
	switch in := vs.inputs[d.name]; {
	case !given:
		f = vs.at(s, d.attr("default").Expr.Range(), f)
	case in.expr != nil:
		f = in.at(vs.evaluator, s, f)
	default:
		f.Detail = fmt.Sprintf("The value comes from %s. %s", in.from, detail)
		f = vs.at(s, d.at, f)
	}
	if vs.sensitive(d) {
		f.Snippet = nil // it may be a line of a variables file
	}
	vs.add(f)
}

// validate checks the validation blocks of a variable.
func (vs *variables) validate(d *declaration) {
	if d.content == nil || vs.opts.ShapeOnly && !vs.opts.forConsole {
		return
	}
	for _, b := range d.content.Blocks {
		c := vs.blockContent(d.title, b)
		cond := c.attr("condition")
		if cond == nil || c.attr("error_message") == nil {
			continue
		}
		s := scope{title: d.title, secret: true}
		vs.prepare(s, c.attr("error_message").Expr) // even if it is not needed
		v, expr, ok := vs.plain(s, c, "condition")
		if !ok || v.True() {
			continue
		}
		message, ok := vs.stringAttr(s, c, "error_message")
		if !ok || message == "" {
			message = "The condition does not hold."
		}
		if v, _ := vs.eval(s, c.attr("error_message").Expr); v.ContainsMarked() {
			message = "The message is sensitive, so it is not shown."
		}
		remedy := ""
		if in, given := vs.inputs[d.name]; given {
			remedy = fmt.Sprintf("The value comes from %s.", in.from)
		}
		vs.fault(s, expr, "Invalid value for variable "+d.name, message, remedy)
		vs.noteFailed("var." + d.name)
	}
}
