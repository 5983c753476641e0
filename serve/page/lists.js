// The views Creatures, Problems and Policies.
import { colour } from './graph.js'
import { clock, count, h, mark, number, rate, replace, said, severity, swatch } from './lib.js'

export function creatureTable(ctx, creatures, caption, order = {}, sort) {
  const { store } = ctx
  const columns = [
    ['name', 'Creature', c => c.name], ['status', 'Status', c => -severity[store.statusOf(c)]], ['graph', 'Graph', c => store.name(c.graph)],
    ['species', 'Species', c => c.species || ''], ['waiting', 'Waiting', c => -c.pending], ['rate', 'Turns', c => -store.rate('turn ' + c.id)],
    ['failed', 'Failed', c => -(c.counters?.failures || 0)], ['letters', 'Dead letters', c => -(c.counters?.dead_letters || 0)], ['module', 'Module', c => c.module],
  ]
  const by = columns.find(([key]) => key === order.by) || columns[1]
  const rows = [...creatures].sort((a, b) => {
    const x = by[2](a), y = by[2](b)
    return (x < y ? -1 : x > y ? 1 : a.name < b.name ? -1 : 1) * (order.down ? -1 : 1)
  })
  const numeric = ['waiting', 'rate', 'failed', 'letters']
  return h('table', {}, caption ? h('caption', {}, caption) : '',
    h('thead', {}, h('tr', {}, columns.map(([key, name]) => h('th', { scope: 'col', class: numeric.includes(key) ? 'n' : '', 'aria-sort': order.by === key ? (order.down ? 'descending' : 'ascending') : undefined },
      sort ? h('button', { onclick: () => sort(key) }, name) : name)))),
    h('tbody', {}, rows.slice(0, 1000).map(c => {
      const g = store.graphs.get(c.graph)
      return h('tr', {}, h('td', {}, h('a', { href: ctx.address('graph', '', { creature: c.id }) }, c.name), c.root ? ' · root' : '', c.privileged ? ' · privileged' : ''),
        h('td', {}, said(store.statusOf(c))), h('td', {}, h('span', { class: 'named' }, swatch(colour(g?.slot || 0)), g?.name || '')), h('td', {}, c.species || '–'),
        h('td', { class: 'n' }, number(c.pending)), h('td', { class: 'n' }, rate(store.rate('turn ' + c.id))), h('td', { class: 'n' }, number(c.counters?.failures)),
        h('td', { class: 'n' }, number(c.counters?.dead_letters)), h('td', {}, h('code', {}, c.module.split('/').at(-1))))
    })))
}

export function creaturesView(ctx, host, route) {
  const { store } = ctx
  const order = {}
  const input = h('input', { type: 'search', value: route.params.get('q') || '', 'aria-label': 'Filter', placeholder: 'name, status:quarantined, graph:north, species:boat', spellcheck: 'false' })
  const table = h('div', { class: 'box wide' }), title = h('span', { class: 'muted' })
  host.append(h('div', { class: 'page' }, h('div', { class: 'head' }, h('h1', {}, 'Creatures'), title), h('div', { class: 'query' }, input), table))
  const fits = c => input.value.toLowerCase().split(/\s+/).filter(Boolean).every(word => {
    const [key, value] = word.includes(':') ? [word.slice(0, word.indexOf(':')), word.slice(word.indexOf(':') + 1)] : ['', word]
    if (key === 'status') return store.statusOf(c).startsWith(value)
    if (key === 'graph') return c.graph.startsWith(value) || store.name(c.graph).toLowerCase().includes(value)
    if (key === 'species') return (c.species || '').toLowerCase() === value
    if (key === 'group') {
      const [graph, by, name] = value.split('/')
      return c.graph === graph && (by === 'species' ? c.species : by === 'recipe' ? c.deployment : c.graph) === name
    }
    return c.name.toLowerCase().includes(word) || c.id.startsWith(word)
  })
  const paint = () => {
    const list = [...store.creatures.values()].filter(fits)
    replace(title, list.length === store.creatures.size ? count(list.length, 'creature') : `${number(list.length)} of ${count(store.creatures.size, 'creature')}`)
    replace(table, list.length ? creatureTable(ctx, list, '', order, key => { order.down = order.by === key && !order.down; order.by = key; paint() })
      : h('div', { class: 'face' }, h('h2', {}, 'No matching creatures'), h('p', {}, 'A word matches a part of a name, or the beginning of an id. status:, graph: and species: narrow the list.')))
  }
  input.addEventListener('input', () => { ctx.keep({ q: input.value }); paint() })
  paint()
  let drawn = 0
  return { update() { if (Date.now() - drawn > 2000 && !table.contains(document.activeElement)) { drawn = Date.now(); paint() } } }
}

