// The past: what the stores know about the time before this page was opened, and the
// graphs as they were then.
import { graphName } from './store.js'

const structure = ['topology_changed', 'creature_quarantined', 'turn_failed', 'session_merged', 'session_forked']
const pages = 4 // of a thousand events, for each graph

async function read(call, graph, kinds, take) {
  let after
  for (let i = 0; i < pages; i++) {
    const { events } = await call('history', { graph, kinds, limit: 1000, ...(after ? { after } : {}) })
    for (const event of events) take(event)
    if (events.length < 1000) return
    after = events.at(-1).id
  }
}

// backfill reads merges, splits, failures and turns of the last minutes.
export async function backfill({ store, call }) {
  const seen = new Set(store.events.map(e => e.id))
  const take = event => {
    if (!event.id || seen.has(event.id)) return
    seen.add(event.id)
    store.event(event, true)
  }
  for (const graph of [...store.graphs.keys()].slice(0, 12)) {
    try {
      await read(call, graph, structure, take)
      await read(call, graph, ['turn_ended', 'dead_letter', 'policy_denied'], take)
    } catch { break } // a graph without a store has no history
  }
  store.settle()
  store.filledAt = store.now()
  store.emit('status', { before: new Map() })
}

// timeOf reads the parameter at: a time in milliseconds, or the cursor of an event. The time of
// an event that the page does not know is undefined.
export function timeOf(store, at) {
  if (/^\d{11,}$/.test(at)) return Number(at)
  return store.flags.find(f => f.cursor === at)?.at ?? store.events.find(e => e.cursor === at)?.at
}

// graphsAt reads the graphs as they were at a time or cursor. Graphs that cannot be shown
// are missing; problems says why.
export async function graphsAt({ store, call }, at) {
  const then = timeOf(store, at)
  const { graphs, problems } = await call('topology', { at: /^\d{11,}$/.test(at) ? new Date(Number(at)).toISOString() : at })
  const list = graphs.map(g => {
    const graph = {
      id: g.id, session: g.session, root: g.root, slot: store.slot(g.id), wires: g.wires,
      creatures: g.creatures.map(c => ({ ...c, graph: g.id, past: true, pending: 0, listen: [], send: [], counters: {}, cursors: {} })),
      channels: g.channels.map(c => ({ ...c, graph: g.id })),
    }
    for (const x of [...graph.creatures, ...graph.channels]) store.former.set(x.id, { name: x.name, graph: g.id })
    graph.name = graphName(graph)
    return graph
  })
  list.then = then
  list.problems = problems || []
  return list
}

// bodyOf fetches the payload of a logged event: the event that comes right after its
// predecessor in the log.
export async function bodyOf(call, event) {
  const [log, n] = (event.id || '').split('-')
  const of = event.graph ? { graph: event.graph } : {}
  const args = { ...of, kinds: [event.kind], limit: 200 }
  if (event.channel) args.channel = event.channel
  if (Number(n) > 1) args.after = `${log}-${Number(n) - 1}`
  const { events } = await call('history', args)
  const found = events.find(e => e.id === event.id)
  if (!found) throw new Error('The event is no longer in the log, or was never stored.')
  if (found.payload === undefined) throw new Error('Your login link does not allow you to see this: it needs the scope operate.')
  return found.payload
}

// eventOf finds an event by its id in the histories of the graphs.
export async function eventOf({ store, call }, id) {
  const known = store.events.find(e => e.id === id)
  const [log, n] = id.split('-')
  const graphs = known?.graph ? [known.graph] : [...store.graphs.keys()]
  let trouble
  for (const graph of graphs) {
    try {
      const args = { graph, limit: 60 }
      if (Number(n) > 9) args.after = `${log}-${Number(n) - 9}` // including what a failed turn has logged
      const { events } = await call('history', args)
      const at = events.findIndex(e => e.id === id)
      if (at >= 0) return { event: events[at], around: events }
    } catch (err) { trouble = err }
  }
  if (trouble) throw trouble
  throw new Error(`No graph has the event ${id} in its history.`)
}
