// tally counts words in its state.
#include "creature.h"

static int64_t step;
static tr_bytes prefix;

static int32_t init(tr_turn *t) {
	step = 1;
	prefix = TR_NONE;
	TR_TRY(tr_config_knows(t, TR("step prefix")));
	TR_TRY(tr_config_whole(t, TR("step"), 1, 1000000, &step));
	return tr_config_text(t, TR("prefix"), &prefix);
}

static int32_t report(tr_turn *t) {
	tr_bytes keys, count;
	tr_buffer lines = {0};
	TR_TRY(tr_state_list(t, TR("n/"), &keys));
	if (keys.len == 0) return tr_output(t, TR("empty\n"));
	while (keys.len > 0) {
		tr_bytes key = tr_until(&keys, 0);
		TR_TRY(tr_state_get(t, key, &count));
		tr_put(&lines, tr_join(tr_from(key, 2), TR("="), count, TR("\n")));
	}
	return tr_output(t, tr_view(&lines));
}

static int32_t forget(tr_turn *t, tr_bytes key) {
	int32_t existed = tr_state_delete(t, tr_join(TR("n/"), key));
	TR_TRY(existed);
	return tr_send(t, TR("counts"), tr_join(key, existed ? TR(" removed") : TR(" unknown")), TR_NONE);
}

static int32_t count(tr_turn *t, tr_bytes key) {
	int64_t n;
	tr_buffer headers = {0};
	tr_bytes place = tr_join(TR("n/"), key);
	TR_TRY(tr_state_whole(t, place, &n));
	n += step;
	TR_TRY(tr_state_set_whole(t, place, n));
	tr_put_header(&headers, TR("count"), tr_whole(n));
	return tr_send(t, TR("counts"), tr_join(prefix, key, TR("="), tr_whole(n)), tr_view(&headers));
}

static int32_t handle(tr_turn *t) {
	tr_bytes text;
	if (t->kind != TERRARIUM_KIND_MESSAGE) return TERRARIUM_OK;
	TR_TRY(tr_text(t, &text));
	if (tr_equal(text, TR("?"))) return report(t);
	if (tr_starts(text, TR("-"))) return forget(t, tr_from(text, 1));
	return count(t, text);
}

TERRARIUM_CREATURE(.handle = handle, .init = init)
TERRARIUM_MANIFEST({"name": "tally", "description": "Counts words.", "abi": [1]})
