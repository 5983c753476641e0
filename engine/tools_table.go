package engine

// tools are the group tools: what a guest may do to its graph.
var tools []tool

func init() { // the calls refer to the table in their errors
	tools = []tool{
		{
			name: "send_channel", call: sendChannel, args: SendChannelArgs{}, result: SendChannelResult{},
			doc: "Sends a message on a channel that the caller may send on.",
		},
		{
			name: "group_send", call: groupSend, args: GroupSendArgs{}, result: GroupSendResult{},
			doc: "Sends a message directly to a member of the own graph. A worker reaches privileged members only.",
		},
		{
			name: "group_status", privileged: true, call: groupStatus, args: GroupStatusArgs{}, result: GroupStatus{},
			doc: "Describes the own graph as the turn sees it: members, channels, output wires, and what may be spawned. A large graph comes in parts.",
		},
		{
			name: "group_add_node", privileged: true, call: groupAddNode, args: AddNodeArgs{}, result: AddNodeResult{},
			doc: "Spawns a worker of a species into the own graph. Without channels of that graph it gets a direct channel, on which the caller may send.",
		},
		{
			name: "group_remove_node", privileged: true, call: groupRemoveNode, args: NodeArgs{}, result: DeltaResult{},
			doc: "Removes a worker; the graph may split. What waits for it becomes dead letters.",
		},
		{
			name: "group_start_node", privileged: true, call: groupStartNode, args: NodeArgs{}, result: NodeState{},
			doc: "Starts a worker that is stopped or quarantined.",
		},
		{
			name: "group_stop_node", privileged: true, call: groupStopNode, args: NodeArgs{}, result: NodeState{},
			doc: "Stops a worker. It stays a member, and what is sent to it waits.",
		},
		{
			name: "group_channel", privileged: true, call: groupChannel, args: ChannelArgs{}, result: ChannelResult{},
			doc: "Creates or deletes a channel, or wires a creature to one or unwires it. Wiring something of another graph needs merge, and that both deployments allow it.",
		},
		{
			name: "group_wire", privileged: true, call: groupWire, args: WireArgs{}, result: WireResult{},
			doc: "Adds, removes or lists output wires, which lead what a member puts out to another.",
		},
	}
}
