// The frame: navigation, search, the connection, and which view is shown. Everything that
// a reader may want to share is in the address, after the #.
import { ApiError, call, now, Stream } from './api.js'
import { Store } from './store.js'
import { GraphView } from './graphview.js'
import { creaturesView, policiesView, problemsView } from './lists.js'
import { deadLettersView } from './todo.js'
import { approvalsView } from './approvals.js'
import { eventsView } from './events.js'
import { turnView } from './turn.js'
import { lineageView } from './lineage.js'
import { outsideView } from './outside.js'
import { backfill } from './past.js'
import { clock, count, h, icon, mark, number, replace, s, span } from './lib.js'

const store = new Store(now)
const views = {
  graph: (ctx, host, route) => new GraphView(ctx, host, route),
  creatures: creaturesView, lineage: lineageView, events: eventsView, turn: turnView,
  'dead-letters': deadLettersView, approvals: approvalsView, problems: problemsView, policies: policiesView, outside: outsideView,
}
const titles = {
  graph: 'Graph', creatures: 'Creatures', lineage: 'Lineage', events: 'Events', turn: 'Turn', 'dead-letters': 'Dead letters',
  approvals: 'Approvals', problems: 'Problems', policies: 'Policies', outside: 'Outside',
}

export function parse(hash) {
  const [path, query] = hash.replace(/^#\/?/, '').split('?')
  const [view, ...rest] = path.split('/')
  let id = ''
  try { id = decodeURIComponent(rest.join('/')) } catch { /* an address that cannot be decoded names nothing */ }
  return { view: views[view] ? view : 'graph', id, params: new URLSearchParams(query || '') }
}

export function address(view, id, params) {
  const query = new URLSearchParams(Object.entries(params || {}).filter(([, v]) => v !== '' && v !== undefined && v !== null)).toString()
  return `#/${view}${id ? '/' + encodeURIComponent(id) : ''}${query ? '?' + query : ''}`
}

const ctx = {
  store, call,
  go: (view, id, params) => { location.hash = address(view, id, params) },
  address,
  // keep changes the parameters of the address without a new entry of the browser's history.
  keep(changes) {
    const route = parse(location.hash)
    const params = Object.fromEntries(route.params)
    Object.assign(params, changes)
    history.replaceState(null, '', address(route.view, route.id, params))
    ctx.route = parse(location.hash)
  },
  // act runs an operation for a button, and shows the outcome beside the button.
  async act(button, operation, args, done) {
    const note = button.parentElement.querySelector('.note') || button.parentElement.appendChild(h('span', { class: 'note', role: 'status' }))
    button.disabled = true
    try {
      const result = await call(operation, args)
      replace(note, done ? done(result) : 'Done.')
      refresh()
      return result
    } catch (err) {
      replace(note, errorText(err))
    } finally {
      button.disabled = !online()
    }
    return undefined
  },
  errorText,
  announce,
  refresh: () => refresh(),
}

function errorText(err) {
  if (!(err instanceof ApiError)) return h('span', { class: 'said-error' }, err.message)
  const ids = Object.entries(err.ids).map(([k, v]) => `${k} ${v}`).join(', ')
  return h('span', { class: 'said-error' }, h('b', {}, err.status === 403 ? 'You may not do this. ' : err.code ? err.code + ': ' : ''), err.message,
    err.remedy ? [' ', h('span', { class: 'muted' }, capital(err.remedy) + '.')] : '', ids ? [' ', h('code', {}, ids)] : '')
}
const capital = text => text.charAt(0).toUpperCase() + text.slice(1).replace(/\.$/, '')

// The frame.
const el = {}
function frame() {
  const link = (view, name, picture, extra = {}) => h('a', { href: address(view), 'data-view': view, ...extra }, icon(picture), h('span', {}, name), h('span', { class: 'n', hidden: true }))
  el.where = h('div', { class: 'where' })
  el.link = h('div', { class: 'link', role: 'status' })
  el.find = h('input', { type: 'search', placeholder: 'Find creature, channel, event', 'aria-label': 'Find creature, channel or event', role: 'combobox', 'aria-expanded': 'false', 'aria-controls': 'found', autocomplete: 'off', spellcheck: 'false' })
  el.found = h('ul', { class: 'found', id: 'found', role: 'listbox', 'aria-label': 'Found', hidden: true })
  el.nav = h('nav', { 'aria-label': 'Views' },
    h('h2', {}, 'Now'), link('graph', 'Graph', 'graph'), link('creatures', 'Creatures', 'creatures'),
    h('h2', {}, 'What happened'), link('lineage', 'Lineage', 'lineage'), link('events', 'Events', 'events'),
    h('h2', {}, 'To do'), link('dead-letters', 'Dead letters', 'letters', { class: 'large' }), link('approvals', 'Approvals', 'approvals', { class: 'large' }),
    link('problems', 'Problems', 'problems', { class: 'large' }), link('dead-letters', 'To do', 'letters', { class: 'small', 'data-view': 'todo' }),
    h('h2', {}, 'Rules'), link('policies', 'Policies', 'policies', { class: 'large' }),
    link('outside', 'Outside', 'outside', { class: 'large' }))
  el.main = h('main', { tabindex: -1 })
  el.live = h('div', { class: 'gone', 'aria-live': 'polite' })
  const logo = s('svg', { viewBox: '0 0 20 20', 'aria-hidden': 'true' },
    s('path', { d: 'M6 1h8a5 5 0 0 1 5 5v8a5 5 0 0 1-5 5H6a5 5 0 0 1-5-5V6a5 5 0 0 1 5-5z', fill: 'currentColor' }),
    s('path', { class: 'inner', d: 'M3.500 6A2.500 2.500 0 0 1 6 3.500h8A2.500 2.500 0 0 1 16.500 6v5.500q-3 2-6.500 0t-6.500 0z' }),
    s('circle', { cx: 8, cy: 8, r: 1.6, fill: 'currentColor' }))
  replace(document.getElementById('app'),
    h('header', {}, h('a', { class: 'brand', href: address('graph') }, logo, h('span', {}, 'terrarium')), el.where, el.link,
      h('div', { class: 'find' }, icon('search'), el.find, h('kbd', {}, '/'), el.found)),
    el.nav, el.main, el.live)
  el.find.addEventListener('input', () => find(el.find.value))
  el.find.addEventListener('keydown', findKey)
  el.find.addEventListener('blur', () => setTimeout(closeFound, 150))
}

// Search: names of creatures and channels, graphs, ids of events.
let hits = [], chosen = 0
function find(text) {
  const q = text.trim().toLowerCase()
  hits = []
  chosen = 0
  if (q) {
    const fits = x => x.name?.toLowerCase().includes(q) || x.id.toLowerCase().startsWith(q)
    for (const c of store.creatures.values()) if (fits(c)) hits.push({ name: c.name, kind: 'creature', at: address('graph', '', { creature: c.id }), status: store.statusOf(c) })
    for (const c of store.channels.values()) if (fits(c)) hits.push({ name: c.name, kind: 'channel', at: address('events', '', { q: `channel:${c.name}` }) })
    for (const g of store.graphs.values()) if (fits(g)) hits.push({ name: g.name, kind: 'graph', at: address('creatures', '', { q: `graph:${g.id}` }) })
    if (/^[0-9a-f]{32}-\d+$/.test(q)) hits.push({ name: q, kind: 'event', at: address('turn', q) })
    hits.sort((a, b) => a.name.length - b.name.length)
    hits = hits.slice(0, 12)
    hits.push({ name: text.trim(), kind: 'search all events', at: address('events', '', { q: text.trim() }) })
  }
  paintFound()
}
function paintFound() {
  el.found.hidden = !hits.length
  el.find.setAttribute('aria-expanded', String(hits.length > 0))
  replace(el.found, hits.map((hit, i) => h('li', {
    role: 'option', id: 'found-' + i, 'aria-selected': String(i === chosen), onmousedown: e => { e.preventDefault(); take(i) },
  }, hit.status ? mark(hit.status) : '', h('span', {}, hit.name), h('span', { class: 'muted' }, hit.kind))))
  if (hits.length) el.find.setAttribute('aria-activedescendant', 'found-' + chosen)
  else el.find.removeAttribute('aria-activedescendant')
}
function closeFound() { hits = []; paintFound() }
function take(i) {
  const hit = hits[i]
  el.find.value = ''
  closeFound()
  el.find.blur()
  if (hit) location.hash = hit.at
}
function findKey(e) {
  if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
    e.preventDefault()
    chosen = (chosen + (e.key === 'ArrowDown' ? 1 : hits.length - 1)) % Math.max(hits.length, 1)
    paintFound()
  } else if (e.key === 'Enter') take(chosen)
  else if (e.key === 'Escape') { e.stopPropagation(); el.find.value = ''; closeFound(); el.main.focus() }
}

