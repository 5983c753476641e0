// The view Approvals: the questions for which creatures wait, with the two answers.
import { clock, count, h, hidden, mark, payload, payloadBytes, replace } from './lib.js'
import { todoTabs } from './lists.js'

// shown is what would happen: the headers of a message, and its content. It fetches what
// the list does not contain.
async function shown(ctx, a) {
  if (a.content_hash || a.more_headers) {
    try { a = { ...a, ...await ctx.call('approval_content', { approval: a.id }), content_hash: '', more_headers: 0 } } catch (err) { if (err.code !== 'unsupported') throw err }
  }
  const headers = Object.entries(a.headers || {}).map(([name, value]) => `${name}: ${value}`)
  if (a.more_headers) headers.push(`… and ${count(a.more_headers, 'more header')}`)
  return (headers.length ? headers.join('\n') + '\n\n' : '') + payload(a.content) + (a.content_hash ? `\n… (${a.size} bytes, SHA-256 ${a.content_hash})` : '')
}

export function approvalsView(ctx, host) {
  const { store } = ctx
  const list = h('div'), fault = h('div'), head = h('span', { class: 'muted' })
  host.append(h('div', { class: 'page narrow' }, todoTabs(ctx), h('div', { class: 'head' }, h('h1', {}, 'Approvals'), head), list, fault))
  // By the id of a question. A box is the same element for as long as its question waits:
  // the reason typed into it and its open content stay, and it moves only when a question above
  // is decided. New ones are added at the end.
  const boxes = new Map()
  let reading = false, again = false

  const read = async () => {
    again = true
    if (reading) return
    reading = true
    try {
      while (again) {
        again = false
        show((await ctx.call('approvals', {})).approvals)
        replace(fault)
      }
    } catch (err) { replace(fault, ctx.errorText(err)) } finally { reading = false }
  }

  const decide = async (b, a, operation) => {
    const note = b.acts.querySelector('.note') || b.acts.appendChild(h('span', { class: 'note', role: 'status' }))
    b.busy = true
    enable()
    try {
      await ctx.call(operation, { approval: a.id, reason: b.reason.value })
      ctx.announce(`${a.subject} of ${a.name} was ${operation === 'approve' ? 'approved' : 'denied'}.`)
      await read()
      ctx.refresh()
    } catch (err) {
      replace(note, ctx.errorText(err))
      b.busy = false
      enable()
    }
  }

  const enable = () => {
    for (const b of boxes.values()) for (const button of b.buttons) button.disabled = b.busy || !ctx.online
  }

  const show = waiting => {
    const ids = new Set(waiting.map(a => a.id))
    for (const [id, b] of boxes) if (!ids.has(id)) { b.el.remove(); boxes.delete(id) }
    if (!boxes.size) replace(list)
    for (const a of waiting) {
      if (!boxes.has(a.id)) {
        const b = box(a)
        boxes.set(a.id, b)
        list.append(b.el)
      }
      const text = `${count(a.behind, 'delivery waits', 'deliveries wait')} behind it.`, { behind } = boxes.get(a.id)
      if (behind.textContent !== text) behind.textContent = text
    }
    enable()
    replace(head, waiting.length ? `${count(waiting.length, 'question')} of policies that turns wait for` : '')
    if (!waiting.length) list.append(h('div', { class: 'face' }, h('h2', {}, 'No approvals'), h('p', {}, 'Questions of policies wait here until they are approved or denied, or until their deadline passes.')))
  }

  const box = a => {
    const b = { busy: false, behind: h('span'), reason: h('input', { type: 'text', 'aria-label': 'Reason', placeholder: 'Reason', maxlength: 200 }) }
    // The second click of a double click may be on the next box, which moved up under it.
    b.buttons = [['approve', 'Approve'], ['deny', 'Deny']].map(([operation, text]) => h('button', { onclick: e => { if (e.detail < 2) decide(b, a, operation) } }, text))
    b.acts = h('div', { class: 'in acts' }, b.reason, b.buttons)
    b.el = h('section', { class: 'box', 'aria-label': `${a.subject} of ${a.name}` },
      h('div', { class: 'in group-head' }, mark('waits'), h('div', {},
        h('p', {}, h('b', {}, a.subject), ' of ', h('a', { href: ctx.address('graph', '', { creature: a.creature }) }, store.name(a.creature))),
        h('p', {}, a.reason || ''), h('p', { class: 'mono muted' }, `${a.policy} ${a.where || ''}`),
        h('p', { class: 'muted' }, `Since ${clock(a.since)}. It will be ${a.otherwise} at ${a.deadline.slice(0, 19).replace('T', ' ')} UTC unless you decide. `, b.behind))),
      h('div', { class: 'in' }, hidden(a.size, () => shown(ctx, a))),
      b.acts)
    return b
  }

  read()
  let tick = 0
  return { update() { if (++tick % 10 === 0) read() }, event(e) { if (e.kind === 'approval_asked' || e.kind === 'approval_decided') setTimeout(read, 200) }, structure: enable }
}
