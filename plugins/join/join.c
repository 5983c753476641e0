// join collects messages that belong together, and sends them on as one when all or enough
// senders have answered, or when the time is up.
#include "bare.h"
#include "groups.h"
#include "header.h"
#include "selector.h"

TERRARIUM_MARKER()

#define SENDERS_MAX 256
#define WITHIN_MAX 31536000000 // a year
#define GROUPS_MAX 256         // as many as a creature may have timers
#define GROUP_BYTES_MAX 1000000 // so that what is sent fits a message
#define BYTES_MAX 8388608      // of all groups, so that they fit the state

enum { KEY_NONE, KEY_HEADER, KEY_PART };

static int key_kind, as_json, late_send, once;
static tr_bytes key_header;
static selector key_part;
static tr_bytes from[SENDERS_MAX];
static uint32_t from_count;
static uint64_t need, within, max_groups, max_bytes;

static int32_t refuse(tr_bytes attribute, tr_bytes why) {
	tr_log(TERRARIUM_LEVEL_ERROR, tr_join(TR("config "), attribute), TR(": "), why);
	return TERRARIUM_ERR_INVALID_ARGUMENT;
}

static int listed(tr_bytes sender) {
	for (uint32_t i = 0; i < from_count; i++)
		if (tr_equal(from[i], sender)) return 1;
	return 0;
}

// read_from reads the senders that must answer.
static int32_t read_from(void) {
	tr_bytes list, value;
	tr_json_cursor c;
	int32_t status = tr_config(TR("from"), &list);
	from_count = 0;
	if (status == TERRARIUM_ERR_NOT_FOUND) return TERRARIUM_OK;
	if (status < 0) return status;
	if (!tr_json_valid(list) || !tr_json_open(list, '[', &c)) return refuse(TR("from"), TR("it must be a list of names of creatures, as in [\"a\", \"b\"]"));
	while (tr_json_next(&c, NULL, &value)) {
		tr_bytes name = tr_json_text(value);
		if (value.ptr[0] != '"' || name.len == 0) return refuse(TR("from"), TR("every element must be a string, the name of a creature"));
		if (listed(name)) return refuse(TR("from"), TR("it must contain each name only once"));
		if (from_count == SENDERS_MAX) return refuse(TR("from"), TR("more than 256 names"));
		from[from_count++] = name;
	}
	return from_count > 0 ? TERRARIUM_OK : refuse(TR("from"), TR("it is empty; name at least one creature"));
}

// read_need reads how many messages a group has.
static int32_t read_need(void) {
	need = from_count;
	if (!tr_config_natural(TR("count"), SENDERS_MAX, &need)) return TERRARIUM_ERR_INVALID_ARGUMENT;
	if (need == 0) return refuse(TR("count"), TR("give the number of messages of a group, from 1 to 256, or list their senders in from"));
	if (from_count > 0 && need > from_count) return refuse(TR("count"), TR("it is greater than the number of senders in from"));
	return TERRARIUM_OK;
}

static int32_t read_key(void) {
	tr_bytes key = TR("");
	tr_config(TR("key"), &key);
	key_kind = key.len > 0 ? KEY_PART : KEY_NONE;
	if (tr_starts(key, TR("header:"))) {
		key_kind = KEY_HEADER;
		key_header = tr_from(key, 7);
		if (key_header.len == 0) return refuse(TR("key"), TR("name the header, as in \"header:task\""));
	} else if (!selector_parse(TR("key"), key, &key_part)) {
		return TERRARIUM_ERR_INVALID_ARGUMENT;
	}
	once = key_kind != KEY_NONE;
	return tr_config_bool(TR("once"), &once) ? TERRARIUM_OK : TERRARIUM_ERR_INVALID_ARGUMENT;
}

// read_choice reads an attribute with two values. yes is 1 for the first, the default.
static int32_t read_choice(tr_bytes name, tr_bytes first, tr_bytes second, int *yes) {
	tr_bytes text = first;
	tr_config(name, &text);
	*yes = tr_equal(text, first);
	if (*yes || tr_equal(text, second)) return TERRARIUM_OK;
	return refuse(name, tr_join(TR("it must be \""), first, TR("\" or \""), second, TR("\"")));
}

static int32_t read_bounds(void) {
	within = 0;
	max_groups = 32;
	max_bytes = 262144;
	if (!tr_config_natural(TR("within"), WITHIN_MAX, &within) || !tr_config_natural(TR("max_groups"), GROUPS_MAX, &max_groups) ||
	    !tr_config_natural(TR("max_bytes"), GROUP_BYTES_MAX, &max_bytes))
		return TERRARIUM_ERR_INVALID_ARGUMENT;
	if (max_groups == 0) return refuse(TR("max_groups"), TR("it must be at least 1"));
	if (max_bytes == 0) return refuse(TR("max_bytes"), TR("it must be at least 1"));
	if (max_groups * max_bytes > BYTES_MAX)
		return refuse(TR("max_bytes"), TR("max_groups times max_bytes is above 8388608; lower one of them"));
	if (within > 0 && terrarium_feature(TERRARIUM_FEATURE_TIMERS) <= 0) return refuse(TR("within"), TR("this host has no timers"));
	return TERRARIUM_OK;
}

