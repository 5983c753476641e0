package policy

import (
	"encoding/base64"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// eventView is the event as a script sees it: a read-only object whose fields are copied
// into the runtime on demand. One object serves all events of a runtime. That is safe
// because a script cannot keep the object, and changes by a script are undone; see
// pristine.
type eventView struct {
	isolate *isolate
	object  *goja.Object
	subject subject    // empty if there is no event
	payload goja.Value // of a message, once read
	headers *headersView
	data    map[string]goja.Value // of another event, once read
}

var _ goja.DynamicObject = (*eventView)(nil)

var sendKeys = names(SendFields)

func newEventView(i *isolate) *eventView {
	v := &eventView{isolate: i, headers: &headersView{isolate: i}}
	v.object, v.headers.object = i.vm.NewDynamicObject(v), i.vm.NewDynamicObject(v.headers)
	return v
}

// pointAt makes the view show another event.
func (v *eventView) pointAt(s *subject) {
	if s == nil {
		s = &subject{}
	} else if v.subject == *s {
		return
	}
	v.subject, v.payload = *s, nil
	clear(v.data)
	v.headers.headers = nil
	if s.send != nil {
		v.headers.headers = s.send.Headers
	}
}

// Get implements [goja.DynamicObject].
func (v *eventView) Get(key string) goja.Value {
	switch {
	case v.subject.event != nil:
		return v.field(key)
	case v.subject.send == nil:
		return nil
	}
	vm, e := v.isolate.vm, v.subject.send
	switch key {
	case "kind":
		return vm.ToValue("send")
	case "time":
		return vm.ToValue(float64(e.Time) / float64(time.Millisecond))
	case "graph":
		return vm.ToValue(string(e.Graph))
	case "deployment":
		return vm.ToValue(e.Deployment)
	case "channel":
		return vm.ToValue(e.ChannelName)
	case "channel_address":
		return vm.ToValue(e.ChannelAddress)
	case "sender":
		return vm.ToValue(e.SenderName)
	case "sender_address":
		return vm.ToValue(e.SenderAddress)
	case "sender_species":
		return vm.ToValue(e.SenderSpecies)
	case "payload":
		return v.text()
	case "base64":
		if utf8.Valid(e.Payload) {
			return goja.Undefined()
		}
		return vm.ToValue(base64.StdEncoding.EncodeToString(e.Payload))
	case "size":
		return vm.ToValue(len(e.Payload))
	case "headers":
		return v.isolate.pristine(v.headers.object)
	}
	return nil
}

// text returns the payload, or null when it is not text.
func (v *eventView) text() goja.Value {
	if v.payload == nil {
		v.payload = goja.Null()
		if utf8.Valid(v.subject.send.Payload) {
			v.payload = v.isolate.vm.ToValue(string(v.subject.send.Payload))
		}
	}
	return v.payload
}

// field returns a field of an event other than a message.
func (v *eventView) field(key string) goja.Value {
	f := fieldsByKind[v.subject.event.Kind][key]
	if f == nil {
		return nil
	}
	switch value := f.Value(v.subject.event).(type) {
	case string:
		return v.isolate.vm.ToValue(value)
	case float64:
		return v.isolate.vm.ToValue(value)
	case bool:
		return v.isolate.vm.ToValue(value)
	case []string:
		return v.once(key, append([]string{}, value...))
	default:
		return v.once(key, value)
	}
}

// once makes an object, unless it has been made for this event.
func (v *eventView) once(key string, value any) goja.Value {
	if made := v.data[key]; made != nil {
		return made
	}
	if v.data == nil {
		v.data = map[string]goja.Value{}
	}
	v.data[key] = v.isolate.plain(value)
	return v.data[key]
}

// Set implements [goja.DynamicObject]; nothing can be set.
func (v *eventView) Set(string, goja.Value) bool { return false }

// Has implements [goja.DynamicObject].
func (v *eventView) Has(key string) bool { return slices.Contains(v.Keys(), key) }

// Delete implements [goja.DynamicObject]; nothing can be deleted.
func (v *eventView) Delete(string) bool { return false }

// Keys implements [goja.DynamicObject].
func (v *eventView) Keys() []string {
	if v.subject == (subject{}) {
		return nil
	}
	return keysByKind[v.subject.kind()]
}

// headersView has the headers of an event, sorted by name.
type headersView struct {
	isolate *isolate
	headers map[string]string
	object  *goja.Object
}

var _ goja.DynamicObject = (*headersView)(nil)

// Get implements [goja.DynamicObject].
func (h *headersView) Get(key string) goja.Value {
	value, ok := h.headers[key]
	if !ok {
		return nil
	}
	return h.isolate.vm.ToValue(value)
}

// Set implements [goja.DynamicObject]; nothing can be set.
func (h *headersView) Set(string, goja.Value) bool { return false }

// Has implements [goja.DynamicObject].
func (h *headersView) Has(key string) bool {
	_, ok := h.headers[key]
	return ok
}

// Delete implements [goja.DynamicObject]; nothing can be deleted.
func (h *headersView) Delete(string) bool { return false }

// Keys implements [goja.DynamicObject].
func (h *headersView) Keys() []string { return slices.Sorted(maps.Keys(h.headers)) }
