// What the page knows: the graphs as status describes them, what the events since then
// have changed, and how often things happened in the last minutes.
import { severity } from './lib.js'

const second = 1000

// Meter counts events by second for a span of time.
export class Meter {
  constructor(seconds) {
    this.seconds = seconds
    this.counts = new Uint32Array(seconds)
    this.last = 0
  }

  add(ts, n = 1) {
    const at = Math.floor(ts / second)
    if (at > this.last) this.advance(at)
    if (at > this.last - this.seconds) this.counts[at % this.seconds] += n
  }

  advance(at) {
    const from = Math.max(this.last + 1, at - this.seconds + 1)
    for (let i = from; i <= at; i++) this.counts[i % this.seconds] = 0
    this.last = at
  }

  // sum is the count of the whole seconds from (including) to (excluding) these times.
  sum(from, to) {
    let n = 0
    const first = Math.max(Math.floor(from / second), this.last - this.seconds + 1)
    const end = Math.min(Math.floor(to / second), this.last + 1)
    for (let i = first; i < end; i++) n += this.counts[i % this.seconds]
    return n
  }
}

const messageKinds = new Set(['channel_message', 'direct_message', 'timer', 'request', 'result', 'wired_output'])
const bodies = new Set([...messageKinds, 'output', 'state'])
const structural = new Set(['topology_changed', 'creature_started', 'creature_stopped', 'recipe_stopped', 'recipe_continued', 'creature_quarantined', 'creature_failed',
  'output_wire_added', 'output_wire_removed', 'parent_link_changed', 'module_replaced', 'turn_failed', 'dead_letter', 'approval_asked', 'approval_decided', 'store_set_aside'])

const kept = 2000 // events in the list
const most = 5000 // names of removed creatures and channels
const remembered = 40 // turns of a creature

export class Store extends EventTarget {
  constructor(now) {
    super()
    this.now = now
    this.begun = now()
    this.graphs = new Map()
    this.creatures = new Map()
    this.channels = new Map()
    this.former = new Map() // names of removed creatures and channels
    this.problems = []
    this.connectors = [] // sources and sinks
    this.meters = new Map()
    this.total = new Meter(1200)
    this.turns = new Map()
    this.failed = new Map()
    this.events = []
    this.flags = []
    this.deadLetters = 0
    this.window = 10
    this.slots = new Map()
    this.title = ''
    this.durability = ''
  }

  emit(type, detail) { this.dispatchEvent(new CustomEvent(type, { detail })) }

  // slot is the colour and border of a graph: it belongs to the id. From the seventh on
  // colours repeat with another border.
  slot(id) {
    if (this.slots.has(id)) return this.slots.get(id)
    const used = new Set([...this.graphs.keys()].map(g => this.slots.get(g)))
    let slot = 0
    while (used.has(slot)) slot++
    this.slots.set(id, slot)
    return slot
  }

  // status takes over a whole status, and emits what has changed.
  status(answer) {
    const before = new Map([...this.creatures].map(([id, c]) => [id, c.graph]))
    const live = new Map(answer.graphs.map(g => [g.id, g]))
    for (const id of [...this.graphs.keys()]) if (!live.has(id)) this.graphs.delete(id)
    for (const c of this.creatures.values()) this.former.set(c.id, { name: c.name, graph: c.graph })
    for (const c of this.channels.values()) this.former.set(c.id, { name: c.name, graph: c.graph })
    this.creatures.clear()
    this.channels.clear()
    for (const g of answer.graphs) this.takeGraph(g)
    this.problems = answer.problems || []
    this.connectors = answer.connectors || []
    this.forget()
    const path = answer.graphs.find(g => g.store_path)?.store_path
    if (path) this.title = path.split(/[\\/]/).slice(-3)[0]
    this.loaded = true
    this.emit('status', { before })
  }

