package diff

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// comparison finds the differences between two sets of saved graphs.
type comparison struct {
	before, after *inventory
	ids           []journal.CreatureID // the creatures of the plan
	hidden        Hidden
}

// Compare returns the differences between two sets of saved graphs as a plan,
// and the ids of the plan's creatures in its order.
func Compare(before, after []journal.SavedGraph, h Hidden) (*Plan, []journal.CreatureID) {
	c := &comparison{before: takeInventory(before), after: takeInventory(after), hidden: h}
	return c.plan(), c.ids
}

// plan collects the differences.
func (c *comparison) plan() *Plan {
	groups := c.groups()
	cut := cutGraphs(groups)
	p := &Plan{Creatures: []CreaturePlan{}, Channels: []ChannelPlan{}, Graphs: c.graphs(groups), Stops: c.stops()}
	for _, id := range inOrder(c.before.creatures, c.after.creatures, func(r *journal.CreatureRow) (string, string, string) { return r.Deployment, r.Address, r.Name }) {
		creature := c.creature(id)
		creature.Cut = cut[c.before.homes[id]] || cut[c.after.homes[id]]
		p.Creatures = append(p.Creatures, creature)
		c.ids = append(c.ids, id)
	}
	for _, id := range inOrder(c.before.channels, c.after.channels, func(r *journal.ChannelRow) (string, string, string) { return r.Deployment, r.Address, r.Name }) {
		p.Channels = append(p.Channels, c.channel(id))
	}
	p.Hints = c.hints()
	return p
}

// inOrder lists the ids of both sides by deployment, address, name and id.
func inOrder[K cmp.Ordered, R any](before, after map[K]*R, key func(*R) (deployment, address, name string)) []K {
	all := joined(before, after)
	return slices.SortedFunc(maps.Keys(all), func(a, b K) int {
		d1, a1, n1 := key(all[a])
		d2, a2, n2 := key(all[b])
		return cmp.Or(cmp.Compare(d1, d2), cmp.Compare(a1, a2), cmp.Compare(n1, n2), cmp.Compare(a, b))
	})
}

// joined returns the union of two maps; the second takes precedence. Either
// may be nil.
func joined[K comparable, V any](before, after map[K]V) map[K]V {
	all := make(map[K]V, max(len(before), len(after)))
	maps.Copy(all, before)
	maps.Copy(all, after)
	return all
}

func (c *comparison) creature(id journal.CreatureID) CreaturePlan {
	was, is := c.before.creatures[id], c.after.creatures[id]
	row := cmp.Or(is, was)
	out := CreaturePlan{Deployment: row.Deployment, Address: row.Address, Name: row.Name, Creature: id, Action: PlanResume}
	switch {
	case was == nil:
		out.Action, out.Creature = PlanCreate, ""
	case is == nil:
		out.Action, out.Waiting = PlanRemove, c.before.waiting[id]
	default:
		out.Waiting, out.Changes, out.Unknown = c.after.waiting[id], c.changes(was, is), c.hidden.unknown(id)
		out.MovedFrom = movedFrom(was.Address, is.Address)
	}
	return out
}

// movedFrom returns the former address of something that is still declared, if it differs.
func movedFrom(was, is string) string {
	if was == is || is == "" {
		return ""
	}
	return was
}

// changes lists the differences of a creature.
func (c *comparison) changes(was, is *journal.CreatureRow) []PlanChange {
	l := &changeList{}
	l.add("name", "", was.Name, is.Name)
	l.add("deployment", "", was.Deployment, is.Deployment)
	l.add("module", "", was.Module, is.Module)
	l.add("sha256", "", was.SHA256, is.SHA256)
	l.settings(was.Spec, is.Spec)
	l.list = append(l.list, c.hidden.changed(is.ID)...)
	l.flag("root", was.Root, is.Root)
	l.flag("privileged", was.Privileged, is.Privileged)
	l.flag("stopped", was.Stopped, is.Stopped)
	l.flag("paused", was.State() == journal.Paused, is.State() == journal.Paused)
	l.add("parent", "", c.label(c.before, was.Parent), c.label(c.after, is.Parent))
	c.edges(l, is.ID)
	c.wires(l, is.ID)
	return l.list
}

// changeList collects changes.
type changeList struct{ list []PlanChange }

func (l *changeList) add(what, of, before, after string) {
	if before != after {
		l.list = append(l.list, PlanChange{what, of, before, after})
	}
}

func (l *changeList) flag(what string, before, after bool) {
	l.add(what, "", strconv.FormatBool(before), strconv.FormatBool(after))
}

// settings compares the JSON of two rows, setting by setting.
func (l *changeList) settings(was, is []byte) {
	before, after := settingsOf(was), settingsOf(is)
	for _, name := range slices.Sorted(maps.Keys(joined(before, after))) {
		l.add(name, "", before[name], after[name])
	}
}

