package terrarium

import (
	"encoding/base64"
	"strconv"
	"unicode/utf8"
)

// A ChannelWire connects a creature to a channel, under an alias; without one, under
// the channel's name.
type ChannelWire struct{ Channel, Alias string }

// object is a JSON object that is being written.
type object []byte

func (o *object) key(name string) {
	if len(*o) == 0 {
		*o = append(*o, '{')
	} else {
		*o = append(*o, ',')
	}
	*o = append(AppendJSON(*o, name), ':')
}

func (o *object) end() []byte {
	if len(*o) == 0 {
		return []byte("{}")
	}
	return append(*o, '}')
}

func (o *object) text(name, value string) {
	o.key(name)
	*o = AppendJSON(*o, value)
}

func (o *object) raw(name string, value JSON) {
	o.key(name)
	*o = append(*o, value...)
}

func (o *object) whole(name string, value int64) {
	o.key(name)
	*o = strconv.AppendInt(*o, value, 10)
}

func (o *object) boolean(name string, value *bool) {
	o.key(name)
	*o = strconv.AppendBool(*o, *value)
}

// payload writes bytes as a text, or in base64 if they are not UTF-8.
func (o *object) payload(name string, value []byte) {
	if utf8.Valid(value) {
		o.text(name, string(value))
		return
	}
	var inner object
	inner.text("base64", base64.StdEncoding.EncodeToString(value))
	o.raw(name, inner.end())
}

func (o *object) headers(name string, value []Header) {
	var inner object
	for _, h := range value {
		inner.text(h.Name, h.Value)
	}
	o.raw(name, inner.end())
}

func (o *object) wires(name string, value []ChannelWire) {
	list := JSON("[")
	for i, w := range value {
		var inner object
		inner.text("channel", w.Channel)
		if w.Alias != "" {
			inner.text("alias", w.Alias)
		}
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, inner.end()...)
	}
	o.raw(name, append(list, ']'))
}
