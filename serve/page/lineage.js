// The view Lineage: a lane for each graph, time to the right, and the table of sessions.
import { colour } from './graph.js'
import { timeOf } from './past.js'
import { brief, bytes, clock, count, h, mark, minutes, number, replace, s, set, span, swatch } from './lib.js'

const squeezed = 34 // px for a quiet time
const wide = 1080, left = 52, right = 130

// scale maps times to x. Quiet times, longer than ten times the median gap, shrink.
export function scale(times, width, squeeze) {
  const ts = [...new Set(times)].sort((a, b) => a - b)
  if (ts.length < 2) return { x: () => left + 20, t: () => ts[0] || 0, quiet: [] }
  const gaps = ts.slice(1).map((t, i) => t - ts[i]).filter(g => g > 0).sort((a, b) => a - b)
  const limit = squeeze ? Math.max(10 * gaps[gaps.length >> 1], 1000) : Infinity
  const quiet = [], stops = []
  let busy = 0
  for (let i = 1; i < ts.length; i++) {
    const g = ts[i] - ts[i - 1]
    if (g > limit) quiet.push({ from: ts[i - 1], to: ts[i] })
    else busy += g
  }
  const per = (width - quiet.length * squeezed) / Math.max(busy, 1)
  let at = 0
  stops.push([ts[0], 0])
  for (let i = 1; i < ts.length; i++) {
    const g = ts[i] - ts[i - 1]
    at += g > limit ? squeezed : g * per
    stops.push([ts[i], at])
  }
  const between = (v, from, to) => {
    let i = 1
    while (i < stops.length - 1 && stops[i][from] < v) i++
    const a = stops[i - 1], b = stops[i], k = b[from] > a[from] ? (v - a[from]) / (b[from] - a[from]) : 0
    return a[to] + (b[to] - a[to]) * Math.min(1, Math.max(0, k))
  }
  return { x: t => left + 20 + between(t, 0, 1), t: x => between(x - left - 20, 1, 0), quiet }
}

const begun = r => Date.parse(r.merged_at || r.split_at || r.created)

