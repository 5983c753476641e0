// Creatures in C++17, over the kit for C: a turn is handed to the handler, and an error is
// a value. It needs neither the standard library nor exceptions.
//
//	#include "terrarium.hpp"
//	using namespace terrarium;
//
//	static Status handle(Turn &t) {
//		if (t.kind() != TERRARIUM_KIND_MESSAGE) return {};
//		return t.send_all(t.payload());
//	}
//
//	TERRARIUM_CREATURE(of<handle>)
#ifndef TERRARIUM_HPP
#define TERRARIUM_HPP

#include "creature.h"

namespace terrarium {

// Bytes is a view of bytes that the turn, the module or the caller owns.
struct Bytes : tr_bytes {
	constexpr Bytes() : tr_bytes{nullptr, 0} {}
	constexpr Bytes(tr_bytes b) : tr_bytes(b) {}
	Bytes(const void *data, size_t size) : tr_bytes{static_cast<const uint8_t *>(data), static_cast<int32_t>(size)} {}
	Bytes(const char *text) : Bytes(text, __builtin_strlen(text)) {}
	Bytes(const tr_buffer &b) : Bytes(b.ptr, static_cast<size_t>(b.len)) {}
	// From std::string, std::string_view and the like, and explicitly to them.
	template <class Text, class = decltype(Text().data()[0] == Text().data()[Text().size()])>
	Bytes(const Text &text) : Bytes(text.data(), text.size()) {}
	template <class Text> Text to() const { return Text(reinterpret_cast<const char *>(ptr), static_cast<size_t>(len)); }

	size_t size() const { return static_cast<size_t>(len); }
	bool empty() const { return len == 0; }
	const uint8_t *begin() const { return ptr; }
	const uint8_t *end() const { return ptr + len; }
	uint8_t operator[](size_t i) const { return ptr[i]; }
	bool starts(Bytes prefix) const { return tr_starts(*this, prefix); }
	Bytes from(size_t offset) const { return tr_from(*this, static_cast<int32_t>(offset)); }
	size_t count(char byte) const { return static_cast<size_t>(tr_count(*this, static_cast<uint8_t>(byte))); }
	// until divides: it returns what is before the byte and leaves what is behind it.
	Bytes until(char byte) { return tr_until(this, static_cast<uint8_t>(byte)); }
};

inline bool operator==(Bytes a, Bytes b) { return tr_equal(a, b); }
inline bool operator!=(Bytes a, Bytes b) { return !tr_equal(a, b); }

// join returns texts and whole numbers as one text, which lasts as long as the turn.
inline void put(tr_buffer &b, Bytes bytes) { tr_put(&b, bytes); }
inline void put(tr_buffer &b, int64_t n) { tr_put_whole(&b, n); }
inline void put(tr_buffer &b, int32_t n) { tr_put_whole(&b, n); }
template <class... Parts> Bytes join(const Parts &...parts) {
	tr_buffer all{};
	(put(all, parts), ...);
	return all;
}

// Result is a value or the code of an error; the turn has the text of the error.
template <class T> struct [[nodiscard]] Result {
	int32_t code;
	T value;
	Result(T v) : code(TERRARIUM_OK), value(v) {}
	Result(int32_t code, T v) : code(code < 0 ? code : 0), value(v) {}
	explicit operator bool() const { return code >= 0; }
	T operator*() const { return value; }
	Bytes name() const { return tr_code_name(code); }
};

// Status is success, or an error.
struct [[nodiscard]] Status {
	int32_t code;
	Status(int32_t code = TERRARIUM_OK) : code(code < 0 ? code : 0) {}
	template <class T> Status(const Result<T> &r) : code(r.code) {}
	explicit operator bool() const { return code >= 0; }
	Bytes name() const { return tr_code_name(code); }
};

// TRY is the value of a Result; if it is an error, the function returns it.
#define TRY(call) \
	__extension__({ \
		auto tr_result_of = (call); \
		if (tr_result_of.code < 0) return ::terrarium::Status(tr_result_of.code); \
		::terrarium::value_of(tr_result_of); \
	})
template <class T> T value_of(const Result<T> &r) { return r.value; }
inline void value_of(const Status &) {}

// Headers collects headers for sending.
class Headers {
	tr_buffer list{};

public:
	Headers() {}
	explicit Headers(Bytes all) { tr_put(&list, all); }
	Headers &set(Bytes name, Bytes value) { return tr_put_header(&list, name, value), *this; }
	operator Bytes() const { return list; }
};

// Turn is one call into the creature. creature.h says what each function does.
class Turn {
	tr_turn *t;

public:
	explicit Turn(tr_turn *turn) : t(turn) {}
	tr_turn *raw() const { return t; }

	// The delivery
	int32_t kind() const { return t->kind; }
	Bytes payload() { return tr_payload(t); }
	// Inlined, or the compiler reads the buffer's fields again at every byte.
	__attribute__((always_inline)) tr_buffer payload_buffer() { return tr_payload_buffer(t); }
	Result<Bytes> text() { return read(tr_text); }
	Bytes channel() { return tr_channel(t); }
	Bytes sender() { return tr_sender(t); }
	Bytes message_id() { return tr_message_id(t); }
	Bytes self() { return tr_self(t); }
	Bytes headers() { return tr_headers(t); }
	Result<Bytes> header(Bytes name) {
		tr_bytes value = TR_NONE;
		return tr_header(t, name, &value) ? Result<Bytes>(value) : Result<Bytes>(TERRARIUM_ERR_NOT_FOUND, {});
	}
	Bytes detail() { return tr_detail(t); }
	bool direct() { return tr_direct(t); }
	int64_t attempt() { return tr_attempt(t); }
	Bytes timer_name() { return tr_timer_name(t); }
	int64_t tag() { return tr_tag(t); }
	Bytes result_code() { return tr_result_code(t); }

