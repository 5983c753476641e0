package policy

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/dop251/goja"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// kind is the kind of an answer: the name of the function that makes it.
type kind string

const (
	kindAllow kind = "allow"
	kindDeny  kind = "deny"
	kindWarn  kind = "warn"
	kindAsk   kind = "ask"
	kindDrop  kind = "drop"
	kindPatch kind = "patch"
	// For a failed turn.
	kindRestart    kind = "restart"
	kindQuarantine kind = "quarantine"
)

// verdict is the result of deny, warn, … that a script can only return: an object without
// fields.
type verdict struct {
	kind    kind
	reason  string
	line    int                         // in the recipe
	payload []byte                      // of a patch; nil: unchanged
	headers *map[string]string          // of a patch; nil: unchanged
	names   map[string]deploy.Collision // of a patch of a merge
	terms   terms                       // of ask
	request json.RawMessage             // of a patch of a request to a capability
}

var _ goja.DynamicObject = (*verdict)(nil)

// Get implements [goja.DynamicObject].
func (*verdict) Get(string) goja.Value { return nil }

// Set implements [goja.DynamicObject]; nothing can be set.
func (*verdict) Set(string, goja.Value) bool { return false }

// Has implements [goja.DynamicObject].
func (*verdict) Has(string) bool { return false }

// Delete implements [goja.DynamicObject]; nothing can be deleted.
func (*verdict) Delete(string) bool { return false }

// Keys implements [goja.DynamicObject].
func (*verdict) Keys() []string { return nil }

var (
	verdictType = reflect.TypeFor[*verdict]()
	textType    = reflect.TypeFor[string]()
)

// verdictOf reads a script's answer after its time has stopped. It only exports an object
// that is known to be a verdict, because exporting others would run getters.
func verdictOf(p *compiled, result goja.Value) (*verdict, *ScriptError) {
	if goja.IsUndefined(result) {
		return nil, nil
	}
	if o, ok := result.(*goja.Object); ok {
		if o.ExportType() == verdictType {
			v := *o.Export().(*verdict)
			v.line = p.Line + max(v.line, 1) - 1
			return &v, nil
		}
		if o.ClassName() == "Promise" {
			return nil, p.fault(1, 1, "it returned a promise; a decision cannot wait", "")
		}
		return nil, p.fault(1, 1, fmt.Sprintf("it returned an object of the class %s instead of a verdict such as deny(reason)", o.ClassName()), "")
	}
	return nil, p.fault(1, 1, fmt.Sprintf("it returned %s instead of a verdict such as deny(reason)", clip(result.String())), "")
}

// verdictFunction is the JavaScript function that makes verdicts of a kind.
func (i *isolate) verdictFunction(k kind) func(goja.FunctionCall) goja.Value {
	return func(call goja.FunctionCall) goja.Value {
		v := &verdict{kind: k, line: i.callerLine()}
		switch arg := call.Argument(0); {
		case k == kindPatch:
			i.readPatch(v, arg)
		case !goja.IsUndefined(arg):
			v.reason = clip(arg.String())
		case k == kindDeny || k == kindWarn || k == kindAsk:
			v.reason = "no reason given"
		}
		if k == kindAsk {
			v.terms = i.readTerms(call.Argument(1))
		}
		return i.vm.NewDynamicObject(v)
	}
}

// callerLine returns the line of the script that is calling a Go function. It only looks
// at the innermost calls.
func (i *isolate) callerLine() int {
	const innermost = 4
	i.frames = i.vm.CaptureCallStack(innermost, i.frames[:0])
	for k := range i.frames {
		if at := i.frames[k].Position(); at.Line > 0 {
			return at.Line
		}
	}
	return 1
}

// readPatch reads {payload, base64, headers}. It throws a TypeError in the
// script for anything else.
func (i *isolate) readPatch(v *verdict, arg goja.Value) {
	o, ok := arg.(*goja.Object)
	if !ok {
		i.throw("patch needs an object: patch({payload, base64, headers})")
	}
	for _, name := range o.Keys() {
		value := o.Get(name)
		switch name {
		case "payload":
			v.payload = []byte(i.text("payload", value))
		case "base64":
			data, err := base64.StdEncoding.DecodeString(i.text("base64", value))
			if err != nil {
				i.throw("patch: base64 is not valid base64")
			}
			v.payload = data
		case "names":
			v.names = i.readNames(value)
		case "request":
			v.request = i.readRequest(value)
		case "headers":
			headers := i.readHeaders(value)
			v.headers = &headers
		default:
			i.throw(fmt.Sprintf("patch has no field %q; it takes payload, base64 and headers, names for a merge, or request for a capability", clip(name)))
		}
	}
	if v.payload == nil && v.headers == nil && v.names == nil && v.request == nil {
		i.throw("patch changes nothing; give it payload, base64 or headers, or names for a merge")
	}
}

// readRequest reads the members of a request that are replaced.
func (i *isolate) readRequest(value goja.Value) json.RawMessage {
	if o, ok := value.(*goja.Object); !ok || o.ClassName() != "Object" {
		i.throw("patch: request is not an object")
	}
	text, ok, err := i.encode(value)
	if err != nil {
		panic(err)
	}
	if !ok || len(text) > maxAmended {
		i.throw("patch: request cannot be JSON, or is too large")
	}
	return append(json.RawMessage{}, text...)
}

// maxAmended bounds the JSON of a changed request, in bytes.
const maxAmended = 16 << 20

func (i *isolate) readHeaders(value goja.Value) map[string]string {
	o, ok := value.(*goja.Object)
	if !ok {
		i.throw("patch: headers is not an object")
	}
	headers := map[string]string{}
	for _, name := range o.Keys() {
		text := i.text("the header "+clip(name), o.Get(name))
		if !validHeader(name, text) {
			i.throw("patch: a header has no name, or NUL in its name or value")
		}
		headers[name] = text
	}
	return headers
}

// collisions are the values in patch({names: {…}}).
var collisions = map[string]deploy.Collision{"rename": deploy.Rename, "unify": deploy.Unify}

func (i *isolate) readNames(value goja.Value) map[string]deploy.Collision {
	o, ok := value.(*goja.Object)
	if !ok {
		i.throw("patch: names is not an object")
	}
	names := map[string]deploy.Collision{}
	for _, name := range o.Keys() {
		how, ok := collisions[i.text("the name "+clip(name), o.Get(name))]
		if !ok {
			i.throw(fmt.Sprintf("patch: %s is neither \"rename\" nor \"unify\"", clip(name)))
		}
		names[name] = how
	}
	return names
}

func validHeader(name, value string) bool {
	if name == "" {
		return false
	}
	for _, c := range []byte(name + value) {
		if c == 0 {
			return false
		}
	}
	return true
}

// text returns a string without converting other values: an object would become "[object
// Object]", which is never intended.
func (i *isolate) text(what string, value goja.Value) string {
	if value.ExportType() != textType { // converting another value may not end
		i.throw(fmt.Sprintf("patch: %s is not a string; JSON.stringify makes one of an object", what))
	}
	return value.String()
}

func (i *isolate) throw(message string) {
	panic(i.vm.NewTypeError(message))
}
