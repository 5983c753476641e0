// shout repeats messages in capital letters.
#include "creature.h"

static int32_t handle(tr_turn *t) {
	if (t->kind != TERRARIUM_KIND_MESSAGE) return TERRARIUM_OK;
	tr_buffer loud = tr_payload_buffer(t);
	for (int32_t i = 0; i < loud.len; i++)
		if (loud.ptr[i] >= 'a' && loud.ptr[i] <= 'z') loud.ptr[i] -= 'a' - 'A';
	return tr_send_all(t, tr_view(&loud), TR_NONE);
}

TERRARIUM_CREATURE(handle)
TERRARIUM_MANIFEST({"name": "shout", "description": "Repeats messages in capital letters.", "abi": [1]})
