package hostile

import "github.com/seed47132306/terrarium/abi"

// amplifiers returns guests that stay within the limits on calls and items,
// but try to cost much more than these suggest. The peak of the memory shows
// their cost.
func amplifiers() []Module {
	const (
		all     = 63 * mebi // all of the memory except a page at its start
		pages   = 1024
		payload = mebi
	)
	large := func(hostcall string, arguments ...code) func() []byte {
		return func() []byte {
			m := newCreature(pages)
			f := m.hostcall(hostcall)
			return m.finishWith(floodLocals,
				i32(bulkAt), i32(1), i32(all-bulkAt), memoryFill, // control characters: long when quoted
				untilRefused(answer, seq(arguments...), call(f)),
			)
		}
	}
	// often makes a hostcall 600 times, and stops when it is refused.
	often := func(hostcall string, arguments ...code) func() []byte {
		return func() []byte {
			m := newCreature(pages)
			f := m.hostcall(hostcall)
			return m.finishWith(floodLocals,
				i32(bulkAt), i32(1), i32(payload), memoryFill,
				loop(
					seq(arguments...), call(f), i32(0), i32ltS, when(unreachable),
					localGet(number), i32(1), i32add, localTee(number), i32(600), i32ltS, brIf(0),
				),
			)
		}
	}
	everything := seq(i32(bulkAt), i32(all-bulkAt))
	none := seq(i32(0), i32(0))
	name := seq(i32(nameAt), i32(4))
	return []Module{
		{
			Name: "timer-replaced", Attacks: "the memory of a turn: one timer, set 600 times with half a mebibyte",
			Build: often("timer_set", i32(bulkAt), i32(4), i64(1<<40), i64(0), i32(bulkAt), i32(payload/2)),
			Ends:  comesToNothing(),
		},
		{
			Name: "state-replaced", Attacks: "the memory of a turn: one key, written 600 times with a mebibyte",
			Build: often("state_set", i32(bulkAt), i32(4), i32(bulkAt), i32(payload)),
			Ends:  comesToNothing(),
		},
		{
			Name: "output-shuffled", Attacks: "the memory of a turn: output and sends alternate, so that the output is moved each time",
			Build: outputShuffled, Ends: refusedBy("sends"),
		},
		{
			Name: "send-to-no-channel", Attacks: "the memory of a turn: sends a mebibyte on every channel, without end, although there are no channels", Unwired: true,
			Build: large("send", i32(abi.AllChannels), i32(bulkAt), i32(payload), none),
			Ends:  once(abi.ExportHandle, abi.LimitExceeded, "limit "),
		},
		{
			Name: "handle-names", Attacks: "the memory of an instance: aliases of 62 MiB, each of them different",
			Build: large("channel", nextName(), i32(nameAt), i32(all-nameAt)),
			Ends:  once(abi.ExportHandle, abi.InvalidArgument, "alias"),
		},
		{
			Name: "quoted-config-key", Attacks: "the text of an error: a key of 62 MiB that nothing has",
			Build: large("config", everything, none),
			Ends:  once(abi.ExportHandle, abi.NotFound, "no attribute"),
		},
		{
			Name: "quoted-state-key", Attacks: "the same with state_get",
			Build: large("state_get", everything, none),
			Ends:  once(abi.ExportHandle, abi.NotFound, "no key"),
		},
		{
			Name: "quoted-name", Attacks: "the same with send_to: no creature has a name of 62 MiB",
			Build: large("send_to", everything, name),
			Ends:  once(abi.ExportHandle, abi.NotFound, "no creature"),
		},
		{
			Name: "wasi-newlines", Attacks: "the worker: one fd_write of two billion empty lines, from vectors that name the same bytes",
			Build: newlines, Ends: comesToNothing(),
		},
		{
			Name: "wasi-vectors", Attacks: "the worker: fd_write of eight million empty vectors, without end",
			Build: func() []byte {
				const stdout = 1
				m := newCreature(1024)
				write := m.importFunction("wasi_snapshot_preview1", "fd_write", "iiii:i")
				return m.finish(forever(i32(stdout), i32(0), i32(8*mebi-1), i32(0), call(write), drop))
			},
			Ends: stopped(abi.ExportHandle),
		},
	}
}

