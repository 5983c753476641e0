package terrarium

// Host has the functions of the contract that a [Turn] calls, with slices
// instead of pointers. Results are those of the contract, 0 or more for
// success and a negative [Code] for an error. In a module the calls reach the
// real host; in tests, a fake.
//
// A host copies the slices that it keeps. Only one goroutine calls it at a time.
type Host interface {
	Read(source Source, offset int32, p []byte) int32
	Size(source Source) int32
	Feature(f Feature) int32
	Config(key string, p []byte) int32
	Channel(alias string) int32
	Send(channel int32, payload, headers []byte) int32
	SendTo(to string, payload []byte) int32
	Request(to string, payload []byte, deadlineMS, tag int64) int32
	Reply(payload []byte) int32
	Output(payload []byte) int32
	StateGet(key string, p []byte) int32
	StateSet(key string, value []byte) int32
	StateDelete(key string) int32
	StateList(prefix string, p []byte) int32
	TimerSet(name string, delayMS, periodMS int64, payload []byte) int32
	TimerCancel(name string) int32
	Tool(name string, args []byte) int32
	HTTP(request, body []byte, tag int64) int32
	Log(level Level, text string) int32
	Now() int64
	Random(p []byte) int32
	FuelLeft() int64
}