// The live region announces merges, splits, quarantines and the connection, at most one in five
// seconds.
let said = -Infinity, toSay = [], sayTimer
function announce(text) {
  toSay.push(text)
  const wait = Math.max(0, said + 5000 - Date.now())
  clearTimeout(sayTimer)
  sayTimer = setTimeout(() => {
    said = Date.now()
    el.live.textContent = toSay.length > 3 ? `${toSay.length} changes. ${toSay.at(-1)}` : toSay.join(' ')
    toSay = []
  }, wait)
}

// The connection.
let link = { state: 'loading' }
const online = () => link.state === 'live'
function setLink(next) {
  const before = link.state
  link = { ...next, since: next.state === before ? link.since : Date.now() }
  ctx.online = online()
  document.documentElement.classList.toggle('offline', link.state === 'lost' || link.state === 'ended')
  if (before !== link.state && link.state === 'lost') announce('The connection is lost.')
  if (before === 'lost' && link.state === 'live') announce('Connected again.')
  const text = { loading: 'connecting', live: 'live', lost: 'no connection', ended: 'ended', denied: 'no permission', paused: 'paused' }[link.state]
  replace(el.link, mark({ live: 'running', loading: 'backing', lost: 'backing', paused: 'stopped' }[link.state] || 'stopped'), h('span', {}, text))
  band()
  if (before !== link.state && current?.connection) current.connection(link)
}
function band() {
  el.band?.remove()
  if (link.state !== 'lost') return
  el.band = h('div', { class: 'band', role: 'status' }, mark('backing'),
    h('span', {}, h('b', {}, `No connection since ${clock(link.since)}.`), ` Trying again in ${span(link.wait || 1000)}. The page shows the last known state, and will continue after the last event that it has received.`),
    h('button', { onclick: () => stream.start() }, 'Try now'))
  el.main.prepend(el.band)
}