export function lineageView(ctx, host, route) {
  const { store } = ctx
  let sessions = [], squeeze = true, hand, trouble
  const head = h('span', { class: 'muted' }), switches = h('div', { class: 'segments', role: 'group', 'aria-label': 'Scale of time' })
  const picture = h('div', { class: 'wide' }), foot = h('div', { class: 'in' }), table = h('div', { class: 'box wide' })
  host.append(h('div', { class: 'page' }, h('div', { class: 'head' }, h('h1', {}, 'Lineage'), head, h('div', { class: 'end' }, switches)), h('div', { class: 'box' }, picture, foot), table))

  const read = async () => {
    try { sessions = (await ctx.call('sessions', {})).sessions; trouble = undefined } catch (err) { trouble = err }
    paint()
  }
  const nameOf = r => (r.deployment || '').split(', ').filter(d => d && !d.startsWith('root:')).join(' + ') || (r.graph ? store.name(r.graph) : '')

  // lanes gives every graph a lane, in the order in which they appear.
  const lanes = () => {
    const order = []
    for (const r of [...sessions].sort((a, b) => begun(a) - begun(b))) if (r.graph && !order.includes(r.graph)) order.push(r.graph)
    return new Map(order.map((g, i) => [g, i]))
  }

  const endOf = r => {
    const next = sessions.filter(x => x.parents.includes(r.session) && x.made_by !== 'fork').map(begun)
    return next.length ? Math.min(...next) : r.live ? store.now() : Math.max(begun(r), ...sessions.map(begun))
  }

  function paint() {
    replace(switches, [['Shorten quiet time', true], ['True scale', false]].map(([name, on]) => h('button', { 'aria-pressed': String(squeeze === on), onclick: () => { squeeze = on; paint() } }, name)))
    if (trouble) { replace(picture, h('div', { class: 'face' }, ctx.errorText(trouble))); return }
    if (!sessions.length) { replace(picture, h('div', { class: 'face' }, h('h2', {}, 'No sessions'), h('p', {}, 'Without a session directory, no history is kept.'))); replace(foot); replace(table); return }
    for (const r of sessions) r.parents ||= []
    const at = lanes(), first = Math.min(...sessions.map(begun))
    replace(head, `${count(sessions.length, 'session')} of ${count(at.size, 'graph')}, from ${clock(first)} to ${sessions.some(r => r.live) ? 'now' : clock(Math.max(...sessions.map(endOf)))}`)
    draw(at)
    say()
    replace(table, sessionTable())
  }

  function draw(at) {
    const step = Math.min(76, Math.max(40, 300 / at.size)), top = 72, high = top + (at.size - 1) * step + 72
    const flags = store.flags.filter(f => f.kind === 'quarantined'), fails = [...store.failed.values()].filter(f => f.event)
    const times = [...sessions.flatMap(r => [begun(r), endOf(r)]), ...flags.map(f => f.at)]
    const line = scale(times, wide - left - right - 20, squeeze), y = g => top + at.get(g) * step
    const svg = s('svg', { class: 'lines', viewBox: `0 0 ${wide} ${high}`, width: wide, role: 'img', 'aria-label': 'Lanes of graphs over time; the table below has the same content' })
    svg.style.setProperty('min-width', '720px')
    const grid = [], marks = new Set(times.map(t => Math.round(line.x(t) / 110)))
    for (const m of marks) {
      const x = Math.max(m * 110, left + 20), t = line.t(x)
      if (x > wide - right + 10 || line.quiet.some(q => Math.abs(line.x(q.from) - x) < 50)) continue
      grid.push(s('path', { class: 'grid', d: `M${x} ${top - 24}V${high - 34}` }), s('text', { class: 'muted', x, y: high - 14, 'text-anchor': 'middle' }, times.at(-1) - times[0] < 600000 ? clock(t) : minutes(t)))
    }
    const bendOf = r => Math.min(70, Math.max(10, (line.x(endOf(r)) - line.x(begun(r))) * 0.6))
    const paths = [], nodes = [], texts = [], ends = new Map()
    const begins = new Map(), stops = new Map()
    for (const r of sessions) for (const p of r.parents) {
      const parent = sessions.find(x => x.session === p)
      if (!parent || parent.graph === r.graph) continue
      if (r.made_by === 'merge') stops.set(p, line.x(begun(r)) - bendOf(parent))
      else begins.set(r.session, line.x(begun(r)) + bendOf(r))
    }
    for (const r of sessions) {
      if (!at.has(r.graph)) continue
      const from = line.x(begun(r)), to = line.x(endOf(r)), slot = colour(store.slot(r.graph)), fork = r.made_by === 'fork'
      paths.push(s('path', { class: `lane g${slot}${fork ? ' fork' : ''}`, d: `M${begins.get(r.session) ?? from} ${y(r.graph)}H${stops.get(r.session) ?? to}` }))
      if (r.live) ends.set(r.graph, nameOf(r))
      for (const p of r.parents) {
        const parent = sessions.find(x => x.session === p)
        if (!parent || parent.graph === r.graph || !at.has(parent.graph)) continue
        const merged = r.made_by === 'merge', bend = bendOf(merged ? parent : r)
        const y0 = y(parent.graph), y1 = y(r.graph)
        const g = `g${colour(store.slot(merged ? parent.graph : r.graph))}`
        if (merged) paths.push(s('path', { class: `lane ${g}`, d: `M${from - bend} ${y0}C${from - bend / 2} ${y0} ${from - bend / 2} ${y1} ${from} ${y1}` }))
        else paths.push(s('path', { class: `lane ${g}${fork ? ' fork' : ''}`, d: `M${from} ${y0}C${from + bend / 2} ${y0} ${from + bend / 2} ${y1} ${from + bend} ${y1}` }))
      }
    }
    const labelled = []
    const label = (x, yy, text, anchor) => {
      const w = text.length * 6.6, lx = anchor === 'end' ? x - w : x
      if (labelled.some(l => Math.abs(l.y - yy) < 14 && lx < l.x + l.w + 8 && l.x < lx + w + 8)) return
      labelled.push({ x: lx, y: yy, w })
      texts.push(s('text', { x, y: yy, 'text-anchor': anchor || 'start' }, text))
    }
    const cuts = new Set()
    for (const r of [...sessions].sort((a, b) => begun(a) - begun(b))) {
      if (!at.has(r.graph)) continue
      const x = line.x(begun(r)), yy = y(r.graph), slot = colour(store.slot(r.graph))
      if (!r.made_by) {
        nodes.push(s('circle', { class: `node g${slot}`, cx: x, cy: yy, r: 6 }))
        label(x, yy - 14, `${nameOf(r) || 'graph'} started`)
      } else if (r.made_by === 'merge') {
        nodes.push(diamond(x, yy, slot))
        const gone = r.parents.map(p => sessions.find(z => z.session === p)).find(z => z && z.graph !== r.graph)
        label(x, yy - 14, gone ? `merge with ${nameOf(gone)}` : 'merge')
      } else if (r.made_by === 'split') {
        const parent = sessions.find(z => r.parents.includes(z.session))
        const key = parent?.session + begun(r)
        if (cuts.has(key) || !parent) continue
        cuts.add(key)
        nodes.push(diamond(x, y(parent.graph), colour(store.slot(parent.graph))))
        label(x, y(parent.graph) - 14, 'split')
      } else {
        nodes.push(s('circle', { class: `node g${slot}`, cx: x, cy: yy, r: 5 }))
        label(x, yy + 20, r.made_by)
      }
    }
    for (const [g, name] of ends) texts.push(s('text', { x: wide - right + 12, y: y(g) + 4 }, name.slice(0, 18)))
    const signs = []
    for (const f of [...fails.map(f => ({ at: f.at, graph: f.event.graph, kind: 'failing' })), ...flags.map(f => ({ at: f.at, graph: f.event.graph, kind: 'quarantined' }))]) {
      if (!at.has(f.graph)) continue
      const m = mark(f.kind)
      set(m, { x: line.x(f.at) - 7, y: y(f.graph) - 7, width: 14, height: 14 })
      signs.push(m)
    }
    const quiet = line.quiet.flatMap(q => {
      const a = line.x(q.from) + 1, b = line.x(q.to) - 1
      return [...[...at.keys()].map(g => s('path', { class: 'quiet', d: `M${a} ${y(g)}H${b}` })), s('path', { class: 'squeeze', d: `M${a} ${top - 24}V${high - 34}M${b} ${top - 24}V${high - 34}` }),
        s('text', { class: 'muted', x: (a + b) / 2, y: top - 30, 'text-anchor': 'middle' }, `${span(q.to - q.from)} quiet`)]
    })
    if (hand === undefined && route.params.get('at')) hand = timeOf(store, route.params.get('at'))
    const pick = s('rect', { class: 'pick', width: wide, height: high })
    const handAt = s('g')
    const drawHand = () => {
      if (hand === undefined) return
      const x = line.x(hand)
      replace(handAt, s('path', { class: 'hand', d: `M${x} 34V${high - 34}` }), s('rect', { class: 'hand-at', x: x - 46, y: 14, width: 92, height: 20, rx: 10 }), s('text', { class: 'hand-text', x, y: 28, 'text-anchor': 'middle' }, clock(hand, true).slice(0, 10)))
    }
    drawHand()
    pick.addEventListener('pointerdown', e => {
      const r = svg.getBoundingClientRect()
      hand = line.t((e.clientX - r.x) * wide / r.width)
      ctx.keep({ at: String(Math.round(hand)) })
      drawHand()
      say()
    })
    svg.append(...grid, ...paths, ...quiet, ...nodes, ...signs, ...texts, handAt, pick)
    replace(picture, svg)
  }

  function say() {
    if (hand === undefined) { replace(foot, h('p', { class: 'muted' }, 'Choose a point in the picture, or a session in the table.')); return }
    const r = sessions.filter(x => begun(x) <= hand && endOf(x) >= hand).at(-1)
    const dir = h('input', { 'aria-label': 'New session directory', placeholder: 'directory of the fork', size: 16 })
    replace(foot, h('div', { class: 'acts' }, h('span', {}, h('b', {}, clock(hand, true)), r ? [' in ', swatch(colour(store.slot(r.graph))), ` ${nameOf(r)} · session `, h('code', {}, '…' + r.session.slice(-4)), ` · ${count(r.events, 'event')}`] : ''),
      h('a', { class: 'button', href: ctx.address('graph', '', { at: String(Math.round(hand)) }) }, 'Show the graph then'),
      h('a', { class: 'button', href: ctx.address('events', '', { around: String(Math.round(hand)) }) }, 'Events at that time'),
      r ? h('details', {}, h('summary', { class: 'button' }, 'Fork here…'), h('p', { class: 'muted' }, 'Copies the session, as it was then, to a new directory on the server. The original continues.'), dir,
        h('button', { class: 'main', disabled: !ctx.online, onclick: e => fork(e.currentTarget, r, dir.value) }, 'Fork')) : ''))
  }

  async function fork(button, r, dir) {
    const before = store.events.filter(e => e.cursor && e.at <= hand).at(-1)
    await ctx.act(button, 'fork', { session: r.session, dir, ...(before ? { at: before.cursor } : {}) }, result => `Forked to ${result.dir}, session …${result.session.slice(-4)}${before ? '' : ', as it is now, because the page knows no event before that time'}.`)
    read()
  }

  // sessionTable has the words of session lineage: every live session above its ancestors.
  function sessionTable() {
    const rows = [], done = new Set()
    const row = (r, tree) => {
      if (done.has(r.session)) { rows.push(h('tr', {}, h('td', { class: 'mono' }, tree + brief(r.session)), h('td', { class: 'muted', colspan: 6 }, 'above'))); return }
      done.add(r.session)
      rows.push(h('tr', { tabindex: -1 }, h('td', { class: 'mono' }, tree + brief(r.session)), h('td', {}, r.live ? h('span', { class: 'said' }, mark('running'), 'live') : h('span', { class: 'muted' }, 'ended')), h('td', {}, r.made_by || 'start'),
        h('td', {}, h('button', { class: 'plain', onclick: () => { hand = begun(r); ctx.keep({ at: String(hand) }); paint() } }, clock(begun(r)))), h('td', { class: 'n' }, r.events >= 0 ? number(r.events) : '–'), h('td', { class: 'n' }, r.bytes ? bytes(r.bytes) : '–'),
        h('td', {}, r.graph ? h('span', { class: 'named' }, swatch(colour(store.slot(r.graph))), nameOf(r)) : '')))
      r.parents.forEach((p, i) => {
        const parent = sessions.find(x => x.session === p)
        if (parent) row(parent, tree.replaceAll('├─', '│ ').replaceAll('└─', '\u2003') + (i < r.parents.length - 1 ? '├─ ' : '└─ '))
      })
    }
    for (const r of [...sessions].reverse()) if (r.live) row(r, '')
    for (const r of [...sessions].reverse()) if (!done.has(r.session)) row(r, '')
    return h('table', {}, h('thead', {}, h('tr', {}, ['Session', 'State', 'Made by', 'At', 'Events', 'Size', 'Graph'].map(n => h('th', { scope: 'col', class: n === 'Events' || n === 'Size' ? 'n' : '' }, n)))), h('tbody', {}, rows))
  }

  read()
  return { event(e) { if (e.kind === 'session_merged' || e.kind === 'session_forked') setTimeout(read, 300) } }
}

const diamond = (x, y, slot) => s('path', { class: `node g${slot}`, d: `M${x} ${y - 8}L${x + 8} ${y}L${x} ${y + 8}L${x - 8} ${y}Z` })
