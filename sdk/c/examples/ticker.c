// ticker sets timers.
#include "creature.h"

static int64_t every_ms, limit;

static int32_t init(tr_turn *t) {
	every_ms = 1000;
	limit = 0;
	TR_TRY(tr_config_knows(t, TR("every_ms limit")));
	TR_TRY(tr_config_whole(t, TR("every_ms"), 1, 86400000, &every_ms));
	return tr_config_whole(t, TR("limit"), 0, 1000000, &limit);
}

static int32_t tick(tr_turn *t) {
	int64_t n;
	TR_TRY(tr_state_whole(t, TR("ticks"), &n));
	TR_TRY(tr_state_set_whole(t, TR("ticks"), ++n));
	TR_TRY(tr_send_all(t, tr_join(TR("tick "), tr_whole(n), TR(" at "), tr_whole(tr_now(t) / 1000000)), TR_NONE));
	if (limit == 0 || n < limit) return TERRARIUM_OK;
	TR_TRY(tr_cancel_timer(t, TR("tick")));
	return tr_log(t, TERRARIUM_LEVEL_INFO, TR("done after "), tr_whole(n), TR(" ticks"));
}

static int32_t fired(tr_turn *t) {
	tr_bytes name = tr_timer_name(t);
	if (tr_equal(name, TR("tick"))) return tick(t);
	return tr_send_all(t, tr_join(name, TR(": "), tr_payload(t)), TR_NONE);
}

static int32_t obey(tr_turn *t) {
	tr_bytes command;
	TR_TRY(tr_text(t, &command));
	if (tr_equal(command, TR("stop"))) {
		int32_t was_set = tr_cancel_timer(t, TR("tick"));
		TR_TRY(was_set);
		return tr_log(t, TERRARIUM_LEVEL_INFO, was_set ? TR("stopped") : TR("was not running"));
	}
	if (tr_starts(command, TR("in ")) && tr_count(command, ' ') >= 3) {
		int64_t delay;
		tr_bytes text = tr_from(command, 3);
		tr_bytes number = tr_until(&text, ' '), name = tr_until(&text, ' ');
		if (tr_whole_of(number, &delay) && delay >= 0 && delay <= 86400000) return tr_set_timer(t, name, delay, 0, text);
	}
	return tr_fail(t, TERRARIUM_ERR_FAILED, TR("unknown command: "), command);
}

static int32_t handle(tr_turn *t) {
	switch (t->kind) {
	case TERRARIUM_KIND_START: return tr_set_timer(t, TR("tick"), every_ms, every_ms, TR("tick"));
	case TERRARIUM_KIND_TIMER: return fired(t);
	case TERRARIUM_KIND_MESSAGE: return obey(t);
	}
	return TERRARIUM_OK;
}

TERRARIUM_CREATURE(.handle = handle, .init = init)
TERRARIUM_MANIFEST({"name": "ticker", "description": "Sets timers.", "abi": [1]})