const stream = new Stream({
  event(event) {
    if (event.kind === 'lagged') { store.emit('lagged', event); refresh(); return }
    store.event(event)
  },
  open() {
    setLink({ state: link.state === 'paused' ? 'paused' : 'live' })
    refresh()
  },
  lost(wait) {
    setLink({ state: 'lost', wait })
    probe()
  },
  ended() { setLink({ state: 'ended', at: Date.now() }); show() },
})

// probe finds out why the stream has failed: for lack of permission, or because the
// server cannot be reached.
async function probe() {
  try { await call('status', {}) } catch (err) {
    if (err.status === 401 || err.status === 403) { stream.stop(); setLink({ state: 'denied', err }); show() }
  }
}

// refresh reads the status again: soon after changes of the structure, and otherwise every
// few seconds, or less often if there are many creatures.
let reading, again, timer
async function refresh() {
  clearTimeout(timer)
  if (reading) { again = true; return reading }
  reading = (async () => {
    try {
      store.status(await call('status', {}))
      if (!store.filled && store.graphs.size) { store.filled = true; backfill(ctx) }
    } catch (err) {
      if (err.status === 401 || err.status === 403) { stream.stop(); setLink({ state: 'denied', err }); show() } else if (err.status) store.emit('trouble', err)
    }
  })()
  await reading
  reading = undefined
  const size = store.creatures.size
  timer = setTimeout(refresh, again ? (size > 300 ? 1000 : 150) : size > 300 ? 10000 : 3000)
  again = false
  return undefined
}

// counts of things to do.
async function todo() {
  let letters = 0
  ctx.waiting = 0
  for (const c of store.creatures.values()) {
    letters += c.counters?.dead_letters || 0
    ctx.waiting += c.approvals || 0
  }
  ctx.letters = Math.max(letters, ctx.lettersListed ?? 0)
  const numbers = { 'dead-letters': [ctx.letters, 'bad'], approvals: [ctx.waiting, 'due'], problems: [store.problems.length, ''] }
  numbers.todo = [ctx.letters + ctx.waiting + store.problems.length, ctx.letters || !ctx.waiting ? 'bad' : 'due']
  for (const [view, [n, look]] of Object.entries(numbers)) {
    const at = el.nav.querySelector(`[data-view="${view}"] .n`)
    at.hidden = !n
    at.className = 'n ' + look
    at.textContent = n > 999 ? '999+' : String(n)
  }
}
function where() {
  let turns = 0
  const to = now(), from = Math.max(to - store.window * 1000, store.begun)
  turns = store.total.sum(from, to) / Math.max((to - from) / 1000, 1)
  replace(el.where, h('b', {}, store.title || 'no session directory'), h('span', { class: 'facts' },
    ` · ${count(store.graphs.size, 'graph')}, ${count(store.creatures.size, 'creature')}, ${number(turns)} turns/s`))
}