	// Configuration: the last argument is the default
	Result<Bytes> config(Bytes key) { return read(tr_config, key); }
	Bytes config_json() { return tr_config_json(t); }
	Status config_knows(Bytes names) { return tr_config_knows(t, names); }
	Status config_required(Bytes key) { return tr_config_required(t, key); }
	Result<Bytes> config_text(Bytes key, Bytes value = {}) {
		int32_t code = tr_config_text(t, key, &value);
		return {code, value};
	}
	Result<int64_t> config_whole(Bytes key, int64_t least, int64_t most, int64_t value) {
		int32_t code = tr_config_whole(t, key, least, most, &value);
		return {code, value};
	}
	Result<bool> config_bool(Bytes key, bool value) {
		int flag = value;
		int32_t code = tr_config_bool(t, key, &flag);
		return {code, flag != 0};
	}

	// State
	Result<Bytes> state_get(Bytes key) { return read(tr_state_get, key); }
	Status state_set(Bytes key, Bytes value) { return tr_state_set(t, key, value); }
	Result<bool> state_delete(Bytes key) {
		int32_t code = tr_state_delete(t, key);
		return {code, code > 0};
	}
	Result<Bytes> state_list(Bytes prefix) { return read(tr_state_list, prefix); }
	Result<int64_t> state_whole(Bytes key) {
		int64_t value = 0;
		int32_t code = tr_state_whole(t, key, &value);
		return {code, value};
	}
	Status state_set_whole(Bytes key, int64_t value) { return tr_state_set_whole(t, key, value); }

	// Sending
	Status send(Bytes alias, Bytes payload, Bytes headers = {}) { return tr_send(t, alias, payload, headers); }
	Status send_all(Bytes payload, Bytes headers = {}) { return tr_send_all(t, payload, headers); }
	Status send_to(Bytes creature, Bytes payload) { return tr_send_to(t, creature, payload); }
	Status output(Bytes payload) { return tr_output(t, payload); }
	Status request(Bytes creature, Bytes payload, int64_t deadline_ms, int64_t tag) { return tr_request(t, creature, payload, deadline_ms, tag); }
	Status reply(Bytes payload) { return tr_reply(t, payload); }
	Status http(Bytes request, Bytes body, int64_t tag) { return tr_http(t, request, body, tag); }

	// Timers, tools, awareness and the rest
	Status set_timer(Bytes name, int64_t delay_ms, int64_t period_ms, Bytes payload) { return tr_set_timer(t, name, delay_ms, period_ms, payload); }
	Result<bool> cancel_timer(Bytes name) {
		int32_t code = tr_cancel_timer(t, name);
		return {code, code > 0};
	}
	Result<Bytes> tool(Bytes name, Bytes json) { return read(tr_tool, name, json); }
	template <class Args> Result<Bytes> call(int32_t (*tool)(tr_turn *, Args, tr_bytes *), const Args &args) {
		tr_bytes value = TR_NONE;
		int32_t code = tool(t, args, &value);
		return {code, value};
	}
	Bytes awareness() { return tr_awareness(t); }
	Bytes awareness_markdown() { return tr_awareness_markdown(t); }
	int64_t awareness_revision() { return tr_awareness_revision(t); }
	Status log(int32_t level, Bytes text) { return tr_log_with(t, level, text); }
	int64_t now() { return tr_now(t); }
	Status random(void *ptr, size_t size) { return tr_random(t, ptr, static_cast<int32_t>(size)); }
	int64_t fuel_left() { return tr_fuel_left(t); }
	bool has_feature(int32_t feature) { return tr_has_feature(t, feature); }

	// fail returns an error with a text of its own.
	template <class... Parts> Status fail(int32_t code, const Parts &...parts) { return tr_fail_with(t, code, join(parts...)); }

private:
	// read calls a function that stores bytes behind its last argument.
	Result<Bytes> read(int32_t (*from)(tr_turn *, tr_bytes *)) {
		tr_bytes value = TR_NONE;
		int32_t code = from(t, &value);
		return {code, value};
	}
	Result<Bytes> read(int32_t (*from)(tr_turn *, tr_bytes, tr_bytes *), Bytes key) {
		tr_bytes value = TR_NONE;
		int32_t code = from(t, key, &value);
		return {code, value};
	}
	Result<Bytes> read(int32_t (*from)(tr_turn *, tr_bytes, tr_bytes, tr_bytes *), Bytes a, Bytes b) {
		tr_bytes value = TR_NONE;
		int32_t code = from(t, a, b, &value);
		return {code, value};
	}
};

// of makes a handler of the kit for C from one with a Turn.
template <Status (*handler)(Turn &)> int32_t of(tr_turn *t) {
	Turn turn(t);
	return handler(turn).code;
}

} // namespace terrarium

#endif // TERRARIUM_HPP
