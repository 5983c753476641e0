// counter numbers the messages that it passes on.
#include "terrarium.hpp"
using namespace terrarium;

static Status handle(Turn &t) {
	if (t.kind() != TERRARIUM_KIND_MESSAGE) return {};
	// FAULT
	Bytes text = TRY(t.text());
	int64_t n = TRY(t.state_whole("n")) + 1;
	TRY(t.state_set_whole("n", n));
	return t.send("out", join("VERSION ", text, " ", n));
}

TERRARIUM_CREATURE(of<handle>)
