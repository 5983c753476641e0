// The backlog of a foreman, in its state: tasks that wait, and tasks that a worker
// has. A task has a number; a task that is done again gets a new one, so that a late
// reply never counts for the second attempt.
//
//	task/N    what is to be done, until it is
//	tries/N   how often that has failed, if it has
//	last      the number of the youngest task
//	handed    the number up to which tasks have been handed out
//	open      how many tasks are not done
#ifndef BACKLOG_H
#define BACKLOG_H

#include "bare.h"

#define NUMBERED_MAX 32 // bytes of a key that contains a number

// numbered writes a prefix and a number into the caller's bytes.
static tr_bytes numbered(tr_bytes prefix, uint64_t n, uint8_t key[NUMBERED_MAX]) {
	tr_buffer b = {.ptr = key, .cap = NUMBERED_MAX};
	tr_put(&b, prefix);
	tr_put_natural(&b, n);
	return tr_view(&b);
}

static uint64_t count_of(tr_bytes key) {
	uint64_t n;
	tr_state_natural(key, &n);
	return n;
}

// backlog_waiting returns how many tasks have no worker yet.
static uint64_t backlog_waiting(void) { return count_of(TR("last")) - count_of(TR("handed")); }

static int32_t delete_numbered(tr_bytes prefix, uint64_t n) {
	uint8_t bytes[NUMBERED_MAX];
	tr_bytes key = numbered(prefix, n, bytes);
	return terrarium_state_delete(key.ptr, key.len);
}

// backlog_put puts a task at the end, without counting it as another open one.
static int32_t backlog_put(tr_bytes task, uint64_t tries) {
	uint8_t bytes[NUMBERED_MAX];
	uint64_t n = count_of(TR("last")) + 1;
	tr_bytes key = numbered(TR("task/"), n, bytes);
	int32_t status = terrarium_state_set(key.ptr, key.len, task.ptr, task.len);
	if (status >= 0 && tries > 0) status = tr_state_set_natural(numbered(TR("tries/"), n, bytes), tries);
	return status < 0 ? status : tr_state_set_natural(TR("last"), n);
}

// backlog_add adds a new task.
static int32_t backlog_add(tr_bytes task) {
	int32_t status = backlog_put(task, 0);
	return status < 0 ? status : tr_state_set_natural(TR("open"), count_of(TR("open")) + 1);
}

// backlog_read reads a task that is not done; TERRARIUM_ERR_NOT_FOUND if it is.
static int32_t backlog_read(uint64_t n, tr_bytes *task) {
	uint8_t bytes[NUMBERED_MAX];
	return tr_state(numbered(TR("task/"), n, bytes), task);
}

// backlog_forget deletes all data of a task number.
static int32_t backlog_forget(uint64_t n) {
	int32_t status = delete_numbered(TR("task/"), n);
	return status < 0 ? status : delete_numbered(TR("tries/"), n);
}

// backlog_done closes a task, done or not.
static int32_t backlog_done(uint64_t n) {
	int32_t status = backlog_forget(n);
	return status < 0 ? status : tr_state_set_natural(TR("open"), count_of(TR("open")) - 1);
}

static uint64_t backlog_tries(uint64_t n) {
	uint8_t bytes[NUMBERED_MAX];
	return count_of(numbered(TR("tries/"), n, bytes));
}

// backlog_again puts a task that was handed out at the end of the waiting tasks.
static int32_t backlog_again(uint64_t n, tr_bytes task, uint64_t tries) {
	int32_t status = backlog_forget(n);
	return status < 0 ? status : backlog_put(task, tries);
}

#endif // BACKLOG_H