// outputShuffled outputs a mebibyte first, and then a byte for each message.
func outputShuffled() []byte {
	m := newCreature(64)
	send, output := m.hostcall("send"), m.hostcall("output")
	return m.finishWith(floodLocals,
		i32(bulkAt), i32(mebi-4096), call(output), drop,
		untilRefused(answer,
			i32(bulkAt), i32(1), call(output), drop,
			i32(abi.AllChannels), i32(bulkAt), i32(1), i32(0), i32(0), call(send),
		),
	)
}

// newlines writes as many bytes as one call of fd_write may.
func newlines() []byte {
	const (
		text    = 32 * mebi
		vectors = (1<<31 - 1) / text
		stdout  = 1
	)
	m := newCreature(1024)
	write := m.importFunction("wasi_snapshot_preview1", "fd_write", "iiii:i")
	return m.finishWith([]locals{{1, typeI32}},
		i32(bulkAt), i32('\n'), i32(text), memoryFill,
		loop(
			localGet(2), i32(bulkAt), i32Store(),
			localGet(2), i32(4), i32add, i32(text), i32Store(),
			localGet(2), i32(8), i32add, localTee(2), i32(8*vectors), i32ltS, brIf(0),
		),
		i32(stdout), i32(0), i32(vectors), i32(bulkAt-8), call(write), drop,
	)
}

// storms returns guests that obey every limit in each turn, and cause the next
// turn themselves.
func storms() []Module {
	quiet := []End{{In: abi.ExportHandle, Code: abi.OK, Limits: abi.Limits{Mailbox: 64, Sends: 64}}}
	const long = 400 // rounds: a fifth of a second at least
	return []Module{
		{
			Name: "self-storm", Attacks: "the mailbox and the run queue: each delivery sends 64 more to itself",
			Build: func() []byte {
				m := newCreature(64)
				read, sendTo := m.hostcall("read"), m.hostcall("send_to")
				return m.finishWith(floodLocals,
					readSelf(read),
					loop(i32(nameAt), localGet(number), i32(bulkAt), i32(64), call(sendTo), i32(0), i32geS, brIf(0)),
				)
			},
			Ends: quiet, Lasts: long,
		},
		{
			Name: "self-storm-bytes", Attacks: "the memory of the engine: each delivery sends eight mebibytes to itself",
			Build: func() []byte {
				m := newCreature(64)
				read, sendTo := m.hostcall("read"), m.hostcall("send_to")
				return m.finishWith(floodLocals,
					readSelf(read),
					loop(i32(nameAt), localGet(number), i32(bulkAt), i32(mebi), call(sendTo), i32(0), i32geS, brIf(0)),
				)
			},
			Ends: comesToNothing(), Lasts: long,
			// The inbox takes 64 MiB, the collector lets as much garbage arise before it starts,
			// and each delivery allocates eight more while it runs.
			Peak: 2 * DefaultPeak,
		},
		{
			Name: "channel-storm", Attacks: "listeners and the run queue: 63 messages to the victim and one to itself, without end",
			Build: channelStorm, Ends: quiet,
		},
		{
			Name: "timer-storm", Attacks: "the clock: 256 timers due every millisecond",
			Build: func() []byte {
				m := newCreature(1)
				set := m.hostcall("timer_set")
				return m.finishWith(floodLocals, loop(
					nextName(), i32(nameAt), i32(4), i64(0), i64(1), i32(0), i32(0), call(set), i32(0), i32geS, brIf(0),
				))
			},
			Ends: quiet, Lasts: long,
		},
	}
}

// channelStorm sends to itself first, so that it continues, and then on every
// channel until it is refused.
func channelStorm() []byte {
	m := newCreature(64)
	read, sendTo, send := m.hostcall("read"), m.hostcall("send_to"), m.hostcall("send")
	return m.finishWith(floodLocals,
		readSelf(read),
		i32(nameAt), localGet(number), i32(0), i32(0), call(sendTo), drop,
		loop(i32(abi.AllChannels), i32(bulkAt), i32(64), i32(0), i32(0), call(send), i32(0), i32gtS, brIf(0)),
	)
}
