// JSON for creatures in C: reads values without building a tree. Malformed JSON is
// not found. Strings are treated as bytes: an invalid UTF-8 sequence passes through.
#ifndef TERRARIUM_JSON_H
#define TERRARIUM_JSON_H

#include "base.h"

// How deeply arrays and objects may be nested.
#define TR_JSON_DEPTH 64

typedef struct {
	const uint8_t *at, *end;
} tr_json_cursor;

TR_UNUSED static void tr_json_space(tr_json_cursor *c) {
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r')) c->at++;
}

// tr_json_take moves past one byte if it is the next.
TR_UNUSED static int tr_json_take(tr_json_cursor *c, uint8_t byte) {
	if (c->at == c->end || *c->at != byte) return 0;
	c->at++;
	return 1;
}

TR_UNUSED static int tr_json_hex(tr_json_cursor *c, uint32_t *value) {
	*value = 0;
	for (int i = 0; i < 4; i++, c->at++) {
		if (c->at == c->end) return 0;
		uint32_t d = *c->at, letter = d | 0x20;
		if (d >= '0' && d <= '9') d -= '0';
		else if (letter >= 'a' && letter <= 'f') d = letter - 'a' + 10;
		else return 0;
		*value = *value << 4 | d;
	}
	return 1;
}

TR_UNUSED static int tr_json_skip_string(tr_json_cursor *c) {
	if (!tr_json_take(c, '"')) return 0;
	while (c->at < c->end) {
		uint8_t byte = *c->at++;
		uint32_t unit;
		if (byte == '"') return 1;
		if (byte < ' ') return 0;
		if (byte != '\\') continue;
		if (c->at == c->end) return 0;
		switch (*c->at++) {
		case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't': break;
		case 'u':
			if (!tr_json_hex(c, &unit)) return 0;
			break;
		default: return 0;
		}
	}
	return 0;
}

TR_UNUSED static int tr_json_digits(tr_json_cursor *c) {
	const uint8_t *start = c->at;
	while (c->at < c->end && *c->at >= '0' && *c->at <= '9') c->at++;
	return c->at > start;
}

TR_UNUSED static int tr_json_skip_number(tr_json_cursor *c) {
	tr_json_take(c, '-');
	if (!tr_json_take(c, '0') && !tr_json_digits(c)) return 0;
	if (tr_json_take(c, '.') && !tr_json_digits(c)) return 0;
	if (tr_json_take(c, 'e') || tr_json_take(c, 'E')) {
		if (!tr_json_take(c, '+')) tr_json_take(c, '-');
		if (!tr_json_digits(c)) return 0;
	}
	return 1;
}

TR_UNUSED static int tr_json_skip_word(tr_json_cursor *c, tr_bytes word) {
	if (!tr_starts(TR_BYTES(c->at, c->end - c->at), word)) return 0;
	c->at += word.len;
	return 1;
}

TR_UNUSED static int tr_json_skip(tr_json_cursor *c, int depth);

TR_UNUSED static int tr_json_skip_list(tr_json_cursor *c, int depth) {
	int object = *c->at++ == '{';
	uint8_t close = object ? '}' : ']';
	tr_json_space(c);
	if (tr_json_take(c, close)) return 1;
	for (;;) {
		tr_json_space(c);
		if (object) {
			if (!tr_json_skip_string(c)) return 0;
			tr_json_space(c);
			if (!tr_json_take(c, ':')) return 0;
			tr_json_space(c);
		}
		if (!tr_json_skip(c, depth + 1)) return 0;
		tr_json_space(c);
		if (tr_json_take(c, close)) return 1;
		if (!tr_json_take(c, ',')) return 0;
	}
}

// tr_json_skip moves past one value. It returns 0 if there is none.
TR_UNUSED static int tr_json_skip(tr_json_cursor *c, int depth) {
	if (c->at == c->end || depth > TR_JSON_DEPTH) return 0;
	switch (*c->at) {
	case '{': case '[': return tr_json_skip_list(c, depth);
	case '"': return tr_json_skip_string(c);
	case 't': return tr_json_skip_word(c, TR("true"));
	case 'f': return tr_json_skip_word(c, TR("false"));
	case 'n': return tr_json_skip_word(c, TR("null"));
	default: return tr_json_skip_number(c);
	}
}

// tr_json_valid returns whether b is one well-formed value.
TR_UNUSED static int tr_json_valid(tr_bytes b) {
	tr_json_cursor c = {b.ptr, b.ptr + b.len};
	tr_json_space(&c);
	if (!tr_json_skip(&c, 0)) return 0;
	tr_json_space(&c);
	return c.at == c.end;
}

// tr_json_open starts to iterate over an object ('{') or array ('[') that is known to
// be well-formed. It returns 0 if b is something else.
TR_UNUSED static int tr_json_open(tr_bytes b, uint8_t open, tr_json_cursor *c) {
	c->at = b.ptr;
	c->end = b.ptr + b.len;
	tr_json_space(c);
	return tr_json_take(c, open);
}

// tr_json_next moves to the next member of an object, or with name NULL to the next
// element of an array. It returns 0 after the last. Name and value are JSON,
// unchanged.
TR_UNUSED static int tr_json_next(tr_json_cursor *c, tr_bytes *name, tr_bytes *value) {
	tr_json_space(c);
	if (tr_json_take(c, ',')) tr_json_space(c);
	const uint8_t *start = c->at;
	if (name) {
		if (!tr_json_skip_string(c)) return 0;
		*name = TR_BYTES(start, c->at - start);
		tr_json_space(c);
		if (!tr_json_take(c, ':')) return 0;
		tr_json_space(c);
		start = c->at;
	}
	if (!tr_json_skip(c, 0)) return 0;
	*value = TR_BYTES(start, c->at - start);
	return 1;
}

