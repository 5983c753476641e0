// The functions of the contract, as fake.h provides them: with the codes, the limits and
// the order of checks of the host, and texts of its own.
#ifndef TERRARIUM_FAKE_CALLS_H
#define TERRARIUM_FAKE_CALLS_H

// FAKE_CALL notes which function of the contract has been called.
#define FAKE_CALL() (fake_now->calling = __func__ + sizeof "terrarium_" - 1)

static int32_t fake_refuse(int32_t code, const char *text) {
	tr_bytes failure = tr_join(tr_chars(fake_now->calling), TR(": "), fake_text(text), TR(" ("), tr_code_name(code), TR(")"));
	fake_clear(&fake_now->error);
	fake_add(&fake_now->error, failure, fake_text(text));
	return code;
}

// fake_effect checks what all functions with an effect have in common.
static int32_t fake_effect(void) {
	return fake_now->read_only ? fake_refuse(TERRARIUM_ERR_DENIED, "effects are only collected while a delivery is handled") : TERRARIUM_OK;
}

static int32_t fake_lacks(int32_t feature) {
	return terrarium_feature(feature) ? TERRARIUM_OK : fake_refuse(TERRARIUM_ERR_UNSUPPORTED, "this host does not have the feature");
}

static int32_t fake_limit(const char *name, int64_t have, int64_t most) {
	char text[96];
	if (have <= most) return TERRARIUM_OK;
	snprintf(text, sizeof text, "the limit %s (%lld) is reached", name, (long long)most);
	return fake_refuse(TERRARIUM_ERR_LIMIT, text);
}

static int32_t fake_small(const char *name, int64_t have, int64_t most) {
	char text[96];
	if (have <= most) return TERRARIUM_OK;
	snprintf(text, sizeof text, "it has %lld bytes; the limit %s is %lld", (long long)have, name, (long long)most);
	return fake_refuse(TERRARIUM_ERR_TOO_LARGE, text);
}

static int32_t fake_named(tr_bytes name) {
	TR_TRY(fake_small("state_key", name.len, TERRARIUM_LIMIT_STATE_KEY));
	if (name.len > 0 && tr_is_utf8(name) && !memchr(name.ptr, 0, (size_t)name.len)) return TERRARIUM_OK;
	return fake_refuse(TERRARIUM_ERR_INVALID_ARGUMENT, "it is UTF-8 without NUL and not empty; use another key");
}

static int32_t fake_headers(tr_bytes headers) {
	static const char reserved[] = "terrarium-";
	while (headers.len > 0) {
		tr_bytes name = tr_until(&headers, 0), rest = headers;
		tr_bytes value = tr_until(&headers, 0);
		if (name.len == 0 || value.len == rest.len) return fake_refuse(TERRARIUM_ERR_INVALID_ARGUMENT, "the headers are malformed");
		size_t i = 0;
		while (i < sizeof reserved - 1 && i < (size_t)name.len && (name.ptr[i] | 0x20) == (reserved[i] | 0x20)) i++;
		if (i == sizeof reserved - 1) return fake_refuse(TERRARIUM_ERR_INVALID_ARGUMENT, "names of headers that begin with terrarium- are reserved for the host");
	}
	return TERRARIUM_OK;
}

static int32_t fake_sendable(int32_t copies, tr_bytes payload, tr_bytes headers) {
	int64_t size = (int64_t)payload.len + headers.len, all = fake_now->send_bytes + copies * size;
	TR_TRY(fake_small("message", size, TERRARIUM_LIMIT_MESSAGE));
	TR_TRY(fake_headers(headers));
	TR_TRY(fake_limit("sends", (int64_t)fake_now->sends + copies, TERRARIUM_LIMIT_SENDS));
	TR_TRY(fake_limit("send_bytes", all, TERRARIUM_LIMIT_SEND_BYTES));
	fake_now->sends += copies;
	fake_now->send_bytes = (int32_t)all;
	return TERRARIUM_OK;
}

// fake_reachable refuses a creature that the graph does not have.
static int32_t fake_reachable(tr_bytes to) {
	if (fake_now->creatures.len == 0 || fake_find(&fake_now->creatures, to)) return TERRARIUM_OK;
	return fake_refuse(TERRARIUM_ERR_NOT_FOUND, "there is no such creature in this graph");
}

