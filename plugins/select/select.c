// select passes each message to one of its targets, channels or creatures: in turn, by name,
// or at random by weight.
#include "bare.h"
#include "header.h"
#include "selector.h"
#include "turns.h"

TERRARIUM_MARKER()

#define TARGETS_MAX 256
#define WEIGHT_MAX 1000000
#define REJECTED 128 // bytes of a part that the log quotes

enum { ROUND_ROBIN, NAMED, WEIGHTED };
enum { BY_START, BY_HEADER, BY_PART };

typedef struct {
	tr_bytes name;
	int32_t handle;  // of the channel, or -1 for a creature
	uint64_t weight;
} target;

static target targets[TARGETS_MAX + 1]; // one more, for otherwise
static uint32_t count;
static int mode, where, has_otherwise;
static uint32_t otherwise;
static uint64_t total; // of the weights
static tr_bytes header;
static selector part;

static int32_t refuse(tr_bytes attribute, tr_bytes why) {
	tr_buffer line = {0};
	tr_put(&line, TR("config "));
	tr_put(&line, attribute);
	tr_put(&line, TR(": "));
	tr_put(&line, why);
	terrarium_log(TERRARIUM_LEVEL_ERROR, line.ptr, line.len);
	return TERRARIUM_ERR_INVALID_ARGUMENT;
}

// find returns the index of a target, or -1.
static int32_t find(tr_bytes name) {
	for (uint32_t i = 0; i < count; i++)
		if (tr_equal(targets[i].name, name)) return (int32_t)i;
	return -1;
}

// read_targets adds the names that an attribute lists.
static int32_t read_targets(tr_bytes attribute, int channels) {
	tr_bytes list, value;
	tr_json_cursor c;
	int32_t status = tr_config(attribute, &list);
	if (status == TERRARIUM_ERR_NOT_FOUND) return TERRARIUM_OK;
	if (status < 0) return status;
	if (!tr_json_valid(list) || !tr_json_open(list, '[', &c)) return refuse(attribute, TR("it must be a list of names, as in [\"a\", \"b\"]"));
	while (tr_json_next(&c, NULL, &value)) {
		tr_bytes name = tr_json_text(value);
		if (value.ptr[0] != '"' || name.len == 0) return refuse(attribute, TR("every element must be a string, a name"));
		if (find(name) >= 0) return refuse(attribute, TR("each name may be in to and creatures only once"));
		if (count == TARGETS_MAX) return refuse(attribute, TR("to and creatures have more than 256 names"));
		int32_t handle = channels ? terrarium_channel(name.ptr, name.len) : -1;
		if (channels && handle < 0) return handle;
		targets[count++] = (target){name, handle, 1};
	}
	return TERRARIUM_OK;
}

static int32_t read_mode(void) {
	tr_bytes text = TR("round_robin");
	tr_config(TR("mode"), &text);
	if (tr_equal(text, TR("round_robin"))) mode = ROUND_ROBIN;
	else if (tr_equal(text, TR("named"))) mode = NAMED;
	else if (tr_equal(text, TR("weighted"))) mode = WEIGHTED;
	else return refuse(TR("mode"), TR("it must be \"round_robin\", \"named\" or \"weighted\""));
	return TERRARIUM_OK;
}

// read_by reads where a message names its target.
static int32_t read_by(void) {
	tr_bytes text = TR("start");
	if (tr_config(TR("by"), &text) >= 0 && mode != NAMED) return refuse(TR("by"), TR("it needs mode = \"named\""));
	where = BY_PART;
	if (tr_equal(text, TR("start"))) {
		where = BY_START;
	} else if (tr_starts(text, TR("header:"))) {
		where = BY_HEADER;
		header = tr_from(text, 7);
		if (header.len == 0) return refuse(TR("by"), TR("name the header, as in \"header:to\""));
	} else if (!selector_parse(TR("by"), text, &part)) {
		return TERRARIUM_ERR_INVALID_ARGUMENT;
	}
	return TERRARIUM_OK;
}

static int32_t read_weights(void) {
	tr_bytes object, name, value;
	tr_json_cursor c;
	int32_t status = tr_config(TR("weights"), &object);
	if (status == TERRARIUM_ERR_NOT_FOUND) return mode == WEIGHTED ? refuse(TR("weights"), TR("it is missing; give each name its weight, as in {a = 3, b = 1}")) : TERRARIUM_OK;
	if (status < 0) return status;
	if (mode != WEIGHTED) return refuse(TR("weights"), TR("it needs mode = \"weighted\""));
	if (!tr_json_valid(object) || !tr_json_open(object, '{', &c)) return refuse(TR("weights"), TR("it must be an object, as in {a = 3, b = 1}"));
	while (tr_json_next(&c, &name, &value)) {
		int32_t i = find(tr_json_text(name));
		if (i < 0) return refuse(TR("weights"), TR("every name must be in to or creatures"));
		if (!tr_natural(value, &targets[i].weight) || targets[i].weight > WEIGHT_MAX)
			return refuse(TR("weights"), TR("every weight must be a whole number from 0 to 1000000"));
	}
	total = 0;
	for (uint32_t i = 0; i < count; i++) total += targets[i].weight;
	return total > 0 ? TERRARIUM_OK : refuse(TR("weights"), TR("at least one weight must be above 0"));
}

