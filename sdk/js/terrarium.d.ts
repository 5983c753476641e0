import type { Code, Feature, Kind, Level, Tools } from "./abi";

export type { Code, Feature, Kind, Level, Tools } from "./abi";

/** What can be sent or stored: a text, bytes, or anything that has JSON. */
export type Data = string | Uint8Array | object | number | boolean | null;

/** The delivery that a handler handles, and what it can do. */
export interface Turn {
	readonly kind: Kind;
	/** The payload as bytes. text() and json() throw if it is not UTF-8, or not JSON. */
	readonly payload: Uint8Array;
	text(): string;
	json(): any;
	/** The listen alias of the message's channel, or the own name for a direct message. */
	readonly channel: string;
	/** The sender's name; empty when the message came from outside. */
	readonly sender: string;
	readonly messageId: string;
	readonly self: string;
	readonly headers: { [name: string]: string };
	header(name: string): string | undefined;
	readonly detail: { [name: string]: any };
	/** Whether a message was sent directly. */
	readonly direct: boolean;
	readonly attempt: number;
	readonly timerName: string | undefined;
	/** The tag of the request that a result belongs to. */
	readonly tag: number | bigint | undefined;
	readonly resultCode: "ok" | Code | undefined;
	/** The status of an HTTP response. */
	readonly status: number | undefined;

	/** The configuration, without the attribute script of builtin:js. */
	readonly config: { [key: string]: any };
	/** One attribute. Without a default, it is required. */
	configText(key: string, otherwise?: string): string;
	configWhole(key: string, least: number, most: number, otherwise?: number): number;
	configBool(key: string, otherwise?: boolean): boolean;
	/** Refuses all attributes but these. */
	configKnows(...names: string[]): void;

	readonly state: State;
	readonly tools: Tools;
	/** Calls any group tool, with the arguments as the host names them. */
	tool(name: string, args?: object): any;

	send(alias: string, value: Data, headers?: { [name: string]: string | number }): void;
	/** Sends on every channel that the creature may send on, and returns their number. */
	sendAll(value: Data, headers?: { [name: string]: string | number }): number;
	sendTo(creature: string, value: Data): void;
	output(value: Data): void;
	request(creature: string, value: Data, options: { deadlineMs: number; tag?: number | bigint }): void;
	/**
	 * Sends an HTTP request once the turn has taken effect. The method is GET by default. The response arrives as a
	 * result with the tag.
	 */
	http(url: string, request?: { method?: string; headers?: { [name: string]: string | number }; body?: Data; tag?: number | bigint }): void;
	reply(value: Data): void;
	setTimer(name: string, options?: { delayMs?: number; periodMs?: number; payload?: Data }): void;
	/** Returns whether the timer was set. */
	cancelTimer(name: string): boolean;

	readonly awareness: any;
	readonly awarenessMarkdown: string;
	readonly awarenessRevision: number;
	log(level: Level, text: string): void;
	readonly now: Date;
	random(bytes: number): Uint8Array;
	/** The fuel left in the turn, or -1 if the host does not count it. */
	readonly fuelLeft: number;
	hasFeature(name: Feature): boolean;
}

/** The state of a creature. Missing keys are undefined. */
export interface State {
	get(key: string): any;
	set(key: string, value: any): void;
	getText(key: string): string | undefined;
	setText(key: string, value: string): void;
	getBytes(key: string): Uint8Array | undefined;
	setBytes(key: string, value: Uint8Array): void;
	/** A whole number in decimal; 0 if it is missing. */
	getWhole(key: string): number;
	setWhole(key: string, value: number): void;
	/** Returns whether there was a value. */
	delete(key: string): boolean;
	/** The keys with a prefix, in byte order. */
	list(prefix?: string): string[];
}

/** What a script exports by default: a handler for each kind of delivery that it handles. */
export interface Creature {
	/** Runs when an instance starts, and may only read. An exception prevents the start. */
	init?(turn: Turn): void | Promise<void>;
	start?(turn: Turn): void | Promise<void>;
	message?(turn: Turn): void | Promise<void>;
	output?(turn: Turn): void | Promise<void>;
	timer?(turn: Turn): void | Promise<void>;
	result?(turn: Turn): void | Promise<void>;
	graphChanged?(turn: Turn): void | Promise<void>;
	request?(turn: Turn): void | Promise<void>;
}

declare global {
	/** An error with a code of the contract. */
	class TerrariumError extends Error {
		constructor(code: Code, message: string);
		readonly code: Code;
		readonly status: number;
	}
}

export const TerrariumError: typeof globalThis.TerrariumError;

/** A message in a fake host, with the payload as text and as bytes. */
export interface Sent {
	channel: string;
	payload: string;
	bytes: Uint8Array;
	headers: { [name: string]: string };
}

/** What a turn did. */
export interface Effects {
	sent: Sent[];
	/** Messages to one creature, sent with `sendTo`. */
	direct: { creature: string; payload: string; bytes: Uint8Array }[];
	outputs: string[];
	requests: { creature: string; payload: string; bytes: Uint8Array; deadlineMs: number; tag: number | bigint }[];
	/** HTTP requests; head is the JSON of method, url and headers. */
	https: { head: { method?: string; url: string; headers?: { [name: string]: string } }; body: string; bytes: Uint8Array; tag: number | bigint }[];
	reply: string | undefined;
}

/** A host for unit tests. Deliveries throw what the handler throws; then they have no effect but their log lines. */
export class FakeHost {
	constructor(script: Creature, options?: {
		config?: object;
		/** The send aliases that have a channel. */
		channels?: string[];
		features?: Feature[];
		/** The creatures that can be named; all names without it. */
		creatures?: string[];
		/** Answers calls of group tools. To refuse one, it throws a TerrariumError. */
		tools?: (name: string, args: any) => any;
	});
	config: object;
	channels: string[];
	self: string;
	/** Milliseconds since 1970. */
	now: number;
	state: Map<string, Uint8Array>;
	timers: Map<string, { name: string; at: number; periodMs: number; payload: Uint8Array }>;
	readonly sent: Effects["sent"];
	readonly direct: Effects["direct"];
	readonly outputs: Effects["outputs"];
	readonly requests: Effects["requests"];
	readonly https: Effects["https"];
	/** Log lines, each with its level in front. */
	readonly logs: string[];
	stateText(key: string): string | undefined;
	init(): Promise<void>;
	deliver(kind: Kind, sources?: object): Promise<Effects>;
	message(alias: string, payload: string | Uint8Array, headers?: { [name: string]: string }, from?: { sender?: string; direct?: boolean }): Promise<Effects>;
	start(): Promise<Effects>;
	output(source: string, payload: string | Uint8Array): Promise<Effects>;
	request(payload: string | Uint8Array, from?: { sender?: string }): Promise<string | undefined>;
	answer(tag: number | bigint, payload: string | Uint8Array): Promise<Effects>;
	fail(tag: number | bigint, code: Code, text: string): Promise<Effects>;
	/** Delivers the response to an HTTP request of the creature. */
	respond(tag: number | bigint, status: number, body: string | Uint8Array, headers?: { [name: string]: string }): Promise<Effects>;
	advance(ms: number): Promise<void>;
	setAwareness(document: object, markdown?: string): void;
	graphChanged(): Promise<Effects>;
}
