// The view Dead letters.
import { clock, count, h, hidden, mark, number, payload, payloadBytes, replace } from './lib.js'
import { inShort } from './turn.js'
import { todoTabs } from './lists.js'

const shown = 3 // letters of a group before "more"

export function deadLettersView(ctx, host, route) {
  const { store } = ctx
  const list = h('div'), head = h('span', { class: 'muted' }), open = new Set(), chosen = new Map()
  const only = route.params.get('creature') || ''
  host.append(h('div', { class: 'page narrow' }, todoTabs(ctx), h('div', { class: 'head' }, h('h1', {}, 'Dead letters'), head), list))
  let letters = [], reading = false, look

  const read = async () => {
    if (reading) return
    reading = true
    try {
      const all = []
      for (const graph of store.graphs.keys()) {
        const { dead_letters: found } = await ctx.call('dead_letters', { graph, limit: 1000 })
        for (const l of found) all.push({ ...l, graph })
      }
      letters = only ? all.filter(l => l.creature === only) : all
      if (!only) ctx.lettersListed = letters.length
      paint()
    } catch (err) { replace(list, ctx.errorText(err)) } finally { reading = false }
  }

  const redeliver = async (button, group) => {
    const want = group.list.filter(l => chosen.get(l.id) !== false)
    const note = button.parentElement.querySelector('.note') || button.parentElement.appendChild(h('span', { class: 'note', role: 'status' }))
    button.disabled = true
    let done = 0
    try {
      for (const l of want) { // in their order
        await ctx.call('redeliver', { graph: l.graph, message: l.id })
        replace(note, `${++done} of ${want.length}`)
      }
      ctx.announce(`${count(done, 'dead letter')} redelivered.`)
      look = ''
      await read()
      ctx.refresh()
    } catch (err) { replace(note, done ? `${done} of ${want.length} are redelivered. ` : '', ctx.errorText(err)) } finally { button.disabled = !ctx.online }
  }

  const paint = () => {
    const now = JSON.stringify([letters.map(l => l.id), [...open], [...chosen], [...store.creatures.values()].map(c => c.state), ctx.online])
    if (now === look) return
    look = now
    replace(head, letters.length ? `${count(letters.length, 'delivery', 'deliveries')} that no creature is going to handle, by reason${only ? `, of ${store.name(only)}` : ''}` : '')
    const groups = new Map()
    for (const l of letters) {
      const key = `${l.reason} ${l.creature}`
      if (!groups.has(key)) groups.set(key, { reason: l.reason, creature: l.creature, list: [] })
      groups.get(key).list.push(l)
    }
    replace(list, groups.size ? [...groups].map(([key, g]) => groupBox(key, g)) : h('div', { class: 'face' }, h('h2', {}, 'No dead letters'), h('p', {}, 'A delivery that fails in every attempt, or that has no creature to go to, is kept here until it is redelivered.')))
  }

  const groupBox = (key, g) => {
    const creature = store.creatures.get(g.creature), status = creature ? store.statusOf(creature) : 'stopped'
    const n = g.list.filter(l => chosen.get(l.id) !== false).length, last = g.list.at(-1), blocked = status === 'quarantined'
    const again = h('button', { class: blocked ? '' : 'main', disabled: !ctx.online || !n, onclick: e => redeliver(e.currentTarget, g) }, `Redeliver ${number(n)}`)
    const first = blocked ? h('a', { class: 'button', href: ctx.address('graph', '', { creature: g.creature }) }, 'Look at the creature') : ''
    return h('section', { class: 'box', 'aria-label': `${g.reason} in ${store.name(g.creature)}` },
      h('div', { class: 'in group-head' }, mark(blocked ? 'quarantined' : 'failing'), h('div', {}, h('p', {}, h('b', {}, g.reason), ' in ', h('a', { href: ctx.address('graph', '', { creature: g.creature }) }, store.name(g.creature)), h('span', { class: 'muted' }, ` · ${count(g.list.length, 'delivery', 'deliveries')}`)),
        last.error ? h('p', { class: 'mono muted' }, inShort(last.error).slice(0, 400)) : ''), h('div', { class: 'acts' }, first, again)),
      blocked ? h('div', { class: 'in' }, h('b', {}, `${creature.name} is quarantined.`), ' Redelivered, they would wait in its mailbox until it is started; with the same module they may fail again.')
        : creature ? '' : h('div', { class: 'in' }, h('b', {}, 'The creature was removed.'), ' A redelivery needs a creature that listens.'),
      (open.has(key) ? g.list : g.list.slice(0, shown)).map(l => letter(l)),
      g.list.length > shown && !open.has(key) ? h('div', { class: 'in' }, h('button', { class: 'plain', onclick: () => { open.add(key); paint() } }, `Show ${number(g.list.length - shown)} more`)) : '')
  }

  const letter = l => {
    const name = l.channel ? `${l.channel.startsWith('inbox:') ? 'inbox' : store.name(l.channel)}#${l.seq}` : l.alias ? `sent as ${l.alias}` : l.kind
    const box = h('input', { type: 'checkbox', 'aria-label': `Redeliver ${name} with the group`, onchange: e => { chosen.set(l.id, e.currentTarget.checked); paint() } })
    box.checked = chosen.get(l.id) !== false
    const failed = store.events.find(e => e.kind === 'turn_failed' && e.cause === l.message)
    return h('div', { class: 'in letter' }, box, h('span', {}, h('code', {}, name), l.attempts ? ` · ${count(l.attempts, 'attempt')}` : '', ` · ${clock(l.ts)}`, l.last_words ? h('span', { class: 'muted' }, ` · last words: “${l.last_words.slice(0, 120)}”`) : ''),
      hidden(payloadBytes(l.payload), () => payload(l.payload)), h('a', { class: 'button turn', href: failed?.id ? ctx.address('turn', failed.id) : ctx.address('turn', l.id) }, 'Turn'))
  }

  read()
  let tick = 0
  return { update() { if (++tick % 10 === 0) read(); else if (!list.contains(document.activeElement)) paint() }, event(e) { if (e.kind === 'dead_letter') setTimeout(read, 200) }, structure: paint }
}