static tr_bytes fake_content(int32_t source) {
	static char digits[24];
	fake *f = fake_now;
	switch (source) {
	case TERRARIUM_SOURCE_CONFIG: return fake_text(f->config);
	case TERRARIUM_SOURCE_SELF: return fake_text(f->self);
	case TERRARIUM_SOURCE_AWARENESS_JSON: return fake_text(f->awareness);
	case TERRARIUM_SOURCE_AWARENESS_MARKDOWN: return fake_text(f->markdown);
	case TERRARIUM_SOURCE_AWARENESS_REVISION:
		snprintf(digits, sizeof digits, "%lld", (long long)f->revision);
		return fake_text(digits);
	case TERRARIUM_SOURCE_RESULT: return f->result.len > 0 ? fake_bytes(&f->result.at[0].data) : TR_NONE;
	case TERRARIUM_SOURCE_ERROR: return f->error.len > 0 ? fake_bytes(&f->error.at[0].data) : TR_NONE;
	case TERRARIUM_SOURCE_FAILURE: return f->error.len > 0 ? fake_bytes(&f->error.at[0].name) : TR_NONE;
	}
	return source < f->sources.len ? fake_bytes(&f->sources.at[source].data) : TR_NONE;
}

static int32_t fake_size(int32_t source) {
	if (source < 0 || source > TERRARIUM_SOURCE_FAILURE) return fake_refuse(TERRARIUM_ERR_NOT_FOUND, "there is no such source");
	int awareness = source == TERRARIUM_SOURCE_AWARENESS_JSON || source == TERRARIUM_SOURCE_AWARENESS_MARKDOWN ||
		source == TERRARIUM_SOURCE_AWARENESS_REVISION;
	if (awareness) TR_TRY(fake_lacks(TERRARIUM_FEATURE_AWARENESS));
	return fake_content(source).len;
}

int32_t terrarium_size(int32_t source) {
	FAKE_CALL();
	return fake_size(source);
}

static int32_t fake_fill(tr_bytes content, void *ptr, int32_t cap) {
	int32_t n = content.len < cap ? content.len : cap;
	if (n > 0) memcpy(ptr, content.ptr, (size_t)n);
	return n;
}

int32_t terrarium_read(int32_t source, int32_t offset, void *ptr, int32_t cap) {
	FAKE_CALL();
	int32_t size = fake_size(source);
	if (size < 0) return size;
	if (offset < 0 || cap < 0) return fake_refuse(TERRARIUM_ERR_INVALID_ARGUMENT, "read: a number is negative");
	return fake_fill(tr_from(fake_content(source), offset < size ? offset : size), ptr, cap);
}

int32_t terrarium_feature(int32_t feature) {
	return feature >= 0 && feature <= TERRARIUM_FEATURE_FUEL && feature != TERRARIUM_FEATURE_HTTP && !(fake_now->absent >> feature & 1);
}

// fake_value returns a value as all functions do that have the source result.
static int32_t fake_value(tr_bytes value, void *ptr, int32_t cap) {
	fake_clear(&fake_now->result);
	fake_add(&fake_now->result, TR_NONE, value);
	fake_fill(value, ptr, cap);
	return value.len;
}

int32_t terrarium_config(const void *key_ptr, int32_t key_len, void *ptr, int32_t cap) {
	FAKE_CALL();
	tr_bytes value;
	if (!tr_json_member(fake_text(fake_now->config), TR_BYTES(key_ptr, key_len), &value))
		return fake_refuse(TERRARIUM_ERR_NOT_FOUND, "the configuration has no such attribute");
	return fake_value(tr_json_text(value), ptr, cap);
}

// A handle is the place of a channel, or behind all of them for an alias that is not bound.
int32_t terrarium_channel(const void *name_ptr, int32_t name_len) {
	FAKE_CALL();
	if (name_len == 0) return fake_refuse(TERRARIUM_ERR_INVALID_ARGUMENT, "an alias is not empty");
	fake_item *channel = fake_find(&fake_now->channels, TR_BYTES(name_ptr, name_len));
	return channel ? (int32_t)(channel - fake_now->channels.at) : fake_now->channels.len;
}

