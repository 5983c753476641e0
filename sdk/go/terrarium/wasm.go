//go:build wasip1 && wasm

package terrarium

import "unsafe"

// wasmHost calls the host that runs this module.
type wasmHost struct{}

// turn is the turn of every call. In a module an allocation takes longer than the rest of
// a small turn.
var turn = Turn{host: &wasmHost{}}

//go:wasmexport terrarium_abi_v1
func exportMarker() {}

//go:wasmexport creature_init
func exportInit() int32 { return turn.init(&registered) }

//go:wasmexport creature_handle
func exportHandle(kind, size int32) int32 {
	turn.begin(Kind(kind), size)
	return turn.handle(&registered)
}

//go:wasmexport creature_stop
func exportStop() { registered.RunStop(&wasmHost{}) }

func ptr(b []byte) unsafe.Pointer         { return unsafe.Pointer(unsafe.SliceData(b)) }
func text(s string) unsafe.Pointer        { return unsafe.Pointer(unsafe.StringData(s)) }
func size[T ~string | ~[]byte](v T) int32 { return int32(len(v)) }

func (*wasmHost) Read(source Source, offset int32, p []byte) int32 {
	return importRead(int32(source), offset, ptr(p), size(p))
}
func (*wasmHost) Size(source Source) int32 { return importSize(int32(source)) }
func (*wasmHost) Feature(f Feature) int32  { return importFeature(int32(f)) }
func (*wasmHost) Config(key string, p []byte) int32 {
	return importConfig(text(key), size(key), ptr(p), size(p))
}

// handles keeps the channel handles, which are valid for the life of the
// instance.
var handles = map[string]int32{}

func (*wasmHost) Channel(alias string) int32 {
	if handle, ok := handles[alias]; ok {
		return handle
	}
	handle := importChannel(text(alias), size(alias))
	if handle >= 0 {
		handles[alias] = handle
	}
	return handle
}
func (*wasmHost) Send(channel int32, payload, headers []byte) int32 {
	return importSend(channel, ptr(payload), size(payload), ptr(headers), size(headers))
}
func (*wasmHost) SendTo(to string, payload []byte) int32 {
	return importSendTo(text(to), size(to), ptr(payload), size(payload))
}
func (*wasmHost) Request(to string, payload []byte, deadlineMS, tag int64) int32 {
	return importRequest(text(to), size(to), ptr(payload), size(payload), deadlineMS, tag)
}
func (*wasmHost) Reply(payload []byte) int32  { return importReply(ptr(payload), size(payload)) }
func (*wasmHost) Output(payload []byte) int32 { return importOutput(ptr(payload), size(payload)) }
func (*wasmHost) StateGet(key string, p []byte) int32 {
	return importStateGet(text(key), size(key), ptr(p), size(p))
}
func (*wasmHost) StateSet(key string, value []byte) int32 {
	return importStateSet(text(key), size(key), ptr(value), size(value))
}
func (*wasmHost) StateDelete(key string) int32 { return importStateDelete(text(key), size(key)) }
func (*wasmHost) StateList(prefix string, p []byte) int32 {
	return importStateList(text(prefix), size(prefix), ptr(p), size(p))
}
func (*wasmHost) TimerSet(name string, delayMS, periodMS int64, payload []byte) int32 {
	return importTimerSet(text(name), size(name), delayMS, periodMS, ptr(payload), size(payload))
}
func (*wasmHost) TimerCancel(name string) int32 { return importTimerCancel(text(name), size(name)) }
func (*wasmHost) Tool(name string, args []byte) int32 {
	return importTool(text(name), size(name), ptr(args), size(args))
}
func (*wasmHost) HTTP(request, body []byte, tag int64) int32 {
	return importHTTP(ptr(request), size(request), ptr(body), size(body), tag)
}
func (*wasmHost) Log(level Level, line string) int32 {
	return importLog(int32(level), text(line), size(line))
}
func (*wasmHost) Now() int64            { return importNow() }
func (*wasmHost) Random(p []byte) int32 { return importRandom(ptr(p), size(p)) }
func (*wasmHost) FuelLeft() int64       { return importFuelLeft() }
