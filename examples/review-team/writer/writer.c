// writer turns lines into tasks, and collects the verdicts on them.
#include "creature.h"

static int64_t reviewers;

static int32_t init(tr_turn *t) {
	TR_TRY(tr_config_knows(t, TR("reviewers")));
	TR_TRY(tr_config_required(t, TR("reviewers")));
	return tr_config_whole(t, TR("reviewers"), 0, INT32_MAX, &reviewers);
}

// add adds to a number in the state, which begins at 0.
static int32_t add(tr_turn *t, tr_bytes key, int64_t n, int64_t *sum) {
	TR_TRY(tr_state_whole(t, key, sum));
	*sum += n;
	return tr_state_set_whole(t, key, *sum);
}

// make_task sends {"task":N,"text":"…"}.
static int32_t make_task(tr_turn *t, tr_bytes line) {
	int64_t number;
	tr_buffer text = {0};
	TR_TRY(add(t, TR("tasks"), 1, &number));
	tr_put_json(&text, line);
	return tr_send_all(t, tr_join(TR("{\"task\":"), tr_whole(number), TR(",\"text\":"), tr_view(&text), TR("}")), TR_NONE);
}

// put_status outputs {"task":N,"status":"waiting"} or, when all have judged,
// {"task":N,"status":"done","approved":N,"refused":N}.
static int32_t put_status(tr_turn *t, tr_bytes task, int64_t judged, int64_t approved) {
	if (judged < reviewers) return tr_output(t, tr_join(TR("{\"task\":"), task, TR(",\"status\":\"waiting\"}")));
	return tr_output(t, tr_join(TR("{\"task\":"), task, TR(",\"status\":\"done\",\"approved\":"), tr_whole(approved),
		TR(",\"refused\":"), tr_whole(judged - approved), TR("}")));
}

static int32_t collect(tr_turn *t, tr_bytes review) {
	tr_bytes task, verdict;
	int64_t judged, approved;
	if (!tr_json_member(review, TR("task"), &task) || !tr_json_member(review, TR("verdict"), &verdict))
		return tr_fail(t, TERRARIUM_ERR_INVALID_ARGUMENT, TR("a review has the members task and verdict"));
	tr_bytes judged_key = tr_join(TR("judged/"), task), approved_key = tr_join(TR("approved/"), task);
	TR_TRY(add(t, judged_key, 1, &judged));
	TR_TRY(add(t, approved_key, tr_equal(tr_json_text(verdict), TR("approved")), &approved));
	if (judged >= reviewers) {
		TR_TRY(tr_state_delete(t, judged_key));
		TR_TRY(tr_state_delete(t, approved_key));
	}
	return put_status(t, task, judged, approved);
}

static int32_t handle(tr_turn *t) {
	if (t->kind != TERRARIUM_KIND_MESSAGE) return TERRARIUM_OK;
	return tr_equal(tr_channel(t), TR("reviews")) ? collect(t, tr_payload(t)) : make_task(t, tr_payload(t));
}

TERRARIUM_CREATURE(.handle = handle, .init = init)
