package recipes

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
)

var limitFields = reflect.VisibleFields(reflect.TypeFor[abi.Limits]())

func limitName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// traits reads the attributes that species, catalogs and creatures have in common.
// Attributes that are absent leave spec unchanged.
func (dec *decoder) traits(s scope, d *declaration, spec *deploy.CreatureSpec) {
	if text, ok := dec.choiceAttr(s, d, "workers"); ok {
		spec.Workers, _ = deploy.ParseWorkers(text)
	}
	nested := dec.blocks(s, d)
	if b := blockOf(nested, "limits"); b != nil {
		dec.limits(s, dec.blockContent(d.title, b), &spec.Limits)
	}
	if b := blockOf(nested, "restart"); b != nil {
		dec.restart(s, dec.blockContent(d.title, b), &spec.Restart)
	}
	if b := blockOf(nested, "mailbox"); b != nil {
		c := dec.blockContent(d.title, b)
		if n, ok := dec.countAttr(s, c, "size"); ok {
			spec.Limits.Mailbox = int(n)
		}
		if text, ok := dec.choiceAttr(s, c, "overflow"); ok {
			spec.Overflow, _ = deploy.ParseOverflow(text)
		}
	}
	if b := blockOf(nested, "grants"); b != nil {
		c := dec.blockContent(d.title, b)
		dec.reach(s, c, spec)
		if c.attr("clock") != nil {
			spec.Grants.Clock = dec.boolAttr(s, c, "clock")
		}
		if c.attr("random") != nil {
			spec.Grants.Random = dec.boolAttr(s, c, "random")
		}
	}
}

func blockOf(blocks hcl.Blocks, name string) *hcl.Block {
	for _, b := range blocks {
		if b.Type == name {
			return b
		}
	}
	return nil
}

func (dec *decoder) limits(s scope, c blockBody, limits *abi.Limits) {
	v := reflect.ValueOf(limits).Elem()
	for _, f := range limitFields {
		name, field := limitName(f), v.FieldByIndex(f.Index)
		if c.attr(name) == nil {
			continue
		}
		n, ok := dec.limit(s, c, name)
		if most := reflect.ValueOf(deploy.MaxLimits).FieldByIndex(f.Index).Int(); ok && most > 0 && n > most {
			dec.fault(s, c.attr(name).Expr, "Limit too large", fmt.Sprintf("%s can be at most %s.", capital(name), limitText(c.block.attribute(name), most)), "")
			ok = false
		}
		if ok {
			field.SetInt(n)
		}
	}
}

func (dec *decoder) limit(s scope, c blockBody, name string) (int64, bool) {
	switch c.block.attribute(name).Type {
	case DurationValue:
		d, ok := dec.durationAttr(s, c, name)
		return int64(d), ok
	case SizeValue:
		return dec.sizeAttr(s, c, name)
	default:
		return dec.countAttr(s, c, name)
	}
}

// limitText formats a limit as in a recipe.
func limitText(a *Attribute, n int64) string {
	if a.Type == SizeValue && n%(1<<20) == 0 {
		return fmt.Sprintf(`"%dMiB"`, n>>20)
	}
	return fmt.Sprint(n)
}

func (dec *decoder) restart(s scope, c blockBody, r *deploy.RestartPolicy) {
	if text, ok := dec.choiceAttr(s, c, "mode"); ok {
		r.Mode, _ = deploy.ParseRestartMode(text)
	}
	if n, ok := dec.countAttr(s, c, "attempts"); ok {
		r.Attempts = int(n)
	}
	if n, ok := dec.countAttr(s, c, "max"); ok {
		r.Max = int(n)
	}
	if d, ok := dec.durationAttr(s, c, "within"); ok {
		r.Within = d
	}
	if d, ok := dec.durationAttr(s, c, "backoff"); ok {
		r.Backoff = d
	}
	if d, ok := dec.durationAttr(s, c, "backoff_max"); ok {
		r.BackoffMax = d
	}
}