static int32_t read_otherwise(void) {
	tr_bytes name;
	has_otherwise = 0;
	int32_t status = tr_config(TR("otherwise"), &name);
	if (status == TERRARIUM_ERR_NOT_FOUND) return TERRARIUM_OK;
	if (status < 0) return status;
	if (mode != NAMED) return refuse(TR("otherwise"), TR("it needs mode = \"named\""));
	if (name.len == 0) return refuse(TR("otherwise"), TR("it is empty; name a send alias, or one of creatures"));
	int32_t i = find(name);
	if (i < 0) {
		int32_t handle = terrarium_channel(name.ptr, name.len);
		if (handle < 0) return handle;
		targets[i = (int32_t)count] = (target){name, handle, 0};
	}
	otherwise = (uint32_t)i;
	has_otherwise = 1;
	return TERRARIUM_OK;
}

int32_t creature_init(void) {
	count = 0;
	if (!tr_config_knows(TR("to creatures mode by weights otherwise"))) return TERRARIUM_ERR_INVALID_ARGUMENT;
	tr_begin();
	int32_t status = read_targets(TR("to"), 1);
	if (status >= 0) status = read_targets(TR("creatures"), 0);
	if (status >= 0 && count == 0)
		status = refuse(TR("to"), TR("there is no target; list send aliases, as in [\"a\", \"b\"], or names of creatures in creatures"));
	if (status >= 0) status = read_mode();
	if (status >= 0) status = read_by();
	if (status >= 0) status = read_weights();
	if (status >= 0) status = read_otherwise();
	tr_keep();
	return status;
}

// in_name returns whether a name could continue with the byte.
static int in_name(uint8_t byte) {
	uint8_t letter = byte | 0x20;
	return (letter >= 'a' && letter <= 'z') || (byte >= '0' && byte <= '9') || byte == '_' || byte == '-' || byte >= 0x80;
}

// at_start returns the target with the longest name that starts the text, after white space
// and an @; or -1.
static int32_t at_start(tr_bytes *text) {
	int32_t best = -1;
	while (text->len > 0 && selector_space(text->ptr[0])) *text = tr_from(*text, 1);
	if (text->len > 0 && text->ptr[0] == '@') *text = tr_from(*text, 1);
	for (uint32_t i = 0; i < count; i++) {
		tr_bytes name = targets[i].name;
		if (!tr_starts(*text, name) || (text->len > name.len && in_name(text->ptr[name.len]))) continue;
		if (best < 0 || name.len > targets[best].name.len) best = (int32_t)i;
	}
	return best;
}

// none logs why a message has no target, and which targets there are.
static int32_t none(tr_bytes what, tr_bytes named) {
	tr_buffer line = {0};
	tr_put(&line, TR("the message has no target: "));
	tr_put(&line, what);
	if (named.ptr) {
		tr_put_byte(&line, ' ');
		tr_put_json(&line, named.len > REJECTED ? (tr_bytes){named.ptr, REJECTED} : named);
	}
	tr_put(&line, TR("; the targets are: "));
	for (uint32_t i = 0; i < count; i++) {
		if (i > 0) tr_put(&line, TR(", "));
		tr_put(&line, targets[i].name);
	}
	tr_put(&line, TR("; set the attribute otherwise to a target for such messages"));
	terrarium_log(TERRARIUM_LEVEL_ERROR, line.ptr, line.len);
	return TERRARIUM_ERR_FAILED;
}

// by_name returns the index of the target that the message names, or an error.
static int32_t by_name(tr_bytes payload) {
	tr_bytes text = payload, missing = {0};
	int32_t found = 1, i;
	if (where == BY_START) {
		i = at_start(&text);
	} else {
		found = where == BY_HEADER ? tr_header(header, &text) : selector_find(&part, payload, &text);
		if (found < 0) return found;
		i = found ? find(text) : -1;
	}
	if (i >= 0) return i;
	if (has_otherwise) return (int32_t)otherwise;
	if (found) return none(where == BY_START ? TR("it begins with") : TR("it names"), text);
	return none(where == BY_HEADER ? TR("it lacks the header that names one") : TR("it lacks the part that names one"), missing);
}

// by_weight returns the index of a target at random.
static int32_t by_weight(void) {
	uint64_t random;
	int32_t status = terrarium_random(&random, sizeof random);
	if (status < 0) return status;
	random %= total;
	uint32_t i = 0;
	while (random >= targets[i].weight) random -= targets[i++].weight;
	return (int32_t)i;
}

int32_t creature_handle(int32_t kind, int32_t size) {
	(void)size;
	tr_bytes payload;
	if (kind != TERRARIUM_KIND_MESSAGE && kind != TERRARIUM_KIND_OUTPUT) return TERRARIUM_OK;
	tr_begin();
	int32_t status = tr_read(TERRARIUM_SOURCE_PAYLOAD, &payload);
	if (status < 0) return status;
	int32_t i = mode == ROUND_ROBIN ? next_in_turn(count) : mode == NAMED ? by_name(payload) : by_weight();
	if (i < 0) return i;
	target *to = &targets[i];
	if (to->handle >= 0) return tr_forward(to->handle, payload);
	return terrarium_send_to(to->name.ptr, to->name.len, payload.ptr, payload.len);
}