int32_t creature_init(void) {
	int lines = 1;
	if (!tr_config_knows(TR("key count from within late as once max_groups max_bytes"))) return TERRARIUM_ERR_INVALID_ARGUMENT;
	tr_begin();
	int32_t status = read_from();
	if (status >= 0) status = read_need();
	if (status >= 0) status = read_key();
	if (status >= 0) status = read_choice(TR("late"), TR("send"), TR("drop"), &late_send);
	if (status >= 0) status = read_choice(TR("as"), TR("lines"), TR("json"), &lines);
	if (status >= 0) status = read_bounds();
	as_json = !lines;
	tr_keep();
	return status;
}

// put_message puts one message as it is sent on.
static void put_message(tr_buffer *b, tr_bytes sender, tr_bytes payload) {
	if (!as_json) {
		tr_put(b, payload);
		return;
	}
	tr_put(b, TR("{\"sender\":"));
	tr_put_json(b, sender);
	tr_put(b, TR(",\"payload\":"));
	tr_put_json_bytes(b, payload);
	tr_put_byte(b, '}');
}

// log_group logs a line about a group.
static void log_group(int32_t level, tr_bytes key, tr_bytes what, tr_bytes more) {
	tr_buffer line = {0};
	tr_put(&line, TR("the group"));
	if (key.len > 0) {
		tr_put_byte(&line, ' ');
		tr_put_json(&line, key);
	}
	tr_put(&line, what);
	tr_put(&line, more);
	terrarium_log(level, line.ptr, line.len);
}

// send_group sends the messages of a group as one. A message that is too large for the limit of the
// host is left out, because it would be too large at every attempt.
static int32_t send_group(const group *g) {
	tr_buffer all = {0}, headers = {0};
	tr_bytes senders = g->senders, payload;
	if (as_json) tr_put_byte(&all, '[');
	for (uint32_t i = 0; i < g->count; i++) {
		int32_t status = tr_state(part_name(g, i), &payload);
		if (status < 0) return status;
		if (i > 0) tr_put_byte(&all, as_json ? ',' : '\n');
		put_message(&all, tr_until(&senders, 0), payload);
	}
	if (as_json) tr_put_byte(&all, ']');
	if (key_kind == KEY_HEADER && !reserved(key_header)) {
		tr_put(&headers, key_header);
		tr_put_byte(&headers, 0);
		tr_put(&headers, g->key);
		tr_put_byte(&headers, 0);
	}
	if (all.failed || headers.failed) return TERRARIUM_ERR_LIMIT;
	int32_t status = terrarium_send(TERRARIUM_ALL_CHANNELS, all.ptr, all.len, headers.ptr, headers.len);
	if (status != TERRARIUM_ERR_TOO_LARGE) return status;
	log_group(TERRARIUM_LEVEL_ERROR, g->key, TR(" is too large for one message and is dropped; lower max_bytes"), TR(""));
	return TERRARIUM_OK;
}

// end_group sends the group on, or drops it, and removes it.
static int32_t end_group(group *g, int send) {
	int32_t status = send ? send_group(g) : TERRARIUM_OK;
	if (status >= 0) status = remove_group(g, once);
	if (status >= 0 && within > 0) status = terrarium_timer_cancel(g->id.ptr, g->id.len);
	return status < 0 ? status : TERRARIUM_OK;
}

// end_early ends a group that is not complete.
static int32_t end_early(group *g, tr_bytes why) {
	tr_buffer more = {0};
	tr_put_natural(&more, g->count);
	tr_put(&more, TR(" of "));
	tr_put_natural(&more, need);
	tr_put(&more, TR(" messages"));
	int first = 1;
	for (uint32_t i = 0; i < from_count; i++) {
		if (sender_index(g, from[i]) >= 0) continue;
		tr_put(&more, first ? TR("; missing: ") : TR(", "));
		tr_put(&more, from[i]);
		first = 0;
	}
	tr_bytes what = late_send ? TR(" is sent with ") : TR(" is dropped with ");
	log_group(late_send ? TERRARIUM_LEVEL_INFO : TERRARIUM_LEVEL_WARN, g->key, tr_join(why, what), tr_view(&more));
	return end_group(g, late_send);
}

// find_key finds the key of the message: 1, 0 if it has none, or an error.
static int32_t find_key(tr_bytes payload, tr_bytes *key) {
	*key = TR("");
	if (key_kind == KEY_NONE) return 1;
	int32_t found = key_kind == KEY_HEADER ? tr_header(key_header, key) : selector_find(&key_part, payload, key);
	return found > 0 ? key->len > 0 : found;
}

