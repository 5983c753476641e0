// A selector names the part of a message to look at: all of it, one of its words, or
// one member of it. The creatures that read parts of messages share it.
#ifndef SELECTOR_H
#define SELECTOR_H

#include "bare.h"

enum selector_kind { SELECT_LINE, SELECT_FIELD, SELECT_JSON };

typedef struct {
	enum selector_kind kind;
	uint64_t field; // counted from 1
	tr_bytes name;
} selector;

// selector_parse reads "" or "line", "field:N" or "json:NAME". It returns 0, and logs
// what is wrong with the attribute, if text is anything else.
TR_UNUSED static int selector_parse(tr_bytes attribute, tr_bytes text, selector *s) {
	*s = (selector){SELECT_LINE, 0, {0}};
	if (text.len == 0 || tr_equal(text, TR("line"))) return 1;
	if (tr_starts(text, TR("field:"))) {
		s->kind = SELECT_FIELD;
		if (tr_natural(tr_from(text, 6), &s->field) && s->field > 0) return 1;
	} else if (tr_starts(text, TR("json:"))) {
		s->kind = SELECT_JSON;
		s->name = tr_from(text, 5);
		if (s->name.len > 0) return 1;
	}
	tr_buffer line = {0};
	tr_put(&line, TR("config "));
	tr_put(&line, attribute);
	tr_put(&line, TR(": "));
	tr_put_json(&line, text);
	tr_put(&line, TR(" names no part of a message; use \"line\", \"field:N\" with N from 1 on, or \"json:NAME\""));
	terrarium_log(TERRARIUM_LEVEL_ERROR, line.ptr, line.len);
	return 0;
}

TR_UNUSED static int selector_space(uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

TR_UNUSED static int selector_field(tr_bytes payload, uint64_t field, tr_bytes *part) {
	for (int32_t i = 0; i < payload.len;) {
		while (i < payload.len && selector_space(payload.ptr[i])) i++;
		int32_t start = i;
		while (i < payload.len && !selector_space(payload.ptr[i])) i++;
		if (i > start && --field == 0) {
			*part = (tr_bytes){payload.ptr + start, i - start};
			return 1;
		}
	}
	return 0;
}

// selector_find returns whether the payload has the part, and stores it. A JSON
// string is stored without quotes, null counts as missing, and every other value is
// stored as JSON.
TR_UNUSED static int selector_find(const selector *s, tr_bytes payload, tr_bytes *part) {
	*part = payload;
	switch (s->kind) {
	case SELECT_LINE: return 1;
	case SELECT_FIELD: return selector_field(payload, s->field, part);
	case SELECT_JSON:
		if (!tr_json_member(payload, s->name, part) || tr_equal(*part, TR("null"))) return 0;
		*part = tr_json_text(*part);
		return 1;
	}
	return 0;
}

#endif // SELECTOR_H
