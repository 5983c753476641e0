// writer makes tasks of lines, and collects the verdicts on them.
#include "json.h"

TERRARIUM_CREATURE()

static uint64_t reviewers;

int32_t creature_init(void) {
	tr_bytes text;
	if (!tr_config_knows(TR("reviewers"))) return TERRARIUM_ERR_INVALID_ARGUMENT;
	tr_begin();
	int32_t status = tr_config(TR("reviewers"), &text);
	if (status < 0) return status;
	return tr_natural(text, &reviewers) ? TERRARIUM_OK : TERRARIUM_ERR_INVALID_ARGUMENT;
}

// add adds to a number in the state, which begins at 0.
static int32_t add(tr_bytes key, uint64_t n, uint64_t *sum) {
	tr_bytes have;
	tr_buffer text = {0};
	*sum = 0;
	int32_t status = tr_state(key, &have);
	if (status < 0 && status != TERRARIUM_ERR_NOT_FOUND) return status;
	if (status >= 0) tr_natural(have, sum);
	*sum += n;
	tr_put_natural(&text, *sum);
	return text.failed ? TERRARIUM_ERR_LIMIT : terrarium_state_set(key.ptr, key.len, text.ptr, text.len);
}

// make_task sends {"task":N,"text":"…"}.
static int32_t make_task(tr_bytes line) {
	uint64_t number;
	tr_buffer task = {0};
	int32_t status = add(TR("tasks"), 1, &number);
	if (status < 0) return status;
	tr_put(&task, TR("{\"task\":"));
	tr_put_natural(&task, number);
	tr_put(&task, TR(",\"text\":"));
	tr_put_json(&task, line);
	tr_put_byte(&task, '}');
	return task.failed ? TERRARIUM_ERR_LIMIT : terrarium_send(TERRARIUM_ALL_CHANNELS, task.ptr, task.len, NULL, 0);
}

static tr_bytes key_of(tr_bytes prefix, tr_bytes task) {
	tr_buffer key = {0};
	tr_put(&key, prefix);
	tr_put(&key, task);
	return tr_view(&key);
}

// put_status puts {"task":N,"status":"waiting"}, or when all have judged
// {"task":N,"status":"done","approved":N,"refused":N}.
static void put_status(tr_buffer *out, tr_bytes task, uint64_t judged, uint64_t approved) {
	tr_put(out, TR("{\"task\":"));
	tr_put(out, task);
	if (judged < reviewers) {
		tr_put(out, TR(",\"status\":\"waiting\"}"));
		return;
	}
	tr_put(out, TR(",\"status\":\"done\",\"approved\":"));
	tr_put_natural(out, approved);
	tr_put(out, TR(",\"refused\":"));
	tr_put_natural(out, judged - approved);
	tr_put_byte(out, '}');
}

static int32_t collect(tr_bytes review) {
	tr_bytes task, verdict;
	uint64_t judged, approved;
	tr_buffer out = {0};
	if (!tr_json_member(review, TR("task"), &task) || !tr_json_member(review, TR("verdict"), &verdict)) return TERRARIUM_ERR_INVALID_ARGUMENT;
	tr_bytes judged_key = key_of(TR("judged/"), task), approved_key = key_of(TR("approved/"), task);
	int32_t status = add(judged_key, 1, &judged);
	if (status >= 0) status = add(approved_key, tr_equal(tr_json_text(verdict), TR("approved")), &approved);
	if (status >= 0 && judged >= reviewers) status = terrarium_state_delete(judged_key.ptr, judged_key.len);
	if (status >= 0 && judged >= reviewers) status = terrarium_state_delete(approved_key.ptr, approved_key.len);
	if (status < 0) return status;
	put_status(&out, task, judged, approved);
	return out.failed ? TERRARIUM_ERR_LIMIT : terrarium_output(out.ptr, out.len);
}

int32_t creature_handle(int32_t kind, int32_t size) {
	(void)size;
	tr_bytes channel, payload;
	if (kind != TERRARIUM_KIND_MESSAGE) return TERRARIUM_OK;
	tr_begin();
	int32_t status = tr_read(TERRARIUM_SOURCE_CHANNEL, &channel);
	if (status >= 0) status = tr_read(TERRARIUM_SOURCE_PAYLOAD, &payload);
	if (status < 0) return status;
	return tr_equal(channel, TR("reviews")) ? collect(payload) : make_task(payload);
}