export function problemsView(ctx, host) {
  const { store } = ctx
  const list = h('div'), head = h('span', { class: 'muted' })
  host.append(h('div', { class: 'page narrow' }, todoTabs(ctx), h('div', { class: 'head' }, h('h1', {}, 'Problems'), head), list))
  let look
  const paint = () => {
    const now = JSON.stringify(store.problems)
    if (now === look) return
    look = now
    replace(head, store.problems.length ? `${count(store.problems.length, 'problem')} with the session directory or with policies` : '')
    replace(list, store.problems.length ? store.problems.map(p => h('section', { class: 'box' }, h('div', { class: 'in' }, h('h2', {}, mark('failing'), ' ', p.code), h('p', {}, p.message),
      p.remedy ? h('p', { class: 'muted' }, p.remedy) : '', Object.entries(p.ids || {}).map(([k, v]) => h('p', { class: 'mono muted' }, `${k} ${v}`)))))
      : h('div', { class: 'face' }, h('h2', {}, 'No problems'), h('p', {}, 'Stores that were set aside or cannot be written, and policies that failed, appear here.')))
  }
  paint()
  return { update: paint }
}

// todoTabs leads from one list of things to do to another on small screens.
export function todoTabs(ctx) {
  const view = ctx.route.view
  return h('div', { class: 'segments todo', role: 'group', 'aria-label': 'To do' }, [['dead-letters', 'Dead letters', ctx.letters], ['approvals', 'Approvals', ctx.waiting], ['problems', 'Problems', ctx.store.problems.length]]
    .map(([to, name, n]) => h('button', { 'aria-pressed': String(view === to), onclick: () => ctx.go(to) }, n ? `${name} ${n}` : name)))
}

const effects = { denied: 'denied', dropped: 'dropped', changed: 'changed', audit: 'only recorded', warning: 'warned', ruled: 'decided about a failed turn' }

// rule says what a policy judges, and where it comes from.
function rule(p) {
  const of = [...p.channels || [], ...p.creatures || [], ...p.species || []]
  return [`Judges ${p.event}`, of.length ? ` of ${of.join(', ')}` : '', p.mode === 'mutate' ? '; may change it' : '', p.enforce === 'audit' ? '; its verdicts are only recorded' : '',
    p.recipe ? `. Recipe ${p.recipe}, script` : '. Script', ` ${p.hash.slice(0, 12)}.`].join('')
}

export function policiesView(ctx, host) {
  const { store } = ctx
  const list = h('div'), head = h('span', { class: 'muted' })
  host.append(h('div', { class: 'page' }, h('div', { class: 'head' }, h('h1', {}, 'Policies'), head), list))
  let look, known = []
  const paint = () => {
    const verdicts = store.events.filter(e => e.kind === 'policy_denied')
    const now = verdicts.length + (verdicts.at(-1)?.id || '') + JSON.stringify(known)
    if (now === look) return
    look = now
    const policies = new Map(known.map(p => [`${p.name} ${p.where || ''}`, { ...p, list: [] }]))
    for (const e of verdicts) {
      const p = e.payload || {}, key = `${p.policy} ${p.where || ''}`
      if (!policies.has(key)) policies.set(key, { name: p.policy, where: p.where, list: [] })
      policies.get(key).list.push(e)
    }
    replace(head, policies.size ? `${count(policies.size, 'policy', 'policies')}, ${count(verdicts.length, 'recent verdict')}` : '')
    replace(list, policies.size ? [...policies.values()].map(p => h('section', { class: 'box wide' }, h('div', { class: 'in' }, h('h2', {}, p.name), h('p', { class: 'mono muted' }, p.where || ''), p.event ? h('p', {}, rule(p)) : h('p', { class: 'muted' }, 'It is no longer in the recipe.')),
      !p.list.length ? '' : h('table', {}, h('thead', {}, h('tr', {}, ['At', 'Verdict', 'On', 'Creature', 'Reason'].map(n => h('th', { scope: 'col' }, n)))), h('tbody', {}, p.list.slice(-50).reverse().map(e => h('tr', {},
        h('td', {}, clock(e.at, true)), h('td', {}, effects[e.payload.effect] || e.payload.effect), h('td', {}, [e.payload.event, e.payload.call].filter(Boolean).join(' by ')),
        h('td', {}, e.creature ? h('a', { href: ctx.address('graph', '', { creature: e.creature }) }, store.name(e.creature)) : 'outside'), h('td', {}, e.payload.reason || '–')))))))
      : h('div', { class: 'face' }, h('h2', {}, 'No policies'), h('p', {}, 'The policies of recipes appear here, with what they have denied, changed or recorded.')))
  }
  const read = async () => { try { known = (await ctx.call('policies', {})).policies } catch (err) { replace(head, ctx.errorText(err)); return } paint() }
  paint()
  read()
  let tick = 0
  return { update() { if (++tick % 10 === 0) read(); else paint() } }
}
