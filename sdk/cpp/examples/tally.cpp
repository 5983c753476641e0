// tally counts words in its state.
#include "terrarium.hpp"
using namespace terrarium;

static int64_t step;
static Bytes prefix;

static Status init(Turn &t) {
	TRY(t.config_knows("step prefix"));
	step = TRY(t.config_whole("step", 1, 1000000, 1));
	prefix = TRY(t.config_text("prefix", ""));
	return {};
}

static Status report(Turn &t) {
	tr_buffer lines{};
	Bytes keys = TRY(t.state_list("n/"));
	if (keys.empty()) return t.output("empty\n");
	while (!keys.empty()) {
		Bytes key = keys.until(0), count = TRY(t.state_get(key));
		put(lines, join(key.from(2), "=", count, "\n"));
	}
	return t.output(lines);
}

static Status handle(Turn &t) {
	if (t.kind() != TERRARIUM_KIND_MESSAGE) return {};
	Bytes text = TRY(t.text());
	if (text == "?") return report(t);
	if (text.starts("-")) {
		Bytes key = text.from(1);
		bool existed = TRY(t.state_delete(join("n/", key)));
		return t.send("counts", join(key, existed ? " removed" : " unknown"));
	}
	Bytes place = join("n/", text);
	int64_t n = TRY(t.state_whole(place)) + step;
	TRY(t.state_set_whole(place, n));
	return t.send("counts", join(prefix, text, "=", n), Headers().set("count", join(n)));
}

TERRARIUM_CREATURE(of<handle>, of<init>)
TERRARIUM_MANIFEST({"name": "tally", "description": "Counts words.", "abi": [1]})
