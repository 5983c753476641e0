// counter numbers the messages that it passes on.
#include "creature.h"

static int32_t handle(tr_turn *t) {
	tr_bytes text;
	int64_t n;
	if (t->kind != TERRARIUM_KIND_MESSAGE) return TERRARIUM_OK;
	// FAULT
	TR_TRY(tr_text(t, &text));
	TR_TRY(tr_state_whole(t, TR("n"), &n));
	TR_TRY(tr_state_set_whole(t, TR("n"), n + 1));
	return tr_send(t, TR("out"), tr_join(TR("VERSION "), text, TR(" "), tr_whole(n + 1)), TR_NONE);
}

TERRARIUM_CREATURE(handle)
