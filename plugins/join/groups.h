// The groups of join in its state:
//
//	group/KEY    BYTES, COUNT and ID of an open group, then its senders; or past
//	open/ID      the key of an open group; ids are in the order in which groups began
//	part/ID/N    the payload of the Nth message of a group
//	past/N       the keys of the last groups that have ended, in a ring
//	next, open, ended  the next id, the number of open groups, the position in the ring
#ifndef GROUPS_H
#define GROUPS_H

#include "bare.h"

#define KEY_MAX 128   // bytes of a key; as a state key it has up to three times as many
#define PAST_MAX 1000 // groups that are remembered after their end
#define ID_DIGITS 16

typedef struct {
	tr_bytes key, id; // id is empty if the group is not open
	uint64_t bytes;   // of its messages as they are sent on
	uint32_t count;
	tr_bytes senders; // of its messages, NUL behind each
	int past;         // it has ended before
} group;

// put_state_key puts a key in the form that the state accepts: UTF-8 without NUL. Other bytes,
// and %, become %XX, so that different keys stay different.
static void put_state_key(tr_buffer *b, tr_bytes key) {
	static const char hex[] = "0123456789abcdef";
	for (int32_t n; key.len > 0; key = tr_from(key, n ? n : 1)) {
		uint8_t byte = key.ptr[0];
		n = byte && byte != '%' ? tr_utf8(key) : 0;
		if (n) {
			tr_put(b, (tr_bytes){key.ptr, n});
			continue;
		}
		tr_put_byte(b, '%');
		tr_put_byte(b, (uint8_t)hex[byte >> 4]);
		tr_put_byte(b, (uint8_t)hex[byte & 15]);
	}
}

static tr_bytes group_name(tr_bytes key) {
	tr_buffer name = {0};
	tr_put(&name, TR("group/"));
	put_state_key(&name, key);
	return tr_view(&name);
}

static tr_bytes numbered(tr_bytes prefix, uint64_t n) {
	tr_buffer name = {0};
	tr_put(&name, prefix);
	tr_put_natural(&name, n);
	return tr_view(&name);
}

static tr_bytes part_name(const group *g, uint32_t n) { return numbered(tr_join(TR("part/"), g->id, TR("/")), n); }

// reserved returns whether a header name is the host's.
static int reserved(tr_bytes name) {
	tr_bytes prefix = TR("terrarium-");
	if (name.len < prefix.len) return 0;
	for (int32_t i = 0; i < prefix.len; i++) {
		uint8_t byte = name.ptr[i];
		if ((byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte) != prefix.ptr[i]) return 0;
	}
	return 1;
}

// count_natural reads a number of the state, 0 if it is missing.
static int32_t count_natural(tr_bytes name, uint64_t *value) {
	int32_t status = tr_state_natural(name, value);
	return status == TERRARIUM_ERR_NOT_FOUND ? TERRARIUM_OK : status;
}

// find_group reads the group with the key. Without one, all of g but the key is 0.
static int32_t find_group(tr_bytes key, group *g) {
	tr_bytes name = group_name(key), record;
	uint64_t count;
	*g = (group){.key = key};
	int32_t status = tr_state(name, &record);
	if (status == TERRARIUM_ERR_NOT_FOUND) return TERRARIUM_OK;
	if (status < 0) return status;
	g->past = tr_equal(record, TR("past"));
	if (g->past) return TERRARIUM_OK;
	if (!tr_natural(tr_until(&record, ' '), &g->bytes) || !tr_natural(tr_until(&record, ' '), &count)) {
		terrarium_log(TERRARIUM_LEVEL_ERROR, name.ptr, name.len);
		return TERRARIUM_ERR_INTERNAL;
	}
	g->count = (uint32_t)count;
	g->id = tr_until(&record, 0);
	g->senders = record;
	return TERRARIUM_OK;
}

// group_of reads the open group with the id, or returns TERRARIUM_ERR_NOT_FOUND.
static int32_t group_of(tr_bytes id, group *g) {
	tr_bytes key;
	int32_t status = tr_state(tr_join(TR("open/"), id), &key);
	return status < 0 ? status : find_group(key, g);
}

