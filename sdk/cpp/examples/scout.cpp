// scout looks around and edits its graph.
#include "tools.hpp"
using namespace terrarium;

// names joins the members of that name of all elements of a list.
static Bytes names(Bytes list, Bytes member) {
	tr_buffer all{};
	tr_json_cursor each;
	tr_bytes element, name;
	if (!tr_json_open(list, '[', &each)) return "";
	while (tr_json_next(&each, nullptr, &element)) {
		if (!tr_json_member(element, member, &name)) continue;
		if (all.len > 0) put(all, ", ");
		put(all, tr_json_text(name));
	}
	return all;
}

static Status changed(Turn &t) {
	tr_bytes channels, items;
	Bytes aliases;
	if (tr_json_member(t.awareness(), Bytes("channels"), &channels) && tr_json_member(channels, Bytes("items"), &items))
		aliases = names(items, "listen");
	return t.output(join("revision ", t.awareness_revision(), ": listens on ", aliases.empty() ? "nothing" : aliases));
}

// outcome puts out what a tool did, or the code with which it failed.
static Status outcome(Turn &t, Bytes tool, Status result, Bytes done) {
	return t.output(result ? done : join(tool, ": ", result.name()));
}

static Status members(Turn &t) {
	auto result = group_status(t);
	tr_bytes list = TR_NONE;
	if (result) tr_json_member(result.value, Bytes("creatures"), &list);
	return outcome(t, "group_status", result, join("members: ", names(list, "name")));
}

static Status spawn(Turn &t, Bytes species, Bytes name) {
	auto result = group_add_node(t, {.species = species, .name = name});
	tr_bytes spawned = name;
	if (result) tr_json_member(result.value, Bytes("name"), &spawned);
	return outcome(t, "group_add_node", result, join("spawned ", tr_json_text(spawned)));
}

static Status obey(Turn &t) {
	Bytes command = TRY(t.text()), rest = command, verb = rest.until(' '), all = rest, first = rest.until(' ');
	size_t spaces = command.count(' ');
	bool one = spaces == 1, two = spaces == 2, text = spaces >= 2; // what follows the verb
	if (!t.has_feature(TERRARIUM_FEATURE_TOOLS)) return t.output("no tools");
	if (command == "members") return members(t);
	if (command == "title") {
		Bytes document = t.awareness_markdown();
		return t.output(document.until('\n'));
	}
	if (one && verb == "make")
		return outcome(t, "group_channel", group_channel(t, {.action = TR_GROUP_CHANNEL_CREATE, .name = all}), join("made ", all));
	if (two && verb == "wire")
		return outcome(t, "group_channel", group_channel(t, {.action = TR_GROUP_CHANNEL_WIRE, .channel = first, .creature = t.self(),
			.direction = TR_GROUP_CHANNEL_LISTEN, .alias = rest}), join("wired ", first));
	if (text && verb == "say") {
		Status said = send_channel(t, {.channel = first, .payload = rest, .headers = TR("{\"tone\":\"loud\"}")});
		return said ? said : outcome(t, "send_channel", said, "");
	}
	if (text && verb == "tell") {
		Status told = group_send(t, {.creature = first, .payload = rest});
		return told ? told : outcome(t, "group_send", told, "");
	}
	if (two && verb == "spawn") return spawn(t, first, rest);
	if (one && verb == "route")
		return outcome(t, "group_wire", group_wire(t, {.action = TR_GROUP_WIRE_ADD, .from = t.self(), .to = all, .with_content = TR_TRUE}),
			join("routed to ", all));
	if (one && verb == "stop") return outcome(t, "group_stop_node", group_stop_node(t, {.creature = all}), command);
	if (one && verb == "resume") return outcome(t, "group_start_node", group_start_node(t, {.creature = all}), command);
	if (one && verb == "remove") return outcome(t, "group_remove_node", group_remove_node(t, {.creature = all}), command);
	return t.fail(TERRARIUM_ERR_FAILED, "unknown command: ", command);
}

static Status handle(Turn &t) {
	switch (t.kind()) {
	case TERRARIUM_KIND_START: return t.output(join(t.self(), " starts at revision ", t.awareness_revision()));
	case TERRARIUM_KIND_GRAPH_CHANGED: return changed(t);
	case TERRARIUM_KIND_MESSAGE: return obey(t);
	}
	return {};
}

TERRARIUM_CREATURE(of<handle>)
TERRARIUM_GRAPH_CHANGED()
TERRARIUM_MANIFEST({"name": "scout", "description": "Looks around and edits its graph.", "abi": [1]})
