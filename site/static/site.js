'use strict';
(() => {
  const root = new URL('.', document.currentScript.src);
  const page = document.documentElement;
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const stored = () => { try { return localStorage.getItem('theme'); } catch { return null; } };
  const paint = () => {
    page.dataset.theme = stored() || (dark.matches ? 'dark' : 'light');
    // Pictures follow the theme of the page, not that of the system.
    for (const source of document.querySelectorAll('source[media]')) {
      source.dataset.scheme ??= /dark/.test(source.media) ? 'dark' : 'light';
      source.media = source.dataset.scheme === page.dataset.theme ? 'all' : 'not all';
    }
  };
  paint();
  dark.addEventListener('change', paint);

  // The index is read when it is first needed, by a script element: that works from a file, too.
  let index;
  const load = () => index ??= new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = new URL('search-index.js', root);
    script.onload = () => resolve(window.searchIndex.map(s => ({ ...s, small: `${s.title}\n${s.heading}\n${s.text}`.toLowerCase() })));
    script.onerror = reject;
    document.head.append(script);
  });

  const escape = text => text.replace(/[&<>"]/g, c => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);
  const emphasise = (text, words) => {
    const pattern = new RegExp(words.map(w => w.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|'), 'gi');
    let out = '', end = 0;
    for (const m of text.matchAll(pattern)) {
      out += `${escape(text.slice(end, m.index))}<mark>${escape(m[0])}</mark>`;
      end = m.index + m[0].length;
    }
    return out + escape(text.slice(end));
  };

  // find returns the sections that have all words, the best first: words in a title or a heading
  // count more than words in the text, and whole words more than parts of them.
  const find = (sections, words) => sections.map(s => {
    let score = 0;
    for (const w of words) {
      if (!s.small.includes(w)) return { score: 0 };
      const weigh = (text, weight) => {
        const at = text.indexOf(w);
        if (at < 0) return 0;
        const whole = new RegExp(`(^|[^\\p{L}\\p{N}])${w.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}($|[^\\p{L}\\p{N}])`, 'u').test(text);
        return text === w ? 3 * weight : whole ? 2 * weight : weight;
      };
      score += weigh(s.title.toLowerCase(), s.heading ? 3 : 12) + weigh(s.heading.toLowerCase(), 10) + weigh(s.small, 1);
    }
    if (/^(CHANGELOG|.*RATIONALE)\./.test(s.url)) score /= 4;
    return { s, score };
  }).filter(r => r.score > 0).sort((a, b) => b.score - a.score).slice(0, 25).map(r => r.s);

  const excerpt = (text, words) => {
    const small = text.toLowerCase();
    const first = Math.min(...words.map(w => small.indexOf(w)).filter(i => i >= 0), text.length);
    const start = first === text.length || first < 60 ? 0 : text.indexOf(' ', first - 60) + 1;
    return (start ? '… ' : '') + text.slice(start, start + 180) + (text.length > start + 180 ? ' …' : '');
  };

  document.addEventListener('DOMContentLoaded', () => {
    paint();
    const menu = document.getElementById('site-menu');
    menu.addEventListener('click', () => menu.setAttribute('aria-expanded', page.classList.toggle('open')));
    const here = document.querySelector('#site-pages [aria-current]');
    if (here) document.getElementById('site-pages').scrollTop = Math.max(0, here.offsetTop - 200);

    document.getElementById('site-theme').addEventListener('click', () => {
      try { localStorage.setItem('theme', page.dataset.theme === 'dark' ? 'light' : 'dark'); } catch { /* not kept */ }
      paint();
    });

    const toc = document.querySelector('.toc');
    if (toc && matchMedia('(min-width: 90rem)').matches) toc.open = true;

    for (const code of document.querySelectorAll('article pre')) {
      const around = document.createElement('div'), button = document.createElement('button');
      around.className = 'code';
      button.className = 'copy';
      button.textContent = 'Copy';
      button.addEventListener('click', async () => {
        // Of a session with prompts only the commands are of use.
        const lines = code.innerText.split('\n');
        const session = lines[0].startsWith('$ ');
        const text = session ? lines.filter(l => /^[$>] /.test(l)).map(l => l.slice(2)).join('\n') : code.innerText;
        try { await navigator.clipboard.writeText(text); button.textContent = 'Copied'; } catch { button.textContent = 'Not copied'; }
        setTimeout(() => { button.textContent = 'Copy'; }, 1500);
      });
      code.replaceWith(around);
      around.append(code, button);
    }

    const form = document.getElementById('site-search'), input = form.querySelector('input'), results = document.getElementById('site-results');
    let chosen = 0;
    const choose = n => {
      const links = [...results.querySelectorAll('a')];
      chosen = Math.max(0, Math.min(n, links.length - 1));
      links.forEach((a, i) => a.setAttribute('aria-selected', i === chosen));
      links[chosen]?.scrollIntoView({ block: 'nearest' });
    };
    const show = async () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      results.hidden = words.length === 0;
      if (results.hidden) return;
      let sections;
      try { sections = await load(); } catch { results.innerHTML = '<p>The index could not be read.</p>'; return; }
      const found = find(sections, words);
      results.innerHTML = found.map(s => `<a role="option" href="${escape(new URL(s.url, root).href)}"><b>${emphasise(s.title, words)}</b>` +
        `${s.heading ? ` › ${emphasise(s.heading, words)}` : ''}<span>${emphasise(excerpt(s.text, words), words)}</span></a>`).join('') || '<p>Nothing was found.</p>';
      choose(0);
    };
    const asked = new URLSearchParams(location.search).get('q');
    if (asked) { input.value = asked; show(); }
    input.addEventListener('input', show);
    input.addEventListener('focus', () => { load().catch(() => {}); show(); });
    form.addEventListener('submit', e => { e.preventDefault(); results.querySelectorAll('a')[chosen]?.click(); });
    results.addEventListener('click', () => { results.hidden = true; });
    document.addEventListener('click', e => { if (!form.contains(e.target)) results.hidden = true; });
    document.addEventListener('keydown', e => {
      const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
      if (e.key === '/' && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) { e.preventDefault(); input.focus(); }
      if (e.key === 'Escape') { results.hidden = true; input.blur(); page.classList.remove('open'); menu.setAttribute('aria-expanded', false); }
      if (document.activeElement === input && (e.key === 'ArrowDown' || e.key === 'ArrowUp')) { e.preventDefault(); choose(chosen + (e.key === 'ArrowDown' ? 1 : -1)); }
    });
  });
})();
