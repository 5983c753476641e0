package tools

// table lists the group tools in the order of the reference.
var table = []Tool{
	{
		Name: "send_channel", call: sendChannel, args: SendChannelArgs{}, result: SendChannelResult{},
		Doc: "Sends a message on a channel that the caller may send on.",
	},
	{
		Name: "group_send", call: groupSend, args: GroupSendArgs{}, result: GroupSendResult{},
		Doc: "Sends a message directly to a member of the caller's graph. A worker reaches only privileged members.",
	},
	{
		Name: "group_status", Privileged: true, call: groupStatus, args: GroupStatusArgs{}, result: GroupStatus{},
		Doc: "Describes the caller's graph as the turn sees it: members, channels, output wires, and the species that may be spawned. A large graph is returned in parts.",
	},
	{
		Name: "group_add_node", Privileged: true, call: groupAddNode, args: AddNodeArgs{}, result: AddNodeResult{},
		Doc: "Spawns a worker of a species into the caller's graph. If the call names no channels, the worker gets a direct channel, on which the caller may send. With two_way the worker can answer on it, and with task it gets its first message. If one part is refused, nothing happens.",
	},
	{
		Name: "group_remove_node", Privileged: true, call: groupRemoveNode, args: NodeArgs{}, result: DeltaResult{},
		Doc: "Removes a worker; the graph may split. Deliveries waiting for it become dead letters.",
	},
	{
		Name: "group_start_node", Privileged: true, call: groupStartNode, args: NodeArgs{}, result: NodeState{},
		Doc: "Starts a worker that is stopped, paused or quarantined.",
	},
	{
		Name: "group_stop_node", Privileged: true, call: groupStopNode, args: NodeArgs{}, result: NodeState{},
		Doc: "Stops a worker. It stays a member, and messages to it wait.",
	},
	{
		Name: "group_pause_node", Privileged: true, call: groupPauseNode, args: NodeArgs{}, result: NodeState{},
		Doc: "Pauses a running worker. It keeps its instance, and messages to it wait until it is resumed.",
	},
	{
		Name: "group_resume_node", Privileged: true, call: groupResumeNode, args: NodeArgs{}, result: NodeState{},
		Doc: "Resumes a paused worker, which continues with the messages that have waited.",
	},
	{
		Name: "group_channel", Privileged: true, call: groupChannel, args: ChannelArgs{}, result: ChannelResult{},
		Doc: "Creates or deletes a channel, or wires a creature to a channel or unwires it. To wire a creature or channel of another graph, set merge; both deployments must allow it.",
	},
	{
		Name: "group_wire", Privileged: true, call: groupWire, args: WireArgs{}, result: WireResult{},
		Doc: "Adds, removes or lists output wires, which deliver a member's output to another member.",
	},
}
