"""A host for creatures on wasmtime, as an adapter of terrarium's conformance suite.

It has no WASI; otherwise it is complete. It was written from abi/README.md and docs/reference/host-adapters.md, and shares no code
with terrarium. It needs Python 3.9 and: pip install wasmtime

    terrarium conformance host --adapter "python3 host.py" --expected baseline.yaml
"""
import base64
import hashlib
import json
import os
import struct
import sys
import threading
import time

import wasmtime as w

CODES = ("ok invalid_argument not_found already_exists ambiguous not_connected not_privileged denied limit conflict stopped trapped "
         "out_of_fuel deadline too_large unsupported storage unavailable internal unknown_outcome failed").split()
KINDS = " message start output timer result graph_changed request".split(" ")
LEVELS = "debug info warn error".split()
FEATURES = "timers requests tools http awareness fuel".split()
HAS = {"timers", "requests", "tools", "awareness", "fuel"}
SOURCES = ("payload channel sender message_id headers detail config awareness_json awareness_markdown result error self "
           "awareness_revision failure").split()
BEGIN = 1767225600 * 10**9  # the time at which every world begins
DEFAULTS = dict(
    memory=64 << 20, fuel=10**9, deadline=1000, message=1 << 20, sends=1024, send_bytes=8 << 20, output=1 << 20, log_lines=256,
    log_bytes=64 << 10, state_key=512, state_value=1 << 20, state=16 << 20, state_writes=4096, calls=10**6, handles=4096, timers=256,
    requests=1024, timer_bytes=1 << 20, tools=64, table=1 << 20)
# name: parameters and result, whether it is an effect, its feature. p is a range to read,
# b a buffer to write, i and I are numbers.
FUNCTIONS = {
    "read": ("iib:i", 0, ""), "size": ("i:i", 0, ""), "feature": ("i:i", 0, ""), "config": ("pb:i", 0, ""), "channel": ("p:i", 0, ""),
    "send": ("ipp:i", 1, ""), "send_to": ("pp:i", 1, ""), "request": ("ppII:i", 1, "requests"), "reply": ("p:i", 1, "requests"),
    "output": ("p:i", 1, ""), "state_get": ("pb:i", 0, ""), "state_set": ("pp:i", 1, ""), "state_delete": ("p:i", 1, ""),
    "state_list": ("pb:i", 0, ""), "timer_set": ("pIIp:i", 1, "timers"), "timer_cancel": ("p:i", 1, "timers"), "tool": ("pp:i", 1, "tools"),
    "http": ("ppI:i", 1, "http"), "log": ("ip:i", 0, ""), "now": (":I", 0, ""), "random": ("b:i", 0, ""), "fuel_left": (":I", 0, "")}
EXPORTS = {"creature_handle": "ii:i", "creature_init": ":i", "creature_stop": ":", "_initialize": ":"}


class Answer(Exception):
    code, text = property(lambda e: e.args[0]), property(lambda e: e.args[1])


class Refused(Answer):
    """A hostcall returns an error."""


class Ended(Answer):
    """The guest is ended, or the creature is refused."""


CONFIG = w.Config()
CONFIG.consume_fuel = CONFIG.epoch_interruption = True
CONFIG.wasm_threads = CONFIG.wasm_multi_memory = CONFIG.wasm_memory64 = False
CONFIG.max_wasm_stack = 1 << 20
ENGINE = w.Engine(CONFIG)


def types(sig):
    return sig.replace("p", "ii").replace("b", "ii")


def same(t, sig):
    letters = {"i32": "i", "i64": "I"}
    text = "".join(letters.get(str(p), "?") for p in t.params) + ":" + "".join(letters.get(str(r), "?") for r in t.results)
    return text == types(sig)


