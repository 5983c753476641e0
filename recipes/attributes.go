package recipes

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// holder has attributes: a declaration, or the content of a block.
type holder interface {
	shape() *Block
	attr(name string) *hcl.Attribute
}

// plain evaluates an attribute and converts it to the type in its description. It is not
// ok if the attribute is absent, null or in error.
func (ev *evaluator) plain(s scope, h holder, name string) (cty.Value, hcl.Expression, bool) {
	a := h.attr(name)
	if a == nil {
		return cty.NilVal, nil, false
	}
	v, ok := ev.evalAny(s, a.Expr)
	if !ok {
		return cty.NilVal, a.Expr, false
	}
	if v.ContainsMarked() && !s.secret {
		ev.refuseSensitive(s, a.Expr, capital(name))
		return cty.NilVal, a.Expr, false
	}
	secret := v.ContainsMarked()
	v, _ = v.UnmarkDeep()
	if v.IsNull() {
		return cty.NilVal, a.Expr, false
	}
	ty := converted[h.shape().attribute(name).Type]
	out, err := convert.Convert(v, ty)
	if err != nil {
		ev.fault(s, a.Expr, "Wrong type", fmt.Sprintf("%s must be %s; this is %s.", capital(name), wanted(ty), describeUnless(secret, v)), "")
		return cty.NilVal, a.Expr, false
	}
	return out, a.Expr, true
}

// describeUnless is [describe] for a value whose marks have been removed.
func describeUnless(secret bool, v cty.Value) string {
	if secret {
		return "sensitive"
	}
	return describe(v)
}

func wanted(ty cty.Type) string {
	switch ty {
	case cty.Bool:
		return "true or false"
	case cty.String:
		return "a text"
	default:
		return article(ty.FriendlyName())
	}
}

func (ev *evaluator) stringAttr(s scope, h holder, name string) (string, bool) {
	v, _, ok := ev.plain(s, h, name)
	if !ok {
		return "", false
	}
	return v.AsString(), true
}

// description returns the description of a creature or species.
func (ev *evaluator) description(s scope, h holder) string {
	text, _ := ev.stringAttr(s, h, "description")
	if len(text) > deploy.MaxDescription {
		ev.fault(s, h.attr("description").Expr, "Description too long", fmt.Sprintf("The description has %d bytes; at most %d are allowed.", len(text), deploy.MaxDescription), "")
		return ""
	}
	return text
}

// checkDescription reports the mistakes of a description that is not used otherwise.
func (ev *evaluator) checkDescription(s scope, h holder) { ev.stringAttr(s, h, "description") }

func (ev *evaluator) boolAttr(s scope, h holder, name string) bool {
	v, _, ok := ev.plain(s, h, name)
	return ok && v.True()
}

// choiceAttr returns one of the choices in the description of the attribute.
func (ev *evaluator) choiceAttr(s scope, h holder, name string) (string, bool) {
	v, expr, ok := ev.plain(s, h, name)
	if !ok {
		return "", false
	}
	choices := h.shape().attribute(name).Choices
	for _, c := range choices {
		if v.AsString() == c {
			return c, true
		}
	}
	ev.faultMeaning(s, expr, "Unknown "+name, fmt.Sprintf("%s must be one of: %s.", capital(name), strings.Join(choices, ", ")), "", nearest(v.AsString(), choices))
	return "", false
}

// countAttr reads a whole number of at least 1.
func (ev *evaluator) countAttr(s scope, h holder, name string) (int64, bool) {
	v, expr, ok := ev.plain(s, h, name)
	if !ok {
		return 0, false
	}
	n, exact := v.AsBigFloat().Int64()
	if exact != big.Exact || n < 1 {
		ev.fault(s, expr, "Number out of range", fmt.Sprintf("%s must be a whole number of at least 1; this is %s.", capital(name), describe(v)), "")
		return 0, false
	}
	return n, true
}

// sizeAttr reads a number of bytes: a number, or a text with a unit.
func (ev *evaluator) sizeAttr(s scope, h holder, name string) (int64, bool) {
	v, expr, ok := ev.plain(s, h, name)
	if !ok {
		return 0, false
	}
	n, ok := parseSize(v.AsString())
	if !ok {
		ev.fault(s, expr, "Not a size", fmt.Sprintf("%s must be a number of bytes; this is %s.", capital(name), describe(v)),
			`Write a size such as "16MiB", "64KiB" or 4096.`)
	}
	return n, ok
}

var sizePattern = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)$`)

var sizeUnits = map[string]float64{
	"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30,
}

func parseSize(text string) (int64, bool) {
	m := sizePattern.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	unit, ok := sizeUnits[strings.ToLower(m[2])]
	n, err := strconv.ParseFloat(m[1], 64)
	const most = 1 << 53 // above it, a float is no longer exact
	if !ok || err != nil || n*unit < 1 || n*unit > most {
		return 0, false
	}
	return int64(n * unit), true
}

func (ev *evaluator) durationAttr(s scope, h holder, name string) (time.Duration, bool) {
	v, expr, ok := ev.plain(s, h, name)
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(v.AsString())
	if err != nil || d <= 0 {
		ev.fault(s, expr, "Not a duration", fmt.Sprintf("%s must be a duration; this is %s.", capital(name), describe(v)),
			`Write a duration such as "200ms", "1.5s" or "2m".`)
		return 0, false
	}
	return d, true
}

// jsonOf returns a value as JSON, including its sensitive parts.
func jsonOf(v cty.Value) ([]byte, error) {
	v, _ = v.UnmarkDeep()
	if weigh(v, maxWeight) <= 0 {
		return nil, fmt.Errorf("it is larger than %d MiB, or has a number with too many digits", maxWeight>>20)
	}
	if v.Type() == cty.Number && v.IsKnown() && !v.IsNull() {
		// Numbers have 512 bits and are slow to format.
		if whole, accuracy := v.AsBigFloat().Int64(); accuracy == big.Exact {
			return strconv.AppendInt(nil, whole, 10), nil
		}
	}
	return ctyjson.Marshal(v, v.Type())
}