  takeGraph(g) {
    const graph = {
      id: g.id, session: g.session, root: g.root, durability: g.durability, complete: g.complete,
      creatures: [], channels: [], wires: g.wires || [], stopped: g.stopped || [], slot: this.slot(g.id),
    }
    this.graphs.set(g.id, graph)
    for (const c of g.creatures) {
      const pending = Object.values(c.cursors || {}).reduce((n, cursor) => n + (cursor.pending || 0), 0)
      const creature = { ...c, graph: g.id, pending }
      this.creatures.set(c.id, creature)
      graph.creatures.push(creature)
    }
    for (const c of g.channels) {
      const channel = { ...c, graph: g.id }
      this.channels.set(c.id, channel)
      graph.channels.push(channel)
    }
    graph.name = graphName(graph)
  }

  statusOf(creature) {
    if (creature.past) return ['stopped', 'paused'].includes(creature.state) ? creature.state : 'running'
    switch (creature.state) {
      case 'quarantined': return 'quarantined'
      case 'backing_off': return 'backing'
      case 'awaiting_approval': return 'waits'
      case 'stopped': return 'stopped'
      case 'paused': return 'paused'
    }
    const failed = this.failed.get(creature.id)
    return failed && this.now() - failed.at < Math.max(this.window, 10) * second ? 'failing' : 'running'
  }

  // stopOf is why the recipe of a creature has stopped. Meanwhile the creature cannot be started.
  stopOf(creature) {
    return this.graphs.get(creature.graph)?.stopped?.find(s => s.deployment === creature.deployment)
  }

  troubled(graph) {
    return graph.creatures.filter(c => this.statusOf(c) !== 'running')
      .sort((a, b) => severity[this.statusOf(b)] - severity[this.statusOf(a)])
  }

  name(id) {
    if (!id) return ''
    if (id.startsWith('inbox:')) return `inbox of ${this.name(id.slice(6))}`
    return (this.creatures.get(id) || this.channels.get(id) || this.graphs.get(id) || this.former.get(id))?.name || id.slice(0, 8)
  }

  meter(key) {
    let m = this.meters.get(key)
    if (!m) this.meters.set(key, m = new Meter(610))
    return m
  }

  // rate is the mean over the window, or over the time that this page has watched.
  rate(key) {
    const m = this.meters.get(key)
    if (!m) return 0
    const to = this.now(), from = Math.max(to - this.window * second, this.begun)
    return m.sum(from, to) / Math.max((to - from) / second, 1)
  }

  graphRate(graph) { return graph.creatures.reduce((sum, c) => sum + this.rate('turn ' + c.id), 0) }

  // event takes one event of the stream. Bodies of messages, outputs and state are
  // dropped at once, should the server send them.
  event(event, past) {
    if (bodies.has(event.kind)) delete event.payload
    const ts = Date.parse(event.ts) || this.now()
    event.at = ts
    if (event.took_ns) event.duration = event.took_ns / 1e9 // in seconds
    const number = event.channel_seq ?? event.seq
    event.number = event.channel ? number : undefined
    this.count(event, ts)
    const flagged = this.flag(event, ts)
    if (event.kind !== 'turn_started') this.keep(event, past)
    if (past) return
    if (flagged && event.kind === 'topology_changed') this.emit('cut', event)
    if (structural.has(event.kind)) this.emit('stale', event)
    this.emit('event', event)
  }

  count(event, ts) {
    const { kind, creature } = event
    if (kind === 'channel_message') {
      this.meter('channel ' + event.channel).add(ts)
      const channel = this.channels.get(event.channel)
      if (channel) channel.head = Math.max(channel.head || 0, event.number || 0)
    } else if (kind === 'wired_output') {
      const wire = event.headers?.['terrarium-wire']
      if (wire) this.meter('wire ' + wire).add(ts)
    } else if (kind === 'turn_ended' || kind === 'turn_failed') {
      this.meter('turn ' + creature).add(ts)
      this.total.add(ts)
      this.remember(event)
      if (kind === 'turn_failed') this.failed.set(creature, { at: ts, event, code: event.payload?.code, error: event.payload?.error })
    } else if (kind === 'dead_letter') {
      this.deadLetters++
    }
    if (event.kind === 'creature_quarantined') {
      this.failed.set(creature, { ...this.failed.get(creature), at: ts, quarantined: ts, code: event.payload?.code, error: event.payload?.error })
    }
  }

