import { afterEach, expect, test, vi } from 'vitest';
import { follow, lines, type WatchEvent } from './watch';

async function* chunks(...texts: string[]) {
  for (const t of texts) yield await Promise.resolve(t);
}

test('lines come whole however they are cut, and heartbeats are no lines', async () => {
  const got: string[] = [];
  for await (const l of lines(chunks('{"a"', ':1}\n\n{"b":2}\n', '\n', '{"half"'))) got.push(l);
  expect(got).toEqual(['{"a":1}', '{"b":2}']);
});

test('a line without end ends the stream', async () => {
  const big = 'x'.repeat(1 << 20);
  await expect(async () => {
    for await (const l of lines(chunks(big, big, big, big, big))) expect(l).toBe('');
  }).rejects.toThrow('too long');
});

afterEach(() => void vi.unstubAllGlobals());

const event = (revision: number): WatchEvent => ({
  revision,
  type: 'put',
  object: { kind: 'Instance', meta: { name: 'a' } },
});
const body = (...events: WatchEvent[]) => new Response(events.map((e) => `${JSON.stringify(e)}\n`).join(''));

test('it goes on from the last revision that it has seen', async () => {
  const asked: string[] = [];
  const answers = [body(event(7), event(9)), new Response('', { status: 503 }), body(event(12))];
  const end = new AbortController();
  vi.stubGlobal('fetch', (url: string) => {
    const query = new URL(url, 'http://x').searchParams;
    expect(query.getAll('kind')).toEqual([]); // all kinds
    asked.push(query.get('since') ?? '');
    const a = answers.shift();
    if (!a) end.abort();
    return Promise.resolve(a ?? new Response('', { status: 503 }));
  });
  const seen: number[] = [];
  follow({ since: 5, onEvent: (e) => seen.push(e.revision), onState: () => undefined }, end.signal);
  await vi.waitFor(() => expect(end.signal.aborted).toBe(true), { timeout: 60_000 });
  expect(asked).toEqual(['5', '9', '9', '12']);
  expect(seen).toEqual([7, 9, 12]);
}, 15_000);

test('it ends with the session', async () => {
  const ask = vi.fn(() => Promise.resolve(new Response('', { status: 401 })));
  vi.stubGlobal('fetch', ask);
  const states: string[] = [];
  follow({ since: 0, onEvent: () => undefined, onState: (s) => states.push(s) }, new AbortController().signal);
  await vi.waitFor(() => expect(states).toEqual(['ended']), { timeout: 60_000 });
  expect(ask).toHaveBeenCalledTimes(1);
});
