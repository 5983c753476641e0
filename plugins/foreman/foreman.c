// foreman distributes tasks among workers that it spawns, watches and removes.
#include "bare.h"
#include "backlog.h"
#include "crew.h"

TERRARIUM_MARKER()
TERRARIUM_GRAPH_CHANGED()

#define HIRES 16     // the most workers that one turn spawns
#define REMOVALS 32  // the most that one turn removes
#define PATIENCE_MS (INT64_C(30) * 24 * 3600 * 1000) // for a reply; any failure of a worker is reported earlier

static tr_bytes species, crew_channel, answers_to;
static uint64_t per_worker, linger_ms, attempts;

int32_t creature_init(void) {
	species = TR("worker");
	crew_channel = TR("crew");
	answers_to = TR("");
	per_worker = 4;
	linger_ms = 0;
	attempts = 2;
	if (!tr_config_knows(TR("species channel answers_to per_worker linger_ms attempts"))) return TERRARIUM_ERR_INVALID_ARGUMENT;
	tr_begin();
	tr_config(TR("species"), &species);
	tr_config(TR("channel"), &crew_channel);
	tr_config(TR("answers_to"), &answers_to);
	if (!tr_config_natural(TR("per_worker"), INT32_MAX, &per_worker) || !tr_config_natural(TR("linger_ms"), INT32_MAX, &linger_ms) ||
	    !tr_config_natural(TR("attempts"), INT32_MAX, &attempts))
		return TERRARIUM_ERR_INVALID_ARGUMENT;
	if (per_worker == 0 || attempts == 0) {
		tr_log(TERRARIUM_LEVEL_ERROR, TR("config: per_worker and attempts are 1 at least"), TR(""), TR(""));
		return TERRARIUM_ERR_INVALID_ARGUMENT;
	}
	tr_keep();
	if (terrarium_feature(TERRARIUM_FEATURE_TOOLS) && terrarium_feature(TERRARIUM_FEATURE_REQUESTS) && terrarium_feature(TERRARIUM_FEATURE_TIMERS))
		return TERRARIUM_OK;
	tr_log(TERRARIUM_LEVEL_ERROR, TR("this host has no group tools, requests or timers"), TR(""), TR(""));
	return TERRARIUM_ERR_UNSUPPORTED;
}

// tell reports a problem on the channel problems, if there is one.
static int32_t tell(tr_bytes what, tr_bytes why) {
	tr_buffer line = {0};
	tr_put(&line, what);
	tr_put(&line, TR(": "));
	tr_put(&line, why);
	if (line.failed) return TERRARIUM_ERR_LIMIT;
	terrarium_log(TERRARIUM_LEVEL_WARN, line.ptr, line.len);
	int32_t status = terrarium_channel("problems", 8);
	if (status >= 0) status = terrarium_send(status, line.ptr, line.len, NULL, 0);
	return status == TERRARIUM_ERR_NOT_CONNECTED ? TERRARIUM_OK : status;
}

// refused notes that no more workers can be spawned for now, so that not every turn
// tries again. It is a problem only if there are no workers at all.
static int32_t refused(uint64_t crew) {
	tr_bytes why = TR("");
	tr_read(TERRARIUM_SOURCE_ERROR, &why);
	int32_t status = terrarium_state_set("refused", 7, NULL, 0);
	return status < 0 || crew > 0 ? status : tell(TR("no worker can be spawned"), why);
}

// hire spawns as many workers as the open tasks need.
static int32_t hire(void) {
	tr_bytes list;
	uint64_t crew, wanted = (count_of(TR("open")) + per_worker - 1) / per_worker;
	if (backlog_waiting() == 0 || terrarium_state_get("refused", 7, NULL, 0) >= 0) return TERRARIUM_OK;
	int32_t status = crew_list(&list);
	if (status >= 0) status = crew_size(list, &crew);
	for (int hires = 0; status >= 0 && crew < wanted && hires < HIRES; hires++, crew++) {
		status = crew_hire(species, crew_channel, answers_to);
		if (status < 0 && status != TERRARIUM_ERR_CONFLICT) return refused(crew);
	}
	return status;
}

// hand_out gives each free worker a task. Tasks are requests because a request also
// reports a failure, or a missing worker: a missing worker is dropped from the crew
// and counted as missed.
static int32_t hand_out(int *missed) {
	tr_bytes list, task;
	worker w;
	int32_t status = crew_list(&list);
	while (status >= 0 && backlog_waiting() > 0 && crew_next(&list, &w)) {
		if (w.task > 0) continue;
		uint64_t n = count_of(TR("handed")) + 1;
		status = backlog_read(n, &task);
		if (status < 0) return status;
		status = terrarium_request(w.id.ptr, w.id.len, task.ptr, task.len, PATIENCE_MS, (int64_t)n);
		if (status == TERRARIUM_ERR_LIMIT) return TERRARIUM_OK; // a limit of this turn; other turns follow
		if (status == TERRARIUM_ERR_NOT_FOUND) {
			status = crew_forget(&w);
			*missed = 1;
			continue;
		}
		if (status >= 0) status = crew_set(&w, n);
		if (status >= 0) status = tr_state_set_natural(TR("handed"), n);
	}
	return status;
}

