// The connection to the server: operations and the stream of events. The browser holds the
// cookie; this code never sees a token.

export class ApiError extends Error {
  constructor(status, body) {
    super(body.detail || body.message || body.title || `The server answered ${status}.`)
    this.status = status
    this.code = body.code || ''
    this.remedy = body.remedy || ''
    this.ids = body.ids || {}
    this.body = body
  }
}

// skew is how far the server's clock is ahead of this one, in milliseconds. It is 0 if
// the clocks differ by little: the header Date has whole seconds.
export let skew = 0

export async function call(operation, args = {}, signal) {
  let answer
  try {
    answer = await fetch('api/v1/' + operation, {
      method: 'POST', credentials: 'same-origin', cache: 'no-store', signal,
      headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(args),
    })
  } catch (err) {
    if (err.name === 'AbortError') throw err
    throw new ApiError(0, { detail: 'The server cannot be reached.', code: 'unavailable' })
  }
  const date = Date.parse(answer.headers.get('Date'))
  if (date) {
    const off = date - Date.now()
    skew = Math.abs(off) > 2500 ? off : 0
  }
  let body = {}
  try { body = await answer.json() } catch { /* an answer without a body is only its status */ }
  if (!answer.ok) throw new ApiError(answer.status, body)
  return body
}

export const now = () => Date.now() + skew

// The kinds are those of docs/reference/events.md; an EventSource only passes on
// events whose names have a listener.
export const kinds = [
  'channel_message', 'direct_message', 'timer', 'request', 'result', 'wired_output', 'turn_started', 'turn_ended', 'turn_failed',
  'output', 'state', 'log', 'dead_letter', 'policy_denied', 'creature_started', 'creature_stopped', 'creature_failed',
  'creature_quarantined', 'instance_started', 'module_replaced', 'creature_session_attached', 'parent_link_changed',
  'output_wire_added', 'output_wire_removed', 'topology_changed', 'session_merged', 'session_forked', 'store_set_aside',
  'approval_asked', 'approval_decided', 'outbound_request', 'budget_changed', 'recipe_stopped', 'recipe_continued', 'lagged',
]

const waits = [1000, 2000, 4000, 8000, 15000]

// Stream is the subscription of the page. After a lost connection it continues after the
// last cursor that it has received, so that no event is left out.
export class Stream {
  constructor(on) {
    this.on = on // {event(event), open(), lost(wait), ended()}
    this.cursor = ''
    this.tries = 0
  }

  start() {
    clearTimeout(this.timer)
    this.source?.close()
    const source = new EventSource('api/v1/events' + (this.cursor ? '?after=' + encodeURIComponent(this.cursor) : ''))
    this.source = source
    source.onopen = () => { this.tries = 0; this.on.open() }
    source.onerror = () => this.retry()
    const receive = message => {
      if (message.lastEventId) this.cursor = message.lastEventId
      let event
      try { event = JSON.parse(message.data) } catch { return }
      event.kind ||= message.type
      this.on.event(event)
    }
    for (const kind of kinds) source.addEventListener(kind, receive)
    source.onmessage = receive
    source.addEventListener('ended', () => { this.stop(); this.on.ended() })
  }

  retry() {
    this.source?.close()
    clearTimeout(this.timer)
    const wait = waits[Math.min(this.tries++, waits.length - 1)]
    this.timer = setTimeout(() => this.start(), wait)
    this.on.lost(wait)
  }

  stop() {
    clearTimeout(this.timer)
    this.source?.close()
  }
}
