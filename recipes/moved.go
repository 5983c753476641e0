package recipes

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/zclconf/go-cty/cty"
)

// maxMoves bounds the moved blocks of a recipe: following them takes time for each member.
const maxMoves = 1024

// moves reads the moved blocks of all recipes. Their addresses cannot be looked up as
// references, because the recipe no longer declares anything at the former address.
func (a *assembly) moves() {
	var places []moveAt
	for _, dec := range a.decoders {
		for _, d := range dec.moved {
			if len(places) == maxMoves {
				dec.report(scope{title: d.title}, d.at, Diagnostic{Summary: "Too many moved blocks",
					Detail: fmt.Sprintf("A recipe can have at most %d moved blocks, including those of its sub-recipes.", maxMoves), Remedy: "Remove the blocks that every session has applied already."})
				return
			}
			if m, ok := dec.move(d); ok {
				places = append(places, moveAt{dec, d, m})
				a.deployment.Moved = append(a.deployment.Moved, m)
			}
		}
	}
	slices.SortStableFunc(a.deployment.Moved, func(a, b deploy.Move) int { return strings.Compare(a.From, b.From) })
	if len(places) > 0 && !a.decoders[0].broken && !a.decoders[0].diags.HasErrors() {
		a.checkMoves(places)
	}
}

// moveAt is a move with its place.
type moveAt struct {
	in *decoder
	d  *declaration
	deploy.Move
}

func (m *moveAt) fault(attribute, summary, detail, remedy string) {
	m.in.report(scope{title: m.d.title}, m.d.attr(attribute).Expr.Range(), Diagnostic{Summary: summary, Detail: detail, Remedy: remedy})
}

func (dec *decoder) move(d *declaration) (m deploy.Move, ok bool) {
	m.Where = dec.where(d.at)
	from, fromKind, fine := dec.addressAttr(d, "from")
	to, toKind, ok := dec.addressAttr(d, "to")
	if !fine || !ok {
		return m, false
	}
	if fromKind != toKind {
		dec.report(scope{title: d.title}, d.attr("to").Expr.Range(), Diagnostic{Summary: "Moved to another kind",
			Detail: fmt.Sprintf("A %s cannot become a %s.", fromKind, toKind), Remedy: "Give two addresses of the same kind."})
		return m, false
	}
	m.From, m.To = dec.prefix+from, dec.prefix+to
	return m, true
}

// addressAttr reads an attribute whose value is an address, which is not evaluated. The
// kind is that of the thing at the address.
func (dec *decoder) addressAttr(d *declaration, name string) (address, kind string, ok bool) {
	a := d.attr(name)
	if a == nil {
		return "", "", false // which has been reported
	}
	if t := addressTraversal(a.Expr); t != nil {
		address, kind, ok = addressText(t)
	}
	if !ok {
		dec.report(scope{title: d.title}, a.Expr.Range(), Diagnostic{Summary: "Not an address",
			Detail: capital(name) + " is the address of a creature, a channel or a sub-recipe.",
			Remedy: `Write it without quotes, such as creature.guard, channel.lines["north"] or recipe.alerts.creature.guard.`})
	}
	return address, kind, ok
}

// addressTraversal returns an expression that is nothing but a reference, or nil. In JSON
// it is a text such as "${creature.guard}".
func addressTraversal(expr hcl.Expression) hcl.Traversal {
	if !isJSON(expr) {
		t, diags := hcl.AbsTraversalForExpr(expr)
		if diags.HasErrors() {
			return nil
		}
		return t
	}
	raw, diags := expr.Value(nil)
	references := expr.Variables()
	if diags.HasErrors() || len(references) != 1 || raw.Type() != cty.String || raw.IsNull() || !raw.IsKnown() {
		return nil
	}
	inner, opened := strings.CutPrefix(raw.AsString(), "${")
	inner, closed := strings.CutSuffix(inner, "}")
	if address, _, ok := addressText(references[0]); !opened || !closed || !ok || address != strings.TrimSpace(inner) {
		return nil
	}
	return references[0]
}

