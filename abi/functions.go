package abi

// ValueType is a Wasm value type that the contract uses.
type ValueType byte

// The value types, by their number in the Wasm binary format.
const (
	I32 ValueType = 0x7f
	I64 ValueType = 0x7e
)

// Param is one parameter of a function.
type Param struct {
	Name string
	Type ValueType
}

// Function describes one function that a creature may import from
// [ImportModule].
type Function struct {
	Name   string
	Params []Param
	Result ValueType
	// Effect is true for functions that collect an effect: they return
	// [Denied] outside creature_handle.
	Effect bool
	// Feature is the optional feature the function belongs to, or -1.
	Feature Feature
	Doc     string
}

const noFeature Feature = -1

func i32(name string) Param { return Param{name, I32} }
func i64(name string) Param { return Param{name, I64} }

// Functions is the table of functions. Names are never reused; functions are
// only added.
var Functions = []Function{
	{Name: "read", Params: []Param{i32("source"), i32("offset"), i32("ptr"), i32("cap")}, Result: I32, Feature: noFeature,
		Doc: "Copies at most cap bytes of a source, from offset on, to ptr. Returns how many were copied; 0 at or past the end. Reading does not consume."},
	{Name: "size", Params: []Param{i32("source")}, Result: I32, Feature: noFeature,
		Doc: "Returns the length of a source in bytes."},
	{Name: "feature", Params: []Param{i32("feature")}, Result: I32, Feature: noFeature,
		Doc: "Returns 1 if the host has the optional feature, else 0."},
	{Name: "config", Params: []Param{i32("key_ptr"), i32("key_len"), i32("ptr"), i32("cap")}, Result: I32, Feature: noFeature,
		Doc: "Looks up one attribute of the configuration: a string is copied as it is, anything else as JSON. Copies at most cap bytes to ptr and returns the full length; the complete value is the source result."},
	{Name: "channel", Params: []Param{i32("name_ptr"), i32("name_len")}, Result: I32, Feature: noFeature,
		Doc: "Looks up a send alias and returns its handle, which is opaque and stays valid for the life of the instance. An alias may be looked up before it is bound."},
	{Name: "send", Params: []Param{i32("channel"), i32("ptr"), i32("len"), i32("headers_ptr"), i32("headers_len")}, Result: I32, Effect: true, Feature: noFeature,
		Doc: "Sends a message on a channel, by handle; -1 stands for every channel that the creature may send on. Returns on how many channels the message was sent."},
	{Name: "send_to", Params: []Param{i32("to_ptr"), i32("to_len"), i32("ptr"), i32("len")}, Result: I32, Effect: true, Feature: noFeature,
		Doc: "Sends a direct message to one creature of the sender's graph, by id or name."},
	{Name: "request", Params: []Param{i32("to_ptr"), i32("to_len"), i32("ptr"), i32("len"), i64("deadline_ms"), i64("tag")}, Result: I32, Effect: true, Feature: FeatureRequests,
		Doc: "Sends a direct message and requests a reply, which arrives as a delivery of the kind result with the same tag."},
	{Name: "reply", Params: []Param{i32("ptr"), i32("len")}, Result: I32, Effect: true, Feature: FeatureRequests,
		Doc: "Answers the request that is being handled."},
	{Name: "output", Params: []Param{i32("ptr"), i32("len")}, Result: I32, Effect: true, Feature: noFeature,
		Doc: "Appends to the output of the turn."},
	{Name: "state_get", Params: []Param{i32("key_ptr"), i32("key_len"), i32("ptr"), i32("cap")}, Result: I32, Feature: noFeature,
		Doc: "Copies at most cap bytes of a state value to ptr and returns its full length; the complete value is the source result. Sees the turn's own writes. Returns not_found if there is no such key."},
	{Name: "state_set", Params: []Param{i32("key_ptr"), i32("key_len"), i32("ptr"), i32("len")}, Result: I32, Effect: true, Feature: noFeature,
		Doc: "Writes a state value. Keys are UTF-8 without NUL."},
	{Name: "state_delete", Params: []Param{i32("key_ptr"), i32("key_len")}, Result: I32, Effect: true, Feature: noFeature,
		Doc: "Deletes a state value. Returns 1 if there was one, else 0."},
	{Name: "state_list", Params: []Param{i32("prefix_ptr"), i32("prefix_len"), i32("ptr"), i32("cap")}, Result: I32, Feature: noFeature,
		Doc: "Lists the keys with a prefix in byte order, each followed by NUL. Copies at most cap bytes to ptr and returns the full length; the complete list is the source result."},
	{Name: "timer_set", Params: []Param{i32("name_ptr"), i32("name_len"), i64("delay_ms"), i64("period_ms"), i32("ptr"), i32("len")}, Result: I32, Effect: true, Feature: FeatureTimers,
		Doc: "Sets or replaces the timer of that name; period_ms 0 means once."},
	{Name: "timer_cancel", Params: []Param{i32("name_ptr"), i32("name_len")}, Result: I32, Effect: true, Feature: FeatureTimers,
		Doc: "Cancels a timer. Returns 1 if it was set, else 0."},
	{Name: "tool", Params: []Param{i32("name_ptr"), i32("name_len"), i32("args_ptr"), i32("args_len")}, Result: I32, Effect: true, Feature: FeatureTools,
		Doc: "Calls a group tool with JSON arguments. Returns the length of the JSON result, which is the source result."},
	{Name: "http", Params: []Param{i32("request_ptr"), i32("request_len"), i32("body_ptr"), i32("body_len"), i64("tag")}, Result: I32, Effect: true, Feature: FeatureHTTP,
		Doc: "Sends an HTTP request after the turn's commit; the response arrives as a delivery of the kind result with the same tag."},
	{Name: "log", Params: []Param{i32("level"), i32("ptr"), i32("len")}, Result: I32, Feature: noFeature,
		Doc: "Writes a log line: 0 debug, 1 info, 2 warn, 3 error. Lines are kept even if the turn fails. A line that is longer than what is left of the limit log_bytes is cut, and ends with an ellipsis."},
	{Name: "now", Result: I64, Feature: noFeature,
		Doc: "Returns nanoseconds since 1970-01-01 UTC: the delivery's time, unless the creature was granted the real clock."},
	{Name: "random", Params: []Param{i32("ptr"), i32("len")}, Result: I32, Feature: noFeature,
		Doc: "Fills memory with random bytes, seeded by the delivery's id unless the creature was granted real randomness."},
	{Name: "fuel_left", Result: I64, Feature: noFeature,
		Doc: "Returns the fuel left in the turn, or -1 if fuel is not counted."},
}

// FunctionByName returns the table entry with that name.
func FunctionByName(name string) (Function, bool) {
	for _, f := range Functions {
		if f.Name == name {
			return f, true
		}
	}
	return Function{}, false
}
