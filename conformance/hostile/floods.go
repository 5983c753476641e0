package hostile

import (
	"slices"

	"github.com/seed47132306/terrarium/abi"
)

// floods returns guests that make too many hostcalls, or too large ones. Most
// continue until they are refused and return the code of the refusal, so that
// the error names the limit.
func floods() []Module { return slices.Concat(callFloods(), effectFloods()) }

// refusedBy returns the end of a turn whose guest passes on a refusal that
// names a limit.
func refusedBy(limit string) []End {
	return once(abi.ExportHandle, abi.LimitExceeded, "limit "+limit)
}

// Addresses and locals for the arguments of hostcalls.
const (
	nameAt = 16      // a name or key of four bytes, which counts up
	bulkAt = 1 << 16 // the payload
	answer = 2       // the local with the result of a hostcall
	number = 3       // a local that counts
)

var floodLocals = []locals{{2, typeI32}}

// flood returns a creature that repeats one hostcall until it is refused.
// arguments are instructions; some of them may count with nextName.
func flood(hostcall string, arguments ...code) func() []byte {
	return func() []byte {
		m := newCreature(64)
		f := m.hostcall(hostcall)
		return m.finishWith(floodLocals, untilRefused(answer, seq(arguments...), call(f)))
	}
}

// nextName writes a new name of four letters.
func nextName() code {
	// Each byte holds seven bits of the number and is a letter or a digit.
	return seq(
		localGet(number), i32(1), i32add, localSet(number),
		i32(nameAt), asText(localGet(number)), i32Store(),
	)
}

// asText spreads the low bits of a number over four bytes between 1 and 0x7f:
// sixteen different values each.
func asText(n code) code {
	nibble := func(shift int32) code {
		const shrU, shl = 0x76, 0x74
		return seq(n, i32(4*shift), code{shrU}, i32(15), i32and, i32(8*shift), code{shl})
	}
	return seq(i32(0x41414141), nibble(0), i32add, nibble(1), i32add, nibble(2), i32add, nibble(3), i32add)
}

func callFloods() []Module {
	few := abi.Limits{Calls: 10_000, Fuel: muchFuel, Deadline: muchTime}
	return []Module{
		{
			Name: "hostcall-flood", Attacks: "the host: hostcalls without end, whatever they return",
			Build: func() []byte {
				m := newCreature(1)
				now := m.hostcall("now")
				return m.finish(forever(call(now), drop))
			},
			Ends: []End{{Limits: few, In: abi.ExportHandle, Code: abi.LimitExceeded, Says: []string{"limit calls", "10000"}}},
		},
		{
			Name: "hostcall-flood-polite", Attacks: "the same, by a guest that stops when it is refused",
			Build: flood("size", i32(int32(abi.SourcePayload))),
			Ends:  []End{{Limits: few, In: abi.ExportHandle, Code: abi.LimitExceeded, Says: []string{"limit calls", "10000"}}},
		},
		{
			Name: "wasi-flood", Attacks: "the same through WASI, which returns a small positive number instead",
			Build: func() []byte {
				m := newCreature(1)
				yield := m.importFunction("wasi_snapshot_preview1", "sched_yield", ":i")
				return m.finish(forever(call(yield), drop))
			},
			Ends: []End{{Limits: few, In: abi.ExportHandle, Code: abi.LimitExceeded, Says: []string{"limit calls", "10000"}}},
		},
		{
			Name: "random-flood", Attacks: "the worker: 4 MiB of random bytes at a time, without end",
			Build: func() []byte {
				m := newCreature(64)
				random := m.hostcall("random")
				return m.finish(forever(i32(0), i32(4*mebi), call(random), drop))
			},
			Ends: stopped(abi.ExportHandle),
		},
		{
			Name: "key-flood", Attacks: "the worker: looks up a missing key of 16 MiB, without end",
			Build: func() []byte {
				m := newCreature(257)
				get := m.hostcall("state_get")
				return m.finish(forever(i32(0), i32(16*mebi), i32(0), i32(0), call(get), drop))
			},
			Ends: stopped(abi.ExportHandle),
		},
	}
}