// addressText returns a reference as an address.
func addressText(t hcl.Traversal) (address, kind string, ok bool) {
	for len(t) > 0 {
		if kind = stepName(t[0]); address == "" {
			kind = t.RootName()
		}
		if kind != "creature" && kind != "channel" && kind != "recipe" || len(t) < 2 {
			return "", "", false
		}
		if _, indexed := t[1].(hcl.TraverseIndex); indexed {
			return "", "", false
		}
		if address != "" {
			address += "."
		}
		address += kind + "." + stepName(t[1])
		t = t[2:]
		if len(t) > 0 {
			if i, indexed := t[0].(hcl.TraverseIndex); indexed {
				if i.Key.Type() != cty.String {
					return "", "", false
				}
				address += "[" + strconv.Quote(i.Key.AsString()) + "]"
				t = t[1:]
			}
		}
		if kind != "recipe" && len(t) > 0 {
			return "", "", false
		}
	}
	return address, kind, address != ""
}

// withoutKey matches the key at the end of an address.
var withoutKey = regexp.MustCompile(`\["(?:[^"\\]|\\.)*"\]$`)

// checkMoves reports moves that contradict one another or the recipe.
func (a *assembly) checkMoves(all []moveAt) {
	from, to := map[string]*moveAt{}, map[string]*moveAt{}
	for i := range all {
		m := &all[i]
		switch {
		case m.From == m.To:
			m.fault("to", "Moved to itself", fmt.Sprintf("Both addresses are %s.", m.From), "Remove the block.")
			continue
		case from[m.From] != nil:
			m.fault("from", "Moved twice", fmt.Sprintf("Another block moves %s; see %s.", m.From, from[m.From].Where), "Remove one of the two.")
			continue
		case to[m.To] != nil:
			m.fault("to", "Two moves to one address", fmt.Sprintf("Another block moves something to %s; see %s.", m.To, to[m.To].Where), "Only one thing can be at an address: move the other elsewhere.")
			continue
		}
		from[m.From], to[m.To] = m, m
	}
	blocks := a.addressable()
	for i := range all {
		m := &all[i]
		if from[m.From] != m || a.inCircle(m, from) {
			continue
		}
		if block := withoutKey.ReplaceAllString(m.To, ""); from[m.To] == nil && !blocks[block] {
			m.fault("to", "Moved to nothing", fmt.Sprintf("The recipe declares no %s.", m.To), "Give the address that it has now, or remove the block.")
		}
	}
	a.checkStillDeclared(from)
}

// inCircle reports moves that lead back to where they began, at the first block of the
// circle.
func (a *assembly) inCircle(m *moveAt, from map[string]*moveAt) bool {
	path, seen := []string{m.From}, map[*moveAt]bool{m: true}
	for at := from[m.To]; at != nil; at = from[at.To] {
		path = append(path, at.From)
		if at == m {
			if m.From == slices.Min(path) {
				m.fault("to", "Moved in a circle", fmt.Sprintf("The moves lead back to %s: %s.", m.From, strings.Join(path, " → ")), "Remove one of the blocks.")
			}
			return true
		}
		if seen[at] {
			return true // a circle further on, which is reported there
		}
		seen[at] = true
	}
	return false
}

// addressable returns the addresses of the blocks of creatures, channels and sub-recipes,
// including blocks that have no instance at present.
func (a *assembly) addressable() map[string]bool {
	out := map[string]bool{}
	for _, dec := range a.decoders {
		for _, kind := range []string{"creature", "channel", "recipe"} {
			for name := range dec.decls[kind] {
				out[dec.prefix+kind+"."+name] = true
			}
		}
	}
	return out
}

// checkStillDeclared reports moves from an address that the recipe still declares: the thing
// there would be moved again whenever the recipe is applied.
func (a *assembly) checkStillDeclared(from map[string]*moveAt) {
	reported := map[string]bool{}
	check := func(address string) {
		m := a.deployment.MoveOf(address)
		if m == nil || from[m.From] == nil || reported[m.From] {
			return
		}
		reported[m.From] = true
		from[m.From].fault("from", "Still declared", fmt.Sprintf("The recipe declares %s, which this block moves away.", address),
			"Remove the block, or rename the thing that now has this address.")
	}
	for i := range a.deployment.Creatures {
		check(a.deployment.Creatures[i].Address)
	}
	for i := range a.deployment.Channels {
		check(a.deployment.Channels[i].Address)
	}
}