static void fake_post(tr_bytes where, tr_bytes payload, tr_bytes headers) { fake_set(&fake_add(&fake_now->sent, where, payload)->more, headers); }

int32_t terrarium_send(int32_t channel, const void *ptr, int32_t len, const void *headers_ptr, int32_t headers_len) {
	FAKE_CALL();
	fake_list *channels = &fake_now->channels;
	tr_bytes payload = TR_BYTES(ptr, len), headers = TR_BYTES(headers_ptr, headers_len);
	TR_TRY(fake_effect());
	if (channel < TERRARIUM_ALL_CHANNELS || channel > channels->len) return fake_refuse(TERRARIUM_ERR_INVALID_ARGUMENT, "it is not a channel handle");
	if (channel == channels->len) return fake_refuse(TERRARIUM_ERR_NOT_CONNECTED, "the creature has no such send alias");
	int32_t first = channel < 0 ? 0 : channel, behind = channel < 0 ? channels->len : channel + 1;
	TR_TRY(fake_sendable(behind - first, payload, headers));
	for (int32_t i = first; i < behind; i++) fake_post(fake_bytes(&channels->at[i].name), payload, headers);
	return behind - first;
}

int32_t terrarium_send_to(const void *to_ptr, int32_t to_len, const void *ptr, int32_t len) {
	FAKE_CALL();
	TR_TRY(fake_effect());
	TR_TRY(fake_reachable(TR_BYTES(to_ptr, to_len)));
	TR_TRY(fake_sendable(1, TR_BYTES(ptr, len), TR_NONE));
	fake_post(TR_BYTES(to_ptr, to_len), TR_BYTES(ptr, len), TR_NONE);
	return TERRARIUM_OK;
}

int32_t terrarium_request(const void *to_ptr, int32_t to_len, const void *ptr, int32_t len, int64_t deadline_ms, int64_t tag) {
	FAKE_CALL();
	TR_TRY(fake_effect());
	TR_TRY(fake_lacks(TERRARIUM_FEATURE_REQUESTS));
	if (deadline_ms <= 0) return fake_refuse(TERRARIUM_ERR_INVALID_ARGUMENT, "a request needs a deadline");
	TR_TRY(fake_reachable(TR_BYTES(to_ptr, to_len)));
	TR_TRY(fake_limit("requests", (int64_t)fake_now->requests.len + 1, TERRARIUM_LIMIT_REQUESTS));
	TR_TRY(fake_sendable(1, TR_BYTES(ptr, len), TR_NONE));
	fake_item *request = fake_add(&fake_now->requests, TR_BYTES(to_ptr, to_len), TR_BYTES(ptr, len));
	request->number = tag;
	request->period = deadline_ms;
	return TERRARIUM_OK;
}

int32_t terrarium_reply(const void *ptr, int32_t len) {
	FAKE_CALL();
	TR_TRY(fake_effect());
	TR_TRY(fake_lacks(TERRARIUM_FEATURE_REQUESTS));
	if (fake_now->kind != TERRARIUM_KIND_REQUEST) return fake_refuse(TERRARIUM_ERR_DENIED, "there is no request to reply to");
	if (fake_now->reply.len > 0) return fake_refuse(TERRARIUM_ERR_ALREADY_EXISTS, "the request has a reply already");
	TR_TRY(fake_small("message", len, TERRARIUM_LIMIT_MESSAGE));
	fake_add(&fake_now->reply, TR_NONE, TR_BYTES(ptr, len));
	return TERRARIUM_OK;
}

int32_t terrarium_output(const void *ptr, int32_t len) {
	FAKE_CALL();
	TR_TRY(fake_effect());
	TR_TRY(fake_limit("output", (int64_t)fake_now->output_size + len, TERRARIUM_LIMIT_OUTPUT));
	if (fake_now->has_output) {
		fake_append(&fake_now->outputs.at[fake_now->outputs.len - 1].data, TR_BYTES(ptr, len));
	} else {
		fake_add(&fake_now->outputs, TR_NONE, TR_BYTES(ptr, len));
	}
	fake_now->has_output = 1;
	fake_now->output_size += len;
	return TERRARIUM_OK;
}

