// Taking turns. split and select share it.
#ifndef TURNS_H
#define TURNS_H

#include "bare.h"

// next_in_turn advances the position in the state, which is below count. It returns an
// index or an error.
TR_UNUSED static int32_t next_in_turn(uint32_t count) {
	tr_bytes text;
	tr_buffer next = {0};
	uint64_t position = 0;
	int32_t status = tr_state(TR("next"), &text);
	if (status >= 0) tr_natural(text, &position);
	else if (status != TERRARIUM_ERR_NOT_FOUND) return status;
	position %= count; // the list may have been longer
	tr_put_natural(&next, (position + 1) % count);
	if (next.failed) return TERRARIUM_ERR_LIMIT;
	status = terrarium_state_set("next", 4, next.ptr, next.len);
	return status < 0 ? status : (int32_t)position;
}

#endif // TURNS_H
