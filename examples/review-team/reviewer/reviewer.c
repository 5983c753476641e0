// reviewer judges tasks by their number of words.
#include "creature.h"

static int64_t strictness;

static int32_t init(tr_turn *t) {
	strictness = 3;
	TR_TRY(tr_config_knows(t, TR("strictness")));
	return tr_config_whole(t, TR("strictness"), 0, INT32_MAX, &strictness);
}

static int64_t words(tr_bytes text) {
	int64_t n = 0;
	int inside = 0;
	for (int32_t i = 0; i < text.len; i++) {
		int blank = text.ptr[i] == ' ' || text.ptr[i] == '\t';
		n += inside == 0 && !blank;
		inside = !blank;
	}
	return n;
}

// handle answers {"task":N,"text":"…"} with {"task":N,"verdict":"…","words":N,"text":"…"}.
static int32_t handle(tr_turn *t) {
	tr_bytes number, text;
	if (t->kind != TERRARIUM_KIND_MESSAGE) return TERRARIUM_OK;
	tr_bytes task = tr_payload(t);
	if (!tr_json_member(task, TR("task"), &number) || !tr_json_member(task, TR("text"), &text))
		return tr_fail(t, TERRARIUM_ERR_INVALID_ARGUMENT, TR("a task has the members task and text"));
	int64_t have = words(tr_json_text(text));
	tr_bytes verdict = have >= strictness ? TR("approved") : TR("refused");
	return tr_send_all(t, tr_join(TR("{\"task\":"), number, TR(",\"verdict\":\""), verdict, TR("\",\"words\":"), tr_whole(have),
		TR(",\"text\":"), text, TR("}")), TR_NONE);
}

TERRARIUM_CREATURE(.handle = handle, .init = init)
