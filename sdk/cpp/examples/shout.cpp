// shout repeats messages in capital letters.
#include "terrarium.hpp"
using namespace terrarium;

static Status handle(Turn &t) {
	if (t.kind() != TERRARIUM_KIND_MESSAGE) return {};
	tr_buffer loud = t.payload_buffer();
	for (int32_t i = 0; i < loud.len; i++)
		if (loud.ptr[i] >= 'a' && loud.ptr[i] <= 'z') loud.ptr[i] -= 'a' - 'A';
	return t.send_all(loud);
}

TERRARIUM_CREATURE(of<handle>)
TERRARIUM_MANIFEST({"name": "shout", "description": "Repeats messages in capital letters.", "abi": [1]})
