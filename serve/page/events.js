// The view Events: what has happened, newest first, by a query of tokens and words.
import { bodyOf } from './past.js'
import { colour } from './graph.js'
import { clock, count, h, hidden, mark, number, payload, replace, swatch } from './lib.js'

const most = 300 // rows

// attributed are the kinds of events that say which call caused them; a policy's event
// has a call, too.
const attributed = new Set(['creature_started', 'creature_stopped', 'module_replaced', 'parent_link_changed', 'topology_changed', 'output_wire_added', 'output_wire_removed', 'recipe_stopped', 'recipe_continued'])

// parseQuery splits a query into tokens (kind:, creature:, channel:, graph:) and words.
export function parseQuery(text) {
  const q = { kinds: [], creatures: [], channels: [], graphs: [], words: [] }
  for (const part of text.match(/"[^"]*"|\S+/g) || []) {
    const [, key, value] = part.match(/^(kind|creature|channel|graph):(.+)$/) || []
    if (key) q[key + 's'].push(value)
    else q.words.push(part)
  }
  return q
}

// command returns the same query as a command for a terminal.
export function command(q, dir) {
  const quote = word => /^[\w.:~#-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
  const flags = [...q.kinds.map(k => `--kind ${quote(k)}`), ...q.creatures.map(c => `--creature ${quote(c)}`), ...q.channels.map(c => `--channel ${quote(c)}`), ...q.graphs.map(g => `--graph ${quote(g)}`)]
  if (q.words.length) return `terrarium session search ${quote(dir)} ${quote(q.words.join(' '))}${flags.length ? ' ' + flags.join(' ') : ''}`
  return `terrarium events ${quote(dir)}${flags.length ? ' ' + flags.join(' ') : ''}`
}

export function eventsView(ctx, host, route) {
  const { store } = ctx
  let q = parseQuery(route.params.get('q') || ''), rows = [], waiting = [], found, gaps = []
  const around = route.params.get('around')
  const input = h('input', { type: 'search', value: route.params.get('q') || '', 'aria-label': 'Query', placeholder: 'kind:turn_failed creature:boat-2 words', spellcheck: 'false' })
  const copy = h('button', { onclick: async () => {
    const text = command(q, store.title || 'DIR')
    try { await navigator.clipboard.writeText(text); copy.textContent = 'Copied' } catch { replace(note, h('code', {}, text)) }
    setTimeout(() => { copy.textContent = 'Copy as command' }, 2000)
  } }, 'Copy as command')
  const note = h('span', { class: 'muted', role: 'status' }), list = h('div', { class: 'rows' })
  const newer = h('button', { class: 'newer main', hidden: true, onclick: () => { host.scrollTop = 0; take() } })
  newer.style.display = 'none'
  host.append(h('div', { class: 'page' }, h('div', { class: 'head' }, h('h1', {}, 'Events'), note), h('div', { class: 'query' }, input, copy), newer, h('div', { class: 'box' }, list)))

  const idOf = (word, map) => { for (const x of map.values()) if (x.name === word || x.id === word) return x.id; return word }
  const fits = e => {
    if (q.kinds.length && !q.kinds.includes(e.kind)) return false
    if (q.creatures.length && !q.creatures.some(c => idOf(c, store.creatures) === e.creature)) return false
    if (q.channels.length && !q.channels.some(c => idOf(c, store.channels) === e.channel || e.channel === `inbox:${idOf(c, store.creatures)}`)) return false
    if (q.graphs.length && !q.graphs.some(g => e.graph?.startsWith(g) || store.name(e.graph) === g)) return false
    return true
  }

  // made returns what caused a change of the graph.
  const made = (e, p) => {
    if (!attributed.has(e.kind) || !p.call) return ''
    const by = p.by_creature ? store.name(p.by_creature) : p.by ? `${p.by} (${p.via})` : p.via
    return by ? `${p.call} by ${by}` : p.call
  }
  const describe = e => {
    const p = e.payload || {}
    return [happened(e, p), made(e, p)].filter(Boolean).join(' · ')
  }
  const happened = (e, p) => {
    switch (e.kind) {
      case 'turn_failed': case 'creature_failed': case 'creature_quarantined': return `${p.code}: ${p.error || ''}`
      case 'turn_ended': return [p.kind, p.sends ? count(p.sends, 'message') : '', p.writes ? count(p.writes, 'write') : '', p.fuel ? `fuel ${number(p.fuel)}` : ''].filter(Boolean).join(' · ')
      case 'topology_changed': return p.kind === 'none' ? 'changed' : `${p.kind}: ${(p.old_graphs || []).map(g => store.name(g)).join(', ')} → ${(p.new_graphs || []).map(g => store.name(g)).join(', ')}`
      case 'log': return p.text === undefined ? '' : `${p.level}: ${p.text}`
      case 'dead_letter': return `${p.reason}${p.error ? ': ' + p.error : ''}`
      case 'policy_denied': return `${p.effect} by ${p.policy}${p.reason ? ': ' + p.reason : ''}`
      case 'approval_asked': return `${p.policy} about ${p.subject}${p.reason ? ': ' + p.reason : ''}`
      case 'approval_decided': return `${p.decision}${p.by ? ' by ' + p.by : ''}${p.reason ? ': ' + p.reason : ''}`
      case 'module_replaced': return `${p.former || ''} → ${p.module || ''}`
      case 'creature_started': case 'creature_stopped': return p.reason || ''
      case 'recipe_stopped': return `${p.deployment}: ${p.condition} holds: ${p.reason}`
      case 'recipe_continued': return `${p.deployment}: ${p.condition}`
      case 'instance_started': return p.reason || ''
    }
    return e.snippet ? '' : ''
  }
  const look = e => ({ turn_failed: 'failing', creature_failed: 'failing', dead_letter: 'failing', creature_quarantined: 'quarantined', creature_stopped: 'stopped', recipe_stopped: 'stopped', policy_denied: 'backing', approval_asked: 'waits' }[e.kind])

  const row = e => {
    if (e.gap) return h('div', { class: 'gap' }, mark('backing'), h('span', {}, h('b', {}, `${count(e.gap.missed, 'event')} left out here. `), 'The page fell behind. The picture and the counts are still correct.'), h('button', { onclick: ev => fill(ev.currentTarget, e.gap) }, 'Fill the gap'))
    const g = store.graphs.get(e.graph)
    const button = h('button', { class: 'event', 'aria-expanded': 'false', onclick: () => open(button, e) }, h('span', { class: 'muted' }, clock(e.at, true)),
      h('span', { class: 'said' }, look(e) ? mark(look(e)) : '', e.kind.replaceAll('_', ' ')),
      h('span', {}, e.creature ? h('span', { class: 'named' }, g ? swatch(colour(g.slot)) : '', store.name(e.creature)) : e.channel ? 'from outside' : g ? h('span', { class: 'named' }, swatch(colour(g.slot)), g.name) : ''),
      h('span', {}, e.channel ? h('code', {}, `${e.channel.startsWith('inbox:') ? 'inbox' : store.name(e.channel)}#${e.number ?? ''} `) : '', describe(e)))
    return button
  }
  const open = (button, e) => {
    const next = button.nextElementSibling
    if (next?.classList.contains('event-open')) { next.remove(); button.setAttribute('aria-expanded', 'false'); return }
    button.setAttribute('aria-expanded', 'true')
    const hasBody = ['channel_message', 'direct_message', 'request', 'result', 'timer', 'wired_output', 'output', 'state'].includes(e.kind)
    const turn = e.turn || (e.kind === 'turn_failed' ? e.id : '')
    button.after(h('div', { class: 'event-open' }, h('p', {}, h('code', { class: 'muted' }, e.id || 'not stored')), !hasBody && describe(e) ? h('p', {}, describe(e)) : '',
      h('div', { class: 'acts' }, turn ? h('a', { class: 'button', href: ctx.address('turn', turn) }, 'Turn') : '', e.cause ? h('a', { class: 'button', href: ctx.address('turn', e.cause) }, 'Cause') : '',
        e.creature && store.creatures.has(e.creature) ? h('a', { class: 'button', href: ctx.address('graph', '', { creature: e.creature }) }, store.name(e.creature)) : ''),
      hasBody && e.id ? hidden(undefined, async () => payload(await bodyOf(ctx.call, e))) : ''))
  }

  const fill = async (button, gap) => {
    button.disabled = true
    try {
      const seen = new Set(store.events.map(e => e.id))
      for (const graph of store.graphs.keys()) {
        const { events } = await ctx.call('history', { graph, limit: 1000 })
        for (const e of events) if (!seen.has(e.id) && e.kind !== 'turn_started') store.event(e, true)
      }
      store.settle()
      gaps = gaps.filter(g => g !== gap)
      take()
    } catch (err) { button.after(ctx.errorText(err)); button.disabled = false }
  }

  const all = () => {
    let list = (found || store.events).filter(fits)
    if (around) list = list.filter(e => Math.abs(e.at - Number(around)) < 60000)
    return [...list, ...gaps.map(gap => ({ gap, at: gap.at }))].sort((a, b) => b.at - a.at)
  }
  function take() {
    waiting = []
    newer.hidden = true
    newer.style.display = 'none'
    rows = all()
    replace(note, around ? `one minute before and after ${clock(Number(around))}` : found ? `${count(rows.length, 'event')} found` : rows.length ? `the last ${number(Math.min(rows.length, most))}, newest first` : '')
    replace(list, rows.length ? rows.slice(0, most).map(row) : h('div', { class: 'face' }, h('h2', {}, 'No matching events'), h('p', {}, 'The page lists the events that it has received. For words, press Enter to search the stores too.'), h('code', {}, command(q, store.title || 'DIR'))))
  }

  const search = async () => {
    found = undefined
    if (q.words.length) {
      replace(note, 'searching…')
      try {
        const args = { query: q.words.join(' '), limit: 200 }
        if (q.kinds.length) args.kinds = q.kinds
        if (q.creatures.length) args.creatures = q.creatures.map(c => idOf(c, store.creatures))
        if (q.channels.length) args.channels = q.channels.map(c => idOf(c, store.channels))
        const answer = await ctx.call('search', args)
        found = answer.found.map(f => ({ id: f.id, ts: f.ts, at: Date.parse(f.ts), kind: f.kind, graph: f.graph, creature: f.creature, channel: f.channel, number: f.seq }))
      } catch (err) { replace(list, h('div', { class: 'face' }, ctx.errorText(err))); return }
    }
    take()
  }
  input.addEventListener('input', () => {
    q = parseQuery(input.value)
    ctx.keep({ q: input.value, around: '' })
    if (!q.words.length) { found = undefined; take() }
  })
  input.addEventListener('keydown', e => { if (e.key === 'Enter') search() })
  search()
  let soon, filled = store.filledAt
  return {
    update() { if (filled !== store.filledAt) { filled = store.filledAt; if (!found) take() } },
    event(e) {
      if (found || around || e.kind === 'turn_started' || !fits(e)) return
      waiting.push(e)
      if (host.scrollTop > 40 || list.querySelector('.event-open') || list.contains(document.activeElement)) {
        newer.hidden = false
        newer.style.display = ''
        newer.textContent = `${number(waiting.length)} new`
      } else { soon ||= setTimeout(() => { soon = undefined; take() }, 400) }
    },
    lagged(e) { gaps.push({ missed: e.payload?.missed || 0, at: store.now(), cursor: e.payload?.cursor }); if (!found) take() },
    stop() { clearTimeout(soon) },
  }
}
