// oracle asks and answers.
#include "terrarium.hpp"
using namespace terrarium;

static Status init(Turn &t) { return t.config_knows(""); }

static Status draw(Turn &t) {
	uint8_t a[16], b[16];
	TRY(t.random(a, sizeof a));
	TRY(t.random(b, sizeof b));
	return t.output(Bytes(a, sizeof a) == Bytes(b, sizeof b) ? "same" : "different");
}

static Status heard(Turn &t) {
	Bytes payload = TRY(t.text()), text = payload, verb = text.until(' ');
	bool complete = payload.count(' ') >= 2; // a verb, a name and a text
	if (payload == "draw") return draw(t);
	if (complete && verb == "ask") {
		Bytes name = text.until(' ');
		int64_t n = TRY(t.state_whole("asked")) + 1;
		TRY(t.state_set_whole("asked", n));
		return t.request(name, text, 1000, n);
	}
	if (complete && verb == "tell") {
		Bytes name = text.until(' ');
		return t.send_to(name, text);
	}
	Bytes sender = t.sender();
	return t.output(join(t.direct() ? "direct" : t.channel(), " from ", sender.empty() ? "outside" : sender, ": ", payload));
}

static Status answer(Turn &t) {
	Bytes question = TRY(t.text());
	if (question == "silence") return {};
	if (question == "refuse") return t.fail(TERRARIUM_ERR_DENIED, "I refuse");
	if (question == "twice") {
		TRY(t.reply("once"));
		return t.reply("again");
	}
	return t.reply(join("you asked: ", question));
}

static Status handle(Turn &t) {
	switch (t.kind()) {
	case TERRARIUM_KIND_MESSAGE: return heard(t);
	case TERRARIUM_KIND_REQUEST: return answer(t);
	case TERRARIUM_KIND_RESULT: return t.send("answers", join("#", t.tag(), " ", t.result_code(), ": ", t.payload()));
	}
	return {};
}

TERRARIUM_CREATURE(of<handle>, of<init>)
TERRARIUM_MANIFEST({"name": "oracle", "description": "Asks and answers.", "abi": [1]})
