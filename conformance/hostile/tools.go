package hostile

import (
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/abi"
)

// toolAttacks returns guests that misuse the group tools: with too many calls,
// too much data, or forbidden targets. The graph must not change.
func toolAttacks() []Module { return slices.Concat(toolFloods(), toolForgeries()) }

// The addresses of the name and the arguments of a tool.
const (
	toolAt = 1024
	argsAt = 2048
)

// useTool calls a tool with arguments from a data segment, and leaves the
// status.
func (m *binaryModule) useTool(tool uint32, name, args string) code {
	m.data(toolAt, []byte(name))
	m.data(argsAt, []byte(args))
	return seq(i32(toolAt), i32(int32(len(name))), i32(argsAt), i32(int32(len(args))), call(tool))
}

// callsTool returns a creature that calls one tool once and returns the
// status.
func callsTool(name, args string) func() []byte {
	return func() []byte {
		m := newCreature(1)
		tool := m.hostcall("tool")
		return m.finishWith(floodLocals, untilRefused(answer, m.useTool(tool, name, args)))
	}
}

// fillsArguments returns a creature whose arguments are size times the same
// byte.
func fillsArguments(name string, fill byte, size int32) func() []byte {
	return func() []byte {
		m := newCreature(64)
		tool := m.hostcall("tool")
		m.data(toolAt, []byte(name))
		return m.finishWith(floodLocals,
			i32(bulkAt), i32(int32(fill)), i32(size), memoryFill,
			untilRefused(answer, i32(toolAt), i32(int32(len(name))), i32(bulkAt), i32(size), call(tool)))
	}
}

func toolFloods() []Module {
	few := abi.Limits{Calls: 10_000, Fuel: muchFuel, Deadline: muchTime}
	return []Module{
		{
			Name: "tool-flood", Attacks: "the engine: a privileged creature reads the graph again and again", Privileged: true,
			Build: callsTool("group_status", "{}"), Ends: refusedBy("tools"),
		},
		{
			Name: "tool-flood-ignored", Attacks: "the engine: a worker calls tools without end and ignores the refusals",
			Build: func() []byte {
				m := newCreature(1)
				tool := m.hostcall("tool")
				return m.finish(forever(m.useTool(tool, "group_status", "{}"), drop))
			},
			Ends: []End{{Limits: few, In: abi.ExportHandle, Code: abi.LimitExceeded, Says: []string{"limit calls", "10000"}}},
		},
		{
			Name: "tool-channels", Attacks: "the graph: one channel after the other in a single turn, which is then refused as a whole", Privileged: true,
			Build: channelFlood, Ends: refusedBy("tools"),
		},
		{
			Name: "tool-arguments-huge", Attacks: "the reader of arguments: two mebibytes of them", Privileged: true,
			Build: fillsArguments("group_status", ' ', 2*mebi),
			Ends:  once(abi.ExportHandle, abi.TooLarge, "limit message"),
		},
		{
			Name: "tool-arguments-nested", Attacks: "recursion in the reader of arguments: half a million nested lists", Privileged: true,
			Build: fillsArguments("group_status", '[', mebi/2),
			Ends:  once(abi.ExportHandle, abi.InvalidArgument, "not JSON"),
		},
		{
			Name: "tool-arguments-binary", Attacks: "code that prints arguments: bytes that are not UTF-8", Privileged: true,
			Build: fillsArguments("group_status", 0xff, 4096),
			Ends:  once(abi.ExportHandle, abi.InvalidArgument, "UTF-8"),
		},
		{
			Name: "tool-name-huge", Attacks: "the text of an error: a tool with a name of half a mebibyte", Privileged: true,
			Build: flood("tool", i32(bulkAt), i32(mebi/2), i32(0), i32(0)),
			Ends:  once(abi.ExportHandle, abi.NotFound, "there is no tool"),
		},
	}
}

// channelFlood creates channels with different names until it is refused.
func channelFlood() []byte {
	const before, after = `{"action": "create", "name": "`, `"}`
	m := newCreature(1)
	tool := m.hostcall("tool")
	m.data(toolAt, []byte("group_channel"))
	m.data(argsAt, []byte(before+"AAAA"+after))
	return m.finishWith(floodLocals, untilRefused(answer,
		localGet(number), i32(1), i32add, localSet(number),
		i32(argsAt+int32(len(before))), asText(localGet(number)), i32Store(),
		i32(toolAt), i32(int32(len("group_channel"))), i32(argsAt), i32(int32(len(before)+4+len(after))), call(tool)))
}

