package policy

import (
	"encoding/base64"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/dop251/goja"

	"github.com/seed47132306/terrarium/engine"
)

// eventView is the event as a script sees it: a read-only object whose fields
// are copied into the runtime when they are asked for. One object serves all
// events of a runtime, which is safe because a script cannot keep it.
type eventView struct {
	isolate *isolate
	event   *engine.SendEvent
	payload goja.Value // of event, once asked for
	headers *headersView
}

var _ goja.DynamicObject = (*eventView)(nil)

var eventKeys = []string{"kind", "time", "graph", "deployment", "channel", "channel_address", "sender", "sender_address",
	"payload", "base64", "size", "headers"}

// show makes the view one of another event.
func (v *eventView) show(e *engine.SendEvent) {
	if v.event == e {
		return
	}
	v.event, v.payload = e, nil
	v.headers.headers = nil
	if e != nil {
		v.headers.headers = e.Headers
	}
}

// Get implements [goja.DynamicObject].
func (v *eventView) Get(key string) goja.Value {
	vm, e := v.isolate.vm, v.event
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
		return v.headers.object
	}
	return nil
}

// text returns the payload, or null when it is not text.
func (v *eventView) text() goja.Value {
	if v.payload == nil {
		v.payload = goja.Null()
		if utf8.Valid(v.event.Payload) {
			v.payload = v.isolate.vm.ToValue(string(v.event.Payload))
		}
	}
	return v.payload
}

// Set implements [goja.DynamicObject]; nothing can be set.
func (v *eventView) Set(string, goja.Value) bool { return false }

// Has implements [goja.DynamicObject].
func (v *eventView) Has(key string) bool { return slices.Contains(eventKeys, key) }

// Delete implements [goja.DynamicObject]; nothing can be deleted.
func (v *eventView) Delete(string) bool { return false }

// Keys implements [goja.DynamicObject].
func (v *eventView) Keys() []string { return eventKeys }

// headersView is the headers of an event, by rising name.
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