int32_t terrarium_state_get(const void *key_ptr, int32_t key_len, void *ptr, int32_t cap) {
	FAKE_CALL();
	if (key_len <= TERRARIUM_LIMIT_STATE_KEY) TR_TRY(fake_named(TR_BYTES(key_ptr, key_len))); // the state has no longer ones
	fake_item *item = fake_find(&fake_now->state, TR_BYTES(key_ptr, key_len));
	return item ? fake_value(fake_bytes(&item->data), ptr, cap) : fake_refuse(TERRARIUM_ERR_NOT_FOUND, "the state has no such key");
}

// fake_write counts the keys that the turn has written.
static int32_t fake_write(tr_bytes key) {
	if (fake_find(&fake_now->written, key)) return TERRARIUM_OK;
	TR_TRY(fake_limit("state_writes", fake_now->written.len + 1, TERRARIUM_LIMIT_STATE_WRITES));
	fake_put(&fake_now->written, key, TR_NONE);
	return TERRARIUM_OK;
}

int32_t terrarium_state_set(const void *key_ptr, int32_t key_len, const void *ptr, int32_t len) {
	FAKE_CALL();
	tr_bytes key = TR_BYTES(key_ptr, key_len);
	int64_t size = (int64_t)key_len + len + 32;
	TR_TRY(fake_effect());
	TR_TRY(fake_named(key));
	TR_TRY(fake_small("state_value", len, TERRARIUM_LIMIT_STATE_VALUE));
	for (int32_t i = 0; i < fake_now->state.len; i++)
		if (!tr_equal(fake_bytes(&fake_now->state.at[i].name), key)) size += fake_now->state.at[i].name.len + fake_now->state.at[i].data.len + 32;
	TR_TRY(fake_limit("state", size, TERRARIUM_LIMIT_STATE));
	TR_TRY(fake_write(key));
	fake_put(&fake_now->state, key, TR_BYTES(ptr, len))->changed = 1;
	return TERRARIUM_OK;
}

int32_t terrarium_state_delete(const void *key_ptr, int32_t key_len) {
	FAKE_CALL();
	tr_bytes key = TR_BYTES(key_ptr, key_len);
	TR_TRY(fake_effect());
	TR_TRY(fake_named(key));
	if (!fake_find(&fake_now->state, key)) return 0; // which is no write
	TR_TRY(fake_write(key));
	return fake_remove(&fake_now->state, key);
}

int32_t terrarium_state_list(const void *prefix_ptr, int32_t prefix_len, void *ptr, int32_t cap) {
	FAKE_CALL();
	tr_buffer keys = TR_EMPTY;
	for (int32_t i = 0; i < fake_now->state.len; i++) {
		tr_bytes key = fake_bytes(&fake_now->state.at[i].name);
		if (tr_starts(key, TR_BYTES(prefix_ptr, prefix_len))) tr_put(&keys, TR_BYTES(key.ptr, key.len + 1));
	}
	return fake_value(keys.len > 0 ? tr_view(&keys) : TR_NONE, ptr, cap);
}

int32_t terrarium_timer_set(const void *name_ptr, int32_t name_len, int64_t delay_ms, int64_t period_ms, const void *ptr, int32_t len) {
	FAKE_CALL();
	tr_bytes name = TR_BYTES(name_ptr, name_len);
	TR_TRY(fake_effect());
	TR_TRY(fake_lacks(TERRARIUM_FEATURE_TIMERS));
	if (delay_ms < 0 || period_ms < 0) return fake_refuse(TERRARIUM_ERR_INVALID_ARGUMENT, "a timer's delay and period are not negative");
	TR_TRY(fake_named(name));
	TR_TRY(fake_small("message", len, TERRARIUM_LIMIT_MESSAGE));
	if (!fake_find(&fake_now->timers, name)) TR_TRY(fake_limit("timers", fake_now->timers.len + 1, TERRARIUM_LIMIT_TIMERS));
	int64_t size = (int64_t)name_len + len;
	for (int32_t i = 0; i < fake_now->timers.len; i++)
		if (!tr_equal(fake_bytes(&fake_now->timers.at[i].name), name)) size += fake_now->timers.at[i].name.len + fake_now->timers.at[i].data.len;
	TR_TRY(fake_limit("timer_bytes", size, TERRARIUM_LIMIT_TIMER_BYTES));
	fake_item *timer = fake_put(&fake_now->timers, name, TR_BYTES(ptr, len));
	timer->number = fake_after(fake_now->now, delay_ms);
	timer->period = period_ms;
	return TERRARIUM_OK;
}

