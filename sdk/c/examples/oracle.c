// oracle asks and answers.
#include "creature.h"

static int32_t init(tr_turn *t) { return tr_config_knows(t, TR_NONE); }

static int32_t ask(tr_turn *t, tr_bytes name, tr_bytes text) {
	int64_t n;
	TR_TRY(tr_state_whole(t, TR("asked"), &n));
	TR_TRY(tr_state_set_whole(t, TR("asked"), ++n));
	return tr_request(t, name, text, 1000, n);
}

static int32_t draw(tr_turn *t) {
	uint8_t a[16], b[16];
	TR_TRY(tr_random(t, a, sizeof a));
	TR_TRY(tr_random(t, b, sizeof b));
	return tr_output(t, memcmp(a, b, sizeof a) ? TR("different") : TR("same"));
}

static int32_t heard(tr_turn *t) {
	tr_bytes payload;
	TR_TRY(tr_text(t, &payload));
	tr_bytes text = payload, verb = tr_until(&text, ' ');
	int complete = tr_count(payload, ' ') >= 2; // a verb, a name and a text
	if (tr_equal(payload, TR("draw"))) return draw(t);
	if (complete && tr_equal(verb, TR("ask"))) {
		tr_bytes name = tr_until(&text, ' ');
		return ask(t, name, text);
	}
	if (complete && tr_equal(verb, TR("tell"))) {
		tr_bytes name = tr_until(&text, ' ');
		return tr_send_to(t, name, text);
	}
	tr_bytes sender = tr_sender(t);
	return tr_output(t, tr_join(tr_direct(t) ? TR("direct") : tr_channel(t), TR(" from "), sender.len > 0 ? sender : TR("outside"),
		TR(": "), payload));
}

static int32_t answer(tr_turn *t) {
	tr_bytes question;
	TR_TRY(tr_text(t, &question));
	if (tr_equal(question, TR("silence"))) return TERRARIUM_OK;
	if (tr_equal(question, TR("refuse"))) return tr_fail(t, TERRARIUM_ERR_DENIED, TR("I refuse"));
	if (tr_equal(question, TR("twice"))) {
		TR_TRY(tr_reply(t, TR("once")));
		return tr_reply(t, TR("again"));
	}
	return tr_reply(t, tr_join(TR("you asked: "), question));
}

static int32_t result(tr_turn *t) {
	tr_bytes line = tr_join(TR("#"), tr_whole(tr_tag(t)), TR(" "), tr_result_code(t), TR(": "), tr_payload(t));
	return tr_send(t, TR("answers"), line, TR_NONE);
}

static int32_t handle(tr_turn *t) {
	switch (t->kind) {
	case TERRARIUM_KIND_MESSAGE: return heard(t);
	case TERRARIUM_KIND_REQUEST: return answer(t);
	case TERRARIUM_KIND_RESULT: return result(t);
	}
	return TERRARIUM_OK;
}

TERRARIUM_CREATURE(.handle = handle, .init = init)
TERRARIUM_MANIFEST({"name": "oracle", "description": "Asks and answers.", "abi": [1]})