// dismiss removes free workers. There may be more of them than one turn removes.
static int32_t dismiss(tr_bytes list) {
	worker w;
	int32_t status = terrarium_state_delete("refused", 7);
	for (int removed = 0; status >= 0 && crew_next(&list, &w);) {
		if (w.task > 0) continue;
		if (removed++ == REMOVALS) return terrarium_timer_set("linger", 6, 1, 0, NULL, 0);
		status = crew_remove(&w);
	}
	return status;
}

// let_go removes idle workers, at once or after they have been idle for some time.
static int32_t let_go(int now) {
	tr_bytes list;
	worker w;
	int idle = 0;
	if (backlog_waiting() > 0) return terrarium_timer_cancel("linger", 6);
	int32_t status = crew_list(&list);
	if (status < 0) return status;
	for (tr_bytes rest = list; !idle && crew_next(&rest, &w);) idle = w.task == 0;
	if (!idle) return TERRARIUM_OK;
	if (now || linger_ms == 0 || terrarium_state_get("dismiss", 7, NULL, 0) >= 0) return dismiss(list);
	return terrarium_timer_set("linger", 6, (int64_t)linger_ms, 0, NULL, 0);
}

// staff hires workers and hands out tasks. A missed worker leaves room for another:
// no delivery may report it if the graph is again as it was when it was last
// reported.
static int32_t staff(void) {
	int missed = 0;
	int32_t status = hire();
	if (status >= 0) status = hand_out(&missed);
	if (status < 0 || !missed) return status;
	status = terrarium_state_delete("refused", 7);
	if (status >= 0) status = hire();
	return status < 0 ? status : hand_out(&missed);
}

static int32_t carry_on(void) {
	int32_t status = staff();
	return status < 0 ? status : let_go(0);
}

// accept stores a task. If the state has no room for it, the turn fails and the task
// becomes a dead letter; a task that can never be stored is a problem.
static int32_t accept(void) {
	tr_bytes task;
	int32_t status = tr_read(TERRARIUM_SOURCE_PAYLOAD, &task);
	if (status < 0 || task.len == 0) return status;
	status = backlog_add(task);
	if (status == TERRARIUM_ERR_TOO_LARGE) return tell(TR("a task"), TR("it is too large to be kept"));
	if (status >= 0) status = terrarium_state_delete("dismiss", 7);
	return status < 0 ? status : carry_on();
}

static int32_t hear(void) {
	tr_bytes channel;
	int32_t status = tr_read(TERRARIUM_SOURCE_CHANNEL, &channel);
	if (status < 0) return status;
	if (tr_equal(channel, TR("tasks"))) return accept();
	if (!tr_equal(channel, TR("dismiss"))) return TERRARIUM_OK; // a root listens on every channel
	status = terrarium_state_set("dismiss", 7, NULL, 0);
	return status < 0 ? status : let_go(0);
}

// failed decides about a task that a worker could not do.
static int32_t failed(uint64_t n, tr_bytes task, tr_bytes code, tr_bytes why) {
	uint64_t tries = backlog_tries(n) + 1;
	if (tries < attempts) return backlog_again(n, task, tries);
	tr_buffer text = {0};
	tr_put(&text, code);
	tr_put(&text, TR(": "));
	tr_put(&text, why);
	int32_t status = tell(task, tr_view(&text));
	return status < 0 ? status : backlog_done(n);
}

// concluded handles the reply to a task: empty if the task is done, a text if it
// cannot be done, or an error.
static int32_t concluded(void) {
	tr_bytes detail, text, code, why, task;
	uint64_t n;
	worker w;
	int32_t status = tr_read(TERRARIUM_SOURCE_DETAIL, &detail);
	if (status >= 0) status = tr_read(TERRARIUM_SOURCE_PAYLOAD, &why);
	if (status < 0) return status;
	if (!tr_json_member(detail, TR("tag"), &text) || !tr_natural(tr_json_text(text), &n)) return TERRARIUM_OK;
	if (!tr_json_member(detail, TR("code"), &code)) return TERRARIUM_OK;
	code = tr_json_text(code);
	// After the deadline the worker might still start the task, so it is removed.
	if (crew_of(n, &w)) status = tr_equal(code, TR("deadline")) ? crew_remove(&w) : crew_set(&w, 0);
	if (status < 0) return status;
	status = backlog_read(n, &task);
	if (status == TERRARIUM_ERR_NOT_FOUND) return TERRARIUM_OK; // it was given to another worker
	if (status < 0) return status;
	if (tr_equal(code, TR("ok"))) {
		if (why.len > 0) status = tell(task, why);
		if (status >= 0) status = backlog_done(n);
	} else if (tr_equal(code, TR("not_connected"))) {
		status = backlog_again(n, task, backlog_tries(n)); // the worker was removed: not a failure of the task
	} else {
		status = failed(n, task, code, why);
	}
	return status < 0 ? status : carry_on();
}

