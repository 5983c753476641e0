package policy

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/dop251/goja"
)

var (
	errBadJSON  = misuse{errors.New("it is not JSON")}
	errDeepJSON = misuse{errors.New("the nesting of the JSON is larger than a policy may make it")}
)

// decode makes a value from JSON, like JSON.parse but many times as fast. A read-only
// value is deeply frozen. It does not detect all mistakes in JSON, because its callers
// only pass valid JSON.
func (i *isolate) decode(text string, readOnly bool) (goja.Value, error) {
	d := decoder{isolate: i, text: text, readOnly: readOnly}
	v, err := d.value()
	if d.space(); err == nil && d.text != "" {
		err = errBadJSON
	}
	return v, err
}

// decoder reads text from its start, and removes the part that it has read.
type decoder struct {
	isolate  *isolate
	text     string
	depth    int
	readOnly bool
}

func (d *decoder) space() { d.text = strings.TrimLeft(d.text, " \t\r\n") }

// skip reads a given character if it comes next.
func (d *decoder) skip(c byte) bool {
	if d.space(); d.text == "" || d.text[0] != c {
		return false
	}
	d.text = d.text[1:]
	return true
}

func (d *decoder) value() (goja.Value, error) {
	if d.isolate.late.Load() {
		return nil, misuse{errTimeout}
	}
	if d.space(); d.text == "" {
		return nil, errBadJSON
	}
	switch d.text[0] {
	case '{':
		return d.within(d.object)
	case '[':
		return d.within(d.array)
	case '"':
		s, err := d.quoted()
		return d.isolate.vm.ToValue(s), err
	case 't', 'f', 'n':
		return d.word()
	}
	return d.number()
}

func (d *decoder) within(read func() (*goja.Object, error)) (goja.Value, error) {
	if d.depth++; d.depth > maxDepth {
		return nil, errDeepJSON
	}
	d.text = d.text[1:]
	o, err := read()
	if d.depth--; err != nil || !d.readOnly {
		return o, err
	}
	return d.isolate.freeze(goja.Undefined(), o)
}

func (d *decoder) object() (*goja.Object, error) {
	o := d.isolate.vm.NewObject()
	if d.skip('}') {
		return o, nil
	}
	for {
		d.space()
		key, err := d.quoted()
		if err != nil || !d.skip(':') {
			return nil, errBadJSON
		}
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		// Do not use Set, for which __proto__ is no ordinary key.
		if err := o.DefineDataProperty(key, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE); err != nil {
			return nil, err
		}
		switch {
		case d.skip('}'):
			return o, nil
		case !d.skip(','):
			return nil, errBadJSON
		}
	}
}

func (d *decoder) array() (*goja.Object, error) {
	if d.skip(']') {
		return d.isolate.vm.NewArray(), nil
	}
	var list []any
	for {
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		switch {
		case d.skip(']'):
			return d.isolate.vm.NewArray(list...), nil
		case !d.skip(','):
			return nil, errBadJSON
		}
	}
}

func (d *decoder) quoted() (string, error) {
	if d.text == "" || d.text[0] != '"' {
		return "", errBadJSON
	}
	plain := true
	for k := 1; k < len(d.text); k++ {
		switch d.text[k] {
		case '\\':
			plain = false
			k++
		case '"':
			token := d.text[:k+1]
			d.text = d.text[k+1:]
			if plain {
				return token[1:k], nil
			}
			var s string
			err := json.Unmarshal([]byte(token), &s)
			return s, err
		}
	}
	return "", errBadJSON
}

func (d *decoder) word() (goja.Value, error) {
	for _, w := range []struct {
		text  string
		value goja.Value
	}{{"null", goja.Null()}, {"true", d.isolate.vm.ToValue(true)}, {"false", d.isolate.vm.ToValue(false)}} {
		if rest, ok := strings.CutPrefix(d.text, w.text); ok {
			d.text = rest
			return w.value, nil
		}
	}
	return nil, errBadJSON
}

// exactDigits bounds the digits of a number that is read as an integer.
const exactDigits = 15

func (d *decoder) number() (goja.Value, error) {
	n := 0
	for n < len(d.text) && strings.IndexByte("+-.0123456789eE", d.text[n]) >= 0 {
		n++
	}
	token := d.text[:n]
	d.text = d.text[n:]
	if n <= exactDigits && token != "-0" {
		if whole, err := strconv.ParseInt(token, 10, 64); err == nil {
			return d.isolate.vm.ToValue(whole), nil
		}
	}
	f, err := strconv.ParseFloat(token, 64)
	return d.isolate.vm.ToValue(f), err
}
