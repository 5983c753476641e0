// What creatures may reach outside, and the sources and sinks of recipes.
import { colour } from './graph.js'
import { count, h, mark, number, replace, swatch, trim } from './lib.js'

// amount is a sum of a unit, as the llm capability has them.
const amount = (unit, n) => unit === 'millionths' ? `${(n / 1e6).toFixed(6).replace(/0{1,4}$/, '')} of money` : `${number(n)} ${unit}`

// uses lists what was used of the budgets, and of units without one: {name, text, part}.
export function uses(grant, of) {
  const used = (of === 'graph' ? grant.used_by_graph : grant.used) || {}, budgets = grant.budgets || []
  const units = new Set([...budgets.filter(b => b[of]).map(b => b.unit), ...Object.keys(used)])
  return [...units].sort().map(unit => {
    const n = used[unit] || 0, most = budgets.find(b => b.unit === unit)?.[of]
    return { name: `used by the ${of}`, text: most ? `${amount(unit, n).replace(/ .*/, '')} of ${amount(unit, most)}` : amount(unit, n), part: most ? n / most : undefined }
  })
}

// bounds says how the requests to a capability are made.
function bounds(l) {
  if (!l) return ''
  return [`${count(l.concurrency, 'attempt')} at a time`, l.rate ? `${trim(l.rate)} a second` : '', `each within ${l.timeout}`, l.retries ? `then ${count(l.retries, 'further attempt')}` : ''].filter(Boolean).join(', ')
}

const lacking = 'Its sensitive settings are not stored. Requests wait until the recipe is applied.'

// allows lists what a capability reaches. Without its recipe, that is not known.
const allows = grant => grant.allows ? grant.allows.map(text => h('div', {}, text)) : h('div', { class: 'muted' }, lacking)

// reach is the part of the panel about what a creature may reach, and about the sources and
// sinks of its channels.
export function reach(ctx, creature, gauge) {
  const list = creature.capabilities || [], graph = ctx.store.graphs.get(creature.graph)
  const near = graph ? connectorsOf(ctx.store, graph, [...creature.listen, ...creature.send]) : []
  if (!list.length && !near.length) return h('p', { class: 'muted' }, 'Nothing.')
  return [near.map(c => h('div', { class: 'grant' }, `${c.direction} `, h('code', {}, c.name), ` of ${c.channel}`, h('div', { class: 'muted' }, `${c.reaches}, ${c.state}`))), list.map(g => h('div', { class: 'grant' }, h('code', {}, g.id), allows(g), g.limits ? h('div', { class: 'muted' }, bounds(g.limits)) : '',
    [...uses(g, 'creature'), ...uses(g, 'graph')].map(u => u.part === undefined ? h('div', { class: 'muted' }, `${u.name}: ${u.text}`) : gauge(u.name, u.part, u.text))))]
}

// connectorsOf are the sources and sinks whose channels are in a graph, or only those of some
// channels.
function connectorsOf(store, graph, ids) {
  return store.connectors.filter(c => graph.channels.some(ch => ch.address === c.channel && ch.deployment === c.deployment && (!ids || ids.includes(ch.id))))
}

// grantsOf are the capabilities of the creatures of a graph. Two creatures may have
// different settings of one name, as after an edit of the recipe.
function grantsOf(graph) {
  const all = new Map()
  for (const c of graph.creatures) {
    for (const g of c.capabilities || []) {
      const key = JSON.stringify([g.id, g.allows, g.limits, g.budgets])
      if (!all.has(key)) all.set(key, { grant: g, holders: [] })
      all.get(key).holders.push(c)
    }
  }
  return [...all.values()].sort((a, b) => (a.grant.id < b.grant.id ? -1 : 1))
}

// outward counts what leads outside a graph.
export const outward = (store, graph) => grantsOf(graph).length + connectorsOf(store, graph).length

const ways = { source: 'in', sink: 'out' }
const head = names => h('thead', {}, h('tr', {}, names.map(n => h('th', { scope: 'col' }, n))))

function grantTable(ctx, grants) {
  return h('table', {}, h('caption', {}, 'What its creatures may reach'), head(['Capability', 'Reaches', 'Limits', 'Used by the graph', 'Creatures']), h('tbody', {}, grants.map(({ grant, holders }) => h('tr', {},
    h('td', {}, h('code', {}, grant.id)), h('td', {}, allows(grant)), h('td', {}, bounds(grant.limits)), h('td', {}, uses(grant, 'graph').map(u => h('div', {}, u.text))),
    h('td', {}, holders.slice(0, 20).map((c, i) => [i ? ', ' : '', h('a', { href: ctx.address('graph', '', { creature: c.id }) }, c.name)]), holders.length > 20 ? ` and ${number(holders.length - 20)} more` : '')))))
}

function connectorTable(list) {
  return h('table', {}, h('caption', {}, 'Sources and sinks'), head(['Name', 'Kind', 'Reaches', 'Channel', 'State', 'Messages']), h('tbody', {}, list.map(c => h('tr', {},
    h('td', {}, `${ways[c.direction] || c.direction}: `, h('code', {}, c.name)), h('td', {}, c.kind), h('td', {}, c.reaches), h('td', {}, c.channel),
    h('td', {}, c.error ? [mark('failing'), ' '] : '', c.state, [c.error, c.remedy, c.problem].filter(Boolean).map(text => h('div', { class: 'muted' }, text))),
    h('td', {}, [number(c.messages), c.refused ? `${number(c.refused)} left out` : '', c.failures ? count(c.failures, 'failure') : ''].filter(Boolean).join(', '))))))
}

// outsideView lists everything that leads outside, by graph.
export function outsideView(ctx, host, route) {
  const { store } = ctx
  const list = h('div'), title = h('span', { class: 'muted' })
  host.append(h('div', { class: 'page' }, h('div', { class: 'head' }, h('h1', {}, 'Outside'), title), list))
  const only = route.params.get('graph')
  let look
  const paint = () => {
    const graphs = [...store.graphs.values()].filter(g => !only || g.id === only).map(graph => ({ graph, grants: grantsOf(graph), connectors: connectorsOf(store, graph) })).filter(g => g.grants.length || g.connectors.length)
    const placed = new Set(graphs.flatMap(g => g.connectors)), loose = only ? [] : store.connectors.filter(c => !placed.has(c))
    const now = JSON.stringify([graphs.map(g => [g.graph.id, g.graph.name, g.graph.slot, g.connectors, g.grants.map(x => [x.grant, x.holders.map(c => c.name)])]), loose])
    if (now === look || list.contains(document.activeElement)) return
    look = now
    replace(title, count(graphs.reduce((n, g) => n + g.grants.length, 0), 'capability', 'capabilities'), ', ', count(placed.size + loose.length, 'source or sink', 'sources and sinks'))
    replace(list, graphs.map(({ graph, grants, connectors }) => h('section', { class: 'box wide', 'data-graph': graph.id }, h('div', { class: 'in' }, h('h2', { class: 'named' }, swatch(colour(graph.slot)), graph.name)),
      grants.length ? grantTable(ctx, grants) : '', connectors.length ? connectorTable(connectors) : '')),
    loose.length ? h('section', { class: 'box wide' }, connectorTable(loose)) : '',
    graphs.length || loose.length ? '' : h('div', { class: 'face' }, h('h2', {}, 'Nothing leads outside'), h('p', {}, 'Capabilities that recipes grant to creatures, and their sources and sinks, appear here.')))
  }
  paint()
  return { update: paint }
}
