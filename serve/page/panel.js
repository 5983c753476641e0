// The panel of one creature.
import { colour } from './graph.js'
import { reach } from './outside.js'
import { inShort } from './trap.js'
import { bytes, clock, count, duration, h, hidden, icon, mark, number, payload, payloadBytes, rate, replace, said, span, swatch, trim, words } from './lib.js'

const tabs = [['overview', 'Overview'], ['turns', 'Turns'], ['log', 'Log'], ['state', 'State'], ['config', 'Config'], ['send', 'Send']]

export class Panel {
  constructor(ctx, id, tab, close) {
    this.ctx = ctx
    this.store = ctx.store
    this.id = id
    this.title = h('h1', { id: 'panel-title' })
    this.facts = h('p')
    this.tabs = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'About this creature' })
    this.body = h('div', { class: 'tab', role: 'tabpanel', tabindex: -1 })
    this.root = h('aside', { class: 'panel', 'aria-labelledby': 'panel-title' },
      h('div', { class: 'top' }, h('div', {}, this.title, h('button', { class: 'plain icon-only', 'aria-label': 'Close', onclick: close }, icon('close'))), this.facts),
      this.tabs, this.body)
    for (const [key, name] of tabs) this.tabs.append(h('button', { role: 'tab', 'data-tab': key, onclick: () => { ctx.keep({ tab: key }); this.tab(key) } }, name))
    this.tabs.addEventListener('keydown', e => {
      if (e.key !== 'ArrowLeft' && e.key !== 'ArrowRight') return
      const all = [...this.tabs.children], i = all.indexOf(document.activeElement)
      all[(i + (e.key === 'ArrowRight' ? 1 : all.length - 1)) % all.length].focus()
    })
    this.tab(tab || 'overview')
    setTimeout(() => this.root.querySelector('button')?.focus({ preventScroll: true }))
  }

  remove() { this.root.remove() }

  tab(key) {
    this.shown = tabs.some(([k]) => k === key) ? key : 'overview'
    for (const b of this.tabs.children) {
      const on = b.dataset.tab === this.shown
      b.setAttribute('aria-selected', String(on))
      b.tabIndex = on ? 0 : -1
    }
    this.body.replaceChildren()
    this.look = ''
    this.update()
    if (this.shown !== 'overview' && this.shown !== 'turns') this.load()
  }

  get creature() { return this.store.creatures.get(this.id) }

  update() {
    const c = this.creature
    if (!c) {
      this.title.textContent = this.store.name(this.id)
      replace(this.facts, 'This creature no longer exists.')
      if (this.shown === 'overview') this.body.replaceChildren()
      return
    }
    const status = this.store.statusOf(c), g = this.store.graphs.get(c.graph)
    const head = [c.name, status, g.name, g.slot].join()
    if (head !== this.head) {
      this.head = head
      this.title.textContent = c.name
      replace(this.facts, said(status), h('span', { class: 'named' }, swatch(colour(g.slot)), h('span', {}, g.name)),
        c.species ? h('span', {}, `species ${c.species}`) : '', c.root ? 'root' : '', c.privileged ? 'privileged' : '', h('code', { title: c.id }, c.id.slice(0, 6) + '…'))
    }
    if (this.shown === 'overview') this.overview(c, status)
    if (this.shown === 'turns') this.allTurns()
  }

  overview(c, status) {
    const turns = (this.store.turns.get(c.id) || []).slice(-5).reverse()
    const look = JSON.stringify([status, c.counters, c.pending, c.memory_bytes, c.capabilities, this.store.connectors, turns.map(t => t.id), this.store.channels.size, Math.floor(this.store.now() / 5000), this.ctx.online])
    if (look === this.look || this.body.contains(document.activeElement) && document.activeElement.tagName === 'BUTTON' && this.look) return
    this.look = look
    const section = (...children) => h('section', { class: 'part' }, children)
    const n = c.counters || {}
    replace(this.body, this.wrong(c, status),
      section(h('div', { class: 'counts' }, [['turns', n.turns], ['failed', n.failures], ['dead letters', n.dead_letters], ['sent', n.sent], ...(n.denied ? [['denied', n.denied]] : [])]
        .map(([name, v]) => h('div', {}, h('b', {}, number(v)), h('span', {}, name))))),
      section(h('h2', {}, 'Use of limits'), this.gauges(c)),
      section(h('h2', {}, 'Last turns'), turns.length ? turns.map(t => this.turnRow(t, c)) : h('p', { class: 'muted' }, 'None since this page was opened.')),
      section(h('h2', {}, 'Channels'), h('div', { class: 'kv' }, this.channels(c))),
      section(h('h2', {}, 'Outside'), reach(this.ctx, c, gauge),
        h('p', {}, h('a', { href: this.ctx.address('outside', '', { graph: c.graph }) }, 'All that leads outside this graph'))),
      section(h('h2', {}, 'Module'), h('p', { class: 'mono' }, c.module), h('p', { class: 'mono muted' }, `sha256 ${c.module_sha256.slice(0, 16)}… · instance ${c.instance_starts}`)))
  }

  // wrong is the beginning of the panel: what is wrong, and what to do next.
  wrong(c, status) {
    if (status === 'running') return ''
    const failed = this.store.failed.get(c.id), { act } = this.ctx
    const off = !this.ctx.online
    const start = h('button', { class: 'main', disabled: off, onclick: e => act(e.currentTarget, 'start_creature', { creature: c.id }, () => 'Started.') }, { stopped: 'Start', paused: 'Resume' }[status] || 'Start again')
    const turn = failed?.event?.id ? h('a', { class: 'button', href: this.ctx.address('turn', failed.event.id) }, 'Look at the turn')
      : h('a', { class: 'button', href: this.ctx.address('dead-letters', '', { creature: c.id }) }, 'Dead letters')
    const stop = this.store.stopOf(c), also = stop ? ` Its recipe has stopped, too: ${stop.condition} holds: ${stop.reason}. Start it when the recipe continues.` : '', waiting = count(c.pending, 'delivery waits', 'deliveries wait')
    const says = {
      quarantined: [h('b', {}, failed?.quarantined ? `Out of service since ${clock(failed.quarantined)}.` : 'Out of service.'), ` It failed more often than its restart policy allows. ${count(c.pending, 'delivery waits', 'deliveries wait')} until it is started again.`, also],
      failing: [h('b', {}, `A turn failed at ${clock(failed?.at)}.`), ` ${number(c.counters?.failures)} of its turns have failed since the engine started.`],
      backing: [h('b', {}, 'It pauses before the next attempt.'), ' Its restart policy sets a pause after each failure.'],
      waits: [h('b', {}, 'It waits for your approval.'), ` ${count(c.pending, 'delivery waits', 'deliveries wait')} until you decide, or until the deadline passes.`],
      paused: stop ? [h('b', {}, 'Its recipe has stopped.'), ` ${stop.condition} holds: ${stop.reason}. ${waiting} until the block is changed or removed and the recipe is applied again.`]
        : [h('b', {}, 'Paused.'), ` It keeps its instance, and ${count(c.pending, 'delivery waits', 'deliveries wait')} until it is resumed.`],
      stopped: [h('b', {}, 'Stopped.'), ` It keeps its state, and ${count(c.pending, 'delivery waits', 'deliveries wait')}.`, also],
    }[status]
    const buttons = { quarantined: stop ? [turn] : [start, turn], stopped: stop ? [] : [start], paused: stop ? [] : [start], waits: [h('a', { class: 'button', href: this.ctx.address('approvals') }, 'Approvals')] }[status] || [turn]
    return h('section', { class: 'part' }, h('div', { class: `wrong st-${status}` }, h('p', {}, says), failed?.error ? h('code', {}, `${failed.code}: ${inShort(failed.error)}`) : '', h('div', { class: 'acts' }, buttons)))
  }

  gauges(c) {
    const l = c.limits || {}, last = (this.store.turns.get(c.id) || []).at(-1)
    const fuel = last?.payload?.fuel || 0, took = duration(last?.duration)
    const giga = n => trim(n / 1e9) + ' G'
    const rows = [['mailbox', c.pending, l.mailbox, `${number(c.pending)} of ${number(l.mailbox)}`], ['fuel, last turn', fuel, l.fuel, l.fuel >= 1e8 ? `${trim(fuel / 1e9) || 0} of ${giga(l.fuel)}` : `${number(fuel)} of ${number(l.fuel)}`]]
    if (took) rows.push(['duration', took, duration(l.deadline), `${span(took)} of ${span(duration(l.deadline))}`])
    rows.push(['memory', c.memory_bytes, l.memory, c.memory_bytes ? `${bytes(c.memory_bytes)} of ${bytes(l.memory)}` : `no instance, ${bytes(l.memory)}`])
    if (c.state_bytes !== undefined) rows.push(['state', c.state_bytes, l.state, `${bytes(c.state_bytes)} of ${bytes(l.state)}`])
    return rows.filter(([, , most]) => most).map(([name, value, most, text]) => gauge(name, value / most, text))
  }

  turnRow(t, c) {
    const failed = t.kind === 'turn_failed', fuel = t.payload?.fuel || 0, took = duration(t.duration)
    const name = t.channel ? `${t.channel.startsWith('inbox:') ? 'inbox' : this.store.name(t.channel)}#${t.number}` : t.payload?.kind || 'turn'
    const most = c?.limits ? (took ? duration(c.limits.deadline) : c.limits.fuel) : 1
    const bar = h('i')
    bar.style.setProperty('width', Math.min(100, 100 * (took || fuel) / most) + '%')
    return h('div', { class: 'gauge turn' }, mark(failed ? 'failing' : 'running'), t.id ? h('a', { href: this.ctx.address('turn', t.id) }, h('code', {}, name)) : h('code', {}, name),
      h('div', { class: 'track' + (failed ? ' hot' : '') }, bar), h('span', { class: 'n' }, took ? span(took) : `${number(fuel)}`), h('span', { class: 'gone' }, failed ? words.failing : 'done'))
  }

  channels(c) {
    const rows = []
    const row = (how, id) => {
      const channel = this.store.channels.get(id)
      rows.push(h('span', {}, how), h('a', { href: this.ctx.address('events', '', { q: `channel:${channel?.name || id}` }) }, channel?.name || id), h('span', { class: 'muted' }, rate(this.store.rate('channel ' + id))))
    }
    for (const id of c.listen) row('listens on', id)
    for (const id of c.send) row('sends on', id)
    const wires = this.store.graphs.get(c.graph)?.wires || []
    for (const w of wires) {
      if (w.from === c.id) rows.push(h('span', {}, 'wire to'), h('span', {}, this.store.name(w.to)), h('span', { class: 'muted' }, rate(this.store.rate('wire ' + w.wire))))
      if (w.to === c.id) rows.push(h('span', {}, 'wire from'), h('span', {}, this.store.name(w.from)), h('span', { class: 'muted' }, rate(this.store.rate('wire ' + w.wire))))
    }
    return rows.length ? rows : h('p', { class: 'muted' }, 'None.')
  }

  allTurns() {
    const turns = [...this.store.turns.get(this.id) || []].reverse()
    const look = turns.map(t => t.id).join()
    if (look === this.look && this.body.childElementCount) return
    this.look = look
    replace(this.body, h('h2', {}, 'Turns since this page was opened'), turns.length ? [h('p', { class: 'muted' }, 'Newest first. The bars show durations or, where these are not known, fuel.'), turns.map(t => this.turnRow(t, this.creature))] : h('p', { class: 'muted' }, 'None.'),
      h('p', {}, h('a', { href: this.ctx.address('events', '', { q: `creature:${this.creature?.name || this.id} kind:turn_ended` }) }, 'Show all as events')))
  }

  async load() {
    const { body, id, ctx } = this, shown = this.shown
    const put = (...children) => { if (this.shown === shown) replace(body, children) }
    put(h('p', { class: 'muted' }, 'Loading…'))
    try {
      if (shown === 'state') {
        const { state } = await ctx.call('state', { creature: id })
        const keys = Object.keys(state).sort()
        const sum = keys.reduce((n, k) => n + payloadBytes(state[k]), 0)
        put(h('h2', {}, `${count(keys.length, 'key')}, ${bytes(sum)}`), keys.slice(0, 500).map(k => h('div', { class: 'part' }, h('code', {}, k), hidden(payloadBytes(state[k]), () => payload(state[k])))),
          keys.length > 500 ? h('p', { class: 'muted' }, `${keys.length - 500} more are not listed.`) : '')
      } else if (shown === 'log') {
        const graph = this.creature?.graph
        const { events } = await ctx.call('history', { graph, creature: id, kinds: ['log'], limit: 1000 })
        put(h('h2', {}, events.length ? `${count(events.length, 'line')}, newest first` : 'No lines'), events.slice(-300).reverse().map(e =>
          h('div', { class: 'log-line' }, h('span', { class: 'muted' }, clock(e.ts)), h('span', { class: e.payload.level === 'error' ? 'st-failing' : e.payload.level === 'warn' ? 'st-backing' : 'muted' }, e.payload.level), h('code', {}, e.payload.text))))
      } else if (shown === 'config') {
        const c = this.creature
        const { json } = await ctx.call('awareness', { creature: id })
        put(h('h2', {}, 'Limits'), h('div', { class: 'kv' }, Object.entries(c?.limits || {}).flatMap(([k, v]) => [h('span', {}, k), h('span', {}, typeof v === 'number' ? number(v) : String(v)), h('span')])),
          h('h2', {}, 'Awareness document'), hidden(JSON.stringify(json).length, () => JSON.stringify(json, null, 2)))
      } else if (shown === 'send') {
        const { json } = await ctx.call('awareness', { creature: id }).catch(() => ({}))
        put(sendForm(ctx, this.creature, json))
      }
    } catch (err) { put(ctx.errorText(err)) }
  }
}