// lose notes that the worker of a task is missing. Its reply may already be in the
// inbox, so the task is not given to another worker before that reply has been read:
// the timer comes behind it. A timer that fired earlier does not cover this loss, so
// both have the number of the look that found it.
static int32_t lose(uint64_t n, uint64_t look) {
	uint8_t bytes[NUMBERED_MAX];
	tr_buffer number = {0};
	tr_put_natural(&number, look);
	if (number.failed) return TERRARIUM_ERR_LIMIT;
	int32_t status = tr_state_set_natural(numbered(TR("lost/"), n, bytes), look);
	if (status >= 0) status = tr_state_set_natural(TR("looks"), look);
	return status < 0 ? status : terrarium_timer_set("lost", 4, 0, 0, number.ptr, number.len);
}

// look runs when the graph has changed: it drops missing workers from the crew and
// removes those out of service.
static int32_t look(void) {
	tr_buffer fit = {0}, unfit = {0};
	tr_bytes list;
	worker w;
	uint64_t looks = count_of(TR("looks")) + 1;
	int32_t status = crew_roll(&fit, &unfit);
	if (status >= 0) status = terrarium_state_delete("refused", 7);
	if (status >= 0) status = crew_list(&list);
	while (status >= 0 && crew_next(&list, &w)) {
		if (on_roll(&fit, w.id)) continue;
		status = on_roll(&unfit, w.id) ? crew_remove(&w) : crew_forget(&w);
		if (status >= 0 && w.task > 0) status = lose(w.task, looks);
	}
	return status < 0 ? status : staff();
}

// found gives a lost task to another worker, unless it was done after all, or was
// lost after the look that set the timer.
static int32_t found(tr_bytes key, uint64_t look) {
	tr_bytes task;
	uint64_t n;
	if (count_of(key) > look || !tr_natural(tr_from(key, 5), &n)) return TERRARIUM_OK;
	int32_t status = terrarium_state_delete(key.ptr, key.len);
	if (status < 0 || backlog_read(n, &task) < 0) return status;
	return backlog_again(n, task, backlog_tries(n));
}

static int32_t find(void) {
	tr_bytes payload, list;
	uint64_t look;
	int32_t status = tr_read(TERRARIUM_SOURCE_PAYLOAD, &payload);
	if (status < 0 || !tr_natural(payload, &look)) return status;
	status = terrarium_state_list("lost/", 5, NULL, 0);
	if (status >= 0) status = tr_read(TERRARIUM_SOURCE_RESULT, &list);
	while (status >= 0 && list.len > 0) {
		int32_t end = 0;
		while (list.ptr[end]) end++;
		status = found((tr_bytes){list.ptr, end}, look);
		list = tr_from(list, end + 1);
	}
	return status < 0 ? status : carry_on();
}

static int32_t ring(void) {
	tr_bytes detail, name;
	int32_t status = tr_read(TERRARIUM_SOURCE_DETAIL, &detail);
	if (status < 0 || !tr_json_member(detail, TR("name"), &name)) return status;
	return tr_equal(name, TR("\"lost\"")) ? find() : let_go(1);
}

// answer replies to a request with the state of affairs.
static int32_t answer(void) {
	tr_bytes list;
	tr_buffer text = {0};
	uint64_t crew;
	int32_t status = crew_list(&list);
	if (status >= 0) status = crew_size(list, &crew);
	if (status < 0) return status;
	tr_put(&text, TR("{\"open\":"));
	tr_put_natural(&text, count_of(TR("open")));
	tr_put(&text, TR(",\"waiting\":"));
	tr_put_natural(&text, backlog_waiting());
	tr_put(&text, TR(",\"workers\":"));
	tr_put_natural(&text, crew);
	tr_put_byte(&text, '}');
	return text.failed ? TERRARIUM_ERR_LIMIT : terrarium_reply(text.ptr, text.len);
}

int32_t creature_handle(int32_t kind, int32_t size) {
	(void)size;
	tr_begin();
	switch (kind) {
	case TERRARIUM_KIND_MESSAGE: return hear();
	case TERRARIUM_KIND_RESULT: return concluded();
	case TERRARIUM_KIND_TIMER: return ring();
	case TERRARIUM_KIND_GRAPH_CHANGED: return look();
	case TERRARIUM_KIND_REQUEST: return answer();
	}
	return TERRARIUM_OK;
}