  remember(event) {
    let list = this.turns.get(event.creature)
    if (!list) this.turns.set(event.creature, list = [])
    if (list.some(t => t.id === event.id)) return
    list.push(event)
    if (list.length > 1 && list.at(-2).at > event.at) list.sort((a, b) => a.at - b.at)
    if (list.length > remembered) list.shift()
  }

  flag(event, ts) {
    let kind
    if (event.kind === 'topology_changed') kind = event.payload?.kind === 'none' ? '' : event.payload?.kind
    else if (event.kind === 'creature_quarantined') kind = 'quarantined'
    if (!kind) return false
    const what = JSON.stringify([kind, event.creature, event.payload])
    // A split is in the logs of all graphs that result from it.
    if (this.flags.some(f => f.id === event.id || f.what === what && Math.abs(f.at - ts) < 5000)) return false
    this.flags.push({ id: event.id, what, at: ts, kind, cursor: event.cursor, creature: event.creature, event })
    this.flags.sort((a, b) => a.at - b.at)
    return true
  }

  keep(event, past) {
    this.events.push(event)
    if (!past && this.events.length > kept) this.settle()
  }

  // settle puts the events in order after past ones were added. The code that adds them
  // makes sure that none is added twice.
  settle() {
    this.events.sort((a, b) => a.at - b.at)
    this.events.splice(0, Math.max(0, this.events.length - kept))
  }

  // forget drops what belongs to removed creatures and channels, so that a page that is open
  // for weeks does not grow.
  forget() {
    const wires = new Set([...this.graphs.values()].flatMap(g => g.wires.map(w => w.wire)))
    const live = { turn: this.creatures, channel: this.channels, wire: wires }
    for (const key of this.meters.keys()) {
      const [kind, id] = key.split(' ')
      if (!live[kind].has(id)) this.meters.delete(key)
    }
    for (const map of [this.turns, this.failed]) for (const id of map.keys()) if (!this.creatures.has(id)) map.delete(id)
    for (const map of [this.former, this.slots]) {
      for (const id of map.keys()) {
        if (map.size <= most) break
        if (!this.graphs.has(id)) map.delete(id)
      }
    }
    this.flags.splice(0, Math.max(0, this.flags.length - 500))
  }
}

// graphName joins the deployments of the members: a graph has no name of its own.
export function graphName(graph) {
  const names = []
  for (const c of graph.creatures) {
    if (c.deployment && !c.deployment.startsWith('root:') && !names.includes(c.deployment)) names.push(c.deployment)
  }
  if (names.length) return names.slice(0, 3).join(' + ') + (names.length > 3 ? ` + ${names.length - 3}` : '')
  const head = graph.creatures.find(c => c.id === graph.root) || graph.creatures.find(c => c.root) || graph.creatures[0]
  return head ? head.name : graph.channels[0]?.name || 'empty'
}

// edges are the lines of a graph: {key, from, to, channel | wire, kind}. Channels with one
// sender and one listener are lines; others that connect creatures have a ring; those to
// or from outside have a pill on the border; one that no creature hears ends openly.
export function edgesOf(graph) {
  const edges = [], rings = [], pills = [], open = []
  const here = new Set(graph.creatures.map(c => c.id))
  for (const c of graph.channels) {
    const senders = (c.senders || []).filter(id => here.has(id)), listeners = (c.listeners || []).filter(id => here.has(id))
    const base = { channel: c.id, name: c.name }
    if (!senders.length) {
      pills.push({ ...base, side: 'in', ends: listeners })
    } else if (!listeners.length) {
      if (c.address) pills.push({ ...base, side: 'out', ends: senders })
      else open.push({ ...base, ends: senders })
    } else if (senders.length === 1 && listeners.length === 1) {
      edges.push({ ...base, key: `${c.id} ${senders[0]} ${listeners[0]}`, from: senders[0], to: listeners[0] })
    } else {
      rings.push({ ...base, senders, listeners })
    }
  }
  for (const w of graph.wires) {
    const to = w.to === 'root' ? graph.creatures.find(c => c.root)?.id || graph.root : w.to
    if (!here.has(w.from) || !here.has(to)) continue
    edges.push({ key: 'wire ' + w.wire, wire: w.wire, name: w.name || 'output', from: w.from, to })
  }
  return { edges, rings, pills, open }
}
