// reviewer judges tasks by how many words they have.
#include "json.h"

TERRARIUM_CREATURE()

static uint64_t strictness;

int32_t creature_init(void) {
	tr_bytes text;
	if (!tr_config_knows(TR("strictness"))) return TERRARIUM_ERR_INVALID_ARGUMENT;
	tr_begin();
	strictness = 3;
	int32_t status = tr_config(TR("strictness"), &text);
	if (status < 0) return status == TERRARIUM_ERR_NOT_FOUND ? TERRARIUM_OK : status;
	return tr_natural(text, &strictness) ? TERRARIUM_OK : TERRARIUM_ERR_INVALID_ARGUMENT;
}

static uint64_t words(tr_bytes text) {
	uint64_t n = 0;
	int inside = 0;
	for (int32_t i = 0; i < text.len; i++) {
		int blank = text.ptr[i] == ' ' || text.ptr[i] == '\t';
		n += inside == 0 && !blank;
		inside = !blank;
	}
	return n;
}

// creature_handle answers {"task":N,"text":"…"} with {"task":N,"verdict":"…","words":N,"text":"…"}.
int32_t creature_handle(int32_t kind, int32_t size) {
	(void)size;
	tr_bytes task, number, text;
	tr_buffer review = {0};
	if (kind != TERRARIUM_KIND_MESSAGE) return TERRARIUM_OK;
	tr_begin();
	int32_t status = tr_read(TERRARIUM_SOURCE_PAYLOAD, &task);
	if (status < 0) return status;
	if (!tr_json_member(task, TR("task"), &number) || !tr_json_member(task, TR("text"), &text)) return TERRARIUM_ERR_INVALID_ARGUMENT;
	uint64_t have = words(tr_json_text(text));
	tr_put(&review, TR("{\"task\":"));
	tr_put(&review, number);
	tr_put(&review, have >= strictness ? TR(",\"verdict\":\"approved\"") : TR(",\"verdict\":\"refused\""));
	tr_put(&review, TR(",\"words\":"));
	tr_put_natural(&review, have);
	tr_put(&review, TR(",\"text\":"));
	tr_put(&review, text);
	tr_put_byte(&review, '}');
	return review.failed ? TERRARIUM_ERR_LIMIT : terrarium_send(TERRARIUM_ALL_CHANNELS, review.ptr, review.len, NULL, 0);
}
