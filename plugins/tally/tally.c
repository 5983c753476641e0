// tally counts messages by a key, in its state, and reports on request.
#include "bare.h"
#include "selector.h"

TERRARIUM_MARKER()

#define KEY_MAX 128          // bytes of a key; longer ones are cut
#define MAX_KEYS_MOST 100000 // the largest value of max_keys
#define COUNT "count/"       // the prefix of the counts in the state
#define NONE TR("(none)")
#define OTHER TR("(other)")

static selector by;
static tr_bytes report_on;
static uint64_t every, max_keys;

int32_t creature_init(void) {
	tr_bytes key = TR("");
	report_on = TR("report");
	every = 0;
	max_keys = 1000;
	if (!tr_config_knows(TR("key report_on every max_keys"))) return TERRARIUM_ERR_INVALID_ARGUMENT;
	tr_begin();
	tr_config(TR("key"), &key);
	tr_config(TR("report_on"), &report_on);
	if (!selector_parse(TR("key"), key, &by) || !tr_config_natural(TR("every"), INT64_MAX, &every) ||
	    !tr_config_natural(TR("max_keys"), MAX_KEYS_MOST, &max_keys))
		return TERRARIUM_ERR_INVALID_ARGUMENT;
	tr_keep();
	return TERRARIUM_OK;
}

// put_key puts a key in the form that the state accepts: UTF-8 without NUL, at most
// KEY_MAX bytes.
static void put_key(tr_buffer *b, tr_bytes key) {
	int32_t room = KEY_MAX;
	while (key.len > 0) {
		int32_t n = key.ptr[0] ? tr_utf8(key) : 0;
		tr_bytes rune = n ? (tr_bytes){key.ptr, n} : TR_REPLACEMENT;
		if (rune.len > room) return;
		tr_put(b, rune);
		room -= rune.len;
		key = tr_from(key, n ? n : 1);
	}
}

// choose_key puts the state key under which a payload counts, and its count so
// far. A new key beyond max_keys becomes OTHER.
static int32_t choose_key(tr_bytes payload, tr_buffer *name, uint64_t *count) {
	tr_bytes part;
	uint64_t keys;
	int has_key = selector_find(&by, payload, &part) && part.len > 0;
	tr_put(name, TR(COUNT));
	if (!has_key) tr_put(name, NONE);
	else put_key(name, part);
	if (name->failed) return TERRARIUM_ERR_LIMIT;
	int32_t status = tr_state_natural(tr_view(name), count);
	if (status != TERRARIUM_ERR_NOT_FOUND || !has_key) return status == TERRARIUM_ERR_NOT_FOUND ? TERRARIUM_OK : status;
	tr_state_natural(TR("keys"), &keys);
	if (keys < max_keys) return tr_state_set_natural(TR("keys"), keys + 1);
	name->len = sizeof(COUNT) - 1;
	tr_put(name, OTHER);
	status = tr_state_natural(tr_view(name), count);
	return status == TERRARIUM_ERR_NOT_FOUND ? TERRARIUM_OK : status;
}

// make_report puts {"counts":{…},"total":N}, keys in byte order.
static int32_t make_report(tr_buffer *report) {
	tr_bytes list;
	uint64_t count, total;
	int32_t status = terrarium_state_list(COUNT, sizeof(COUNT) - 1, NULL, 0);
	if (status >= 0) status = tr_read(TERRARIUM_SOURCE_RESULT, &list);
	if (status < 0) return status;
	tr_put(report, TR("{\"counts\":{"));
	for (int32_t i = 0; i < list.len;) {
		int32_t end = i;
		while (end < list.len && list.ptr[end]) end++;
		tr_bytes key = {list.ptr + i, end - i};
		tr_state_natural(key, &count);
		if (i > 0) tr_put_byte(report, ',');
		tr_put_json(report, tr_from(key, sizeof(COUNT) - 1));
		tr_put_byte(report, ':');
		tr_put_natural(report, count);
		i = end + 1;
	}
	tr_state_natural(TR("total"), &total);
	tr_put(report, TR("},\"total\":"));
	tr_put_natural(report, total);
	tr_put_byte(report, '}');
	return report->failed ? TERRARIUM_ERR_LIMIT : TERRARIUM_OK;
}

static int32_t send_report(void) {
	tr_buffer report = {0};
	int32_t status = make_report(&report);
	if (status < 0) return status;
	status = terrarium_send(TERRARIUM_ALL_CHANNELS, report.ptr, report.len, NULL, 0);
	if (status == TERRARIUM_ERR_TOO_LARGE)
		tr_log(TERRARIUM_LEVEL_ERROR, TR("the report is too large for one message; lower max_keys"), TR(""), TR(""));
	return status;
}

static int32_t answer_request(void) {
	tr_buffer report = {0};
	int32_t status = make_report(&report);
	return status < 0 ? status : terrarium_reply(report.ptr, report.len);
}

// asks returns whether the message requests the report: 1, 0 or an error.
static int32_t asks(void) {
	tr_bytes channel, detail, direct;
	int32_t status = tr_read(TERRARIUM_SOURCE_CHANNEL, &channel);
	if (status < 0) return status;
	if (tr_equal(channel, report_on)) return 1;
	status = tr_read(TERRARIUM_SOURCE_DETAIL, &detail);
	if (status < 0) return status;
	return tr_json_member(detail, TR("direct"), &direct) && tr_equal(direct, TR("true"));
}

static int32_t count_message(void) {
	tr_bytes payload;
	tr_buffer name = {0};
	uint64_t count, total;
	int32_t status = tr_read(TERRARIUM_SOURCE_PAYLOAD, &payload);
	if (status >= 0) status = choose_key(payload, &name, &count);
	if (status >= 0) status = tr_state_set_natural(tr_view(&name), count + 1);
	if (status < 0) return status;
	tr_state_natural(TR("total"), &total);
	status = tr_state_set_natural(TR("total"), ++total);
	return status >= 0 && every && total % every == 0 ? send_report() : status;
}

int32_t creature_handle(int32_t kind, int32_t size) {
	(void)size;
	int32_t report;
	tr_begin();
	switch (kind) {
	case TERRARIUM_KIND_MESSAGE:
		report = asks();
		if (report < 0) return report;
		return report ? send_report() : count_message();
	case TERRARIUM_KIND_OUTPUT: return count_message();
	case TERRARIUM_KIND_REQUEST: return answer_request();
	}
	return TERRARIUM_OK;
}
