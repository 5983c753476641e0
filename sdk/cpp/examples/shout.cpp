// shout repeats messages in capital letters.
#include "terrarium.hpp"
using namespace terrarium;

static Status handle(Turn &t) {
	if (t.kind() != TERRARIUM_KIND_MESSAGE) return {};
	tr_buffer loud{};
	for (uint8_t byte : t.payload()) tr_put_byte(&loud, byte >= 'a' && byte <= 'z' ? byte - 'a' + 'A' : byte);
	return t.send_all(loud);
}

TERRARIUM_CREATURE(of<handle>)
TERRARIUM_MANIFEST({"name": "shout", "description": "Repeats messages in capital letters.", "abi": [1]})
