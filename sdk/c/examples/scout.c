// scout looks around and edits its graph.
#include "tools.h"

// names joins the members of that name of all elements of a list.
static tr_bytes names(tr_bytes list, tr_bytes member) {
	tr_buffer all = {0};
	tr_json_cursor each;
	tr_bytes element, name;
	if (!tr_json_open(list, '[', &each)) return TR_NONE;
	while (tr_json_next(&each, NULL, &element)) {
		if (!tr_json_member(element, member, &name)) continue;
		if (all.len > 0) tr_put(&all, TR(", "));
		tr_put(&all, tr_json_text(name));
	}
	return tr_view(&all);
}

static int32_t changed(tr_turn *t) {
	tr_bytes channels, items, aliases = TR_NONE;
	if (tr_json_member(tr_awareness(t), TR("channels"), &channels) && tr_json_member(channels, TR("items"), &items))
		aliases = names(items, TR("listen"));
	return tr_output(t, tr_join(TR("revision "), tr_whole(tr_awareness_revision(t)), TR(": listens on "),
		aliases.len > 0 ? aliases : TR("nothing")));
}

// outcome puts out what a tool did, or the code with which it failed.
static int32_t outcome(tr_turn *t, tr_bytes tool, int32_t status, tr_bytes done, tr_bytes what) {
	if (status < 0) return tr_output(t, tr_join(tool, TR(": "), tr_code_name(status)));
	return tr_output(t, tr_join(done, what));
}

static int32_t members(tr_turn *t) {
	tr_bytes result, list = TR_NONE;
	int32_t status = tr_group_status(t, &result);
	if (status >= 0) tr_json_member(result, TR("creatures"), &list);
	return outcome(t, TR("group_status"), status, TR("members: "), names(list, TR("name")));
}

static int32_t make(tr_turn *t, tr_bytes name) {
	int32_t status = tr_group_channel(t, NULL, .action = TR_GROUP_CHANNEL_CREATE, .name = name);
	return outcome(t, TR("group_channel"), status, TR("made "), name);
}

static int32_t wire(tr_turn *t, tr_bytes name, tr_bytes alias) {
	int32_t status = tr_group_channel(t, NULL, .action = TR_GROUP_CHANNEL_WIRE, .channel = name, .creature = tr_self(t),
		.direction = TR_GROUP_CHANNEL_LISTEN, .alias = alias);
	return outcome(t, TR("group_channel"), status, TR("wired "), name);
}

static int32_t say(tr_turn *t, tr_bytes alias, tr_bytes text) {
	int32_t status = tr_send_channel(t, NULL, .channel = alias, .payload = text, .headers = TR("{\"tone\":\"loud\"}"));
	return status < 0 ? outcome(t, TR("send_channel"), status, TR_NONE, TR_NONE) : status;
}

static int32_t tell(tr_turn *t, tr_bytes name, tr_bytes text) {
	int32_t status = tr_group_send(t, NULL, .creature = name, .payload = text);
	return status < 0 ? outcome(t, TR("group_send"), status, TR_NONE, TR_NONE) : status;
}

static int32_t spawn(tr_turn *t, tr_bytes species, tr_bytes name) {
	tr_bytes result, spawned = name;
	int32_t status = tr_group_add_node(t, &result, .species = species, .name = name);
	if (status >= 0) tr_json_member(result, TR("name"), &spawned);
	return outcome(t, TR("group_add_node"), status, TR("spawned "), tr_json_text(spawned));
}

static int32_t route(tr_turn *t, tr_bytes name) {
	int32_t status = tr_group_wire(t, NULL, .action = TR_GROUP_WIRE_ADD, .from = tr_self(t), .to = name, .with_content = TR_TRUE);
	return outcome(t, TR("group_wire"), status, TR("routed to "), name);
}

static int32_t title(tr_turn *t) {
	tr_bytes document = tr_awareness_markdown(t);
	return tr_output(t, tr_until(&document, '\n'));
}

static int32_t obey(tr_turn *t) {
	tr_bytes command;
	TR_TRY(tr_text(t, &command));
	tr_bytes rest = command, verb = tr_until(&rest, ' '), all = rest, first = tr_until(&rest, ' ');
	int32_t spaces = tr_count(command, ' ');
	int one = spaces == 1, two = spaces == 2, text = spaces >= 2; // what follows the verb
	if (!tr_has_feature(t, TERRARIUM_FEATURE_TOOLS)) return tr_output(t, TR("no tools"));
	if (tr_equal(command, TR("members"))) return members(t);
	if (tr_equal(command, TR("title"))) return title(t);
	if (one && tr_equal(verb, TR("make"))) return make(t, all);
	if (two && tr_equal(verb, TR("wire"))) return wire(t, first, rest);
	if (text && tr_equal(verb, TR("say"))) return say(t, first, rest);
	if (text && tr_equal(verb, TR("tell"))) return tell(t, first, rest);
	if (two && tr_equal(verb, TR("spawn"))) return spawn(t, first, rest);
	if (one && tr_equal(verb, TR("route"))) return route(t, all);
	if (one && tr_equal(verb, TR("stop"))) return outcome(t, TR("group_stop_node"), tr_group_stop_node(t, NULL, .creature = all), TR("stop "), all);
	if (one && tr_equal(verb, TR("resume"))) return outcome(t, TR("group_start_node"), tr_group_start_node(t, NULL, .creature = all), TR("resume "), all);
	if (one && tr_equal(verb, TR("remove"))) return outcome(t, TR("group_remove_node"), tr_group_remove_node(t, NULL, .creature = all), TR("remove "), all);
	return tr_fail(t, TERRARIUM_ERR_FAILED, TR("unknown command: "), command);
}

static int32_t handle(tr_turn *t) {
	switch (t->kind) {
	case TERRARIUM_KIND_START:
		return tr_output(t, tr_join(tr_self(t), TR(" starts at revision "), tr_whole(tr_awareness_revision(t))));
	case TERRARIUM_KIND_GRAPH_CHANGED: return changed(t);
	case TERRARIUM_KIND_MESSAGE: return obey(t);
	}
	return TERRARIUM_OK;
}

TERRARIUM_CREATURE(handle)
TERRARIUM_GRAPH_CHANGED()
TERRARIUM_MANIFEST({"name": "scout", "description": "Looks around and edits its graph.", "abi": [1]})