def leb(b, at):
    out = shift = 0
    while True:
        out |= (b[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if b[at - 1] < 128: return out, at


def manifests(wasm):
    at = 8
    while at < len(wasm):
        kind, (size, start) = wasm[at], leb(wasm, at + 1)
        if kind == 0:
            n, name = leb(wasm, start)
            if wasm[name:name + n] == b"terrarium.creature": yield wasm[name + n:start + size]
        at = start + size


def imported_type(i):
    if i.module == "terrarium_v1" and i.name in FUNCTIONS: return FUNCTIONS[i.name][0]
    return "iiii:" if (i.module, i.name) == ("env", "abort") else None


def check(wasm):
    """Returns the module, and what is wrong with it as (code, text)."""
    if wasm[:8] != b"\0asm\1\0\0\0": return None, [("invalid_argument", "it is not a WebAssembly module of version 1")]
    try: m = w.Module(ENGINE, wasm)
    except w.WasmtimeError as e:
        return None, [("invalid_argument", str(e))]
    wrong = []
    for i in m.imports:
        sig = imported_type(i)
        if not isinstance(i.type, w.FuncType) or sig is None:
            wrong.append(("unsupported", f"the import {i.module}.{i.name} does not exist"))
        elif not same(i.type, sig): wrong.append(("invalid_argument", f"the import {i.module}.{i.name} has another type: {sig}"))
    have = {e.name: e.type for e in m.exports}
    if not isinstance(have.get("memory"), w.MemoryType): wrong.append(("invalid_argument", "the export memory is missing or no memory"))
    if not isinstance(have.get("terrarium_abi_v1"), w.FuncType):
        wrong.append(("invalid_argument", "the export terrarium_abi_v1 is missing or no function"))
    for name, sig in EXPORTS.items():
        t = have.get(name)
        if t is None and name != "creature_handle": continue
        if not isinstance(t, w.FuncType) or not same(t, sig):
            wrong.append(("invalid_argument", f"the export {name} is missing or has another type: {sig}"))
    sections = list(manifests(wasm))
    if len(sections) > 1: wrong.append(("invalid_argument", "there are two sections terrarium.creature"))
    for text in sections[:1]:
        try:
            manifest = json.loads(text)
            if not isinstance(manifest, dict): raise ValueError("no object")
            if 1 not in manifest.get("abi", [1]): wrong.append(("unsupported", "the manifest does not have version 1 of the ABI"))
        except ValueError as e:
            wrong.append(("invalid_argument", f"the manifest is not a JSON object: {e}"))
    return m, wrong


class Turn:
    """What one call into a guest reads and collects."""

    def __init__(self, phase, kind=0, q=None, now=0):
        self.phase, self.kind, self.q, self.now = phase, kind, q or {}, now
        self.error, self.failure, self.result, self.calls = b"", b"", b"", 0
        self.logs, self.log_bytes, self.words = [], 0, ""
        self.sends, self.sent, self.send_bytes, self.reply, self.output = [], 0, 0, None, None
        self.writes, self.write_count, self.timers, self.tools, self.asked = {}, 0, {}, 0, 0
        self.drawn = 0


class Creature:
    def __init__(self, world, q):
        self.world, self.q, self.name = world, q, q["creature"]
        self.wasm = base64.b64decode(q["module"])
        self.limit = dict(DEFAULTS, **(q.get("limits") or {}))
        self.lacks = set(q.get("lacks") or ()) | (set(FEATURES) - HAS)
        self.config = q.get("config") or {}
        self.state = {k.encode(): base64.b64decode(v) for k, v in (q.get("state") or {}).items()}
        self.sends = [(e["alias"], e["channel"]) for e in q.get("send") or ()]
        self.listens = [(e["alias"], e["channel"]) for e in q.get("listen") or ()]
        self.timers, self.open, self.made, self.store, self.revision = {}, 0, 0, None, 1
        self.module, wrong = check(self.wasm)
        if wrong: raise Ended(*wrong[0])

    # Running a guest.

    def start(self, now):
        """Makes an instance, and returns the turn of creature_init."""
        lim = self.limit
        for e in self.module.exports:
            if e.name == "memory" and e.type.limits.min * 65536 > lim["memory"]:
                raise Ended("limit", "the initial memory is beyond the limit memory")
        store = w.Store(ENGINE)
        store.set_limits(memory_size=lim["memory"], table_elements=lim["table"])
        store.set_fuel(lim["fuel"])
        store.set_epoch_deadline(10**9)
        linker = w.Linker(ENGINE)
        for i in self.module.imports: linker.define_func(i.module, i.name, i.type, self.function(i), access_caller=True)
        self.store, self.handles = store, []
        early = self.turn = Turn("start")
        self.made += 1
        try:
            instance = self.guarded(lambda: linker.instantiate(store, self.module), 10)
            self.exports = instance.exports(store)
            early.phase = "_initialize"
            self.call("_initialize", 10)
            init = self.turn = Turn("creature_init", now=now)
            init.logs = early.logs
            status = self.call("creature_init", 10) or 0
            if status < 0: raise Ended(*self.failure(status))
        except Ended as e:
            e.logs, self.store = self.turn.logs, None
            raise
        except w.WasmtimeError as e:
            self.store = None
            raise Ended("limit", "the initial table is beyond the limit table") if "table" in str(e) else Ended("trapped", str(e))
        return init

    def call(self, name, deadlines=1, *args):
        f = self.exports.get(name)
        if f is None: return None
        self.store.set_fuel(self.limit["fuel"])
        return self.guarded(lambda: f(self.store, *args), deadlines)

    def guarded(self, f, deadlines):
        """Runs a guest within its deadline and says how it ended."""
        self.store.set_epoch_deadline(1)
        watch = threading.Timer(self.limit["deadline"] * deadlines / 1000, ENGINE.increment_epoch)
        watch.start()
        try: return f()
        except w.Trap as t:
            code = {w.TrapCode.STACK_OVERFLOW: "limit", w.TrapCode.OUT_OF_FUEL: "out_of_fuel", w.TrapCode.INTERRUPT: "deadline"}.get(t.trap_code, "trapped")
            raise Ended(code, t.message)
        finally:
            watch.cancel()
            watch.join()

    def failure(self, status):
        code = CODES[-status] if -status < len(CODES) else "trapped"
        return code, f"the guest returned {status}: {self.turn.words or self.turn.error.decode(errors='replace')}"

    def handle(self, q, now):
        """Runs one turn and returns (turn, code, text). Its effects have been applied."""
        logs = []
        try:
            if self.store is None: logs = self.start(now).logs
            if KINDS[q["kind"]:q["kind"] + 1] == ["graph_changed"]: self.revision += 1
            t = self.turn = Turn("creature_handle", q["kind"], q, now)
            status = self.call("creature_handle", 1, q["kind"], len(q["payload"]))
            if status < 0: raise Ended(*self.failure(status))
        except Ended as e:
            t, self.store = self.turn, None
            t.logs = logs + t.logs
            return t, e.code, e.text
        t.logs = logs + t.logs
        self.state = {k: v for k, v in {**self.state, **t.writes}.items() if v is not None}
        self.timers.update({n: x and dict(x, due=now + x["delay"] * 10**6) for n, x in t.timers.items()})
        self.timers = {n: x for n, x in self.timers.items() if x}
        if self.q.get("fresh"): self.store = None
        return t, "ok", ""

    # Hostcalls.

    def function(self, i):
        if i.module == "terrarium_v1":
            sig, effect, feature = FUNCTIONS[i.name]
            do = getattr(self, "h_" + i.name, None)
            return lambda caller, *args: self.hostcall(caller, i.name, sig, effect, feature, do, args)
        return lambda caller, *args: self.abort(caller["memory"], caller, *args)

    def count(self):
        self.turn.calls += 1
        if self.turn.calls >= 2 * self.limit["calls"]: raise Ended("limit", "twice the limit calls is reached")
        return self.turn.calls <= self.limit["calls"]

    def hostcall(self, caller, name, sig, effect, feature, do, args):
        self.caller, self.mem = caller, caller["memory"]
        t = self.turn
        try:
            if not self.count(): raise Refused("limit", "the limit calls is reached")
            if effect and t.phase != "creature_handle": raise Refused("denied", f"{name} has an effect, and {t.phase} may only read")
            if feature and feature in self.lacks: raise Refused("unsupported", f"this host does not have {feature}")
            values, rest = [], list(args)
            for kind in sig.split(":")[0]:
                if kind in "pb":
                    ptr, size = rest.pop(0) & 0xFFFFFFFF, rest.pop(0)
                    if size < 0 or size and ptr + size > self.mem.data_len(caller):
                        raise Refused("invalid_argument", f"{name}: {size} bytes at {ptr} lie outside of the memory")
                    values.append((ptr, size) if kind == "b" else bytes(self.mem.read(caller, ptr, ptr + size)) if size else b"")
                else:
                    values.append(rest.pop(0))
                    if kind == "I" and name in ("request", "timer_set") and len(values) < 4 and values[-1] < 0:
                        raise Refused("invalid_argument", f"{name}: a time is negative")
            return do(*values) or 0
        except Refused as e:
            t.error, t.failure = e.text.encode(), f"{name}: {e.text} ({e.code})".encode()
            return -CODES.index(e.code)

    def put(self, buffer, data):
        ptr, cap = buffer
        if data[:cap]: self.mem.write(self.caller, data[:cap], ptr)
        return min(cap, len(data))

    def over(self, name, code="limit"): raise Refused(code, f"the limit {name} ({self.limit[name]}) is reached")

    def source(self, n):
        t, q = self.turn, self.turn.q
        if not 0 <= n < len(SOURCES): raise Refused("not_found", f"there is no source {n}")
        name = SOURCES[n]
        if name.startswith("awareness"):
            if "awareness" in self.lacks: raise Refused("unsupported", "this host has no awareness documents")
            return {"awareness_json": json.dumps({"revision": self.revision}), "awareness_markdown": f"# {self.name}\n",
                    "awareness_revision": str(self.revision)}[name].encode()
        if name == "config": return dumps(self.config)
        if name == "self": return self.name.encode()
        if name in ("result", "error", "failure"): return getattr(t, name)
        if name == "detail": return self.detail()
        if name == "headers":
            return b"".join(a.encode("utf-8", "surrogateescape") + b"\0" + b.encode("utf-8", "surrogateescape") + b"\0" for a, b in q.get("headers") or ())
        return {"payload": q.get("payload", b""), "channel": (q.get("alias") or self.name).encode(), "sender": (q.get("sender") or "").encode(),
                "message_id": b"%d" % q["message"] if q.get("message") else b""}[name]

    def detail(self):
        t, q = self.turn, self.turn.q
        kind = KINDS[t.kind] if 0 < t.kind < len(KINDS) else str(t.kind)
        more = {"message": lambda: {"direct": not q.get("alias"), "seq": q.get("message", 0)}, "timer": lambda: {"name": q.get("name", "")},
                  "output": lambda: {"source": q.get("sender", ""), "wire": q.get("wire", "")},
                  "result": lambda: {"tag": str(q.get("tag", 0)), "code": q.get("code") or "ok"},
                  "graph_changed": lambda: {"revision": self.revision},
                  "request": lambda: {"deadline_ms": q.get("deadline", 0)}}
        return dumps({"kind": kind, "attempt": q.get("attempt", 1), "time": t.now, **more.get(kind, dict)()})

    def h_read(self, source, offset, buffer):
        if offset < 0: raise Refused("invalid_argument", "the offset is negative")
        return self.put(buffer, self.source(source)[offset:])

    def h_size(self, source): return len(self.source(source))
    def h_feature(self, n): return int(0 <= n < len(FEATURES) and FEATURES[n] not in self.lacks)

    def keep(self, data, buffer):
        self.put(buffer, data)
        self.turn.result = data
        return len(data)

    def h_config(self, key, buffer):
        v = self.config.get(key.decode(errors="replace"), Refused)
        if v is Refused: raise Refused("not_found", "the configuration has no such member")
        return self.keep(v.encode() if isinstance(v, str) else dumps(v), buffer)

    def h_channel(self, alias):
        if not 1 <= len(alias) <= 256 or not utf8(alias): raise Refused("invalid_argument", "an alias is UTF-8 of 1 to 256 bytes")
        if alias not in self.handles:
            if len(self.handles) >= self.limit["handles"]: self.over("handles")
            self.handles.append(alias)
        return self.handles.index(alias)

    def room(self, n, payload, headers=b""):
        t, size = self.turn, len(payload) + len(headers)
        if size > self.limit["message"]: self.over("message", "too_large")
        parts = headers.split(b"\0")
        if headers and (parts[-1] or len(parts) % 2 == 0 or b"" in parts[:-1:2]):
            raise Refused("invalid_argument", "the headers are malformed")
        pairs = dict(zip(parts[:-1:2], parts[1::2]))
        if any(name[:10].lower() == b"terrarium-" for name in pairs):
            raise Refused("invalid_argument", "names that begin with terrarium- are reserved")
        if t.sent + n > self.limit["sends"]: self.over("sends")
        if t.send_bytes + n * size > self.limit["send_bytes"]: self.over("send_bytes")
        t.sent, t.send_bytes = t.sent + n, t.send_bytes + n * size
        return [[a.decode("utf-8", "surrogateescape"), b.decode("utf-8", "surrogateescape")] for a, b in sorted(pairs.items())]

    def h_send(self, handle, payload, headers):
        if handle == -1: aliases = [a for a, _ in self.sends]
        elif not 0 <= handle < len(self.handles): raise Refused("invalid_argument", f"{handle} is not a handle")
        else:
            aliases = [a for a, _ in self.sends if a.encode() == self.handles[handle]]
            if not aliases: raise Refused("not_connected", "the alias is bound to no channel")
        pairs = self.room(len(aliases), payload, headers)
        self.turn.sends += [dict(kind="send", to=a, payload=b64(payload), headers=pairs) for a in aliases]
        return len(aliases)

    def peer(self, to):
        name = to.decode(errors="replace")
        if name not in self.world.creatures: raise Refused("not_found", "there is no such creature in this graph")
        return name

    def h_send_to(self, to, payload):
        name = self.peer(to)
        self.room(1, payload)
        self.turn.sends.append(dict(kind="send_to", to=name, payload=b64(payload)))

    def h_request(self, to, payload, deadline, tag):
        name = self.peer(to)
        if deadline == 0: raise Refused("invalid_argument", "a request needs time")
        if self.open + self.turn.asked >= self.limit["requests"]: self.over("requests")
        self.room(1, payload)
        self.turn.asked += 1
        self.turn.sends.append(dict(kind="request", to=name, payload=b64(payload), tag=tag, ms=deadline))

    def h_reply(self, payload):
        if self.turn.kind != KINDS.index("request"): raise Refused("denied", "this turn handles no request")
        if self.turn.reply is not None: raise Refused("already_exists", "there is a reply already")
        if len(payload) > self.limit["message"]: self.over("message", "too_large")
        self.turn.reply = payload

    def h_output(self, data):
        if len(self.turn.output or b"") + len(data) > self.limit["output"]: self.over("output")
        self.turn.output = (self.turn.output or b"") + data

    def key(self, key, limited=True):
        if not key or b"\0" in key or not utf8(key): raise Refused("invalid_argument", "a key is UTF-8, not empty and without NUL")
        if limited and len(key) > self.limit["state_key"]: self.over("state_key", "too_large")

    def seen(self):
        """The state as the turn sees it."""
        return {k: v for k, v in {**self.state, **self.turn.writes}.items() if v is not None}

    def h_state_get(self, key, buffer):
        self.key(key, False)
        if key not in self.seen(): raise Refused("not_found", "there is no such key")
        return self.keep(self.seen()[key], buffer)

    def write(self, key, value):
        if self.turn.write_count >= self.limit["state_writes"]: self.over("state_writes")
        after = {**self.seen(), key: value}
        if value is not None and sum(len(k) + len(v) + 32 for k, v in after.items()) > self.limit["state"]: self.over("state")
        self.turn.write_count += 1
        self.turn.writes[key] = value

    def h_state_set(self, key, value):
        self.key(key)
        if len(value) > self.limit["state_value"]: self.over("state_value", "too_large")
        self.write(key, value)

    def h_state_delete(self, key):
        self.key(key)
        if key not in self.seen(): return 0
        self.write(key, None)
        return 1

    def h_state_list(self, prefix, buffer):
        return self.keep(b"".join(k + b"\0" for k in sorted(self.seen()) if k.startswith(prefix)), buffer)

    def set_timers(self): return {k: v for k, v in {**self.timers, **self.turn.timers}.items() if v}

    def h_timer_set(self, name, delay, period, payload):
        self.key(name)
        if len(payload) > self.limit["message"]: self.over("message", "too_large")
        after = {**self.set_timers(), name: dict(delay=min(delay, 9223372036854), period=min(period, 9223372036854), payload=payload)}
        if len(after) > self.limit["timers"]: self.over("timers")
        if sum(len(n) + len(x["payload"]) for n, x in after.items()) > self.limit["timer_bytes"]: self.over("timer_bytes")
        self.turn.timers[name] = after[name]

    def h_timer_cancel(self, name):
        self.key(name)
        if name not in self.set_timers(): return 0
        self.turn.timers[name] = None
        return 1

    def h_tool(self, name, args):
        if self.turn.tools >= self.limit["tools"]: self.over("tools")
        self.turn.tools += 1
        for tool in self.q.get("tools") or ():
            if tool["name"].encode() == name:
                if tool.get("code"): raise Refused(tool["code"], "the tool refuses")
                self.turn.result = tool["result"].encode()
                return len(self.turn.result)
        raise Refused("not_found", "there is no such tool")

    def h_log(self, level, text):
        t = self.turn
        if not 0 <= level < len(LEVELS): raise Refused("invalid_argument", "there is no such level")
        if level >= 2: t.words = text.decode(errors="replace")
        if len(t.logs) >= self.limit["log_lines"]: self.over("log_lines")
        room, line = self.limit["log_bytes"] - t.log_bytes, text.decode(errors="replace")
        if len(text) > room:
            if room < 3: self.over("log_bytes")
            line = text[:room - 3].decode(errors="ignore") + "…"
        t.log_bytes += min(len(text), room)
        t.logs.append([LEVELS[level], line])

    def h_now(self):
        if self.turn.phase in ("start", "_initialize"): return 0
        return time.time_ns() if self.q.get("grant_clock") else self.turn.now

    def draw(self, size):
        t = self.turn
        if t.phase in ("start", "_initialize"): seed = hashlib.sha256(self.wasm).digest()
        elif self.q.get("grant_random"): return os.urandom(size)
        else: seed = repr((self.name, t.kind, t.q.get("message"), t.now if not t.q.get("message") else 0)).encode()
        out, first = b"", t.drawn
        t.drawn += size
        for block in range(first // 32, (first + size) // 32 + 1): out += hashlib.sha256(seed + b"%d" % block).digest()
        return out[first % 32:first % 32 + size]

    def h_random(self, buffer): return self.put(buffer, self.draw(buffer[1])) * 0

    def h_fuel_left(self): return self.store.get_fuel()

    def abort(self, mem, caller, message, *_):
        try:
            size = struct.unpack("<I", mem.read(caller, message - 4, message))[0]
            text = mem.read(caller, message, message + min(size, 512)).decode("utf-16-le", "replace")
        except (w.WasmtimeError, IndexError, struct.error):
            text = ""
        raise Ended("trapped", "the guest aborted: " + text)


class World:
    """Creatures, a clock, and the deliveries that wait."""

    def __init__(self): self.creatures, self.queue, self.open, self.now, self.ids = {}, [], {}, BEGIN, 10**6

    def turn(self, c, q, asked=None):
        q.setdefault("payload", b"")
        self.ids += 1
        q.setdefault("message", self.ids)
        t, code, text = c.handle(q, self.now)
        out = dict(creature=c.name, kind=q["kind"], alias=q.get("alias", ""), payload=b64(q["payload"]), status=code, text=text, logs=t.logs)
        if code == "ok":
            out["effects"] = effects(t, c)
            self.route(c, t)
        if asked is not None:
            reply = (("ok", t.reply) if t.reply is not None else ("unavailable", b"it was handled without a reply")) if code == "ok" else (code, text.encode())
            self.answer(asked, *reply)
        return out

    def publish(self, sender, channel, q):
        for c in self.creatures.values():
            for alias, listened in c.listens:
                if listened == channel and c.name != sender: self.queue.append((c.name, dict(q, kind=1, alias=alias), None))

    def route(self, c, t):
        for e in t.sends:
            self.ids += 1
            q = dict(kind=1, payload=base64.b64decode(e["payload"]), sender=c.name, message=self.ids, headers=e.get("headers"))
            if e["kind"] == "send": self.publish(c.name, dict(c.sends)[e["to"]], q)
            elif e["kind"] == "send_to": self.queue.append((e["to"], q, None))
            else:
                self.open[self.ids] = (c, e["tag"], self.now + e["ms"] * 10**6)
                c.open += 1
                self.queue.append((e["to"], dict(q, kind=7, deadline=e["ms"]), self.ids))

    def answer(self, asked, code, payload):
        c, tag, _ = self.open.pop(asked, (None, 0, 0))
        if c:
            c.open -= 1
            self.queue.append((c.name, dict(kind=5, tag=tag, code=code, payload=payload), None))

    def advance(self, ms):
        end, turns = self.now + ms * 10**6, []
        while True:
            while self.queue:
                name, q, asked = self.queue.pop(0)
                turns.append(self.turn(self.creatures[name], q, asked))
            due = [(x["due"], 0, name, c) for c in self.creatures.values() for name, x in c.timers.items()]
            due += [(at, 1, asked, c) for asked, (c, _, at) in self.open.items()]
            first = min(due, key=lambda x: x[:2], default=None)
            if first is None or first[0] > end:
                self.now = end
                return turns
            self.now, late, name, c = max(self.now, first[0]), *first[1:]
            if late:
                self.answer(name, "deadline", b"no reply came in time")
                continue
            x = c.timers[name]
            self.queue.append((c.name, dict(kind=4, name=name.decode(), payload=x["payload"]), None))
            if x["period"]: x["due"] += x["period"] * 10**6
            else: del c.timers[name]

    def do(self, q):
        op = q["op"]
        if op == "hello": return dict(host="wasmtime-python", version="1", features=sorted(HAS))
        if op == "reset":
            self.__init__()
            return {}
        if op == "check": return dict(problems=[dict(code=c, text=t) for c, t in check(base64.b64decode(q["module"]))[1]])
        if op == "advance": return dict(turns=self.advance(q.get("ms", 0)))
        q["payload"] = base64.b64decode(q.get("payload") or "")
        if op == "send":
            self.ids += 1
            self.publish("", q["channel"], dict(payload=q["payload"], message=self.ids, headers=q.get("headers")))
            return {}
        if op == "load":
            out = dict(creature=q["creature"], status="ok")
            try:
                c = Creature(self, q)
                out["logs"] = c.start(self.now).logs
                self.creatures[c.name] = c
            except Ended as e:
                out.update(status=e.code, text=e.text, logs=getattr(e, "logs", []))
            return dict(turns=[out], instances=1)
        c = self.creatures[q["creature"]]
        out = {}
        if op == "deliver":
            if q["kind"] == 4: c.timers.pop(q.get("name", "").encode(), None)
            out["turns"] = [self.turn(c, {k: v for k, v in q.items() if k != "creature"})]
        elif op == "stop":
            c.turn = Turn("creature_stop", now=self.now)
            turn = dict(creature=c.name, status="ok")
            try: c.call("creature_stop")
            except Ended as e:
                turn.update(status=e.code, text=e.text)
            out["turns"], c.store = [dict(turn, logs=c.turn.logs)], None
        elif op == "drop": c.store = None
        else: return dict(lacks=f"the operation {op}")
        return dict(out, instances=c.made)


def effects(t, c):
    out = list(t.sends)
    if t.reply is not None: out.append(dict(kind="reply", payload=b64(t.reply)))
    if t.output is not None: out.append(dict(kind="output", payload=b64(t.output)))
    out += [dict(kind="delete", to=k.decode()) if v is None else dict(kind="state", to=k.decode(), payload=b64(v)) for k, v in t.writes.items()]
    out += [dict(kind="timer", to=n.decode(), payload=b64(x["payload"]), ms=x["delay"], period=x["period"]) if x else dict(kind="cancel", to=n.decode())
            for n, x in t.timers.items()]
    return out


def b64(data): return base64.b64encode(data).decode()


def dumps(v): return json.dumps(v, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogateescape")


def utf8(b): return b.decode(errors="ignore").encode() == b


def main():
    world = World()
    for line in sys.stdin:
        q = json.loads(line)
        try: answer = world.do(q)
        except Exception as e:  # a defect of the adapter; the suite reports it
            answer = dict(error=repr(e))
        print(json.dumps(dict(answer, id=q["id"])), flush=True)


if __name__ == "__main__": main()