// oldest_group reads the open group that began first.
static int32_t oldest_group(group *g) {
	tr_bytes list;
	int32_t status = terrarium_state_list("open/", 5, NULL, 0);
	if (status >= 0) status = tr_read(TERRARIUM_SOURCE_RESULT, &list);
	if (status < 0) return status;
	tr_bytes first = tr_until(&list, 0);
	return first.len > 5 ? group_of(tr_from(first, 5), g) : TERRARIUM_ERR_NOT_FOUND;
}

// sender_index returns which message of the group is of the sender, or -1.
static int32_t sender_index(const group *g, tr_bytes sender) {
	tr_bytes senders = g->senders;
	for (uint32_t i = 0; i < g->count; i++)
		if (tr_equal(tr_until(&senders, 0), sender)) return (int32_t)i;
	return -1;
}

// keep_group writes the record of an open group.
static int32_t keep_group(const group *g) {
	tr_bytes name = group_name(g->key);
	tr_buffer record = {0};
	tr_put_natural(&record, g->bytes);
	tr_put_byte(&record, ' ');
	tr_put_natural(&record, g->count);
	tr_put_byte(&record, ' ');
	tr_put(&record, g->id);
	tr_put_byte(&record, 0);
	tr_put(&record, g->senders);
	if (record.failed) return TERRARIUM_ERR_LIMIT;
	return terrarium_state_set(name.ptr, name.len, record.ptr, record.len);
}

// open_group gives a group an id.
static int32_t open_group(group *g) {
	uint64_t next, open;
	tr_buffer id = {0};
	int32_t status = count_natural(TR("next"), &next);
	if (status >= 0) status = count_natural(TR("open"), &open);
	if (status >= 0) status = tr_state_set_natural(TR("next"), next + 1);
	if (status >= 0) status = tr_state_set_natural(TR("open"), open + 1);
	if (status < 0) return status;
	tr_bytes digits = numbered(TR(""), next);
	for (int32_t n = digits.len; n < ID_DIGITS; n++) tr_put_byte(&id, '0');
	tr_put(&id, digits);
	if (id.failed) return TERRARIUM_ERR_LIMIT;
	g->id = tr_view(&id);
	tr_bytes name = tr_join(TR("open/"), g->id);
	return terrarium_state_set(name.ptr, name.len, g->key.ptr, g->key.len);
}

// remember notes that the group has ended, and forgets the one that ended PAST_MAX groups
// earlier.
static int32_t remember(const group *g) {
	uint64_t ended;
	tr_bytes old;
	group other;
	int32_t status = count_natural(TR("ended"), &ended);
	if (status < 0) return status;
	tr_bytes place = numbered(TR("past/"), ended % PAST_MAX);
	status = tr_state(place, &old);
	if (status >= 0) status = find_group(old, &other);
	if (status < 0 && status != TERRARIUM_ERR_NOT_FOUND) return status;
	if (status >= 0 && other.past) { // it may have begun again while once was false
		tr_bytes name = group_name(old);
		status = terrarium_state_delete(name.ptr, name.len);
		if (status < 0) return status;
	}
	tr_bytes name = group_name(g->key);
	status = terrarium_state_set(place.ptr, place.len, g->key.ptr, g->key.len);
	if (status >= 0) status = terrarium_state_set(name.ptr, name.len, "past", 4);
	if (status >= 0) status = tr_state_set_natural(TR("ended"), (ended + 1) % PAST_MAX);
	return status;
}

// remove_group removes a group from the state. once remembers its key.
static int32_t remove_group(const group *g, int once) {
	uint64_t open;
	tr_bytes name = tr_join(TR("open/"), g->id);
	int32_t status = terrarium_state_delete(name.ptr, name.len);
	for (uint32_t i = 0; i < g->count && status >= 0; i++) {
		name = part_name(g, i);
		status = terrarium_state_delete(name.ptr, name.len);
	}
	if (status >= 0) status = count_natural(TR("open"), &open);
	if (status >= 0) status = tr_state_set_natural(TR("open"), open > 0 ? open - 1 : 0);
	if (status < 0) return status;
	if (once) return remember(g);
	name = group_name(g->key);
	return terrarium_state_delete(name.ptr, name.len);
}

#endif // GROUPS_H