TR_UNUSED static void tr_put_rune(tr_buffer *b, uint32_t r) {
	if (r < 0x80) {
		tr_put_byte(b, (uint8_t)r);
		return;
	}
	if (r < 0x800) {
		tr_put_byte(b, (uint8_t)(0xC0 | r >> 6));
	} else {
		if (r < 0x10000) {
			tr_put_byte(b, (uint8_t)(0xE0 | r >> 12));
		} else {
			tr_put_byte(b, (uint8_t)(0xF0 | r >> 18));
			tr_put_byte(b, (uint8_t)(0x80 | (r >> 12 & 0x3F)));
		}
		tr_put_byte(b, (uint8_t)(0x80 | (r >> 6 & 0x3F)));
	}
	tr_put_byte(b, (uint8_t)(0x80 | (r & 0x3F)));
}

// tr_json_escape reads \uXXXX, both halves of a pair; the backslash and the u
// have been read.
TR_UNUSED static uint32_t tr_json_escape(tr_json_cursor *c) {
	uint32_t unit, low;
	tr_json_hex(c, &unit);
	if (unit < 0xD800 || unit > 0xDFFF) return unit;
	tr_json_cursor second = *c;
	if (unit < 0xDC00 && tr_json_take(&second, '\\') && tr_json_take(&second, 'u') && tr_json_hex(&second, &low) &&
	    low >= 0xDC00 && low <= 0xDFFF) {
		*c = second;
		return 0x10000 + ((unit - 0xD800) << 10 | (low - 0xDC00));
	}
	return 0xFFFD; // half a pair
}

// tr_json_text returns the content of a string, without quotes and escapes, and every
// other value unchanged.
TR_UNUSED static tr_bytes tr_json_text(tr_bytes value) {
	if (value.len < 2 || value.ptr[0] != '"') return value;
	tr_json_cursor c = {value.ptr + 1, value.ptr + value.len - 1};
	const uint8_t *p = c.at;
	while (p < c.end && *p != '\\') p++;
	if (p == c.end) return TR_BYTES(c.at, c.end - c.at);
	tr_buffer text = TR_EMPTY;
	while (c.at < c.end) {
		uint8_t byte = *c.at++;
		if (byte == '\\') {
			switch (byte = *c.at++) {
			case 'b': byte = '\b'; break;
			case 'f': byte = '\f'; break;
			case 'n': byte = '\n'; break;
			case 'r': byte = '\r'; break;
			case 't': byte = '\t'; break;
			case 'u': tr_put_rune(&text, tr_json_escape(&c)); continue;
			}
		}
		tr_put_byte(&text, byte);
	}
	return tr_view(&text);
}

// tr_json_member finds a member of an object by name; the last if there are several.
// It returns 0 if object is not a well-formed object or has no member of that name.
TR_UNUSED static int tr_json_member(tr_bytes object, tr_bytes name, tr_bytes *value) {
	tr_json_cursor c;
	tr_bytes key, member;
	int found = 0;
	if (!tr_json_valid(object) || !tr_json_open(object, '{', &c)) return 0;
	while (tr_json_next(&c, &key, &member)) {
		if (!tr_equal(tr_json_text(key), name)) continue;
		*value = member;
		found = 1;
	}
	return found;
}

// tr_put_json puts text as a JSON string, with U+FFFD for invalid UTF-8.
TR_UNUSED static void tr_put_json(tr_buffer *b, tr_bytes text) {
	static const char hex[] = "0123456789abcdef";
	tr_put_byte(b, '"');
	while (text.len > 0) {
		uint8_t byte = text.ptr[0];
		int32_t n = tr_utf8(text);
		if (byte == '"' || byte == '\\') {
			tr_put_byte(b, '\\');
			tr_put_byte(b, byte);
		} else if (byte < ' ') {
			tr_put(b, TR("\\u00"));
			tr_put_byte(b, (uint8_t)hex[byte >> 4]);
			tr_put_byte(b, (uint8_t)hex[byte & 15]);
		} else {
			tr_put(b, n ? TR_BYTES(text.ptr, n) : TR_REPLACEMENT);
		}
		text = tr_from(text, n ? n : 1);
	}
	tr_put_byte(b, '"');
}

// tr_put_json_bytes puts bytes as the tools take them: as a JSON string, or as
// {"base64":"…"} if they are not UTF-8.
TR_UNUSED static void tr_put_json_bytes(tr_buffer *b, tr_bytes bytes) {
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	if (tr_is_utf8(bytes)) {
		tr_put_json(b, bytes);
		return;
	}
	tr_put(b, TR("{\"base64\":\""));
	for (int32_t i = 0; i < bytes.len; i += 3) {
		int32_t left = bytes.len - i;
		uint32_t group = (uint32_t)bytes.ptr[i] << 16;
		if (left > 1) group |= (uint32_t)bytes.ptr[i + 1] << 8;
		if (left > 2) group |= bytes.ptr[i + 2];
		tr_put_byte(b, (uint8_t)digits[group >> 18]);
		tr_put_byte(b, (uint8_t)digits[group >> 12 & 63]);
		tr_put_byte(b, left > 1 ? (uint8_t)digits[group >> 6 & 63] : '=');
		tr_put_byte(b, left > 2 ? (uint8_t)digits[group & 63] : '=');
	}
	tr_put(b, TR("\"}"));
}

#endif // TERRARIUM_JSON_H
