// The view Approvals: what creatures wait for, with the two ways to answer.
import { clock, count, h, hidden, mark, payload, replace } from './lib.js'
import { todoTabs } from './lists.js'

export function approvalsView(ctx, host) {
  const { store } = ctx
  const list = h('div'), head = h('span', { class: 'muted' })
  host.append(h('div', { class: 'page narrow' }, todoTabs(ctx), h('div', { class: 'head' }, h('h1', {}, 'Approvals'), head), list))
  let waiting = [], reading = false, look

  const read = async () => {
    if (reading) return
    reading = true
    try {
      waiting = (await ctx.call('approvals', {})).approvals
      paint()
    } catch (err) { replace(list, ctx.errorText(err)); look = '' } finally { reading = false }
  }

  const decide = async (button, a, operation) => {
    const acts = button.parentElement, reason = acts.querySelector('input').value
    const note = acts.querySelector('.note') || acts.appendChild(h('span', { class: 'note', role: 'status' }))
    for (const b of acts.querySelectorAll('button')) b.disabled = true
    try {
      await ctx.call(operation, { approval: a.id, reason })
      ctx.announce(`${a.subject} of ${a.name} was ${operation === 'approve' ? 'approved' : 'denied'}.`)
      look = ''
      await read()
      ctx.refresh()
    } catch (err) {
      replace(note, ctx.errorText(err))
      for (const b of acts.querySelectorAll('button')) b.disabled = !ctx.online
    }
  }

  const paint = () => {
    const now = JSON.stringify([waiting.map(a => [a.id, a.behind]), ctx.online])
    if (now === look) return
    look = now
    replace(head, waiting.length ? `${count(waiting.length, 'question')} of policies that turns wait for` : '')
    replace(list, waiting.length ? waiting.map(box)
      : h('div', { class: 'face' }, h('h2', {}, 'No approvals'), h('p', {}, 'What a policy asks an operator about waits here until it is approved or denied, or until its time is over.')))
  }

  const box = a => h('section', { class: 'box', 'aria-label': `${a.subject} of ${a.name}` },
    h('div', { class: 'in group-head' }, mark('waits'), h('div', {},
      h('p', {}, h('b', {}, a.subject), ' of ', h('a', { href: ctx.address('graph', '', { creature: a.creature }) }, store.name(a.creature))),
      h('p', {}, a.reason || ''), h('p', { class: 'mono muted' }, `${a.policy} ${a.where || ''}`),
      h('p', { class: 'muted' }, `Since ${clock(a.since)}. It is ${a.otherwise} at ${a.deadline.slice(0, 19).replace('T', ' ')} UTC unless you decide. ${count(a.behind, 'delivery waits', 'deliveries wait')} behind it.`))),
    h('div', { class: 'in' }, hidden(a.size, () => payload(a.content) + (a.size > 8192 ? '\n…' : ''))),
    h('div', { class: 'in acts' }, h('input', { type: 'text', 'aria-label': 'Reason', placeholder: 'Reason', maxlength: 200 }),
      h('button', { disabled: !ctx.online, onclick: e => decide(e.currentTarget, a, 'approve') }, 'Approve'),
      h('button', { disabled: !ctx.online, onclick: e => decide(e.currentTarget, a, 'deny') }, 'Deny')))

  read()
  let tick = 0
  return { update() { if (++tick % 10 === 0 && !list.contains(document.activeElement)) read() }, event(e) { if (e.kind === 'approval_asked' || e.kind === 'approval_decided') setTimeout(read, 200) }, structure: paint }
}
