package recipes

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// instance is one thing that a block declares: the only one, or one for each element of
// for_each.
type instance struct {
	keyed   bool
	key     string    // of for_each
	address string    // for example channel.shard["a"]
	name    string    // for example shard.a
	object  cty.Value // the value of each; cty.NilVal without for_each
}

// maxInstances bounds the instances of one for_each, so that a mistake in an expression
// is reported before it fills the memory.
const maxInstances = 100_000

const maxKeyBytes = 128

var nameRule = fmt.Sprintf("A name has 1 to %d bytes of printable characters, without spaces at the ends.", maxKeyBytes)

// expand finds the instances of a channel or creature, and returns the value of a
// reference to it: an object, or with for_each a map of objects.
func (ev *evaluator) expand(d *declaration) (cty.Value, bool) {
	base := ev.prefix + d.kind + "." + d.name
	a := d.attr("for_each")
	if a == nil {
		d.instances = []instance{{address: base, name: ev.names + d.name}}
		return reference(d.kind, ev.names+d.name, base), true
	}
	s := scope{title: d.title}
	v, ok := ev.eval(s.secretly(), a.Expr)
	if !ok || !ev.checkForEach(s, a.Expr, v) {
		d.failed = true
		return cty.DynamicVal, false
	}
	refs := map[string]cty.Value{}
	for it := v.ElementIterator(); it.Next(); { // once: it sorts the elements of a set
		key, value := it.Element()
		if v.Type().IsSetType() {
			key = value
		}
		if key.IsNull() || !validKey(key.AsString()) {
			ev.fault(s, a.Expr, unusableForEach, fmt.Sprintf("The key %s cannot be part of a name.", describe(key)),
				fmt.Sprintf("A key has 1 to %d bytes of printable characters, without spaces at the ends.", maxKeyBytes))
			d.failed, d.instances = true, nil
			return cty.DynamicVal, false
		}
		k := key.AsString()
		i := instance{keyed: true, key: k, address: base + "[" + strconv.Quote(k) + "]", name: ev.names + d.name + "." + k,
			object: cty.ObjectVal(map[string]cty.Value{"key": key, "value": value})}
		d.instances = append(d.instances, i)
		refs[k] = reference(d.kind, i.name, i.address)
	}
	if len(refs) == 0 {
		return cty.MapValEmpty(referenceType), true
	}
	return cty.MapVal(refs), true
}

const unusableForEach = "Unusable for_each"

// checkForEach reports a value that cannot be used for for_each, apart from its keys.
func (ev *evaluator) checkForEach(s scope, expr hcl.Expression, v cty.Value) bool {
	fault := func(detail, remedy string) bool {
		ev.fault(s, expr, unusableForEach, detail, remedy)
		return false
	}
	if v.IsMarked() { // as a set is if one of its elements is
		return fault("The keys become part of names and addresses, so they cannot be sensitive.", "Use keys that are not sensitive, and look up the secrets by key.")
	}
	if v.IsNull() {
		return fault("The value is null.", "To create no instances, use an empty map, {}.")
	}
	switch ty := v.Type(); {
	case ty.IsMapType(), ty.IsObjectType(), ty.IsSetType() && ty.ElementType() == cty.String:
	case ty.IsTupleType(), ty.IsListType():
		return fault("for_each takes a map or a set of strings, not a list: the elements of a list have no stable names.", "Wrap it in toset(…).")
	default:
		return fault(fmt.Sprintf("for_each takes a map or a set of strings, not %s.", article(ty.FriendlyName())), "Write a map, or toset([…]).")
	}
	if n := v.LengthInt(); n > maxInstances {
		return fault(fmt.Sprintf("It has %d elements; at most %d are allowed.", n, maxInstances), "")
	}
	return true
}

func validKey(k string) bool {
	return k != "" && len(k) <= maxKeyBytes && strings.TrimSpace(k) == k &&
		strings.IndexFunc(k, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// article adds "a" or "an" to a noun.
func article(noun string) string {
	if noun != "" && strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