function gauge(name, part, text) {
  const bar = h('i')
  bar.style.setProperty('width', Math.min(100, Math.max(0, part * 100)) + '%')
  return h('div', { class: 'gauge', role: 'meter', 'aria-label': name, 'aria-valuemin': 0, 'aria-valuemax': 100, 'aria-valuenow': Math.round(part * 100), 'aria-valuetext': text },
    h('span', {}, name), h('div', { class: 'track' + (part >= 0.9 ? ' hot' : part >= 0.6 ? ' warm' : '') }, bar), h('span', { class: 'n' }, text))
}

// sendForm makes fields from the schema of the creature's messages, if it declares one.
function sendForm(ctx, creature, aware) {
  if (!creature) return h('p', { class: 'muted' }, 'This creature no longer exists.')
  const schema = aware?.self?.manifest?.messages?.schema || aware?.self?.schema
  const fields = schema?.type === 'object' && Object.entries(schema.properties || {}).length ? Object.entries(schema.properties) : undefined
  const where = h('select', { id: 'send-to' }, h('option', { value: '' }, 'its inbox'), creature.listen.map(id => h('option', { value: id }, `channel ${ctx.store.name(id)}`)))
  const inputs = fields ? fields.map(([name, field]) => [name, field, h('input', { id: 'f-' + name, type: field.type === 'boolean' ? 'checkbox' : field.type === 'number' || field.type === 'integer' ? 'number' : 'text' })]) : []
  const text = h('textarea', { id: 'send-text', rows: 6 })
  const value = () => {
    if (!fields) return text.value
    const object = {}
    for (const [name, field, input] of inputs) {
      if (field.type === 'boolean') object[name] = input.checked
      else if (input.value !== '') object[name] = field.type === 'number' || field.type === 'integer' ? Number(input.value) : input.value
    }
    return JSON.stringify(object)
  }
  const send = h('button', { class: 'main', onclick: e => {
    const args = where.value ? ['send', { channel: where.value, payload: value() }] : ['send_to', { creature: creature.id, payload: value() }]
    ctx.act(e.currentTarget, args[0], args[1], result => `Sent as number ${result.seq}.`)
  } }, 'Send')
  return h('div', { class: 'form' }, h('h2', {}, `Send to ${creature.name}`), h('p', { class: 'muted' }, 'Policies judge the message like any other message from outside. A message on a channel reaches all of its listeners.'),
    h('label', { for: 'send-to' }, 'To'), where,
    fields ? inputs.map(([name, field, input]) => [h('label', { for: 'f-' + name }, name + (field.description ? `: ${field.description}` : '')), input]) : [h('label', { for: 'send-text' }, 'Message'), text],
    h('div', { class: 'acts' }, send))
}
