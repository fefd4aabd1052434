// The watch: one stream of changes for all tabs of a browser. The tab that holds the lock reads it and passes
// changes to the others; when it closes, the next tab continues from the last revision that it has received.
import { base } from './client';

export interface WatchedObject {
  kind: string;
  meta: { id?: string; name: string; revision?: number; deletedAt?: string; [k: string]: unknown };
  [k: string]: unknown;
}

export interface WatchEvent {
  revision: number;
  type: 'put' | 'remove' | 'sync';
  object: WatchedObject;
}

/** ended means that the session is over, and that there are no more attempts. */
export type Liveness = 'live' | 'waiting' | 'ended';

class Ended extends Error {}

const silence = 40_000; // ms: more than two of the server's heartbeats
const maxLine = 4 << 20; // characters; larger than any object

/** lines splits a stream of text into lines, without empty ones. */
export async function* lines(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of chunks) {
    const parts = (rest + chunk).split('\n');
    rest = parts.pop() ?? '';
    if (rest.length > maxLine) throw new Error('a line of the watch is too long');
    for (const p of parts) if (p !== '') yield p;
  }
}

async function* read(body: ReadableStream<Uint8Array>, alive: () => void): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    yield decoder.decode(value, { stream: true });
  }
}

/** stream reads one connection until it ends, and returns whether it was ever open. */
async function stream(
  since: number,
  onEvent: (e: WatchEvent) => void,
  onOpen: () => void,
  signal: AbortSignal,
): Promise<void> {
  const own = new AbortController();
  const stop = () => own.abort();
  signal.addEventListener('abort', stop);
  // The browser notices a lost network before the silence is long enough.
  globalThis.addEventListener?.('offline', stop);
  let timer = setTimeout(stop, silence);
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(stop, silence);
  };
  try {
    const r = await globalThis.fetch(`${base}/v1/watch?since=${since}`, {
      signal: own.signal,
      credentials: 'same-origin',
    });
    if (r.status === 401) throw new Ended();
    if (!r.ok || !r.body) throw new Error(`watch: HTTP ${r.status}`);
    onOpen();
    for await (const line of lines(read(r.body, alive))) onEvent(JSON.parse(line) as WatchEvent);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
    globalThis.removeEventListener?.('offline', stop);
    own.abort();
  }
}

export interface WatchOptions {
  since: number;
  onEvent: (e: WatchEvent) => void;
  onState: (s: Liveness) => void;
}

const pause = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const t = setTimeout(resolve, ms);
    globalThis.addEventListener?.('online', () => resolve(), { once: true });
    signal.addEventListener('abort', () => (clearTimeout(t), resolve()), { once: true });
  });

/** follow watches all kinds that the session may see, until the signal aborts. Which these are is in the kinds' table
 * of the server. */
export function follow({ since, onEvent, onState }: WatchOptions, signal: AbortSignal): void {
  const channel = 'BroadcastChannel' in globalThis ? new BroadcastChannel('basalt-watch') : undefined;
  signal.addEventListener('abort', () => channel?.close());
  const take = (e: WatchEvent) => {
    since = Math.max(since, e.revision);
    onEvent(e);
  };
  if (channel)
    channel.onmessage = (m: MessageEvent<{ event?: WatchEvent; state?: Liveness }>) => {
      if (m.data.event) take(m.data.event);
      if (m.data.state) onState(m.data.state);
    };
  const tell = (m: { event?: WatchEvent; state?: Liveness }) => {
    if (m.event) take(m.event);
    if (m.state) onState(m.state);
    if (!signal.aborted) channel?.postMessage(m);
  };
  const lead = async () => {
    for (let wait = 500; !signal.aborted;) {
      try {
        await stream(
          since,
          (event) => tell({ event }),
          () => {
            wait = 500;
            tell({ state: 'live' });
          },
          signal,
        );
      } catch (e) {
        if (e instanceof Ended && !signal.aborted) return tell({ state: 'ended' });
        // Any other failure: continue from the last revision.
      }
      if (signal.aborted) return;
      tell({ state: 'waiting' });
      await pause(wait * (0.5 + Math.random()), signal);
      wait = Math.min(wait * 2, 15_000);
    }
  };
  const locks = globalThis.navigator?.locks as LockManager | undefined; // absent on connections without TLS to other machines
  if (locks)
    locks.request('basalt-watch', { signal }, lead).catch(() => undefined); // aborted while waiting
  else void lead();
}
