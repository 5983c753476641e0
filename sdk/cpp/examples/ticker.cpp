// ticker sets timers.
#include "terrarium.hpp"
using namespace terrarium;

static int64_t every_ms, limit;

static Status init(Turn &t) {
	TRY(t.config_knows("every_ms limit"));
	every_ms = TRY(t.config_whole("every_ms", 1, 86400000, 1000));
	limit = TRY(t.config_whole("limit", 0, 1000000, 0));
	return {};
}

static Status tick(Turn &t) {
	int64_t n = TRY(t.state_whole("ticks")) + 1;
	TRY(t.state_set_whole("ticks", n));
	TRY(t.send_all(join("tick ", n, " at ", t.now() / 1000000)));
	if (limit == 0 || n < limit) return {};
	TRY(t.cancel_timer("tick"));
	return t.log(TERRARIUM_LEVEL_INFO, join("done after ", n, " ticks"));
}

static Status obey(Turn &t) {
	Bytes command = TRY(t.text());
	if (command == "stop") return t.log(TERRARIUM_LEVEL_INFO, TRY(t.cancel_timer("tick")) ? "stopped" : "was not running");
	if (command.starts("in ") && command.count(' ') >= 3) {
		Bytes text = command.from(3), number = text.until(' '), name = text.until(' ');
		int64_t delay;
		if (tr_whole_of(number, &delay) && delay >= 0 && delay <= 86400000) return t.set_timer(name, delay, 0, text);
	}
	return t.fail(TERRARIUM_ERR_FAILED, "unknown command: ", command);
}

static Status handle(Turn &t) {
	switch (t.kind()) {
	case TERRARIUM_KIND_START: return t.set_timer("tick", every_ms, every_ms, "tick");
	case TERRARIUM_KIND_TIMER: return t.timer_name() == "tick" ? tick(t) : t.send_all(join(t.timer_name(), ": ", t.payload()));
	case TERRARIUM_KIND_MESSAGE: return obey(t);
	}
	return {};
}

TERRARIUM_CREATURE(of<handle>, of<init>)
TERRARIUM_MANIFEST({"name": "ticker", "description": "Sets timers.", "abi": [1]})