// settingsOf returns the settings of a stored specification, with the names
// used in recipes.
func settingsOf(spec []byte) map[string]string {
	var s deploy.StoredSpec
	if len(spec) == 0 || json.Unmarshal(spec, &s) != nil {
		return nil
	}
	out := map[string]string{}
	for name, text := range map[string]string{"description": s.Description, "species": s.Species} {
		if text != "" {
			out[name] = text
		}
	}
	var b bytes.Buffer
	if json.Compact(&b, s.Config) == nil && b.String() != "{}" && b.String() != "null" {
		out["config"] = b.String()
	}
	out["workers"], out["mailbox.overflow"] = s.Workers.String(), s.Overflow.String()
	out["restart.mode"] = s.Restart.Mode.String()
	limitFields.add(out, "limits.", s.Limits)
	restartFields.add(out, "restart.", s.Restart)
	grantFields.add(out, "grants.", s.Grants)
	for i := range s.Capabilities {
		out["grants."+s.Capabilities[i].ID()] = s.Capabilities[i].Shown()
	}
	return out
}

// fields are those of a structure type.
type fields []reflect.StructField

var (
	limitFields   = fields(reflect.VisibleFields(reflect.TypeOf(deploy.StoredSpec{}.Limits)))
	restartFields = fields(reflect.VisibleFields(reflect.TypeOf(deploy.StoredSpec{}.Restart)))
	grantFields   = fields(reflect.VisibleFields(reflect.TypeOf(deploy.StoredSpec{}.Grants)))
)

// add adds the fields that are not zero, by their JSON names.
func (all fields) add(out map[string]string, prefix string, of any) {
	v := reflect.ValueOf(of)
	for i := range all {
		if field := v.FieldByIndex(all[i].Index); !field.IsZero() {
			name, _, _ := strings.Cut(all[i].Tag.Get("json"), ",")
			out[prefix+name] = fmt.Sprint(field.Interface())
		}
	}
}

func (c *comparison) edges(l *changeList, id journal.CreatureID) {
	was, is := c.before.edges[id], c.after.edges[id]
	var list changeList
	for key := range joined(was, is) {
		of := channelLabel(cmp.Or(c.after.channels[key.Channel], c.before.channels[key.Channel]))
		list.add(key.Direction.String(), of, was[key], is[key])
	}
	l.take(&list)
}

func (c *comparison) wires(l *changeList, id journal.CreatureID) {
	was, is := c.before.wires[id], c.after.wires[id]
	var list changeList
	for wire, w := range was {
		if _, stays := is[wire]; !stays {
			list.add("wire", w.Name, c.wireText(c.before, w), "")
		}
	}
	for wire, w := range is {
		if _, there := was[wire]; !there {
			list.add("wire", w.Name, "", c.wireText(c.after, w))
		}
	}
	l.take(&list)
}

// take adds changes collected from maps, sorted.
func (l *changeList) take(more *changeList) {
	slices.SortFunc(more.list, func(a, b PlanChange) int {
		return cmp.Or(cmp.Compare(a.What, b.What), cmp.Compare(a.Of, b.Of), cmp.Compare(a.Before, b.Before), cmp.Compare(a.After, b.After))
	})
	l.list = append(l.list, more.list...)
}

// wireText describes a wire in one line.
func (c *comparison) wireText(v *inventory, w journal.OutputWire) string {
	to := string(w.To)
	if w.To != journal.ToRoot {
		to = c.label(v, w.To)
	}
	parts := []string{"to " + to}
	if w.WithContent {
		parts = append(parts, "with content")
	}
	if w.Prompt != "" {
		parts = append(parts, "prompt "+strconv.Quote(w.Prompt))
	}
	if w.When != "" {
		parts = append(parts, "when "+w.When)
	}
	if w.AllowSelf {
		parts = append(parts, "may lead to itself")
	}
	return strings.Join(parts, ", ")
}

// label returns the address of a creature, or else its name.
func (c *comparison) label(v *inventory, id journal.CreatureID) string {
	if row := v.creatures[id]; row != nil {
		return cmp.Or(row.Address, row.Name)
	}
	return string(id)
}

// channelLabel does the same for a channel. A direct channel is labelled by
// its name, because its address consists of ids.
func channelLabel(row *journal.ChannelRow) string {
	if row.Address == "" || strings.HasPrefix(row.Address, journal.DirectPrefix) {
		return row.Name
	}
	return row.Address
}

func (c *comparison) channel(id journal.ChannelID) ChannelPlan {
	was, is := c.before.channels[id], c.after.channels[id]
	row := cmp.Or(is, was)
	out := ChannelPlan{Deployment: row.Deployment, Address: row.Address, Name: row.Name, Channel: id, Action: PlanResume, Messages: c.before.heads[id]}
	if strings.HasPrefix(row.Address, journal.DirectPrefix) {
		out.Address = "" // it consists of ids
	}
	switch {
	case was == nil:
		out.Action, out.Channel = PlanCreate, ""
	case is == nil:
		out.Action = PlanRemove
	default:
		l := &changeList{}
		l.add("name", "", was.Name, is.Name)
		l.add("description", "", was.Description, is.Description)
		l.add("deployment", "", was.Deployment, is.Deployment)
		out.Changes = l.list
		out.MovedFrom = movedFrom(was.Address, is.Address)
	}
	return out
}