func effectFloods() []Module {
	everyChannel := i32(abi.AllChannels)
	name := seq(i32(nameAt), i32(4))
	payload := func(n int32) code { return seq(i32(bulkAt), i32(n)) }
	none := seq(i32(0), i32(0))
	return []Module{
		{
			Name: "log-flood", Attacks: "the log: line after line",
			Build: flood("log", i32(int32(abi.LevelInfo)), payload(16)), Ends: refusedBy("log_lines"),
		},
		{
			Name: "log-flood-bytes", Attacks: "the log: few lines, but long",
			Build: flood("log", i32(int32(abi.LevelInfo)), payload(8<<10)), Ends: refusedBy("log_bytes"),
		},
		{
			Name: "output-flood", Attacks: "the output of a turn",
			Build: flood("output", payload(4096)), Ends: refusedBy("output"),
		},
		{
			Name: "send-flood", Attacks: "listeners: message after message on every channel",
			Build: flood("send", everyChannel, payload(16), none), Ends: refusedBy("sends"),
		},
		{
			Name: "send-flood-bytes", Attacks: "the memory of the engine: few messages, but large",
			Build: flood("send", everyChannel, payload(mebi), none), Ends: refusedBy("send_bytes"),
		},
		{
			Name: "send-too-large", Attacks: "listeners: one message of two mebibytes",
			Build: flood("send", everyChannel, payload(2*mebi), none),
			Ends:  once(abi.ExportHandle, abi.TooLarge, "limit message"),
		},
		{
			Name: "request-flood", Attacks: "the table of open requests: one after the other to itself",
			Build: toSelf("request", payload(16), i64(1<<40), i64(1)), Ends: refusedBy("requests"),
		},
		{
			Name: "state-flood", Attacks: "the store: one key after the other",
			Build: flood("state_set", nextName(), name, payload(16)), Ends: refusedBy("state_writes"),
		},
		{
			Name: "state-flood-bytes", Attacks: "the store: few values, but large",
			Build: flood("state_set", nextName(), name, payload(mebi)), Ends: refusedBy("state"),
		},
		{
			Name: "state-value-too-large", Attacks: "the store: one value of two mebibytes",
			Build: flood("state_set", nextName(), name, payload(2*mebi)),
			Ends:  once(abi.ExportHandle, abi.TooLarge, "limit state_value"),
		},
		{
			Name: "state-key-too-large", Attacks: "the store: one key of a mebibyte",
			Build: flood("state_set", payload(mebi), none),
			Ends:  once(abi.ExportHandle, abi.TooLarge, "limit state_key"),
		},
		{
			Name: "timer-flood", Attacks: "the clock: one timer after the other",
			Build: flood("timer_set", nextName(), name, i64(0), i64(1), none), Ends: refusedBy("timers"),
		},
		{
			Name: "timer-name-too-large", Attacks: "the clock: a timer with a name of a mebibyte",
			Build: flood("timer_set", payload(mebi), i64(0), i64(1), none),
			Ends:  once(abi.ExportHandle, abi.TooLarge, "limit state_key"),
		},
		{
			Name: "handle-flood", Attacks: "the table of channel handles: one alias after the other",
			Build: flood("channel", nextName(), name), Ends: refusedBy("handles"),
		},
	}
}

// toSelf returns a flood of a hostcall whose first argument is the creature's
// own name, which the guest reads first.
func toSelf(hostcall string, arguments ...code) func() []byte {
	return func() []byte {
		m := newCreature(64)
		read, f := m.hostcall("read"), m.hostcall(hostcall)
		return m.finishWith(floodLocals,
			readSelf(read),
			untilRefused(answer, i32(nameAt), localGet(number), seq(arguments...), call(f)),
		)
	}
}

// readSelf puts the creature's name at nameAt and its length into the local
// number.
func readSelf(read uint32) code {
	return seq(i32(int32(abi.SourceSelf)), i32(0), i32(nameAt), i32(256), call(read), localSet(number))
}