static int32_t reject(int32_t code, tr_bytes why) {
	terrarium_log(TERRARIUM_LEVEL_ERROR, why.ptr, why.len);
	return code;
}

// add puts a message into the group, in place of an earlier one of the same sender. A message
// from outside has no sender, and replaces none.
static int32_t add(group *g, tr_bytes sender, tr_bytes payload) {
	tr_buffer encoded = {0};
	tr_bytes old;
	int32_t index = sender.len > 0 ? sender_index(g, sender) : -1;
	put_message(&encoded, sender, payload);
	if (encoded.failed) return TERRARIUM_ERR_LIMIT;
	uint64_t bytes = g->bytes + (uint64_t)encoded.len + 1;
	if (index >= 0) {
		int32_t status = tr_state(part_name(g, (uint32_t)index), &old);
		if (status < 0) return status;
		encoded.len = 0;
		put_message(&encoded, sender, old);
		uint64_t gone = (uint64_t)encoded.len + 1;
		bytes = bytes > gone ? bytes - gone : 0; // as may have changed
	}
	if (bytes > max_bytes)
		return reject(TERRARIUM_ERR_TOO_LARGE, TR("with this message the group would be larger than max_bytes; raise max_bytes, or send less"));
	g->bytes = bytes;
	if (index < 0) {
		index = (int32_t)g->count++;
		tr_buffer senders = {0};
		tr_put(&senders, g->senders);
		tr_put(&senders, sender);
		tr_put_byte(&senders, 0);
		if (senders.failed) return TERRARIUM_ERR_LIMIT;
		g->senders = tr_view(&senders);
	}
	tr_bytes name = part_name(g, (uint32_t)index);
	return terrarium_state_set(name.ptr, name.len, payload.ptr, payload.len);
}

// begin opens a group. If there are too many, the oldest ends.
static int32_t begin(group *g) {
	uint64_t open;
	int32_t status = tr_state_natural(TR("open"), &open);
	if (status < 0 && status != TERRARIUM_ERR_NOT_FOUND) return status;
	if (open >= max_groups) {
		group oldest;
		status = oldest_group(&oldest);
		if (status >= 0) status = end_early(&oldest, TR(" is the oldest of more than max_groups groups, and"));
		if (status < 0) return status;
	}
	status = open_group(g);
	if (status < 0 || within == 0) return status;
	return terrarium_timer_set(g->id.ptr, g->id.len, (int64_t)within, 0, NULL, 0);
}

static int32_t collect(void) {
	tr_bytes payload, sender, key;
	group g;
	int32_t status = tr_read(TERRARIUM_SOURCE_SENDER, &sender);
	if (status < 0) return status;
	if (from_count > 0 && !listed(sender)) {
		tr_buffer name = {0};
		tr_put_json(&name, sender);
		tr_log(TERRARIUM_LEVEL_WARN, TR("a message of "), tr_view(&name), TR(" is ignored: from does not list this sender"));
		return TERRARIUM_OK;
	}
	status = tr_read(TERRARIUM_SOURCE_PAYLOAD, &payload);
	if (status >= 0) status = find_key(payload, &key);
	if (status < 0) return status;
	if (status == 0) return reject(TERRARIUM_ERR_INVALID_ARGUMENT, TR("the message lacks the key, or it is empty; it belongs to no group"));
	if (key.len > KEY_MAX) return reject(TERRARIUM_ERR_TOO_LARGE, TR("the key of the message is longer than 128 bytes"));
	status = find_group(key, &g);
	if (status < 0) return status;
	if (g.past && once) {
		log_group(TERRARIUM_LEVEL_WARN, key, TR(" has already ended; a message for it is ignored"), TR(""));
		return TERRARIUM_OK;
	}
	if (g.id.len == 0) status = begin(&g);
	if (status >= 0) status = add(&g, sender, payload);
	if (status < 0) return status;
	return g.count < need ? keep_group(&g) : end_group(&g, 1);
}

// time_up ends the group whose timer fired, unless it has ended.
static int32_t time_up(void) {
	tr_bytes detail, id;
	group g;
	int32_t status = tr_read(TERRARIUM_SOURCE_DETAIL, &detail);
	if (status < 0) return status;
	if (!tr_json_member(detail, TR("name"), &id)) return TERRARIUM_OK;
	status = group_of(tr_json_text(id), &g);
	if (status == TERRARIUM_ERR_NOT_FOUND) return TERRARIUM_OK;
	return status < 0 ? status : end_early(&g, TR(" has waited long enough, and"));
}

int32_t creature_handle(int32_t kind, int32_t size) {
	(void)size;
	tr_begin();
	switch (kind) {
	case TERRARIUM_KIND_MESSAGE:
	case TERRARIUM_KIND_OUTPUT: return collect();
	case TERRARIUM_KIND_TIMER: return time_up();
	}
	return TERRARIUM_OK;
}