func toolForgeries() []Module {
	return []Module{
		{
			Name: "tool-remove-self", Attacks: "the commit of the turn: a privileged creature removes itself", Privileged: true,
			Build: removesSelf, Ends: once(abi.ExportHandle, abi.NotPrivileged, "privileged creature"),
		},
		{
			Name: "tool-forged-id", Attacks: "code that looks ids up: an id that does not exist", Privileged: true,
			Build: callsTool("group_remove_node", `{"creature": "c0000000000000000"}`),
			Ends:  once(abi.ExportHandle, abi.NotFound, "no creature"),
		},
		{
			Name: "tool-foreign", Attacks: "another graph: removes one of the neighbours by name", Privileged: true,
			Build: callsTool("group_remove_node", `{"creature": "relay"}`),
			Ends:  once(abi.ExportHandle, abi.NotFound, "no creature"),
		},
		{
			Name: "tool-surplus", Attacks: "the reader of arguments: an extra field that would make a worker privileged", Privileged: true,
			Build: callsTool("group_add_node", `{"species": "x", "privileged": true}`),
			Ends:  once(abi.ExportHandle, abi.InvalidArgument, "privileged"),
		},
		{
			Name: "tool-in-init", Attacks: "the rule that creature_init only reads: it removes the victim, and passes on the refusal", Privileged: true,
			Build: func() []byte {
				m := newCreature(1)
				tool := m.hostcall("tool")
				m.export(abi.ExportInit, kindFunction, m.function(":i", nil, m.useTool(tool, "group_remove_node", `{"creature": "victim"}`)))
				return m.harmless()
			},
			Ends: once(abi.ExportInit, abi.Denied, "creature_handle"),
		},
		{
			Name: "tool-worker", Attacks: "the privilege: a worker calls every tool that it may not use, and traps unless each is refused for that reason",
			Build: callsAll, Ends: comesToNothing(),
		},
	}
}

// removesSelf requests the removal of the creature that has its own name.
func removesSelf() []byte {
	const name, before = "group_remove_node", `{"creature": "`
	m := newCreature(1)
	read, tool := m.hostcall("read"), m.hostcall("tool")
	m.data(toolAt, []byte(name))
	m.data(argsAt, []byte(before))
	self := argsAt + int32(len(before))
	return m.finishWith(floodLocals,
		i32(int32(abi.SourceSelf)), i32(0), i32(self), i32(256), call(read), localSet(number),
		i32(self), localGet(number), i32add, i32(0x20207d22), i32Store(), // the end of the object, and two spaces
		untilRefused(answer,
			i32(toolAt), i32(int32(len(name))), i32(argsAt), localGet(number), i32(int32(len(before))+4), i32add, call(tool)))
}

// privilegedCalls lists calls that, for a privileged caller, would succeed or
// be refused for another reason.
var privilegedCalls = [][2]string{
	{"group_status", `{}`},
	{"group_add_node", `{"species": "echo"}`},
	{"group_remove_node", `{"creature": "victim"}`},
	{"group_start_node", `{"creature": "victim"}`},
	{"group_stop_node", `{"creature": "victim"}`},
	{"group_channel", `{"action": "create", "name": "mine"}`},
	{"group_channel", `{"action": "delete", "channel": "loot"}`},
	{"group_channel", `{"action": "unwire", "channel": "loot", "creature": "victim", "direction": "listen"}`},
	{"group_wire", `{"action": "add", "from": "victim", "to": "victim", "allow_self": true}`},
	{"group_wire", `{"action": "list"}`},
}

func callsAll() []byte {
	m := newCreature(1)
	tool := m.hostcall("tool")
	var body code
	for i, c := range privilegedCalls {
		at := int32(toolAt + 512*i)
		text := fmt.Sprintf("%s%s", c[0], c[1])
		m.data(at, []byte(text))
		body = append(body, seq(
			i32(at), i32(int32(len(c[0]))), i32(at+int32(len(c[0]))), i32(int32(len(c[1]))), call(tool),
			i32(abi.NotPrivileged.Status()), i32ne, when(unreachable))...)
	}
	return m.finish(body)
}
