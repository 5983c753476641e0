package policy

import (
	"fmt"
	"time"

	"github.com/dop251/goja"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// terms are the options of ask(reason, {within, otherwise}).
type terms struct {
	Within time.Duration `json:",omitempty"` // 0: the default
	Allow  bool          `json:",omitempty"`
}

// bounded returns terms within the limits, whatever process they come from.
func (t terms) bounded() terms {
	t.Within = max(0, min(t.Within, deploy.MaxAskWithin))
	return t
}

// readTerms throws a TypeError in the script for anything else.
func (i *isolate) readTerms(arg goja.Value) (t terms) {
	if goja.IsUndefined(arg) {
		return t
	}
	o, ok := arg.(*goja.Object)
	if !ok {
		i.throw("ask: the options must be an object: ask(reason, {within: \"2h\", otherwise: \"allow\"})")
	}
	for _, name := range o.Keys() {
		value := o.Get(name)
		text := ""
		if value.ExportType() == textType { // converting another value may not end
			text = value.String()
		}
		switch name {
		case "within":
			d, err := time.ParseDuration(text)
			if err != nil || d <= 0 || d > deploy.MaxAskWithin {
				i.throw(fmt.Sprintf("ask: within must be a duration up to %v, such as \"2h\" or \"90s\"", deploy.MaxAskWithin))
			}
			t.Within = d
		case "otherwise":
			if text != "allow" && text != "deny" {
				i.throw("ask: otherwise must be \"allow\" or \"deny\"")
			}
			t.Allow = text == "allow"
		default:
			i.throw(fmt.Sprintf("ask has no option %q; it takes within and otherwise", clip(name)))
		}
	}
	return t
}