// Views.
let current
function show() {
  const route = parse(location.hash)
  const over = link.state === 'denied' || link.state === 'ended'
  const same = !over && current && current.view === route.view && current.route?.(route)
  ctx.route = route
  for (const a of el.nav.querySelectorAll('a')) {
    const todoView = ['dead-letters', 'approvals', 'problems'].includes(route.view)
    const on = a.dataset.view === route.view || (a.dataset.view === 'todo' && todoView) || (route.view === 'turn' && a.dataset.view === 'events')
    on ? a.setAttribute('aria-current', 'page') : a.removeAttribute('aria-current')
  }
  document.title = `${titles[route.view]} · ${store.title || 'terrarium'}`
  if (same) return
  current?.stop?.()
  el.main.replaceChildren()
  el.main.scrollTop = 0
  current = undefined
  if (link.state === 'denied') return denied()
  if (link.state === 'ended') return ended()
  if (!store.loaded) return loading()
  current = views[route.view](ctx, el.main, route) || {}
  current.view = route.view
  band()
}
function loading() {
  const face = h('div', { class: 'face', role: 'status' })
  el.main.append(face)
  setTimeout(() => {
    if (face.isConnected) replace(face, h('div', { class: 'outlines' }, Array.from({ length: 9 }, () => h('i'))), 'Loading the graphs…')
  }, 300)
}
function denied() {
  const { err } = link
  el.main.append(h('div', { class: 'face' }, icon('lock'), h('h2', {}, err.status === 401 ? 'This page needs a login link' : 'You may not read this'),
    h('p', {}, err.message), err.remedy ? h('p', {}, capital(err.remedy) + '.') : '', h('code', {}, `terrarium login ${store.title || 'DIR'}`),
    h('button', { onclick: () => location.reload() }, 'Try again')))
}
function ended() {
  el.main.append(h('div', { class: 'face' }, h('h2', {}, `${store.title || 'The process'} ended at ${clock(link.at)}`),
    h('p', {}, 'Everything up to then is saved. The page shows a session only while a process serves it.'),
    h('code', {}, `terrarium serve --session ${store.title || 'DIR'}`)))
}

function keys(e) {
  if (e.ctrlKey || e.metaKey || e.altKey) return
  const typing = e.target.closest('input, textarea, select, [contenteditable]')
  if (e.key === 'Escape' && !typing && current?.key?.(e)) return
  if (typing) { if (e.key === 'Escape') el.main.focus(); return }
  if (e.key === 'Enter' && e.repeat) { e.preventDefault(); return } // what it opened may have the focus now
  if (e.key === '/') { e.preventDefault(); el.find.focus(); return }
  if (e.key === ' ' && !e.target.closest('button, a, summary')) { e.preventDefault(); pause(); return }
  current?.key?.(e)
}
function pause() {
  if (link.state === 'live') { setLink({ state: 'paused' }); announce('Paused.') } else if (link.state === 'paused') { setLink({ state: 'live' }); announce('Live.'); paint(true) }
}

function paint(force) {
  if (link.state === 'paused' && !force) return
  where()
  todo()
  current?.update?.()
}

frame()
setLink({ state: 'loading' })
store.addEventListener('status', () => {
  if (!current) show()
  if (link.state !== 'paused') current?.structure?.()
  paint()
})
store.addEventListener('stale', () => refresh())
store.addEventListener('event', e => { if (link.state !== 'paused') current?.event?.(e.detail) })
store.addEventListener('lagged', e => current?.lagged?.(e.detail))
store.addEventListener('event', ({ detail }) => {
  if (detail.kind === 'creature_quarantined') announce(`${store.name(detail.creature)} is quarantined.`)
})
addEventListener('hashchange', () => {
  show()
  if (!el.main.contains(document.activeElement)) el.main.focus({ preventScroll: true }) // the view may have put the focus into itself meanwhile
})
addEventListener('keydown', keys)
setInterval(paint, 500)
show()
stream.start()
refresh()

