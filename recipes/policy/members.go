package policy

import (
	"fmt"

	"github.com/dop251/goja"
)

// members are the creatures or the channels of a graph, as scripts see them.
type members[V any] struct {
	isolate  *isolate
	fields   map[string]field[V]
	id       func(*V) string
	same     func(a, b *V) bool
	function goja.Value // the function for scripts that finds some of them

	all   []V
	found map[wanted]*selection[V] // by filters of at most one field
	made  map[string]likeness[V]   // by id
}

// field is a field that filters can use. Either text or flag is set.
type field[V any] struct {
	text func(*V) string
	flag func(*V) bool
}

// wanted is a field of a filter with its value.
type wanted struct {
	key, text  string
	isText, on bool // otherwise it is a flag
}

// likeness is the object made for a member, and the member at that time.
type likeness[V any] struct {
	of    *V
	value goja.Value
}

// maxSelections bounds how many results are kept while a graph does not change.
const maxSelections = 64

// offer makes the function for scripts.
func (m *members[V]) offer() error {
	m.function = m.isolate.vm.ToValue(m.find)
	_, err := m.isolate.sealFunction(goja.Undefined(), m.function)
	return err
}

// pointAt makes the members those of another graph, or of the same graph after a change.
func (m *members[V]) pointAt(all []V) {
	m.all = all
	clear(m.found)
	if len(m.made) > 2*len(all) { // most of them were removed
		m.made = nil
	}
}

// find lists the members that match a filter, or all members without one.
func (m *members[V]) find(call goja.FunctionCall) goja.Value {
	filter, possible := m.filter(call.Argument(0))
	if len(filter) > 1 || !possible {
		return m.isolate.vm.NewDynamicArray(m.choose(filter, possible))
	}
	var key wanted
	if len(filter) == 1 {
		key = filter[0]
	}
	s := m.found[key]
	if s == nil {
		if m.found == nil || len(m.found) >= maxSelections {
			m.found = map[wanted]*selection[V]{}
		}
		s = m.choose(filter, true)
		m.found[key] = s
	}
	return m.isolate.vm.NewDynamicArray(s)
}

// filter reads a filter. It is not possible if no member can match.
func (m *members[V]) filter(arg goja.Value) (filter []wanted, possible bool) {
	o, ok := arg.(*goja.Object)
	if !ok {
		if !goja.IsUndefined(arg) {
			m.isolate.throw("the filter must be an object: creatures({species: \"reviewer\"})")
		}
		return nil, true
	}
	possible = true
	for _, key := range o.Keys() {
		f, known := m.fields[key]
		if !known {
			m.isolate.throw(fmt.Sprintf("there is no field %q to filter by", clip(key)))
		}
		w := wanted{key: key}
		fits := false
		v := o.Get(key)
		if _, object := v.(*goja.Object); object {
			v = goja.Undefined()
		}
		switch value := v.Export().(type) {
		case string:
			w.text, w.isText, fits = value, true, f.text != nil
		case bool:
			w.on, fits = value, f.flag != nil
		}
		possible = possible && fits
		filter = append(filter, w)
	}
	return filter, possible
}

// choose selects the members that match all fields.
func (m *members[V]) choose(filter []wanted, possible bool) *selection[V] {
	s := &selection[V]{members: m}
	switch {
	case !possible:
		return s
	case len(filter) == 0:
		s.size = len(m.all)
		return s
	}
	s.chosen = []*V{}
	for k := range m.all {
		if m.fits(&m.all[k], filter) {
			s.chosen = append(s.chosen, &m.all[k])
		}
	}
	s.size = len(s.chosen)
	return s
}

func (m *members[V]) fits(v *V, filter []wanted) bool {
	for k := range filter {
		w := &filter[k]
		f := m.fields[w.key]
		if w.isText && f.text(v) != w.text || !w.isText && f.flag(v) != w.on {
			return false
		}
	}
	return true
}

// value makes the object of a member, or returns the earlier one if the member has not
// changed.
func (m *members[V]) value(v *V) goja.Value {
	id := m.id(v)
	if made, ok := m.made[id]; ok && m.same(made.of, v) {
		return made.value
	}
	if m.made == nil {
		m.made = map[string]likeness[V]{}
	}
	own := *v // do not keep the whole view alive
	made := likeness[V]{&own, m.isolate.plain(v)}
	m.made[id] = made
	return made.value
}

// selection is a list of members. Each script gets its own array over it, whose elements
// are made on demand.
type selection[V any] struct {
	members *members[V]
	chosen  []*V // nil: all
	size    int
	values  []goja.Value // made so far; read-only
}

// Len implements [goja.DynamicArray].
func (s *selection[V]) Len() int { return s.size }

// Get implements [goja.DynamicArray].
func (s *selection[V]) Get(k int) goja.Value {
	if k < 0 || k >= s.size {
		return nil
	}
	if s.values == nil {
		s.values = make([]goja.Value, s.size)
	}
	if s.values[k] == nil {
		v := &s.members.all[k]
		if s.chosen != nil {
			v = s.chosen[k]
		}
		s.values[k] = s.members.value(v)
	}
	return s.values[k]
}

// Set implements [goja.DynamicArray]; nothing can be set.
func (s *selection[V]) Set(int, goja.Value) bool { return false }

// SetLen implements [goja.DynamicArray]; the length cannot be set.
func (s *selection[V]) SetLen(int) bool { return false }
