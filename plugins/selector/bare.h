// The contract without a turn that is handed in: functions for the creatures in this
// folder, which define creature_init and creature_handle themselves.
#ifndef BARE_H
#define BARE_H

#include "json.h"

// tr_read reads a complete source. It returns TERRARIUM_OK or an error.
TR_UNUSED static int32_t tr_read(int32_t source, tr_bytes *out) {
	int32_t size = terrarium_size(source);
	if (size < 0) return size;
	uint8_t *ptr = tr_alloc(size);
	if (!ptr) return TERRARIUM_ERR_LIMIT;
	int32_t n = terrarium_read(source, 0, ptr, size);
	if (n < 0) return n;
	*out = (tr_bytes){ptr, n};
	return TERRARIUM_OK;
}

// tr_config reads a member of the configuration; TERRARIUM_ERR_NOT_FOUND if it is
// missing.
TR_UNUSED static int32_t tr_config(tr_bytes name, tr_bytes *out) {
	int32_t size = terrarium_config(name.ptr, name.len, NULL, 0);
	return size < 0 ? size : tr_read(TERRARIUM_SOURCE_RESULT, out);
}

// tr_state reads a value of the state; TERRARIUM_ERR_NOT_FOUND if it is missing.
TR_UNUSED static int32_t tr_state(tr_bytes key, tr_bytes *out) {
	int32_t size = terrarium_state_get(key.ptr, key.len, NULL, 0);
	return size < 0 ? size : tr_read(TERRARIUM_SOURCE_RESULT, out);
}

// tr_state_natural reads a number that tr_state_set_natural wrote. A missing one
// reads as 0, and the result is TERRARIUM_ERR_NOT_FOUND.
TR_UNUSED static int32_t tr_state_natural(tr_bytes key, uint64_t *value) {
	uint8_t digits[24];
	*value = 0;
	int32_t n = terrarium_state_get(key.ptr, key.len, digits, sizeof digits);
	if (n > 0 && n <= (int32_t)sizeof digits) tr_natural((tr_bytes){digits, n}, value);
	return n < 0 ? n : TERRARIUM_OK;
}

// tr_state_set_natural writes a number to the state, in decimal.
TR_UNUSED static int32_t tr_state_set_natural(tr_bytes key, uint64_t value) {
	tr_buffer text = {0};
	tr_put_natural(&text, value);
	if (text.failed) return TERRARIUM_ERR_LIMIT;
	return terrarium_state_set(key.ptr, key.len, text.ptr, text.len);
}

// tr_config_natural reads an attribute that is a whole number of at most most, and
// leaves value unchanged if the attribute is missing. It returns 0, and logs what is
// wrong, if the attribute is anything else.
TR_UNUSED static int tr_config_natural(tr_bytes name, uint64_t most, uint64_t *value) {
	tr_bytes text;
	uint64_t number;
	int32_t status = tr_config(name, &text);
	if (status == TERRARIUM_ERR_NOT_FOUND) return 1;
	if (status >= 0 && tr_natural(text, &number) && number <= most) {
		*value = number;
		return 1;
	}
	tr_buffer line = {0};
	tr_put(&line, TR("config "));
	tr_put(&line, name);
	tr_put(&line, TR(": it is a whole number from 0 to "));
	tr_put_natural(&line, most);
	terrarium_log(TERRARIUM_LEVEL_ERROR, line.ptr, line.len);
	return 0;
}

// tr_awareness_revision reads the revision of the awareness document, which rises
// whenever the document changes. The document itself is read with tr_read.
TR_UNUSED static int32_t tr_awareness_revision(uint64_t *revision) {
	tr_bytes digits;
	int32_t status = tr_read(TERRARIUM_SOURCE_AWARENESS_REVISION, &digits);
	if (status < 0) return status;
	return tr_natural(digits, revision) ? TERRARIUM_OK : TERRARIUM_ERR_NOT_FOUND;
}

// tr_tool calls a group tool with JSON arguments, which may be empty, and reads its
// JSON result. If the call is refused, the source error says why.
TR_UNUSED static int32_t tr_tool(tr_bytes name, tr_bytes args, tr_bytes *out) {
	int32_t size = terrarium_tool(name.ptr, name.len, args.ptr, args.len);
	return size < 0 ? size : tr_read(TERRARIUM_SOURCE_RESULT, out);
}

// tr_log logs three texts as one line.
TR_UNUSED static void tr_log(int32_t level, tr_bytes a, tr_bytes b, tr_bytes c) {
	tr_buffer line = {0};
	tr_put(&line, a);
	tr_put(&line, b);
	tr_put(&line, c);
	terrarium_log(level, line.ptr, line.len);
}

// tr_config_bool reads an attribute that is true or false, and leaves value unchanged if the
// attribute is missing. It returns 0, and logs what is wrong, if it is anything else.
TR_UNUSED static int tr_config_bool(tr_bytes name, int *value) {
	tr_bytes text;
	int32_t status = tr_config(name, &text);
	if (status == TERRARIUM_ERR_NOT_FOUND) return 1;
	if (status >= 0) *value = tr_equal(text, TR("true"));
	if (status >= 0 && (*value || tr_equal(text, TR("false")))) return 1;
	tr_log(TERRARIUM_LEVEL_ERROR, TR("config "), name, TR(": it is true or false"));
	return 0;
}

// tr_forward sends a payload on with the headers of the message being handled.
TR_UNUSED static int32_t tr_forward(int32_t channel, tr_bytes payload) {
	tr_bytes headers;
	int32_t status = tr_read(TERRARIUM_SOURCE_HEADERS, &headers);
	if (status < 0) return status;
	return terrarium_send(channel, payload.ptr, payload.len, headers.ptr, headers.len);
}

// tr_config_knows returns whether every member of the configuration is among the
// names in known, which are separated by spaces, and logs the first that is not: a
// misspelt attribute must not go unnoticed.
TR_UNUSED static int tr_config_knows(tr_bytes known) {
	tr_bytes config, key, value;
	tr_json_cursor c;
	if (tr_read(TERRARIUM_SOURCE_CONFIG, &config) < 0 || !tr_json_valid(config) || !tr_json_open(config, '{', &c)) return 1;
	while (tr_json_next(&c, &key, &value)) {
		tr_bytes name = tr_json_text(key);
		int found = 0;
		for (int32_t i = 0; i < known.len && !found;) {
			int32_t end = i;
			while (end < known.len && known.ptr[end] != ' ') end++;
			found = tr_equal(name, (tr_bytes){known.ptr + i, end - i});
			i = end + 1;
		}
		if (found) continue;
		tr_buffer line = {0};
		tr_put(&line, TR("config: there is no attribute "));
		tr_put_json(&line, name);
		tr_put(&line, TR("; known are: "));
		tr_put(&line, known);
		terrarium_log(TERRARIUM_LEVEL_ERROR, line.ptr, line.len);
		return 0;
	}
	return 1;
}

#endif // BARE_H