int32_t terrarium_timer_cancel(const void *name_ptr, int32_t name_len) {
	FAKE_CALL();
	TR_TRY(fake_effect());
	TR_TRY(fake_lacks(TERRARIUM_FEATURE_TIMERS));
	return fake_remove(&fake_now->timers, TR_BYTES(name_ptr, name_len));
}

int32_t terrarium_tool(const void *name_ptr, int32_t name_len, const void *args_ptr, int32_t args_len) {
	FAKE_CALL();
	fake_string name = TR_EMPTY, args = TR_EMPTY;
	int32_t code = TERRARIUM_ERR_NOT_FOUND;
	TR_TRY(fake_effect());
	TR_TRY(fake_lacks(TERRARIUM_FEATURE_TOOLS));
	TR_TRY(fake_limit("tools", fake_now->tool_calls + 1, TERRARIUM_LIMIT_TOOLS));
	fake_now->tool_calls++;
	fake_set(&name, TR_BYTES(name_ptr, name_len));
	fake_set(&args, TR_BYTES(args_ptr, args_len));
	const char *result = fake_now->tools ? fake_now->tools(fake_now, name.text, args.text, &code) : NULL;
	free(name.text);
	free(args.text);
	return result ? fake_value(fake_text(result), NULL, 0) : fake_refuse(code, "the tool refused");
}

int32_t terrarium_http(const void *request_ptr, int32_t request_len, const void *body_ptr, int32_t body_len, int64_t tag) {
	FAKE_CALL();
	(void)request_ptr, (void)request_len, (void)body_ptr, (void)body_len, (void)tag;
	TR_TRY(fake_effect());
	return fake_lacks(TERRARIUM_FEATURE_HTTP);
}

// fake_shortened cuts a log line to at most size bytes, with an ellipsis.
static tr_bytes fake_shortened(tr_bytes line, int32_t size) {
	tr_bytes ellipsis = TR("\xE2\x80\xA6");
	int32_t end = size - ellipsis.len;
	while (end > 0 && (line.ptr[end] & 0xC0) == 0x80) end--;
	return tr_join(TR_BYTES(line.ptr, end), ellipsis);
}

int32_t terrarium_log(int32_t level, const void *ptr, int32_t len) {
	FAKE_CALL();
	tr_bytes line = TR_BYTES(ptr, len);
	int32_t room = TERRARIUM_LIMIT_LOG_BYTES - fake_now->log_bytes;
	if (level < 0 || level > TERRARIUM_LEVEL_ERROR) return fake_refuse(TERRARIUM_ERR_INVALID_ARGUMENT, "it is not a log level");
	TR_TRY(fake_limit("log_lines", fake_now->log_lines + 1, TERRARIUM_LIMIT_LOG_LINES));
	if (len > room) {
		TR_TRY(fake_limit("log_bytes", 3, room)); // not even the ellipsis
		line = fake_shortened(line, room);
	}
	fake_now->log_lines++;
	fake_now->log_bytes += len > room ? room : len;
	fake_add(&fake_now->logs, tr_chars(tr_name(TERRARIUM_LEVEL_NAMES, level)), line);
	return TERRARIUM_OK;
}

int64_t terrarium_now(void) { return fake_now->now * 1000000; }

// The bytes are a fixed sequence, so that a test is the same every time.
int32_t terrarium_random(void *ptr, int32_t len) {
	static uint32_t seed = 1;
	for (int32_t i = 0; i < len; i++) {
		seed = seed * 1664525 + 1013904223;
		((uint8_t *)ptr)[i] = (uint8_t)(seed >> 24);
	}
	return TERRARIUM_OK;
}

int64_t terrarium_fuel_left(void) { return fake_now->fuel; }

#ifdef __cpp_exceptions
TR_UNUSED static void tr_trap(void) { throw fake_trap(); }
#else
TR_UNUSED static void tr_trap(void) { longjmp(fake_now->trap, 1); }
#endif

#endif // TERRARIUM_FAKE_CALLS_H
